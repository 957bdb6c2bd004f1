"""The pages in docs/ and the README name what there is, and have short sentences. architecture.md misses no room."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_imports import ROOMS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOTS = (ROOT, ROOT / "manyheads", ROOT / "tests", ROOT / "exercises")  # pages name an engine's file by its room, too
FOREIGN = {"src/nvc_info.c", "mem_mgr/mem_mgr.c", "interfaces/builtin/opengl.go"}  # of projects that a page cites

_QUOTED = re.compile(r"`([^`\n]+)`")
_SOURCE = re.compile(r"[\w-]+(/[\w-]+)*/[\w-]+\.(py|yml|json|css)")
_EXAMPLE = re.compile(r"\bNN_name\b|\b(test_)?name\.py|/_softmax\.py")  # the exercise that a page makes up
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def missing(page: Path, text: str) -> Iterator[str]:
    """The files and headings that this text of a page names and that are not there."""
    for word in (word for quoted in _QUOTED.findall(text) for word in quoted.split()):
        is_ours = _SOURCE.fullmatch(word) and not _EXAMPLE.search(word) and word not in FOREIGN
        if is_ours and not any((root / word).exists() for root in ROOTS):
            yield word
    for target, heading in _LINK.findall(text):
        linked = page.parent / target if target else page
        if not linked.exists():
            yield target
        elif heading and heading not in headings(linked.read_text(encoding="utf-8")):
            yield f"{target}#{heading}"


def headings(text: str) -> set[str]:
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    assert list(missing(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(("text", "name"), [
    pytest.param("see `judge/turn.py`", "judge/turn.py", id="a file of a room"),
    pytest.param("run `python tests/none/test_it.py > x`", "tests/none/test_it.py", id="a file in a command"),
    pytest.param("[more](nowhere.md)", "nowhere.md", id="a page"),
    pytest.param("[more](threat-model.md#no-such-part)", "threat-model.md#no-such-part", id="a heading"),
])  # fmt: skip
def test_a_name_of_nothing_is_found(text: str, name: str) -> None:
    assert list(missing(ROOT / "docs" / "faq.md", text)) == [name]


MEAN, MOST = 15, 24  # words in a sentence of a page: on average, and in nine of ten
_NO_SENTENCE = re.compile(r"```.*?```|^(?: {4}|#).*?$|!\[[^\]]*\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) |\||^\|?[-| :]+$", re.MULTILINE)


def lengths(text: str) -> list[int]:
    """Return how many words each sentence of a page has; a cell of a table and an item of a list end one."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", _NO_SENTENCE.sub("\n\n", text))
    blocks = (re.sub(r"`[^`]*`", "code", " ".join(block.split())) for block in _BLOCK.split(text))
    sentences = (sentence for block in blocks for sentence in re.split(r"(?<=[.!?])[)*\"”]*\s", block))
    counts = (len(re.findall(r"[\w'’/√·-]+", sentence)) for sentence in sentences)
    return sorted(count for count in counts if count > 2)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_a_page_has_short_sentences(page: Path) -> None:
    counts = lengths(page.read_text(encoding="utf-8"))
    assert sum(counts) <= MEAN * len(counts)
    assert counts[len(counts) * 9 // 10] <= MOST


def test_words_are_counted_by_sentence_cell_and_item() -> None:
    text = "# A heading\n\nOne two three. Four `five six` seven\neight!\n\n- nine ten eleven\n\n| a b c d | e |\n|---|---|\n"
    assert lengths(text) == [3, 3, 4, 4]


def test_the_readme_and_the_threat_model_stay_short() -> None:
    for page, most in ((ROOT / "README.md", 90), (ROOT / "docs" / "threat-model.md", 200)):
        assert len(page.read_text(encoding="utf-8").splitlines()) <= most


ARCHITECTURE = ROOT / "docs" / "architecture.md"
ENGINE = ROOT / "manyheads"

_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+|\w[\w-]*\.(py|yaml|md|j2|json|toml)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


def problems(text: str, root: Path = ROOT) -> Iterator[str]:
    """A sentence for each file of architecture.md that is not there, and each name that the file before it has not."""
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
    assert list(problems(ARCHITECTURE.read_text(encoding="utf-8"))) == []


def test_every_room_of_the_engine_is_on_the_page() -> None:
    folders = {path.parent.relative_to(ENGINE).as_posix() for path in ENGINE.glob("*/__init__.py")}
    assert set(rooms_of(ARCHITECTURE.read_text(encoding="utf-8"))) == folders | {"box/worker"}


def test_rooms_stand_on_the_page_in_the_order_in_which_they_import_one_another() -> None:
    rooms = [room.replace("/", ".") for room in rooms_of(ARCHITECTURE.read_text(encoding="utf-8"))]
    assert rooms == [room for room in ROOMS if room in rooms]


@pytest.mark.parametrize(("line", "problem"), [
    pytest.param("| `manyheads/none.py` |", "there is no manyheads/none.py", id="a file that is not there"),
    pytest.param("`manyheads/errors.py` `spell`", "manyheads/errors.py has no spell", id="a function of no file"),
    pytest.param("`manyheads/result.py` `Result.go`", "manyheads/result.py has no Result.go", id="a method of none"),
    pytest.param("call `grade` first", "grade stands without a file", id="a function without its file"),
])  # fmt: skip
def test_a_wrong_name_is_found(line: str, problem: str) -> None:
    assert list(problems(line)) == [f"line 1: {problem}"]
