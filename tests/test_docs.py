"""The pages in docs/ and the README name what there is, and have short sentences."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
