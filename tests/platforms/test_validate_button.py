"""The Validate button of JupyterLab, where a student has it: what it says is what grading says."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission.read import read_file
from tests.browser import Browser
from tests.jupyter import TOKEN, jupyter

pytestmark = pytest.mark.soak

BUTTON = "[...document.querySelectorAll('jp-button')].find(button => button.textContent.trim() === 'Validate')"
SAYS = "document.querySelector('.jp-Dialog')?.innerText.includes('Validation Results')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, running_mean, fill, right, wrong):
    """A student's folder, as released, with three notebooks: nothing hidden, no nbgrader_config.py."""
    mine = tmp_path_factory.mktemp("student") / "averages"
    shutil.copytree(running_mean.assignment.exercises_folder, mine)
    shutil.copy(running_mean.notebook, mine / "stub.ipynb")
    for name, answer in {"right": right, "wrong": wrong}.items():
        (mine / f"{name}.ipynb").write_text(json.dumps(fill(answer)))
    return mine


@pytest.fixture(scope="module")
def validated(browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the button says of each notebook."""
    with jupyter(folder, tmp_path_factory.mktemp("home")) as address:
        browser.open(f"{address}/api/status?token={TOKEN}")
        yield {name: press(browser, f"{address}/lab/tree/{name}.ipynb?reset") for name in ("stub", "wrong", "right")}


def press(browser: Browser, notebook: str) -> str:
    """Open a notebook and press Validate; what the dialog says."""
    browser.open(notebook)
    browser.until(BUTTON)
    browser.until("document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=\"idle\"]')")
    browser.js(f"{BUTTON}.click()")
    browser.until(SAYS)
    return str(browser.js("document.querySelector('.jp-Dialog').innerText"))


@pytest.fixture
def graded(tiny: Course, box: Box, running_mean: Exercise, folder: Path) -> Callable[[str], ExerciseResult]:
    """What grading gives one of these notebooks."""
    judge = Judge(tiny, box, Settings(b"validate"))
    return lambda name: judge.grade_attempt("ada", running_mean, read_file(folder / f"{name}.ipynb", 256))


def test_a_right_notebook_passes_both(validated: dict[str, str], graded: Callable[[str], ExerciseResult]) -> None:
    assert "Success! Your notebook passes all the tests." in validated["right"]
    assert graded("right").score == 4


@pytest.mark.parametrize(("name", "score", "diagnosis", "said"), [
    ("wrong", 2, "You divided by the length of x everywhere.", "You divided by the length of x everywhere."),
    ("stub", 0, "Nothing is written here yet.", "running_mean: not written yet"),
])  # fmt: skip
def test_one_that_is_not_right_has_the_score_and_diagnosis_of_grading(validated, graded, name, score, diagnosis, said):
    result = graded(name)
    assert "The following cell failed:" in validated[name]
    heading = next((line for line in validated[name].splitlines() if "01 running mean" in line), validated[name])
    assert heading.split()[1:] == ["01", "running", "mean", f"{result.score:g}", "/", f"{result.max_score:g}"]
    assert result.score == score
    assert said in validated[name]
    assert [named.title for named in result.diagnosis] == [diagnosis]


def test_a_stack_of_our_own_is_nowhere(validated: dict[str, str]) -> None:
    assert [name for name, said in validated.items() if "Traceback" in said or "manyheads/" in said] == []
