"""Collect an exercise's hidden checks, and call each with its fixtures."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from ..box.worker.form import Form
from ..checks.draw import Draw, Drawn, input_seed
from ..checks.implementation import Implementation, Runner
from ..checks.marks import Mark
from ..checks.outcome import CheckOutcome
from ..checks.transcript import RecordingRunner
from ..course import Exercise
from ..errors import CourseFault
from .memory import Memory

FIXTURES = ("attempt", "reference", "draw")
_OPTIONS = (
    "--collect-only --disable-plugin-autoload --import-mode=importlib --noconftest -p no:cacheprovider -p no:terminal "
    "-p no:faulthandler -p no:unraisableexception -p no:threadexception -p no:warnings -p no:logging -p no:junitxml "
    "-p no:doctest -s"
).split()


class GraderFault(CourseFault):
    """The grader itself is broken: a hidden check cannot be collected, or raises an error of its own."""


@dataclass(frozen=True)
class CheckRun:
    """What all checks of one exercise share.

    seed_parts: with the secret, they determine the inputs of every check.
    memory: of earlier attempts with the same inputs.
    forms: what functions and classes return, by their names, where that is not one tensor.
    drawn: a list to which everything that the checks draw is added.
    """

    attempt: RecordingRunner
    reference: Runner
    secret: bytes
    seed_parts: tuple[str, ...]
    memory: Memory = field(default_factory=Memory)
    forms: Mapping[str, Form] = field(default_factory=dict)
    drawn: list[Drawn] | None = None


@dataclass(frozen=True)
class Check:
    """A hidden check, ready to be called.

    name: the function's name with pytest's id of its parameters, for example "test_fill[small]".
    fixtures: the FIXTURES that the function takes. parameters: its other arguments, by name.
    unattempted: its outcome before an attempt is judged.
    """

    name: str
    function: Callable[..., Any]
    fixtures: tuple[str, ...]
    unattempted: CheckOutcome
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The check's id in results."""
        return self.unattempted.id

    def call(self, run: CheckRun, attempt: Runner) -> BaseException | None:
        """Call the check, with `attempt` as its runner. Returns the exception that ended it, None if it passed."""
        given = {
            "attempt": Implementation(attempt, forms=run.forms),
            "reference": Implementation(run.reference, forms=run.forms),
            "draw": Draw(input_seed(run.secret, *run.seed_parts, self.name), run.drawn),
        }
        try:
            self.function(**{name: given[name] for name in self.fixtures}, **self.parameters)
        except (Exception, pytest.skip.Exception) as error:
            return error
        return None


def collect_checks(files: Sequence[Path], device: str = "cpu") -> dict[Path, list[Check]]:
    """Return the checks of these files, in their order, without checks for another device. Raises GraderFault.

    pytest collects them, so that they are written and selected like any other tests.
    """
    if missing := [file for file in files if not file.exists()]:
        raise GraderFault(f"{missing[0]} is missing, which course.yaml requires. Next: write it, or mend course.yaml")
    folders = {file.parent.name for file in files}
    for name in list(sys.modules):  # they may be from another course, or older than the files
        if name in {file.stem for file in files} or name.partition(".")[0] in folders:
            del sys.modules[name]
    collector, folder = _Collector(device), str(files[0].parent)
    arguments = [*_OPTIONS, "-c", "/dev/null", "--rootdir", folder, "--confcutdir", folder, *map(str, files)]
    status = pytest.main(arguments, plugins=[collector])
    if collector.problem or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problem = collector.problem or f"pytest ended with status {int(status)}"
        raise GraderFault(f"the hidden checks cannot be run: {problem}. Next: pytest grader/checks --collect-only")
    return {file: collector.found.get(file, []) for file in files}


class _Collector:
    """A pytest plugin that converts what is collected to Checks."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.found: dict[Path, list[Check]] = {}
        self.problem = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        register_mark(config)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.problem:
            self.problem = str(report.longreprtext).strip().splitlines()[-1]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in (each for each in items if not is_for_another_device(each, self._device)):
            try:
                self.found.setdefault(item.path, []).append(check_of(item))
            except pytest.UsageError as error:
                self.problem = self.problem or str(error)


def register_mark(config: pytest.Config) -> None:
    """Register the mark of `check` with pytest."""
    config.addinivalue_line("markers", "hidden_check(mark): points, layer and hint of a hidden check")


def is_for_another_device(item: pytest.Item, device: str) -> bool:
    """Return whether this check runs on another device only."""
    marker = item.get_closest_marker("hidden_check")
    return marker is not None and marker.args[0].device not in ("", device)


def check_of(item: pytest.Item) -> Check:
    """Convert a collected item to a Check. Raises pytest.UsageError with one sentence if it is not a check."""
    marker = item.get_closest_marker("hidden_check")
    title = (getattr(getattr(item, "function", None), "__doc__", None) or "").strip().splitlines()
    if not isinstance(item, pytest.Function) or item.cls is not None or marker is None or not title:
        raise pytest.UsageError(f"{item.nodeid} needs to be a function with @check(points=…, layer=…) and a docstring")
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    names = tuple(inspect.signature(item.obj).parameters)
    fixtures = tuple(name for name in names if name not in parameters)
    if unknown := [name for name in fixtures if name not in FIXTURES]:
        raise pytest.UsageError(f"{item.nodeid} asks for {unknown[0]}: a check is given {', '.join(FIXTURES)} only")
    mark: Mark = marker.args[0]
    unattempted = CheckOutcome(item.name.removeprefix("test_"), title[0], mark.layer, mark.points, mark.hint)
    return Check(item.name, item.obj, fixtures, unattempted, parameters)


def points_fault(exercise: Exercise, checks: Sequence[CheckOutcome]) -> str:
    """Say how the points of these checks differ from course.yaml's; "" where they add up."""
    total = sum(check.points for check in checks)
    if checks and isclose(total, exercise.points):
        return ""
    where = exercise.checks.relative_to(exercise.root)
    said = f"its checks give {total:g} points" if checks else f"nothing was collected from {where}"
    return f"{exercise.id}: {said}, course.yaml says {exercise.points:g}"
