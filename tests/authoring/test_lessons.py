"""What a lesson may have: figures, which go where its notebook goes, links, and predictions that wait for a function."""

import json
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import bundle
from manyheads.authoring.files import Released
from manyheads.authoring.index import for_students
from manyheads.authoring.release_exercises import write_release
from manyheads.authoring.stub_notebook import stub_notebook
from manyheads.authoring.verify.claim import Claim
from manyheads.authoring.verify.file_claims import verify_lessons
from manyheads.course import load_course
from manyheads.judge.run_checks import Catalogue

PHONE = 37  # letters of one width beside each other in a notebook on a phone of 390 pixels
LONG = ("weight_split", "fused_qkv", "sdpa_equivalence")  # lessons with more words than code
SOLUTION = "solutions/averages/01_running_mean.py"
FIGURE = "figures/01_running_mean.svg"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
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


def claims(folder: Path) -> list[Claim]:
    course = load_course(folder)
    return list(verify_lessons(course, course.exercises))


def test_a_figure_is_released_beside_the_notebook_and_goes_when_its_source_goes(tiny_copy: Path) -> None:
    with_lesson(tiny_copy, f"![Two curves]({FIGURE})", figure=True)
    course = load_course(tiny_copy)
    written = write_release(course, Catalogue(course))
    there = tiny_copy / "exercises" / "averages" / FIGURE
    assert there in written.files
    assert there.read_bytes() == SVG
    assert there in for_students(course.exercises[0])
    assert Released(there, SVG).is_in_step()
    (tiny_copy / "solutions" / "averages" / FIGURE).unlink()
    write_release(course, Catalogue(course))
    assert not there.exists()


def test_a_lesson_with_a_figure_a_link_and_a_prediction_keeps_every_claim(tiny_copy: Path) -> None:
    with_lesson(tiny_copy, f"![Two curves]({FIGURE}) [again](01_running_mean.ipynb)", ANSWER, figure=True)
    assert [(claim.held, claim.total, claim.failures) for claim in claims(tiny_copy)] == [(2, 2, ()), (1, 1, ())]


@pytest.mark.parametrize(("markdown", "figure", "says"), [
    pytest.param(f"![Two curves]({FIGURE})", False, f"{FIGURE} is not released", id="a figure that is missing"),
    pytest.param(f"![]({FIGURE})", True, f"{FIGURE} has no words for who cannot see it", id="one without words"),
    pytest.param("Two curves.", True, f"exercises/averages/{FIGURE} is named in no lesson", id="one without a lesson"),
    pytest.param("[on](02_median.ipynb)", False, "02_median.ipynb is not released", id="a link to nothing"),
    pytest.param("[page](../../docs/means.md)", False, "../../docs/means.md is not released", id="no such page"),
])  # fmt: skip
def test_a_link_or_figure_that_would_fail_a_student_is_found(tiny_copy, markdown, figure, says):
    with_lesson(tiny_copy, markdown, figure=figure)
    links, _ = claims(tiny_copy)
    assert not links.kept
    assert [failure.removeprefix("01_running_mean: ") for failure in links.failures] == [says]


def test_a_page_of_the_courses_that_a_lesson_links_to_is_handed_to_students(tiny_copy: Path) -> None:
    with_lesson(tiny_copy, "[what means cost](../../docs/means.md)")
    page = tiny_copy / "docs" / "means.md"
    page.parent.mkdir()
    page.write_text("# What means cost\n")
    (page.parent / "other.md").write_text("# For instructors\n")
    assert [(claim.held, claim.total) for claim in claims(tiny_copy)][:1] == [(1, 1)]
    files = bundle(load_course(tiny_copy), [], "@school")
    assert {name for name in files if name.startswith("docs/")} == {"docs/means.md"}


@pytest.mark.parametrize("markdown", [
    pytest.param("<https://example.org> and [part](#part)", id="an address, and a part of the page"),
    pytest.param(f"Write `![words]({FIGURE})` for a figure.", id="code"),
])  # fmt: skip
def test_what_leads_elsewhere_is_nobodys_release(tiny_copy: Path, markdown: str) -> None:
    with_lesson(tiny_copy, markdown)
    assert [claim.total for claim in claims(tiny_copy)] == [0, 0]


@pytest.mark.parametrize(("old", "new", "says"), [
    pytest.param("NotImplementedError", "KeyError", "with the stub, 'if __name__ == \"__main__\":' raises NotImplementedError", id="one that does not wait"),
    pytest.param('print("it waits")', "pass", "with the stub, 'if __name__ == \"__main__\":' prints nothing", id="one that waits in silence"),
    pytest.param("last}", "least}", "with the solution, 'if __name__ == \"__main__\":' raises NameError", id="one whose answer fails"),
])  # fmt: skip
def test_a_prediction_that_would_fail_a_student_is_found(tiny_copy: Path, old: str, new: str, says: str) -> None:
    with_lesson(tiny_copy, code=ANSWER.replace(old, new))
    _, predictions = claims(tiny_copy)
    assert not predictions.kept
    assert says in predictions.failures[0]


def test_the_answer_of_a_prediction_is_locked_and_earns_nothing() -> None:
    cells = json.loads(stub_notebook(ANSWER.lstrip(), "running_mean", ()))["cells"]
    about = cells[0]["metadata"]["nbgrader"]
    assert (about["locked"], about["solution"], about["grade"]) == (True, False, False)
    assert cells[0]["metadata"]["editable"] is False


def test_every_lesson_says_what_it_needs_and_takes_and_has_a_figure_a_prediction_and_a_way_on(repository: Path) -> None:
    course = load_course(repository)
    for exercise in course.exercises:
        text = exercise.script.read_text(encoding="utf-8")
        head = text.split("# %%")[1]
        for words in ("# *About ", " minutes. You need: ", " After this:"):
            assert words in head, (exercise.id, words)
        assert f"](figures/{exercise.stem}.svg)" in text, exercise.id
        assert '# %% tags=["predict"]' in text, exercise.id
        assert "# ## Onward" in text, exercise.id
    links, predictions = verify_lessons(course, course.exercises)
    assert links.kept, links.failures
    assert predictions.kept, predictions.failures


def test_no_drawing_of_letters_is_too_wide_for_a_phone_and_no_heading_stands_twice(repository: Path) -> None:
    for exercise in load_course(repository).exercises:
        lines = exercise.script.read_text(encoding="utf-8").splitlines()
        headings = [line for line in lines if line.startswith("# #")]
        assert len(set(headings)) == len(headings), exercise.id
        fences = [i for i, line in enumerate(lines) if line.startswith("# ```")]
        for start, end in zip(fences[::2], fences[1::2], strict=True):
            assert [line for line in lines[start + 1 : end] if len(line) - len("# ") > PHONE] == [], exercise.id


@pytest.mark.parametrize("id_", LONG)
def test_a_stub_stands_behind_the_words_that_explain_it(repository: Path, id_: str) -> None:
    exercise = next(each for each in load_course(repository).exercises if each.id == id_)
    _, stub, behind = exercise.script.read_text(encoding="utf-8").partition("# YOUR CODE HERE")
    assert stub
    headings = [line for line in behind.splitlines() if line.startswith("# ## ")]
    assert [line for line in headings if not line.startswith(("# ## Your turn", "# ## Onward"))] == []
