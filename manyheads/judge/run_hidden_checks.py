"""Collect an exercise's hidden checks, run them on one attempt, and decide their outcomes.

Every verdict is made here.

All checks of one attempt run concurrently: each until its next call, and these calls are sent in
one batch. One by one, judge and attempt would alternate at every call, and each would find the
CPU's caches filled by the other. Concurrently, two dozen checks need only as many rounds as the
longest check has calls. A check is not run if the replay cache already knows its next step.
"""

from __future__ import annotations

import faulthandler
import inspect
import signal
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from greenlet import getcurrent, greenlet

from ..box.connection import AttemptEnded, End
from ..box.worker.messages import Call, Reply
from ..box.worker.result_structure import Form
from ..checks.answer import has_numbers
from ..checks.asserts import expect
from ..checks.conditions import Condition, first_unmet, judged_beside
from ..checks.contract import CONTRACT
from ..checks.explain import explain
from ..checks.hidden_check import (
    FAILED_ITSELF,
    AttemptRaised,
    CheckFailed,
    CheckOutcome,
    Draw,
    Drawn,
    Layer,
    Mark,
    input_seed,
)
from ..checks.runner import (
    CheckQuestion,
    Exchange,
    Implementation,
    LocalRecordingRunner,
    LocalRunner,
    RecordingRunner,
    Runner,
    namespace_of,
    target_of,
)
from ..course import Course, Exercise
from ..course_fault import CourseFault, described, place_of
from .attempt_runner import RememberingRunner, ReplayCache, ReplayNode
from .nontrivial_answers import (
    all_right,
    choose_probe,
    compare_with_reference,
    missing_reply,
    require_nontrivial,
    wrong_type,
)
from .redact_hidden_inputs import redact

FIXTURES = ("attempt", "reference", "draw")
CONDITIONS = "PRECONDITIONS"  # the name of the dict of preconditions in a file of checks
# CPU time of a judge for one attempt: sixty times as much as the slowest exercise of the course
# needs
CPU_SECONDS = 120.0
_OPTIONS = (
    "--collect-only --disable-plugin-autoload --import-mode=importlib -p "
    "no:cacheprovider -p no:terminal -p no:faulthandler -p no:unraisableexception -p "
    "no:threadexception -p no:warnings -p no:logging -p no:junitxml -p no:doctest -s"
).split()


class GraderFault(CourseFault):
    """The grader itself is broken.

    A hidden check cannot be collected, or raises an error that the attempt has not caused.
    """


@dataclass(frozen=True)
class CheckRun:
    """The data that all checks of one exercise share.

    Attributes:
        attempt: The runner of the attempt.
        reference: The runner of the reference.
        secret: The course's secret.
        seed_parts: Together with the secret, they determine the inputs of every check.
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
        """Return the calls that the check with this id has made, each with the attempt's reply."""
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

        Returns the exception that ended it, or None if it passed.
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

    def judged(self, error: BaseException | None, run: CheckRun) -> CheckOutcome:
        """Return the outcome of the check that ended with this exception, or with none.

        A check that passed fails if a function that it calls has not answered. If the attempt
        returned a wrong type, that is given as the reason for a failure.
        """
        if self.needs_answers and error is None:
            error = missing_reply(run.exchanges_of(self.id), run.reference)
        elif self.needs_answers and type(error) is CheckFailed:
            error = wrong_type(run.exchanges_of(self.id), run.reference) or error
        return outcome_of(self.unattempted, error, run)


