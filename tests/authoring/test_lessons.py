"""Lessons: their figures, links and predictions, and the form of every lesson of the course.

A prediction is a cell that shows its answer only after the student has written the function.
"""

import json
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import bundle
from manyheads.authoring.make_stub import leaks, stub_notebook
from manyheads.authoring.release_exercises import write_release
from manyheads.course import load_course
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.student.hints import after_done
from tests.make import REPOSITORY, cases, replace

SOLUTION = "solutions/averages/01_running_mean.py"
FIGURE = "figures/01_running_mean.svg"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
LESSON_CLAIMS = "test_links or test_predictions"
PHONE_COLUMNS = 37  # monospaced characters per line in a notebook on a phone 390 pixels wide
MAX_WORDS = 500  # before the first function to write, without the section NEEDED
# a section of reference, which has rows and no other heading
REFERENCE_HEADING = "## What you need of PyTorch"
MAX_REFERENCE_WORDS = 50  # words in the section NEEDED: three rows
HEAD = "# # 1 · The running mean\n"
PREDICTION = """
# %% tags=["predict"]
if __name__ == "__main__":
    try:
        last = running_mean(torch.tensor([1.0, 2.0]))[-1]
    except NotImplementedError:
        print("it waits")
    else:
        print(f"{last}")
"""


def extend_lesson(folder: Path, markdown: str = "", code: str = "", figure: bool = False) -> None:
    """Add Markdown below the lesson's title, and code at its end."""
    path = folder / SOLUTION
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(HEAD, f"{HEAD}#\n# {markdown}\n") + code, encoding="utf-8")
    if figure:
        (path.parent / "figures").mkdir()
        (path.parent / FIGURE).write_bytes(SVG)


def test_a_figure_is_released_and_deleted_with_its_source(
    tiny_copy,
):
    extend_lesson(tiny_copy, f"![Two curves]({FIGURE})", figure=True)
    course = load_course(tiny_copy)
    written = write_release(course, Catalogue(course))
    figure = tiny_copy / "exercises" / "averages" / FIGURE
    assert figure in written
    assert figure.read_bytes() == SVG
    (tiny_copy / "solutions" / "averages" / FIGURE).unlink()
    write_release(course, Catalogue(course))
    assert not figure.exists()


@cases(
    "markdown, figure, links, message",
    {
        "a figure and a link": (
            f"![Two curves]({FIGURE}) [again](01_running_mean.ipynb)",
            True,
            2,
            "",
        ),
        "an address, and a part of the page": (
            "<https://example.org> and [part](#part)",
            False,
            0,
            "",
        ),
        "code": (f"Write `![words]({FIGURE})` for a figure.", False, 0, ""),
        "a figure that is missing": (
            f"![Two curves]({FIGURE})",
            False,
            1,
            f"{FIGURE} is not released",
        ),
        "a figure without a description": (
            f"![]({FIGURE})",
            True,
            1,
            f"{FIGURE} has no words for who cannot see it",
        ),
        "a figure that no lesson shows": (
            "Two curves.",
            True,
            1,
            f"exercises/averages/{FIGURE} is named in no lesson",
        ),
        "a link to nothing": ("[on](02_median.ipynb)", False, 1, "02_median.ipynb is not released"),
        "no such page": (
            "[page](../../docs/means.md)",
            False,
            1,
            "../../docs/means.md is not released",
        ),
    },
)
def test_a_broken_link_or_figure_in_a_lesson_is_found(
    claim_lines, tiny_copy, markdown, figure, links, message
):
    extend_lesson(tiny_copy, markdown, figure=figure)
    claim, _ = claim_lines(tiny_copy, LESSON_CLAIMS)
    assert [failure.removeprefix("01_running_mean: ") for failure in claim.failures] == [
        message
    ] * bool(message)
    assert (claim.passed_cases, claim.total) == (links - bool(message), links)


def test_a_page_that_a_lesson_links_to_is_released(claim_lines, tiny_copy):
    extend_lesson(tiny_copy, "[what means cost](../../docs/means.md)")
    page = tiny_copy / "docs" / "means.md"
    page.parent.mkdir()
    page.write_text("# What means cost\n")
    (page.parent / "other.md").write_text("# For instructors\n")
    assert [(claim.passed_cases, claim.total) for claim in claim_lines(tiny_copy, LESSON_CLAIMS)][
        :1
    ] == [(1, 1)]
    files = bundle(load_course(tiny_copy), [], "@school")
    assert {name for name in files if name.startswith("docs/")} == {"docs/means.md"}


