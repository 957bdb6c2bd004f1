"""Run hidden checks by hand: `pytest grader/checks --attempt FILE_OR_FOLDER`.

A course's grader/checks/conftest.py imports everything from this module. Student code runs in the
box here too, and verdicts are made as in `course grade` (`run_checks`), on inputs that are drawn
anew each time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..box import open_box
from ..box.connection import Box
from ..box.level_and_device_names import Level
from ..checks.runner import LocalRunner, namespace_of
from ..course import find_course, load_course
from ..submission import read_attempt
from .attempt_runner import AttemptRunner
from .collect_checks import (
    CheckRun,
    check_of,
    is_for_another_device,
    pytest_configure,
    pytest_pycollect_makeitem,
)
from .run_hidden_checks import run_checks

__all__ = ["attempt", "draw", "hidden_box", "pytest_addoption", "pytest_collection_modifyitems"]
__all__ += ["pytest_configure", "pytest_pycollect_makeitem", "pytest_pyfunc_call", "reference"]

HANG_SECONDS = 300.0  # for one check
_run_secret = secrets.token_bytes(16)  # in place of the course's, so that inputs are drawn anew


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --attempt."""
    parser.addoption(
        "--attempt",
        metavar="FILE_OR_FOLDER",
        help="the attempt, or a submission's folder, to check",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let pytest-timeout end a check that hangs, and leave fixtures of the course to `run_checks`.

    `run_checks` sets up all fixtures but `attempt`, because their values depend on the random
    numbers that `pytest_pyfunc_call` draws. With --collect-only, as the judge collects the checks,
    nothing is changed.
    """
    if config.option.collectonly:
        return
    for item in items:
        if not item.get_closest_marker("hidden_check") or not isinstance(item, pytest.Function):
            continue
        item.fixturenames = [name for name in item.fixturenames if name == "attempt"]
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(HANG_SECONDS))


@pytest.fixture(scope="session")
def hidden_box() -> Iterator[Box]:
    """Yield one warm box for the whole run. Its course is the one around the working directory."""
    course = load_course(find_course(Path.cwd()))
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        yield box


@pytest.fixture(scope="module")
def attempt(request: pytest.FixtureRequest, hidden_box: Box) -> Iterator[CheckRun]:
    """Yield the data that the checks of this file share, such as the runner of the attempt.

    The checks are skipped if --attempt is a file of another exercise, or if the attempt is missing
    or cannot be graded. The run ends if there is no --attempt, or if this file belongs to no
    exercise.
    """
    option = request.config.getoption("--attempt")
    if option is None:
        pytest.exit(
            "--attempt FILE_OR_FOLDER is missing. Next: pytest grader/checks --attempt FILE",
            returncode=4,
        )
    course = load_course(find_course(request.path.parent))
    exercise = next(
        (exercise for exercise in course.exercises if exercise.checks == request.path), None
    )
    if exercise is None:
        pytest.exit(
            f"{request.path.name} belongs to no exercise of course.yaml. Next: add its row",
            returncode=4,
        )
    path = Path(option)
    folder, stem = (path, exercise.stem) if path.is_dir() else (path.parent, path.stem)
    if stem not in (exercise.stem, exercise.id):
        pytest.skip(f"{path.name} is no attempt at {exercise.id}")
    source = read_attempt(folder, stem, None, course.limits.source_kib)
    if source.missing or source.problem:
        pytest.skip(source.problem or f"{source.name} is not in {path}")
    runner = AttemptRunner(hidden_box, source, course.limits.for_worker())
    yield CheckRun(
        runner,
        LocalRunner(namespace_of(exercise.solution)),
        _run_secret,
        (exercise.id,),
        forms=exercise.forms,
    )
    runner.close()


@pytest.fixture
def reference() -> None:
    """Return nothing: `Check.call` makes this fixture, from the data that the checks share."""


draw = reference


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Judge the attempt by this check as `course grade` does.

    Returns True if it passed. Otherwise the test fails or is skipped, with the sentence that the
    student reads. It also fails if the check itself is at fault, or calls no attempt. It is skipped
    if it is for another device. Returns None for any other test, which pytest then runs.
    """
    if not pyfuncitem.get_closest_marker("hidden_check"):
        return None
    run = pyfuncitem.funcargs.get("attempt")
    if not isinstance(run, CheckRun):
        pytest.fail(
            "the check asks the attempt nothing: let it take the fixture `attempt`", pytrace=False
        )
    if is_for_another_device(pyfuncitem, run.attempt.device):
        pytest.skip(f"not for {run.attempt.device}: course grade --device cuda runs it")
    (outcome,) = run_checks([check_of(pyfuncitem)], run)
    if outcome.fault:
        pytest.fail(f"the check itself is at fault: {outcome.fault}", pytrace=False)
    if outcome.outcome == "skipped":
        pytest.skip(outcome.evidence)
    if outcome.outcome != "passed":
        pytest.fail(outcome.evidence, pytrace=False)
    return True
