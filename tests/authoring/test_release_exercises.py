"""A release makes the same bytes every time, and nothing without a source."""

from dataclasses import replace as with_other

import jupytext
import pytest
import torch
from torch import Tensor

from manyheads.authoring.release_exercises import record, stray_files, texts_of, write_release
from manyheads.course import CourseError, load_course
from manyheads.diagnosis.fault_dictionary import FaultDictionary
from manyheads.diagnosis.recording_file import load, read
from manyheads.files import CourseFault
from manyheads.judge.run_hidden_checks import Catalogue
from tests.authoring.conftest import release_course
from tests.authoring.same_recordings import differences
from tests.make import REPOSITORY, cases, content, replace

pytestmark = pytest.mark.recorded

COURSE = load_course(REPOSITORY)
RECORDED = {
    "reshape_dance": [],
    "attention_scores": pytest.mark.soak,
    "causal_mask": pytest.mark.soak,
}


@pytest.mark.parametrize("id_", [pytest.param(id_, marks=marks) for id_, marks in RECORDED.items()])
def test_what_the_repository_holds_is_what_this_processor_records(id_):
    exercise, catalogue = next(e for e in COURSE.exercises if e.id == id_), Catalogue(COURSE)
    assert [
        path for path, text in texts_of(catalogue, exercise).items() if path.read_bytes() != text
    ] == []
    stored, fresh = (
        read(exercise.fingerprints),
        load(record(catalogue, exercise)[exercise.fingerprints]),
    )
    says = (
        "they differ: where this is meant, increase FORMAT in diagnosis/recording_file.py, "
        "then course release"
    )
    assert differences(stored, fresh) == [], says


def plus_one(output: Tensor | None) -> Tensor | None:
    return None if output is None else output + 1


def test_a_recording_with_other_numbers_is_another():
    stored = read(next(e for e in COURSE.exercises if e.id == "reshape_dance").fingerprints)
    assert differences(stored, stored) == []
    mutants = with_other(stored, mutants=(stored.mutants[0], *stored.mutants[:-1]))
    assert "answers" in differences(stored, mutants)
    changed_outputs = tuple(tuple(map(plus_one, outputs)) for outputs in stored.expected)
    assert differences(stored, with_other(stored, expected=changed_outputs)) == ["calls"]
    scores = read(next(e for e in COURSE.exercises if e.id == "attention_scores").fingerprints)
    moved = [
        with_other(condition, expected=tuple(map(plus_one, condition.expected)))
        for condition in scores.conditions
    ]
    assert differences(scores, with_other(scores, conditions=tuple(moved))) == ["conditions"]
    unnamed = [with_other(condition, message="") for condition in scores.conditions]
    assert differences(scores, with_other(scores, conditions=tuple(unnamed))) == [
        "words and checks"
    ]


def test_a_nan_in_a_recording_hides_no_other_difference():
    stored = read(next(e for e in COURSE.exercises if e.id == "attention_scores").fingerprints)
    pair_answers = stored.pairs.answers
    all_nan = with_other(pair_answers, numbers=torch.full_like(pair_answers.numbers, torch.nan))
    with_nan_pairs = with_other(stored, pairs=with_other(stored.pairs, answers=all_nan))
    assert differences(stored, with_nan_pairs) == ["pairs"]

    def with_first_row(*row: float) -> FaultDictionary:
        sweep, *other_sweeps = stored.sweeps
        numbers = sweep.answers[0].clone()
        numbers[0] = torch.tensor(row)
        new_sweep = with_other(sweep, answers=(numbers, *sweep.answers[1:]))
        return with_other(stored, sweeps=(new_sweep, *other_sweeps))

    dictionary = with_first_row(torch.nan, 1.0, 2.0)
    assert differences(dictionary, dictionary) == []
    assert differences(dictionary, with_first_row(torch.nan, 1.0, 3.0)) == ["curves"]
    assert differences(dictionary, with_first_row(0.0, 1.0, 2.0)) == ["curves"]


FILES = [
    f"exercises/averages/{name}"
    for name in (
        "01_running_mean.py",
        "01_running_mean.ipynb",
        "fingerprints/01_running_mean.safetensors",
    )
]


def test_files_that_have_no_source_are_found_and_taken_away_and_caches_are_not(tiny_copy):
    folder = tiny_copy / "exercises" / "averages"
    (folder / "__pycache__").mkdir()
    strays = {folder / name for name in ("notes.md", "fingerprints/02.safetensors")}
    cache = folder / "__pycache__/01_running_mean.cpython-311.pyc"
    for path in (cache, *strays):
        path.touch()
    released = [tiny_copy / name for name in FILES]
    assert {*stray_files(load_course(tiny_copy), released)} == strays
    release_course(tiny_copy)
    assert not any(path.exists() for path in strays)
    assert cache.exists()


def test_one_exercise_can_be_released_alone(two_means):
    release_course(two_means)
    names = ("01_running_mean.py", "02_last_mean.py", "03_mode.py")
    first, second, stray = (two_means / "exercises" / "averages" / name for name in names)
    for path in (first, second, stray):
        path.write_text("edited\n")
    course = load_course(two_means)
    written = write_release(course, Catalogue(course), course.exercises[:1])
    assert [str(path.relative_to(two_means)) for path in written] == FILES
    assert "YOUR CODE HERE" in first.read_text()
    assert [path.read_text() for path in (second, stray)] == ["edited\n", "edited\n"]


def test_the_points_of_the_graded_cells_are_the_exercises(tiny_copy):
    cells = jupytext.read(tiny_copy / FILES[1]).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    points = sum(mark.get("points", 0) for mark in marks)
    assert points == load_course(tiny_copy).assignments[0].points


def test_a_missing_source_is_an_error(tiny_copy):
    (tiny_copy / "solutions" / "averages" / "01_running_mean.py").unlink()
    with pytest.raises(
        CourseError,
        match=r"is missing, which course\.yaml requires\. Next: write it, or mend course",
    ):
        release_course(tiny_copy)


@cases(
    "old, new, says",
    {
        "wrong values": (
            "x.cumsum(0) /",
            "x.cumsum(0) *",
            "the reference of running_mean fails values",
        ),
        "an import that fails": ("import torch\n", "import torhc\n", "ModuleNotFoundError"),
    },
)
def test_nothing_is_recorded_of_a_broken_reference(tiny_copy, old, new, says):
    replace(tiny_copy / "solutions" / "averages" / "01_running_mean.py", old, new)
    original = content(tiny_copy / "exercises")
    with pytest.raises(Exception, match=says) as error:
        release_course(tiny_copy)
    assert ". Next: " in str(error.value)
    assert content(tiny_copy / "exercises") == original


@cases("text", {"no file": "", "an empty tuple": "MUTANTS = ()\n"})
def test_without_a_mutant_it_is_said_that_one_is_needed(tiny_copy, text):
    (exercise,) = load_course(tiny_copy).exercises
    exercise.misconceptions.unlink()
    if text:
        exercise.misconceptions.write_text(text, encoding="utf-8")
    with pytest.raises(CourseFault) as error:
        release_course(tiny_copy)
    next_ = "Next: write one in MUTANTS, then course release running_mean"
    assert (
        str(error.value)
        == f"{exercise.misconceptions} lists no mutant, so no mistake can be named. {next_}"
    )