def collect_checks(files: Sequence[Path], device: str = "cpu") -> dict[Path, list[Check]]:
    """Return the checks of these files, in their order, without checks for another device.

    pytest collects them, so that they are written and selected like any other tests. Raises
    GraderFault.
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
    collector, folder = _Collector(device), str(files[0].parent)
    arguments = [
        *_OPTIONS,
        "-c",
        "/dev/null",
        "--rootdir",
        folder,
        "--confcutdir",
        folder,
        *map(str, files),
    ]
    status = pytest.main(arguments, plugins=[collector])
    if collector.problem or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problem = collector.problem or f"pytest ended with status {int(status)}"
        raise GraderFault(
            f"the hidden checks cannot be run: {problem}. Next: mend it, then course verify"
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
    """A pytest plugin that converts the collected items to Checks."""

    pytest_configure = staticmethod(pytest_configure)
    pytest_pycollect_makeitem = staticmethod(pytest_pycollect_makeitem)

    def __init__(self, device: str) -> None:
        self._device = device
        self.found: dict[Path, list[Check]] = {}
        self.problem = ""

    def pytest_exception_interact(
        self, call: pytest.CallInfo[Any], report: pytest.CollectReport | pytest.TestReport
    ) -> None:
        """Note the line of the checks at which an import failed.

        pytest wraps some exceptions in another one, so both are searched.
        """
        if call.excinfo is None or self.problem:
            return
        for error in (call.excinfo.value, call.excinfo.value.__cause__):
            location = place_of(error, _is_of_checks)
            if location is not None:
                file, line = location
                self.problem = f"{'/'.join(file.parts[-3:])}:{line}: {described(error)}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the last line of pytest's report if a file cannot be collected."""
        if report.failed and not self.problem:
            self.problem = str(report.longreprtext).strip().splitlines()[-1]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Convert the items that run on this device, and note the first that is not a check."""
        for item in items:
            if is_for_another_device(item, self._device):
                continue
            try:
                self.found.setdefault(item.path, []).append(check_of(item))
            except pytest.UsageError as error:
                self.problem = self.problem or str(error)


def is_for_another_device(item: pytest.Item, device: str) -> bool:
    """Return whether this check runs on another device only."""
    marker = item.get_closest_marker("hidden_check")
    return marker is not None and marker.args[0].device not in ("", device)


def check_of(item: pytest.Item) -> Check:
    """Convert a collected item to a Check.

    Raises pytest.UsageError with one sentence if it is not a check.
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
    """Return how the points of these checks differ from course.yaml's; "" if they agree."""
    total = sum(check.points for check in checks)
    if checks and isclose(total, exercise.points):
        return ""
    problem = f"its checks give {total:g} points"
    if not checks:
        file = exercise.checks.relative_to(exercise.root)
        problem = f"nothing was collected from {file}"
    return f"{exercise.id}: {problem}, course.yaml says {exercise.points:g}"


class HiddenChecks:
    """The collected checks of some exercises, ready to judge any number of attempts."""

    def __init__(self, files: Sequence[Path], device: str = "cpu") -> None:
        """Collect these files, without checks for another device. Raises GraderFault."""
        # Checks are many and their tensors small: with threads, waking them costs four times as
        # much as the work.
        torch.set_num_threads(1)
        self._checks = collect_checks(files, device)

    def unattempted(self, file: Path) -> list[CheckOutcome]:
        """Return the outcomes of a file's checks before an attempt is judged.

        Returns [] if the file was not collected.
        """
        return [check.unattempted for check in self._checks.get(file, [])]

    def conditions(self, file: Path) -> Mapping[str, Callable[..., Iterable[Condition]]]:
        """Return the preconditions of each function that a file states, by function."""
        return next((check.conditions for check in self._checks.get(file, [])), {})

    def run(self, file: Path, run: CheckRun, only: Collection[str] = ()) -> list[CheckOutcome]:
        """Return the outcomes of all checks of the file, in its order.

        This process ends if the checks themselves compute for too long. Calls of an attempt have
        another deadline (`AttemptRunner`).

        Args:
            file: The file.
            run: The data that the checks share.
            only: The ids of the checks to run; empty for all.
        """
        selected = [check for check in self._checks[file] if not only or check.id in only]
        with cpu_budget():
            return run_checks(selected, run)


