"""The documentation names only existing files, functions and headings, and has short sentences."""

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.names import _read, figures
from tests.test_imports import PACKAGES

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "manyheads"
ARCHITECTURE = ROOT / "docs/architecture.md"
STRICT_PAGES = ARCHITECTURE, ROOT / "docs/walks.md"  # on these pages, functions must exist too
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
# pages may name a file relative to any of these folders
ROOTS = ROOT, ENGINE, ROOT / "tests", ROOT / "exercises"
# files of other projects that a page cites
CITED_FILES = {"src/nvc_info.c", "mem_mgr/mem_mgr.c", "interfaces/builtin/opengl.go"}

_QUOTED = re.compile(r"`([^`\n]+)`")
_SOURCE = re.compile(r"[\w-]+(/[\w-]+)*/[\w-]+\.(py|yml|json|css)")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+")
_NAME = re.compile(r"[A-Za-z_]\w*(\.(?!yaml|json|md)[A-Za-z_]\w*)?")
# names of a fictitious exercise
_EXAMPLE = re.compile(r"\bNN_name\b|\b(test_)?name\.py|/_softmax\.py")
_RUN = re.compile(r"python -m ((?:bench|docs)[.\w]*)\b")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def missing_names(page: Path, text: str) -> Iterator[str]:
    """Yield the names in the text of a page that do not exist.

    These are names of files, headings and modules in commands. On strict pages they are also names
    of functions that follow a file on the same line.
    """
    strict = page in STRICT_PAGES
    for line in text.splitlines():
        names, quoted = None, _QUOTED.findall(line)  # names: defined by the last file on this line
        for word in (word for quote in quoted for word in quote.split()):
            if (
                (_SOURCE.fullmatch(word) or (strict and _PATH.fullmatch(word)))
                and not _EXAMPLE.search(word)
                and word not in CITED_FILES
            ):
                file = next((root / word for root in ROOTS if (root / word).exists()), None)
                names = defined_in(file) if file and file.suffix == ".py" else {*quoted}
                yield from () if file else [word]
            elif strict and word in quoted and _NAME.fullmatch(word) and word not in (names or ()):
                yield word
    yield from itertools.filterfalse(find_spec, _RUN.findall(text))
    for target, heading in _LINK.findall(text):
        linked = page.parent / target if target else page
        if not linked.exists():
            yield target
        elif heading and heading not in headings(linked.read_text("utf-8")):
            yield f"{target}#{heading}"


@cache
def defined_in(file: Path) -> set[str]:
    """Return the names at the top of a module, and the classes' methods as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (child for child in node.body if isinstance(child, ast.FunctionDef))
            names |= {f"{node.name}.{method.name}" for method in methods}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = (child for child in ast.walk(node) if isinstance(child, ast.Name))
            names |= {target.id for target in targets if isinstance(target.ctx, ast.Store)}
    return names


def headings(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_named_on_a_page_exists(page: Path) -> None:
    names = list(missing_names(page, page.read_text("utf-8")))
    assert names == [], f"{page.name} names {', '.join(names)}, which the repository does not have"


@pytest.mark.parametrize(
    ("page", "text", "name"),
    [
        ("faq", "see `judge/turn.py`", "judge/turn.py"),
        ("faq", "run `python tests/none/test_it.py > x`", "tests/none/test_it.py"),
        ("faq", "[more](nowhere.md)", "nowhere.md"),
        ("faq", "[more](threat-model.md#no-such-part)", "threat-model.md#no-such-part"),
        ("architecture", "`manyheads/files.py` `spell`", "spell"),
        ("architecture", "`manyheads/result.py` `Result.go`", "Result.go"),
        ("architecture", "call `grade` first", "grade"),
    ],
)
def test_a_name_of_something_missing_is_detected(page: str, text: str, name: str) -> None:
    assert list(missing_names(ROOT / f"docs/{page}.md", text)) == [name]


def test_the_documented_figures_match_the_output_of_the_benchmark() -> None:
    table = "\n".join(figures(_read(ROOT / "tests/golden/names.jsonl.gz")))
    assert table in (ROOT / "docs/diagnosis.md").read_text()


MAX_MEAN, MAX_LENGTH = 15, 24  # words per sentence: on average, and in 9 of 10 sentences
_NO_SENTENCE = re.compile(
    r"```.*?```|^(?: {4}|#).*?$|!\[[^\]]*\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL
)
_BLOCK = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) |\||^\|?[-| :]+$", re.MULTILINE)


def sentence_lengths(text: str) -> list[int]:
    """Return the number of words of each sentence. Table cells and list items end a sentence."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", _NO_SENTENCE.sub("\n\n", text))
    blocks = (re.sub(r"`[^`]*`", "code", " ".join(block.split())) for block in _BLOCK.split(text))
    sentences = (
        sentence for block in blocks for sentence in re.split(r"(?<=[.!?])[)*\"”]*\s", block)
    )
    counts = (len(re.findall(r"[\w'’/√·-]+", sentence)) for sentence in sentences)
    return sorted(count for count in counts if count > 2)  # shorter ones are headings or labels


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_a_page_has_short_sentences(page: Path) -> None:
    counts = sentence_lengths(page.read_text("utf-8"))
    mean, long = sum(counts) / len(counts), counts[len(counts) * 9 // 10]
    assert mean <= MAX_MEAN, (
        f"{page.name}: {mean:.1f} words in a sentence, at most {MAX_MEAN} allowed"
    )
    assert long <= MAX_LENGTH, f"{page.name}: a tenth of the sentences has {long} words or more"


def test_words_are_counted_per_sentence_table_cell_and_list_item() -> None:
    text = (
        "# A heading\n\nOne two three. Four `five six` seven\neight!\n\n- nine ten eleven\n\n"
        "| a b c d | e |\n|---|---|\n"
    )
    assert sentence_lengths(text) == [3, 3, 4, 4]


def test_the_readme_and_the_threat_model_stay_short() -> None:
    for page, max_lines in (("README.md", 90), ("docs/threat-model.md", 200)):
        length = len((ROOT / page).read_text("utf-8").splitlines())
        assert length <= max_lines, f"{page} has {length} lines, and may have {max_lines}"


def test_the_architecture_page_lists_all_packages_in_import_order() -> None:
    table = re.findall(
        r"^\| `manyheads/([\w/]+)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
    )
    packages = {path.parent.name for path in ENGINE.glob("*/__init__.py")} | {"box/worker"}
    differing = {*table} ^ packages
    assert not differing, f"the table in architecture.md and the packages differ in {differing}"
    expected = [name.replace(".", "/") for name in PACKAGES if name.replace(".", "/") in packages]
    assert table == expected, f"the table in architecture.md should have the order {expected}"