@cases(
    "row, is_shown",
    {
        "the due date alone": ("due: 2020-01-01 18:00Z", False),
        "no due date": ("show_solutions: true", True),
        "after it": ("show_solutions: true\n    due: 2020-01-01 18:00Z", True),
        "before it": ("show_solutions: true\n    due: 2100-12-31 18:00Z", False),
    },
)
def test_model_solutions_are_released_after_the_due_date_if_enabled(tiny_copy, row, is_shown):
    replace(tiny_copy / "course.yaml", "    exercises:\n", f"    {row}\n    exercises:\n")
    course = load_course(tiny_copy)
    files = bundle(course, [], "@school")
    assert leaks(course, files) == ()
    finished = {name: text for name, text in files.items() if name.startswith("model-solutions/")}
    assert [*finished] == ["model-solutions/averages/01_running_mean.py"] * is_shown
    for name, content in finished.items():
        assert b"SOLUTION" not in content
        assert b"cumsum" in content
        (tiny_copy / name).parent.mkdir(parents=True)
        (tiny_copy / name).write_bytes(content)
    assert ("to read beside yours" in "".join(after_done(course.exercises[0]))) is is_shown


@cases(
    "old, new, message",
    {
        "a prediction that waits for its function": ("waits", "waits", ""),
        "a prediction that does not wait": (
            "NotImplementedError",
            "KeyError",
            "with the stub, 'try:' raises NotImplementedError",
        ),
        "a prediction that prints nothing while it waits": (
            'print("it waits")',
            "pass",
            "with the stub, 'try:' prints nothing",
        ),
        "a prediction whose answer raises": (
            "last}",
            "least}",
            "with the solution, 'try:' raises NameError",
        ),
    },
)
def test_a_broken_prediction_in_a_lesson_is_found(claim_lines, tiny_copy, old, new, message):
    extend_lesson(tiny_copy, code=PREDICTION.replace(old, new))
    _, predictions = claim_lines(tiny_copy, LESSON_CLAIMS)
    assert (predictions.is_satisfied, predictions.total) == (not message, 1)
    assert message in "".join(predictions.failures)


def test_a_prediction_cell_is_locked_and_not_graded():
    cells = json.loads(stub_notebook(PREDICTION.lstrip(), "running_mean", ()))["cells"]
    nbgrader = cells[0]["metadata"]["nbgrader"]
    assert (nbgrader["locked"], nbgrader["solution"], nbgrader["grade"]) == (True, False, False)
    assert cells[0]["metadata"]["editable"] is False


def count_words(prose: str) -> int:
    """Return the number of words, without the signs of comments and headings."""
    return sum(bool(word.strip("#")) for word in prose.split())


@pytest.mark.parametrize("exercise", load_course(REPOSITORY).exercises, ids=lambda e: e.id)
def test_every_lesson_has_the_required_parts_and_fits_on_a_phone(
    exercise,
):
    text = exercise.script.read_text(encoding="utf-8")
    for passage in ("# *About ", " minutes. You need: ", " After this:"):
        assert passage in text.split("# %%")[1]
    for passage in (f"](figures/{exercise.stem}.svg)", '# %% tags=["predict"]', "# ## Onward"):
        assert passage in text
    headings = [line for line in text.splitlines() if line.startswith("# #")]
    assert len(set(headings)) == len(headings)
    cells = text.partition("# YOUR CODE HERE")[0].split("# %% [markdown]")[1:]
    introduction, needed = "".join(cell.partition("# %%")[0] for cell in cells).split(
        REFERENCE_HEADING
    )
    needed, heading, later_text = needed.partition("\n# ##")
    assert count_words(needed) <= MAX_REFERENCE_WORDS
    assert count_words(introduction + heading + later_text) <= MAX_WORDS
    diagram_lines = "\n".join(text.split("\n# ```")[1::2]).splitlines()
    assert [line for line in diagram_lines if len(line) - len("# ") > PHONE_COLUMNS] == []
