"""Collect an exercise's hidden checks with pytest.

`collect_checks` returns a `Check` for each function with @check in a file of grader/checks. pytest
only collects them: `run_hidden_checks` calls a Check for each attempt, and gives it the attempt,
the reference and the drawn inputs (`CheckRun`) in place of pytest's fixtures.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ..box.worker.result_form import Form
from ..checks.contract import CONTRACT
from ..checks.hidden_check import CheckOutcome, Draw, Drawn, Mark, input_seed, is_check_file
from ..checks.runner import Exchange, Implementation, RecordingRunner, Runner
from ..course import Exercise
from ..files import CourseFault, describe_error, location_of_error
from .attempt_runner import ReplayCache

FIXTURES = ("attempt", "reference", "draw")
CONDITIONS = "PRECONDITIONS"  # the name of the dict of preconditions in a file of checks
_PERSONAL_OPTIONS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_OPTIONS = (
    "--collect-only -c /dev/null --disable-plugin-autoload --import-mode=importlib -p "
    "no:cacheprovider -p no:terminal -p no:faulthandler -p no:unraisableexception -p "
    "no:threadexception -p no:warnings -p no:logging -p no:junitxml -p no:doctest -s"
).split()


class GraderFault(CourseFault):
    """The grader itself is broken.

    For example, a hidden check cannot be collected, or the points of checks are not course.yaml's.
    """


@dataclass(frozen=True)
class CheckRun:
    """The data that all checks of one exercise share.

    Attributes:
        attempt: The runner of the attempt.
        reference: The runner of the reference.
        secret: The course's secret.
        seed_parts: Together with the secret and a check's name, they determine its inputs.
        memory: The replay cache of earlier attempts with the same inputs.
        forms: The forms of functions and classes that do not return one tensor, by name.
        drawn: A list to which everything that the checks draw is added.
    """

    attempt: RecordingRunner
    reference: Runner
    secret: bytes
    seed_parts: tuple[str, ...]
    memory: ReplayCache = field(default_factory=ReplayCache)
    forms: Mapping[str, Form] = field(default_factory=dict)
    drawn: list[Drawn] | None = None

    def exchanges_of(self, check: str) -> list[Exchange]:
        """Return the answered calls of the check with this id, each with the attempt's reply."""
        return [exchange for exchange in self.attempt.transcript if exchange.check == check]


@dataclass(frozen=True)
class Check:
    """A hidden check, ready to be called.

    Attributes:
        name: The function's name with pytest's id of its parameters, such as "test_fill[small]".
        function: The function.
        unattempted: The outcome before an attempt is judged.
        parameters: The arguments of the function that `pytest.mark.parametrize` gives, by name.
        fixtures: The fixtures of the course, by name: functions of other fixtures.
        module: The module of the function, for fixtures with the argument `request`.
        conditions: For each function of the exercise, a generator of its preconditions.
        needs_answers: Whether the check passes only if each function that it calls has answered.
            False for a requirement, which judges the answers itself.
    """

    name: str
    function: Callable[..., Any]
    unattempted: CheckOutcome
    parameters: Mapping[str, object] = field(default_factory=dict)
    fixtures: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    module: types.ModuleType | None = None
    conditions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    needs_answers: bool = True

    @property
    def id(self) -> str:
        """The check's id in results."""
        return self.unattempted.id

    def call(self, run: CheckRun, attempt: Runner) -> BaseException | None:
        """Call the check, with `attempt` as its runner.

        Returns the exception that ended it (also SystemExit or a skip), or None if it passed.
        """
        values = {
            "attempt": Implementation(attempt, forms=run.forms),
            "reference": Implementation(run.reference, forms=run.forms),
            "draw": Draw(input_seed(run.secret, *run.seed_parts, self.name), run.drawn),
            "request": SimpleNamespace(module=self.module),
            **self.parameters,
        }
        try:
            self._call_with_fixtures(self.function, values)
        except (Exception, SystemExit, pytest.skip.Exception) as error:
            return error
        return None

    def _call_with_fixtures(self, function: Callable[..., Any], values: dict[str, Any]) -> Any:
        """Call the check, or one of its fixtures, with the values of the fixtures that it names.

        Args:
            function: The check or the fixture.
            values: The values of fixtures by name, to which those of the course are added: each
                fixture has one value in a check.
        """
        arguments = {}
        for name in inspect.signature(function).parameters:
            if name not in values:
                values[name] = self._call_with_fixtures(self.fixtures[name], values)
            arguments[name] = values[name]
        return function(**arguments)


