"""The bank as a page: in step with the bank, true of every mutant, and for instructors only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from manyheads.authoring.bank_page import NAME, bank_page, page_path
from manyheads.authoring.class_repository import bundle
from manyheads.authoring.leaks import hidden_of
from manyheads.authoring.release_exercises import write_release
from manyheads.course import Course, CourseError, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.kill_matrix import read_kill_matrix
from manyheads.judge.catalogue import Catalogue

pytestmark = pytest.mark.recorded

RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
CHECKS = "grader/checks/test_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
TEXTS = "grader/texts.yaml"


def release(folder: Path) -> str:
    """The page that a release writes."""
    course = load_course(folder)
    catalogue = Catalogue(course)
    write_release(course, catalogue)
    return page_path(course).read_text(encoding="utf-8")


def replace(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert text.count(old) == 1, text
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")


def rows(page: str) -> dict[str, list[str]]:
    """The cells of every row, as a reader sees them, by the first; a misconception comes before a check of its name."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [[plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0]: row[1:] for row in reversed(cells)}


def plain(markdown: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", MarkdownIt().render(markdown.strip()))).strip()


@pytest.fixture(scope="module")
def real(repository: Path) -> Course:
    return load_course(repository)


def test_the_page_is_what_todays_bank_says(real: Course) -> None:
    catalogue = Catalogue(real)
    assert page_path(real).read_text(encoding="utf-8") == bank_page(real, catalogue), "Next: course release"


def test_every_misconception_of_every_exercise_has_its_row_and_its_words(real: Course) -> None:
    page = page_path(real).read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))
    for exercise in (e for a in real.assignments for e in a.exercises):
        bank, section = load_bank(exercise), rows(sections[exercise.id])
        for id_ in {mutant.id for mutant in bank.mutants}:
            words, mutants, caught = section[id_]
            assert words == " ".join(f"{bank.texts[id_].title} {bank.texts[id_].hints[0]}".split())
            assert int(mutants) == sum(mutant.id == id_ for mutant in bank.mutants)
            assert caught


def test_every_link_leads_to_a_heading_and_no_heading_stands_twice(real: Course) -> None:
    page = page_path(real).read_text(encoding="utf-8")
    headings = re.findall(r"^#{2,3} (\w+)$", page, re.MULTILINE)
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) <= set(headings)
    assert len(headings) == len(set(headings))


def test_a_row_says_what_the_mutants_do(tiny_copy: Path) -> None:
    found = rows(release(tiny_copy))
    assert found["only_last"] == [
        "You returned the last mean only. How many numbers come back?",
        "1",
        "shape, values, gradients",
    ]
    assert found["empty_unchecked"][2] == "refuses_nothing"
    assert found["gradients"] == ["lets gradients through", "1", "6"]


@pytest.mark.parametrize(
    ("second", "caught"),
    [
        pytest.param(
            'edit(f"x.cumsum(0) / {COUNTS}", "x[-1:]")', "shape, values, gradients", id="that are caught alike"
        ),
        pytest.param(
            'edit("return x.", "return x.detach().")',
            "gradients, shape (1), values (1)",
            id="that are not caught alike",
        ),
    ],
)
def test_mutants_of_one_misconception_share_a_row(tiny_copy: Path, second: str, caught: str) -> None:
    replace(tiny_copy, BANK, "MUTANTS = (\n", f'MUTANTS = (\n    ("only_last", {second}),\n')
    assert rows(release(tiny_copy))["only_last"][1:] == ["2", caught]


def test_words_are_shown_as_they_are(tiny_copy: Path) -> None:
    title = "x | *all* of `x`, a_b_c, <b>[1]</b> \\ and more."
    replace(tiny_copy, TEXTS, '"You returned the last mean only."', json.dumps(title))
    line = next(line for line in release(tiny_copy).splitlines() if line.startswith("| [`only_last`]"))
    shown = MarkdownIt().enable("table").render(f"| a | b | c | d |\n| --- | --- | --- | --- |\n{line}")
    assert "<td>x | *all* of `x`, a_b_c, &lt;b&gt;[1]&lt;/b&gt; \\ and more. <em>How many" in shown


@pytest.mark.parametrize(
    ("change", "is_run_again"),
    [
        pytest.param(
            lambda folder: replace(folder, TEXTS, "How many numbers come back?", "How many?"), False, id="words"
        ),
        pytest.param(lambda folder: replace(folder, BANK, "MUTANTS", "# likely first\nMUTANTS"), False, id="a remark"),
        pytest.param(lambda folder: replace(folder, BANK, '"len(x)"', '"len(x) + 0"'), True, id="a mutant"),
        pytest.param(lambda folder: replace(folder, CHECKS, "integer(5, 9)", "integer(6, 9)"), True, id="a check"),
        pytest.param(lambda folder: (folder / RECORDING).write_text("{}"), True, id="a record that cannot be read"),
    ],
)
def test_mutants_are_run_again_where_something_changed_that_could_matter(
    tiny_copy: Path, change: Callable[[Path], object], is_run_again: bool
) -> None:
    change(tiny_copy)
    course = load_course(tiny_copy)
    (exercise,) = course.exercises
    assert (read_kill_matrix(exercise) is None) is is_run_again
    release(tiny_copy)
    assert read_kill_matrix(exercise) is not None


def test_without_a_record_there_is_no_page(tiny_copy: Path) -> None:
    (tiny_copy / RECORDING).unlink()
    course = load_course(tiny_copy)
    with pytest.raises(CourseError, match=r"running_mean is not recorded\. Next: course r"):
        bank_page(course, Catalogue(course))


def test_it_is_in_no_class_repository_and_none_that_holds_it_is_written(tiny: Course) -> None:
    files = bundle(tiny, [p for p in (tiny.root / "exercises").rglob("*") if p.is_file()], "@ada")
    assert not [name for name in files if "misconceptions.md" in name]
    assert not [name for name, content in files.items() if b"# The bank of misconceptions" in content[:100]]
    assert hidden_of(tiny).sentence(NAME, b"") == f"{NAME} is the instructor's alone"
