"""Run hidden checks by hand: `pytest grader/hidden/checks --attempt FILE_OR_FOLDER`.

A folder's conftest.py imports everything from here. Student code runs in the box here too.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from ..box.connection import AttemptEnded
from ..box.level import Box, Level, open_box
from ..course import Assignment, Course, Exercise, find_course, load_course
from ..submission import AttemptSource, read_attempt
from .attempt import AttemptPerformer
from .candidate import AttemptRaised, Candidate, CheckFailed, LocalPerformer
from .draw import Draw, input_seed
from .explain import explain
from .plugin import is_elsewhere
from .references import namespace_of

__all__ = [
    "attempt",
    "draw",
    "hidden_box",
    "performer",
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_makereport",
    "reference",
]

_run = secrets.token_bytes(16)


def pytest_addoption(parser: pytest.Parser) -> None:
    """--attempt."""
    parser.addoption("--attempt", metavar="FILE_OR_FOLDER", help="the attempt, or a submission's folder, to check")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark of `check` known."""
    config.addinivalue_line("markers", "hidden_check(mark): points, layer and hint of a hidden check")


@pytest.fixture(scope="session")
def hidden_box() -> Iterator[Box]:
    """One warm box for the whole run."""
    course = load_course(find_course(Path.cwd()))
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        yield box


@pytest.fixture(scope="module")
def performer(request: pytest.FixtureRequest, hidden_box: Box) -> Iterator[AttemptPerformer]:
    """The attempt that belongs to this file of checks."""
    given = request.config.getoption("--attempt")
    if given is None:
        pytest.exit(
            "--attempt FILE_OR_FOLDER is missing. Next: pytest grader/hidden/checks --attempt FILE", returncode=4
        )
    course, assignment, exercise = _exercise_of(request.path)
    source = _source(course, assignment, exercise, Path(given))
    found = AttemptPerformer(hidden_box, source, course.limits.for_worker())
    yield found
    found.close()


@pytest.fixture
def attempt(request: pytest.FixtureRequest, performer: AttemptPerformer) -> Candidate:
    """The attempt under judgement."""
    if is_elsewhere(request.node, performer.device):
        pytest.skip(f"not for {performer.device}: course grade --device cuda runs it")
    return Candidate(performer)


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Candidate:
    """The reference solution."""
    course, assignment, exercise = _exercise_of(request.path)
    return Candidate(LocalPerformer(namespace_of(course.solution(assignment, exercise))))


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Draw:
    """Fresh random inputs of this check."""
    return Draw(input_seed(_run, request.node.name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what a student would read, in place of a traceback through the judge."""
    report = yield
    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, AttemptRaised):
        report.longrepr = explain(error.raised)
    elif isinstance(error, CheckFailed | AttemptEnded):
        report.longrepr = str(error)
    return report


def _exercise_of(checks: Path) -> tuple[Course, Assignment, Exercise]:
    course = load_course(find_course(checks.parent))
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            if course.checks(exercise) == checks:
                return course, assignment, exercise
    return pytest.exit(f"{checks.name} belongs to no exercise of course.yaml. Next: add its row", returncode=4)


def _source(course: Course, assignment: Assignment, exercise: Exercise, given: Path) -> AttemptSource:
    stem = assignment.stem(exercise)
    if given.is_dir():
        found = read_attempt(given, stem, None, course.limits.source_kib)
    elif given.stem in (stem, exercise.id):
        found = read_attempt(given.parent, given.stem, None, course.limits.source_kib)
    else:
        pytest.skip(f"{given.name} is no attempt at {exercise.id}")
    if found.missing or found.problem:
        pytest.skip(found.problem or f"{found.name} is not in {given}")
    return found
