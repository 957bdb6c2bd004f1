"""The bank as pages of the site: true of every mutant, and for instructors only."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs.site.misconceptions import misconception_pages
from manyheads.course import CourseError, load_course
from manyheads.diagnosis import load_bank
from tests.make import replace

pytestmark = pytest.mark.recorded

RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
BANK = "grader/misconceptions/running_mean.py"
TEXTS = "grader/texts.yaml"


def page_of(folder: Path) -> str:
    """The page of the tiny course's exercise."""
    return misconception_pages(load_course(folder))["misconceptions-running_mean"]


def rows(page: str) -> dict[str, list[str]]:
    """The cells of every row, as a reader sees them, by the first; a misconception comes before a check of its name."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [[plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0]: row[1:] for row in reversed(cells)}


def plain(markdown: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", MarkdownIt().render(markdown.strip()))).strip()


@pytest.fixture(scope="module")
def pages(repository: Path) -> dict[str, str]:
    return misconception_pages(load_course(repository))


def test_every_misconception_of_every_exercise_has_its_row_and_its_words(repository, pages):
    for exercise in load_course(repository).exercises:
        bank, page = load_bank(exercise), pages[f"misconceptions-{exercise.id}"]
        found = rows(page)
        for id_ in {mutant.id for mutant in bank.mutants}:
            words, mutants, caught = found[id_]
            assert words == " ".join(f"{bank.texts[id_].title} {bank.texts[id_].hints[0]}".split())
            assert int(mutants) == sum(mutant.id == id_ for mutant in bank.mutants)
            assert caught
            (entry,) = re.findall(rf"^### {id_}\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL)
            assert " ".join(bank.texts[id_].hints[2].split()) in " ".join(plain(entry).split())


def test_what_an_exercise_has_alone_is_on_its_page_and_the_first_page_leads_there(pages: dict[str, str]) -> None:
    assert "[reshape_dance](misconceptions-reshape_dance.md#wrong_view)" in pages["misconceptions"]
    assert "[causal_mask](misconceptions-causal_mask.md) |" in pages["misconceptions"]
    assert "No mutant stands for it" in pages["misconceptions"]


def test_a_row_says_what_the_mutants_do(tiny_copy: Path) -> None:
    found = rows(page_of(tiny_copy))
    words = "You returned the last mean only. How many numbers come back?"
    assert found["only_last"] == [words, "1", "shape, values, gradients"]
    assert found["empty_unchecked"][2] == "refuses_nothing"
    assert found["gradients"] == ["lets gradients through", "1", "6"]


def test_words_are_shown_as_they_are(tiny_copy: Path) -> None:
    title = "x | *all* of `x`, a_b_c, <b>[1]</b> \\ and more."
    replace(tiny_copy / TEXTS, '"You returned the last mean only."', json.dumps(title))
    line = next(line for line in page_of(tiny_copy).splitlines() if line.startswith("| [`only_last`]"))
    shown = MarkdownIt().enable("table").render(f"| a | b | c | d |\n| --- | --- | --- | --- |\n{line}")
    assert "<td>x | *all* of `x`, a_b_c, &lt;b&gt;[1]&lt;/b&gt; \\ and more. <em>How many" in shown


def test_without_a_record_there_is_no_page(tiny_copy: Path) -> None:
    (tiny_copy / RECORDING).unlink()
    with pytest.raises(CourseError, match=r"running_mean is not recorded\. Next: course r"):
        page_of(tiny_copy)