@contextmanager
def cpu_budget() -> Iterator[None]:
    """End this process, with a traceback of every thread, if the block uses too much CPU time.

    The limit is CPU_SECONDS, and waiting does not count. The kernel counts, so nothing that runs
    here can delay it. A block within another one, or on a system without such a timer, has no
    limit.
    """
    if not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_PROF)[0]:
        yield
        return
    # The traceback goes to the file descriptor, because sys.stderr may have been replaced. Then the
    # handler passes the signal on, which ends the process.
    standard_error = 2
    faulthandler.register(signal.SIGPROF, standard_error, chain=True)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Catalogue:
    """The checks and the reference of every exercise, for trusted code.

    Trusted code is the reference and the mutants, which run in the judge's process.
    """

    def __init__(self, course: Course) -> None:
        """Collect every check. Raises GraderFault."""
        self._checks = HiddenChecks([exercise.checks for exercise in course.exercises])

    def checks(self, exercise: Exercise) -> list[CheckOutcome]:
        """Return the checks of an exercise, as outcomes without an attempt."""
        return self._checks.unattempted(exercise.checks)

    def conditions(self, exercise: Exercise) -> Mapping[str, Callable[..., Iterable[Condition]]]:
        """Return the preconditions of each function that has some, by function."""
        return self._checks.conditions(exercise.checks)

    def reference(self, exercise: Exercise) -> LocalRunner:
        """Return the reference solution. Raises BrokenReference."""
        return LocalRunner(namespace_of(exercise.solution))

    def remembering(self, exercise: Exercise) -> RememberingRunner:
        """Return the reference for many runs with the same inputs: it answers each call once.

        Raises BrokenReference.
        """
        return RememberingRunner(namespace_of(exercise.solution), only_values=True)

    def run(
        self,
        exercise: Exercise,
        attempt: LocalRecordingRunner,
        reference: Runner,
        secret: bytes,
        *seed_parts: str,
        drawn: list[Drawn] | None = None,
        only: Collection[str] = (),
    ) -> list[CheckOutcome]:
        """Return the outcomes of the checks for this trusted code.

        Args:
            exercise: The exercise.
            attempt: The runner of the trusted code.
            reference: The runner of the reference.
            secret: The course's secret.
            seed_parts: Together with the secret, they determine the inputs.
            drawn: A list to which everything that the checks draw is added.
            only: The ids of the checks to run; empty for all.
        """
        memory = reference.memory if isinstance(reference, RememberingRunner) else ReplayCache()
        memory.begin_attempt()
        run = CheckRun(attempt, reference, secret, seed_parts, memory, exercise.forms, drawn)
        return self._checks.run(exercise.checks, run, only)


def run_checks(checks: Sequence[Check], run: CheckRun) -> list[CheckOutcome]:
    """Return the outcomes of these checks, in their order.

    A check passes only if it got answers, and if the answers of its functions are not trivial. The
    attempt's transcript is brought into the order of the checks.
    """
    outcomes = run_concurrently(checks, run)
    unmet = _unmet_requirements(outcomes, checks[0].conditions if checks else {}, run)
    decided = [
        _decided(check, outcome, unmet, run)
        for check, outcome in zip(checks, outcomes, strict=True)
    ]
    order = {check.id: position for position, check in enumerate(checks)}
    run.attempt.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
    return decided


def outcome_of(check: CheckOutcome, error: BaseException | None, run: CheckRun) -> CheckOutcome:
    """Return the outcome of a check that ended with this exception, or passed with none.

    If the check itself broke, and the attempt's answers have another shape or type than the
    reference's, that difference is the outcome. Otherwise the outcome has a fault of the grader.
    """
    if error is None:
        return replace(check, outcome="passed")
    if isinstance(error, AttemptRaised):
        evidence = ". ".join(filter(None, (explain(error.raised), error.due)))
        return replace(
            check, outcome="error", evidence=evidence, raised=error.raised, function=error.place
        )
    if isinstance(error, CheckFailed):
        evidence = redact(error.evidence, run.exchanges_of(check.id), error.expected)
        check = replace(
            check,
            suspect=error.suspect,
            function=error.place,
            trivial_answer=check.trivial_answer or error.unmet,
        )
        return replace(check, outcome="failed", evidence=evidence)
    if isinstance(error, AttemptEnded):
        is_timeout = error.end is End.TIMEOUT
        return replace(check, outcome="timeout" if is_timeout else "crashed", evidence=str(error))
    if isinstance(error, pytest.skip.Exception):
        return replace(check, outcome="skipped", evidence=str(error))
    if differs := compare_with_reference(run.exchanges_of(check.id), run.reference):
        return outcome_of(check, differs, run)
    fault = f"{check.id}: {type(error).__name__}: {error}{_line_in_checks(error)}"
    return replace(check, outcome="skipped", evidence=FAILED_ITSELF, fault=fault)


