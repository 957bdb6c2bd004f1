"""docs/architecture.md names what there is: its files exist, its functions are in them, and no room is missing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_imports import ROOMS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ENGINE = ROOT / "manyheads"

_QUOTED = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+|\w[\w-]*\.(py|yaml|md|j2|json|toml)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


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


def test_every_file_and_function_on_the_page_exists() -> None:
    assert list(problems(PAGE.read_text(encoding="utf-8"))) == []


def test_every_room_of_the_engine_is_on_the_page() -> None:
    folders = {path.parent.relative_to(ENGINE).as_posix() for path in ENGINE.glob("*/__init__.py")}
    assert set(rooms_of(PAGE.read_text(encoding="utf-8"))) == folders | {"box/worker"}


def test_rooms_stand_on_the_page_in_the_order_in_which_they_import_one_another() -> None:
    rooms = [room.replace("/", ".") for room in rooms_of(PAGE.read_text(encoding="utf-8"))]
    assert rooms == [room for room in ROOMS if room in rooms]


@pytest.mark.parametrize(("line", "problem"), [
    pytest.param("| `manyheads/none.py` |", "there is no manyheads/none.py", id="a file that is not there"),
    pytest.param("`manyheads/errors.py` `spell`", "manyheads/errors.py has no spell", id="a function of no file"),
    pytest.param("`manyheads/result.py` `Result.go`", "manyheads/result.py has no Result.go", id="a method of none"),
    pytest.param("call `grade` first", "grade stands without a file", id="a function without its file"),
])  # fmt: skip
def test_a_wrong_name_is_found(line: str, problem: str) -> None:
    assert list(problems(line)) == [f"line 1: {problem}"]
