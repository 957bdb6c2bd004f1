"""The pages of the site that describe all misconceptions and their mutants."""

import re
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs.site.misconceptions import misconception_pages
from manyheads.course import CourseError, load_course
from manyheads.diagnosis import load_bank

pytestmark = pytest.mark.recorded

RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"


def table_rows(page: str) -> dict[str, list[str]]:
    """Return the visible text of each table row's cells by the text of its first cell.

    If a misconception and a check have the same name, the row of the misconception is returned.
    """
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells_by_name = {}
    for line in reversed(lines):
        name, *cells = [plain_text(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        cells_by_name[name] = cells
    return cells_by_name


def plain_text(markdown: str) -> str:
    """Return the visible text of a piece of Markdown."""
    return unescape(re.sub(r"<[^>]+>", "", MarkdownIt().render(markdown.strip()))).strip()


def test_every_misconception_has_a_table_row_and_a_text(repository: Path) -> None:
    course = load_course(repository)
    # only two exercises, because reading all recordings takes long
    course.exercises = course.exercises[:2]
    pages = misconception_pages(course)
    for exercise in course.exercises:
        bank, page = load_bank(exercise), pages[f"misconceptions-{exercise.id}"]
        page_rows = table_rows(page)
        for id_ in {mutant.id for mutant in bank.mutants}:
            text = bank.texts[id_]
            words, mutants, caught = page_rows[id_]
            assert words == " ".join(f"{text.title} {text.hints[0]}".split())
            assert int(mutants) == sum(mutant.id == id_ for mutant in bank.mutants)
            assert caught
            (entry,) = re.findall(rf"^### {id_}\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL)
            assert " ".join(text.hints[2].split()) in " ".join(plain_text(entry).split())


def test_an_exercise_without_a_recording_is_an_error(tiny_copy: Path) -> None:
    (tiny_copy / RECORDING).unlink()
    with pytest.raises(CourseError, match=r"running_mean is not recorded\. Next: course r"):
        misconception_pages(load_course(tiny_copy))