def _line_in_checks(error: BaseException) -> str:
    """Return the line of the course's checks that raised the error, in brackets, or "".

    The text of the line is left out: students may read a log of `course grade`, and a hidden check
    must stay hidden.
    """
    location = place_of(error, _is_of_checks)
    if location is None:
        return ""
    file, line = location
    return f" ({file.name}, line {line})"


def _is_of_checks(file: Path) -> bool:
    """Return whether a file belongs to a course's hidden checks."""
    return file.parts[-3:-1] == ("grader", "checks")


def _unmet_requirements(
    check_outcomes: Sequence[CheckOutcome],
    conditions: Mapping[str, Callable[..., Any]],
    run: CheckRun,
) -> Mapping[str, CheckOutcome]:
    """Return for each function with trivial answers the first requirement that it does not meet.

    Only functions that a passed check calls are tested. The additional calls for this are left out
    of the attempt's transcript.

    Args:
        check_outcomes: The outcomes of the checks themselves.
        conditions: For each function, the generator of its preconditions.
        run: The data that the checks share.
    """
    transcript = [*run.attempt.transcript]
    passed = [outcome.id for outcome in check_outcomes if outcome.outcome == "passed"]
    targets = dict.fromkeys(
        target_of(exchange.call) for check in passed for exchange in run.exchanges_of(check)
    )
    all_passed = len(passed) == len(check_outcomes)
    demands: list[tuple[str, Check]] = []
    for name in targets:
        demands += [
            (name, demand) for demand in _demands(name, conditions.get(name), all_passed, run)
        ]
    outcomes = run_concurrently([demand for _, demand in demands], run)
    run.attempt.transcript[:] = transcript
    unmet: dict[str, CheckOutcome] = {}
    for (name, _), outcome in zip(demands, outcomes, strict=True):
        if outcome.outcome != "passed":
            unmet.setdefault(name, outcome)
    return unmet


def _decided(
    check: Check, outcome: CheckOutcome, unmet: Mapping[str, CheckOutcome], run: CheckRun
) -> CheckOutcome:
    """Return the check's final outcome: a pass counts only if no function's answers are trivial.

    Args:
        check: The check.
        outcome: Its outcome without requirements.
        unmet: For each function with trivial answers, the requirement that it does not meet.
        run: The data that the checks share.
    """
    if outcome.outcome != "passed" or not unmet:
        return outcome
    targets = (target_of(exchange.call) for exchange in run.exchanges_of(check.id))
    function = next((target for target in targets if target in unmet), "")
    if not function:
        return outcome
    requirement = unmet[function]
    return replace(
        check.unattempted,
        outcome=requirement.outcome,
        evidence=requirement.evidence,
        fault=requirement.fault,
        function=function,
        trivial_answer=requirement.trivial_answer,
    )


def expect_conditions(
    attempt: Implementation,
    reference: Implementation,
    draw: Draw,
    conditions: Callable[..., Iterable[Condition]],
) -> None:
    """Raise CheckFailed if the attempt does not meet the preconditions of a function."""
    condition_list = list(conditions(attempt, draw))
    judged = [
        judged_beside(condition, reference.ask(condition.answer.call))
        for condition in condition_list
    ]
    message = first_unmet(judged)
    expect(not message, message)


