"""What a lesson may have: figures, which go where its notebook goes, links, and predictions that
wait for a function.
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
from tests.authoring.conftest import LinesOf

SOLUTION = "solutions/averages/01_running_mean.py"
FIGURE = "figures/01_running_mean.svg"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
LESSONS = "test_links or test_predictions"
PHONE = 37  # letters of one width beside each other in a notebook on a phone of 390 pixels
MOST_WORDS = 500  # before the first function that is to be written, without what is to be looked up
# the section to look up, below which come the rows, and no other heading
NEEDED = "## What you need of PyTorch"
MOST_NEEDED = 50  # words of it: three rows
HEAD = "# # 1 · The running mean\n"
ANSWER = """
# %% tags=["predict"]
if __name__ == "__main__":
    try:
        last = running_mean(torch.tensor([1.0, 2.0]))[-1]
    except NotImplementedError:
        print("it waits")
    else:
        print(f"{last}")
"""


def with_lesson(folder: Path, markdown: str = "", code: str = "", figure: bool = False) -> None:
    """Add Markdown below the lesson's title, and code at its end."""
    path = folder / SOLUTION
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(HEAD, f"{HEAD}#\n# {markdown}\n") + code, encoding="utf-8")
    if figure:
        (path.parent / "figures").mkdir()
        (path.parent / FIGURE).write_bytes(SVG)


def test_a_figure_is_released_beside_the_notebook_and_goes_when_its_source_goes(
    tiny_copy: Path,
) -> None:
    with_lesson(tiny_copy, f"![Two curves]({FIGURE})", figure=True)
    course = load_course(tiny_copy)
    written = write_release(course, Catalogue(course))
    figure = tiny_copy / "exercises" / "averages" / FIGURE
    assert figure in written
    assert figure.read_bytes() == SVG
    (tiny_copy / "solutions" / "averages" / FIGURE).unlink()
    write_release(course, Catalogue(course))
    assert not figure.exists()


@pytest.mark.parametrize(
    ("markdown", "figure", "links", "says"),
    [
        pytest.param(
            f"![Two curves]({FIGURE}) [again](01_running_mean.ipynb)",
            True,
            2,
            "",
            id="a figure and a link",
        ),
        pytest.param(
            "<https://example.org> and [part](#part)",
            False,
            0,
            "",
            id="an address, and a part of the page",
        ),
        pytest.param(f"Write `![words]({FIGURE})` for a figure.", False, 0, "", id="code"),
        pytest.param(
            f"![Two curves]({FIGURE})",
            False,
            1,
            f"{FIGURE} is not released",
            id="a figure that is missing",
        ),
        pytest.param(
            f"![]({FIGURE})",
            True,
            1,
            f"{FIGURE} has no words for who cannot see it",
            id="one without words",
        ),
        pytest.param(
            "Two curves.",
            True,
            1,
            f"exercises/averages/{FIGURE} is named in no lesson",
            id="one without a lesson",
        ),
        pytest.param(
            "[on](02_median.ipynb)",
            False,
            1,
            "02_median.ipynb is not released",
            id="a link to nothing",
        ),
        pytest.param(
            "[page](../../docs/means.md)",
            False,
            1,
            "../../docs/means.md is not released",
            id="no such page",
        ),
    ],
)
def test_a_link_or_figure_that_would_fail_a_student_is_found(
    lines_of, tiny_copy, markdown, figure, links, says
):
    with_lesson(tiny_copy, markdown, figure=figure)
    claim, _ = lines_of(tiny_copy, LESSONS)
    assert [failure.removeprefix("01_running_mean: ") for failure in claim.failures] == [
        says
    ] * bool(says)
    assert (claim.passed_cases, claim.total) == (links - bool(says), links)


def test_a_page_of_the_courses_that_a_lesson_links_to_is_handed_to_students(
    lines_of: LinesOf, tiny_copy: Path
) -> None:
    with_lesson(tiny_copy, "[what means cost](../../docs/means.md)")
    page = tiny_copy / "docs" / "means.md"
    page.parent.mkdir()
    page.write_text("# What means cost\n")
    (page.parent / "other.md").write_text("# For instructors\n")
    assert [(claim.passed_cases, claim.total) for claim in lines_of(tiny_copy, LESSONS)][:1] == [
        (1, 1)
    ]
    files = bundle(load_course(tiny_copy), [], "@school")
    assert {name for name in files if name.startswith("docs/")} == {"docs/means.md"}


