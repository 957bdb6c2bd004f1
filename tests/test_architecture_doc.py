"""docs/architecture.md names what there is: its files exist, its functions are in them, and no room is missing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ENGINE = ROOT / "manyheads"

_QUOTED = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+|\w[\w-]*\.(py|yaml|md|j2|json|toml)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
TEMPLATES = ENGINE / "authoring" / "templates"  # its folders hold text with places to fill, not modules


def problems(text: str, root: Path = ROOT) -> Iterator[str]:
    """A sentence for each file that is not there, and for each name that the file before it in its line has not."""
    for number, line in enumerate(text.splitlines(), 1):
        file: Path | None = None
        for quoted in _QUOTED.findall(line):
            if _PATH.fullmatch(quoted):
                file = root / quoted
                if not file.exists():
                    yield f"line {number}: there is no {quoted}"
            elif _NAME.fullmatch(quoted):
                if file is None:
                    yield f"line {number}: {quoted} stands without a file"
                elif file.suffix == ".py" and file.exists() and quoted not in defined_in(file):
                    yield f"line {number}: {file.relative_to(root)} has no {quoted}"


def defined_in(file: Path) -> set[str]:
    """The functions, classes and constants at the top of a module, and the classes' methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def rooms_of(text: str) -> list[str]:
    """The rooms in the order of the page's table."""
    return re.findall(r"^\| `manyheads/([\w/]+)` \|", text, re.MULTILINE)


def room_of(module: Path) -> str:
    """The room that a module of the engine stands in; empty for one that stands in none."""
    folder = module.relative_to(ENGINE).parent.as_posix()
    return "box/worker" if folder.startswith("box/worker") else folder.partition("/")[0].removeprefix(".")


def rooms_imported_by(room: str) -> set[str]:
    """The other rooms from which a module of this room imports something."""
    found: set[str] = set()
    for module in (path for path in ENGINE.rglob("*.py") if room_of(path) == room and TEMPLATES not in path.parents):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                source = module.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                if source.is_relative_to(ENGINE):
                    found.add(room_of(source.with_suffix(".py") if not source.is_dir() else source / "__init__.py"))
    return found - {room, ""}


def test_every_file_and_function_on_the_page_exists() -> None:
    assert list(problems(PAGE.read_text(encoding="utf-8"))) == []


def test_every_room_of_the_engine_is_on_the_page() -> None:
    folders = {path.parent.relative_to(ENGINE).as_posix() for path in ENGINE.glob("*/__init__.py")}
    assert set(rooms_of(PAGE.read_text(encoding="utf-8"))) == folders | {"box/worker"}


def test_a_room_imports_only_rooms_that_stand_above_it_on_the_page() -> None:
    rooms = rooms_of(PAGE.read_text(encoding="utf-8"))
    below = {room: rooms_imported_by(room) & set(rooms[rooms.index(room) :]) for room in rooms}
    assert {room: names for room, names in below.items() if names} == {}


@pytest.mark.parametrize(("line", "problem"), [
    pytest.param("| `manyheads/none.py` |", "there is no manyheads/none.py", id="a file that is not there"),
    pytest.param("`manyheads/errors.py` `spell`", "manyheads/errors.py has no spell", id="a function of no file"),
    pytest.param("`manyheads/result.py` `Result.go`", "manyheads/result.py has no Result.go", id="a method of none"),
    pytest.param("call `grade` first", "grade stands without a file", id="a function without its file"),
])  # fmt: skip
def test_a_wrong_name_is_found(line: str, problem: str) -> None:
    assert list(problems(line)) == [f"line 1: {problem}"]