@contextmanager
def no_personal_options() -> Iterator[None]:
    """Set aside the variables by which a person's shell adds options to each run of pytest.

    Plugins that such options are for may be missing here, and pytest would end with an error.
    """
    set_aside = {name: os.environ.pop(name) for name in _PERSONAL_OPTIONS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(set_aside)


def collect_checks(files: Sequence[Path], device: str = "cpu") -> dict[Path, list[Check]]:
    """Return for each file its checks, in their order, without checks for another device.

    pytest collects them, so that they are written and selected like any other tests. A file without
    checks has []. Modules of the files and their folders are imported anew. Raises GraderFault if a
    file is missing or cannot be imported, or if a test in it is no check.
    """
    if missing := [file for file in files if not file.exists()]:
        raise GraderFault(
            f"{missing[0]} is missing, which course.yaml requires. Next: write it, or mend "
            "course.yaml"
        )
    # Modules of these names may be from another course, or older than the files.
    stems = {"conftest", *(file.stem for file in files)}
    folders = {file.parent.name for file in files}
    for name in list(sys.modules):
        if name in stems or name.partition(".")[0] in folders:
            del sys.modules[name]
    collector, folder = _Collector(device), files[0].parent
    folders_of_pytest = [f"--rootdir={folder}", f"--confcutdir={folder}"]
    with no_personal_options():
        status = pytest.main([*_OPTIONS, *folders_of_pytest, *map(str, files)], plugins=[collector])
    if collector.problem or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problem = collector.problem or f"pytest ended with status {int(status)}"
        raise GraderFault(
            f"the hidden checks cannot be run: {problem}. Next: mend it, then run the same command"
        )
    return {file: collector.found.get(file, []) for file in files}


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of `check` with pytest."""
    config.addinivalue_line(
        "markers", "hidden_check(mark): points, layer and hint of a hidden check"
    )


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Collect the checks of the list that a file calls CONTRACT."""
    if name != CONTRACT or not isinstance(obj, list):
        return None
    return [
        pytest.Function.from_parent(collector, name=function.__name__, callobj=function)
        for function in obj
    ]


class _Collector:
    """A pytest plugin that converts the collected items to Checks.

    Attributes:
        found: The checks of each file.
        problem: A sentence about the first problem, or "".
    """

    pytest_configure = staticmethod(pytest_configure)
    pytest_pycollect_makeitem = staticmethod(pytest_pycollect_makeitem)

    def __init__(self, device: str) -> None:
        self._device = device
        self.found: dict[Path, list[Check]] = {}
        self.problem = ""

    def pytest_exception_interact(
        self, call: pytest.CallInfo[Any], report: pytest.CollectReport | pytest.TestReport
    ) -> None:
        """Note the line of the checks at which an import failed, and the exception.

        Only the first problem is noted, and only if a file of the checks is in its traceback.
        pytest wraps some exceptions in another one, so both are searched, and the inner one counts.
        """
        if call.excinfo is None or self.problem:
            return
        for error in (call.excinfo.value, call.excinfo.value.__cause__):
            location = location_of_error(error, is_check_file)
            if location is not None:
                file, line = location
                self.problem = f"{'/'.join(file.parts[-3:])}:{line}: {describe_error(error)}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the last line of pytest's report if a file cannot be collected.

        A problem that was noted before stays.
        """
        if report.failed and not self.problem:
            self.problem = str(report.longreprtext).strip().splitlines()[-1]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Add the check of each item to `found`, without checks for another device.

        The first item that is not a check is the problem.
        """
        for item in items:
            if is_for_another_device(item, self._device):
                continue
            try:
                self.found.setdefault(item.path, []).append(check_of(item))
            except pytest.UsageError as error:
                self.problem = self.problem or str(error)


def is_for_another_device(item: pytest.Item, device: str) -> bool:
    """Return whether this item is a check that runs on another device only."""
    marker = item.get_closest_marker("hidden_check")
    return marker is not None and marker.args[0].device not in ("", device)


def check_of(item: pytest.Item) -> Check:
    """Convert a collected item to a Check, with the first paragraph of its docstring as its title.

    Raises pytest.UsageError with one sentence in three cases: the item is no function with @check
    and a docstring; it has a parameter that a check is not given; or the PRECONDITIONS of its file
    are no dict of generators.
    """
    marker = item.get_closest_marker("hidden_check")
    docstring = getattr(getattr(item, "function", None), "__doc__", None) or ""
    title = " ".join(docstring.strip().partition("\n\n")[0].split())
    if not isinstance(item, pytest.Function) or item.cls is not None or marker is None or not title:
        raise pytest.UsageError(
            f"{item.nodeid} needs to be a function with @check(points=…, layer=…) and a docstring"
        )
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    fixtures = _course_fixtures(item)
    for function in (item.obj, *fixtures.values()):
        for name in inspect.signature(function).parameters:
            if name not in {*parameters, *FIXTURES, *fixtures, "request"}:
                raise pytest.UsageError(
                    f"{item.nodeid} asks for {name}: a check is given {', '.join(FIXTURES)} and the"
                    " fixtures of its folder"
                )
    mark: Mark = marker.args[0]
    unattempted = CheckOutcome(
        item.name.removeprefix("test_"), title, mark.layer, mark.points, mark.hint
    )
    conditions = vars(item.module).get(CONDITIONS, {})
    if not isinstance(conditions, Mapping) or not all(map(callable, conditions.values())):
        raise pytest.UsageError(
            f"{item.path.name}: {CONDITIONS} needs to be a dict of generators, by functions' names"
        )
    return Check(item.name, item.obj, unattempted, parameters, fixtures, item.module, conditions)


def _course_fixtures(item: pytest.Function) -> dict[str, Callable[..., Any]]:
    """Return the functions of the fixtures that the file of this check declares, or its conftest.

    Raises pytest.UsageError if a fixture yields, because a fixture of a check returns its value.
    """
    fixtures = {}
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        function = definitions[-1].func
        if name in FIXTURES or Path(inspect.getfile(function)).parent != item.path.parent:
            continue
        if inspect.isgeneratorfunction(function):
            raise pytest.UsageError(f"{item.nodeid}: its fixture {name} yields: let it return")
        fixtures[name] = function
    return fixtures


def points_fault(exercise: Exercise, checks: Sequence[CheckOutcome]) -> str:
    """Return a sentence if the sum of these checks' points is not course.yaml's; "" if it is.

    Without any check, the sentence says that nothing was collected.
    """
    total = sum(check.points for check in checks)
    if checks and isclose(total, exercise.points):
        return ""
    problem = f"its checks give {total:g} points"
    if not checks:
        file = exercise.checks.relative_to(exercise.root)
        problem = f"nothing was collected from {file}"
    return f"{exercise.id}: {problem}, course.yaml says {exercise.points:g}"