@pytest.mark.parametrize(
    ("row", "is_shown"),
    [
        ("due: 2020-01-01 18:00Z", False),
        ("show_solutions: true", True),
        ("show_solutions: true\n    due: 2020-01-01 18:00Z", True),
        ("show_solutions: true\n    due: 2100-12-31 18:00Z", False),
    ],
)
def test_finished_modules_are_handed_over_where_the_course_says_so_after_the_due_date(
    tiny_copy, row, is_shown
):
    path, finished = tiny_copy / "course.yaml", "model-solutions/averages/01_running_mean.py"
    path.write_text(path.read_text().replace("    exercises:\n", f"    {row}\n    exercises:\n"))
    course = load_course(tiny_copy)
    files = bundle(course, [], "@school")
    assert (finished in files, leaks(course, files)) == (is_shown, ())
    if is_shown:
        assert b"SOLUTION" not in files[finished]
        assert "cumsum" in files[finished].decode()
        (tiny_copy / finished).parent.mkdir(parents=True)
        (tiny_copy / finished).write_bytes(files[finished])
    assert (
        any("to read beside yours" in line for line in after_done(course.exercises[0])) == is_shown
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("waits", "waits", "", id="one that waits for its function"),
        pytest.param(
            "NotImplementedError",
            "KeyError",
            "with the stub, 'try:' raises NotImplementedError",
            id="one that does not wait",
        ),
        pytest.param(
            'print("it waits")',
            "pass",
            "with the stub, 'try:' prints nothing",
            id="one that waits in silence",
        ),
        pytest.param(
            "last}",
            "least}",
            "with the solution, 'try:' raises NameError",
            id="one whose answer fails",
        ),
    ],
)
def test_a_prediction_that_would_fail_a_student_is_found(lines_of, tiny_copy, old, new, says):
    with_lesson(tiny_copy, code=ANSWER.replace(old, new))
    _, predictions = lines_of(tiny_copy, LESSONS)
    assert (predictions.is_satisfied, predictions.total) == (not says, 1)
    assert says in "".join(predictions.failures)


def test_the_answer_of_a_prediction_is_locked_and_earns_nothing() -> None:
    cells = json.loads(stub_notebook(ANSWER.lstrip(), "running_mean", ()))["cells"]
    nbgrader = cells[0]["metadata"]["nbgrader"]
    assert (nbgrader["locked"], nbgrader["solution"], nbgrader["grade"]) == (True, False, False)
    assert cells[0]["metadata"]["editable"] is False


def test_every_lesson_has_its_needs_minutes_figure_prediction_and_a_way_on_and_fits_a_phone(
    repository,
):
    course = load_course(repository)
    for exercise in course.exercises:
        text = exercise.script.read_text(encoding="utf-8")
        lines, head = text.splitlines(), text.split("# %%")[1]
        for words in ("# *About ", " minutes. You need: ", " After this:"):
            assert words in head, (exercise.id, words)
        assert f"](figures/{exercise.stem}.svg)" in text, exercise.id
        assert '# %% tags=["predict"]' in text, exercise.id
        headings = [line for line in lines if line.startswith("# #")]
        assert "# ## Onward" in text, exercise.id
        assert len(set(headings)) == len(headings), exercise.id
        cells = text.partition("# YOUR CODE HERE")[0].split("# %% ")
        prose = "".join(
            cell.removeprefix("[markdown]") for cell in cells if cell.startswith("[markdown]")
        )
        assert prose.count(NEEDED) == 1, exercise.id
        introduction, needed = prose.split(NEEDED)
        needed, heading, further = needed.partition("\n# ##")
        needed_words = [word for word in needed.split() if word.strip("#")]
        assert len(needed_words) <= MOST_NEEDED, (exercise.id, len(needed_words))
        words = [word for word in (introduction + heading + further).split() if word.strip("#")]
        assert len(words) <= MOST_WORDS, (exercise.id, len(words))
        drawn = "\n".join(text.split("\n# ```")[1::2]).splitlines()
        assert [line for line in drawn if len(line) - len("# ") > PHONE] == [], exercise.id