def _demands(
    target: str, conditions: Callable[..., Any] | None, all_passed: bool, run: CheckRun
) -> Iterator[Check]:
    """Yield the requirements for a function as checks.

    If the function is right in a telling probe, it need not be tested for trivial answers. Its
    preconditions are then tested only if a check failed and some of its answers are not right.

    Args:
        target: The name of the function.
        conditions: The generator of its preconditions, if it has some.
        all_passed: Whether all checks passed.
        run: The data that the checks share.
    """
    exchanges = [
        exchange for exchange in run.attempt.transcript if target_of(exchange.call) == target
    ]
    probe = choose_probe(exchanges, run.reference, run.memory.memoised)
    if probe is None and not any(
        has_numbers(run.reference.execute(exchange.call)) for exchange in exchanges
    ):
        return  # not even the reference answers with numbers
    unattempted = CheckOutcome(target, target, Layer.FINITE, 0.0, "")
    is_right = probe is not None and probe.is_right
    if not is_right:
        parameters, name = {"target": target, "probe": probe}, f"{target} says something"
        yield Check(name, require_nontrivial, unattempted, parameters, needs_answers=False)
    if conditions is None or probe is None:
        return
    if not (is_right and (all_passed or all_right(exchanges, run.reference))):
        makers = {"conditions": conditions}
        yield Check(
            f"{target} counts",
            expect_conditions,
            replace(unattempted, trivial_answer=True),
            makers,
            needs_answers=False,
        )


def run_concurrently(checks: Sequence[Check], run: CheckRun) -> list[CheckOutcome]:
    """Run the checks, and return the outcome of each, in the order of the checks.

    In each round, the next calls of all checks that have not ended are sent together.
    """
    running = [_RunningCheck(check, run) for check in checks]
    while True:
        waiting: list[_RunningCheck] = []
        questions: list[CheckQuestion] = []
        outcomes: list[CheckOutcome] = []
        for running_check in running:
            action = running_check.next_action()
            if isinstance(action, Call):
                waiting.append(running_check)
                questions.append(CheckQuestion(running_check.check.id, action))
            else:
                outcomes.append(action)
        if not questions:
            return outcomes
        for running_check, answer in zip(waiting, run.attempt.execute_all(questions), strict=True):
            running_check.take(answer)


class _RunningCheck:
    """One check and its current step.

    The check's function is run only if the replay cache does not know the next action.
    """

    def __init__(self, check: Check, run: CheckRun) -> None:
        self.check, self._run = check, run
        # The calls of a requirement depend on the attempt's answers, so its steps are not
        # remembered.
        self._step = run.memory.first_step(check.id) if check.needs_answers else ReplayNode()
        self._unseen_replies: list[Reply] = []  # replies that the function has not received
        self._function = greenlet(check.call)

    def next_action(self) -> Call | CheckOutcome:
        """Return the next call of the check, or its outcome if it has ended."""
        if self._step.next_action is None:
            self._note(self._catch_up())
            assert self._step.next_action is not None
        return self._step.next_action

    def take(self, answer: Reply | AttemptEnded) -> None:
        """Go on to the step after this answer to the check's call."""
        if isinstance(answer, Reply):
            self._unseen_replies.append(answer)
            self._step = self._run.memory.after(self._step, answer)
        else:
            self._catch_up()
            self._step = ReplayNode()  # not remembered: the next attempt may answer
            self._note(self._function.throw(answer))

    def _catch_up(self) -> Call | BaseException | None:
        """Start the function if need be, and give it all replies that it has not received.

        Returns its next call, or the exception that ended it, or None if it passed.
        """
        action = None
        if not self._function:  # not started
            runner = _SuspendingRunner(self._run.attempt.device, getcurrent())
            action = self._function.switch(self._run, runner)
        while self._unseen_replies:
            action = self._function.switch(self._unseen_replies.pop(0))
        return action

    def _note(self, action: Call | BaseException | None) -> None:
        """Note the call, or the outcome of the check that ended so, as the action of this step."""
        noted = action if isinstance(action, Call) else self.check.judged(action, self._run)
        self._step = self._run.memory.note(self._step, noted)


@dataclass
class _SuspendingRunner:
    """The runner that checks are given when they run concurrently.

    A call suspends its check until all other checks have made a call or ended.
    """

    device: str
    hub: greenlet  # which sends the calls of all checks together

    def execute(self, call: Call) -> Reply:
        """Suspend the check, and return the reply when it is there. Raises AttemptEnded."""
        reply = self.hub.switch(call)
        assert isinstance(reply, Reply)
        return reply
