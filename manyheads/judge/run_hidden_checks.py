"""Run an exercise's hidden checks on one attempt, and decide their outcomes.

Every verdict is made here.

All checks of one attempt run concurrently: each until its next call, and these calls are sent in
one batch. One by one, judge and attempt would alternate at every call, and each would find the
CPU's caches filled by the other. Concurrently, two dozen checks need only as many rounds as the
longest check has calls. A check is not run if the replay cache already knows its next step.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from greenlet import getcurrent, greenlet

from ..box.connection import AttemptEnded, End
from ..box.worker.messages import Call, Reply
from ..checks.answer import has_numbers
from ..checks.asserts import expect
from ..checks.explain_exceptions import explain
from ..checks.hidden_check import (
    FAILED_ITSELF,
    AttemptRaised,
    CheckFailed,
    CheckOutcome,
    Draw,
    Drawn,
    Layer,
    is_check_file,
)
from ..checks.preconditions import Condition, first_failed_condition, judged_beside
from ..checks.runner import (
    CheckQuestion,
    Implementation,
    LocalRecordingRunner,
    LocalRunner,
    Runner,
    namespace_of,
    target_of,
)
from ..course import Course, Exercise
from ..files import location_of_error
from .attempt_runner import RememberingRunner, ReplayCache, ReplayNode
from .collect_checks import Check, CheckRun, collect_checks
from .missing_answers_and_wrong_types import compare_with_reference, missing_reply, wrong_type
from .nontrivial_answers import all_right, choose_probe, require_nontrivial
from .redact_hidden_inputs import redact

# CPU time of a judge for one attempt: sixty times as much as the slowest exercise of the course
# needs
CPU_SECONDS = 120.0


class HiddenChecks:
    """The collected checks of some exercises, ready to judge any number of attempts."""

    def __init__(self, files: Sequence[Path], device: str = "cpu") -> None:
        """Collect these files, without checks for another device. Raises GraderFault."""
        # Checks are many and their tensors small: with threads, waking them costs four times as
        # much as the work.
        torch.set_num_threads(1)
        self.by_file = collect_checks(files, device)

    def initial_outcomes(self, file: Path) -> list[CheckOutcome]:
        """Return the outcomes of a file's checks before an attempt is judged.

        Returns [] if the file was not collected.
        """
        return [check.unattempted for check in self.by_file.get(file, [])]

    def run(self, file: Path, run: CheckRun, only: Collection[str] = ()) -> list[CheckOutcome]:
        """Return the outcomes of the checks of the file, in its order.

        This process ends if the checks themselves compute for too long (`cpu_budget`). Calls of an
        attempt have another deadline (`AttemptRunner`).

        Args:
            file: The file.
            run: The data that the checks share.
            only: The ids of the checks to run; empty for all.
        """
        selected = [check for check in self.by_file[file] if not only or check.id in only]
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
        """Return the outcomes of an exercise's checks before an attempt is judged."""
        return self._checks.initial_outcomes(exercise.checks)

    def conditions(self, exercise: Exercise) -> Mapping[str, Callable[..., Iterable[Condition]]]:
        """Return for each function that has preconditions their generator.

        Returns {} if the exercise has no checks.
        """
        checks = self._checks.by_file[exercise.checks]
        return next((check.conditions for check in checks), {})

    def reference(self, exercise: Exercise) -> LocalRunner:
        """Return the reference solution. Raises BrokenReference."""
        return LocalRunner(namespace_of(exercise.solution))

    def remembering_reference(self, exercise: Exercise) -> RememberingRunner:
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
    attempt's transcript is sorted in place: exchanges of no check come first, and then those of
    each check in the order of the checks.
    """
    outcomes = run_concurrently(checks, run)
    unmet_requirements = _unmet_requirements(outcomes, checks[0].conditions if checks else {}, run)
    decided = [
        _final_outcome(check, outcome, unmet_requirements, run)
        for check, outcome in zip(checks, outcomes, strict=True)
    ]
    order = {check.id: position for position, check in enumerate(checks)}
    run.attempt.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
    return decided


def outcome_of_check(check: Check, error: BaseException | None, run: CheckRun) -> CheckOutcome:
    """Return the outcome of the check whose function ended with this exception, or with none.

    If the check needs answers, they are tested here, too:

    1. A check that passed fails after all if a function that it calls gave no answer, or one of a
       wrong type or with NaN (`missing_reply`). It is broken if nothing could be answered.
    2. If the check failed and the attempt returned a wrong type, that is given as the reason
       (`wrong_type`).
    """
    if check.needs_answers and error is None:
        error = missing_reply(run.exchanges_of(check.id), run.reference)
    # An AttemptRaised, which is a CheckFailed, too, is a better reason than a wrong type.
    elif check.needs_answers and type(error) is CheckFailed:
        error = wrong_type(run.exchanges_of(check.id), run.reference) or error
    return outcome_of(check.unattempted, error, run)


def outcome_of(check: CheckOutcome, error: BaseException | None, run: CheckRun) -> CheckOutcome:
    """Return the outcome of a check that ended with this exception, or passed with none.

    An AttemptRaised is an "error", and any other CheckFailed is "failed". The end of the attempt's
    process is "timeout" or "crashed". A check may skip itself: "skipped".

    With any other exception the check itself broke. The cause may be an answer of another shape or
    type than the reference's, such as an index beyond an axis, or arithmetic on bools. If there is
    such an answer, its difference decides the outcome. Otherwise the check is "skipped", with a
    fault of the grader.

    Args:
        check: The check's outcome before it is judged. The result has its other fields.
        error: The exception.
        run: The data that the checks share.
    """
    if error is None:
        return replace(check, outcome="passed")
    if isinstance(error, AttemptRaised):
        evidence = ". ".join(filter(None, (explain(error.raised), error.requirement)))
        return replace(
            check, outcome="error", evidence=evidence, raised=error.raised, function=error.function
        )
    if isinstance(error, CheckFailed):
        evidence = redact(error.evidence, run.exchanges_of(check.id), error.expected)
        return replace(
            check,
            outcome="failed",
            evidence=evidence,
            suspect=error.suspect,
            function=error.function,
            trivial_answer=check.trivial_answer or error.is_trivial_answer,
        )
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
    """Return the line of the course's checks that raised the error, in brackets, or "" if none did.

    The text of the line is left out: students may read a log of `course grade`, and a hidden check
    must stay hidden.
    """
    location = location_of_error(error, is_check_file)
    if location is None:
        return ""
    file, line = location
    return f" ({file.name}, line {line})"


def _unmet_requirements(
    check_outcomes: Sequence[CheckOutcome],
    conditions: Mapping[str, Callable[..., Any]],
    run: CheckRun,
) -> Mapping[str, CheckOutcome]:
    """Return for each function with an unmet requirement (`_demands`) the outcome of the first one.

    Only functions that a passed check calls are tested. The transcript of the attempt does not get
    the calls that are made here.

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
    demands: list[Check] = []
    for name in targets:
        demands += _demands(name, conditions.get(name), all_passed, run)
    outcomes = run_concurrently(demands, run)
    run.attempt.transcript[:] = transcript
    unmet_requirements: dict[str, CheckOutcome] = {}
    for outcome in outcomes:  # its id is the name of the function
        if outcome.outcome != "passed":
            unmet_requirements.setdefault(outcome.id, outcome)
    return unmet_requirements


def _final_outcome(
    check: Check,
    outcome: CheckOutcome,
    unmet_requirements: Mapping[str, CheckOutcome],
    run: CheckRun,
) -> CheckOutcome:
    """Return the check's final outcome: a pass counts only if its functions meet all requirements.

    If a function does not, the check gets the outcome and the evidence of the requirement. The
    first such function that the check calls counts.

    Args:
        check: The check.
        outcome: Its outcome without requirements.
        unmet_requirements: The outcome of the first unmet requirement, by function.
        run: The data that the checks share.
    """
    if outcome.outcome != "passed" or not unmet_requirements:
        return outcome
    targets = (target_of(exchange.call) for exchange in run.exchanges_of(check.id))
    function = next((target for target in targets if target in unmet_requirements), "")
    if not function:
        return outcome
    requirement = unmet_requirements[function]
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
    """Raise CheckFailed if the attempt does not meet the preconditions of a function.

    It is also raised if an answer has no numbers, or another length than the reference's, and as
    AttemptRaised if there is no answer.
    """
    # The attempt answers all conditions before the reference answers the first one.
    condition_list = list(conditions(attempt, draw))
    conditions_with_reference = [
        judged_beside(condition, reference.ask(condition.answer.call))
        for condition in condition_list
    ]
    message = first_failed_condition(conditions_with_reference)
    expect(not message, message)


def _demands(
    target: str, conditions: Callable[..., Any] | None, all_passed: bool, run: CheckRun
) -> Iterator[Check]:
    """Yield a check for each requirement of a function that has to be tested.

    1. Its answers are not trivial (`require_nontrivial`). This is tested unless the probe shows
       right and informative answers (`Probe.is_right_and_informative`).
    2. It meets its preconditions (`expect_conditions`). This is tested if there are preconditions
       and a probe, in each of two cases: requirement 1 is tested; or some check did not pass and
       not `all_right` of the function's answers.

    Nothing is tested if not even the reference answers one of the exchanges with numbers.

    Args:
        target: The name of the function.
        conditions: The generator of its preconditions, if it has some.
        all_passed: Whether all checks passed.
        run: The data that the checks share.
    """
    exchanges = [
        exchange for exchange in run.attempt.transcript if target_of(exchange.call) == target
    ]
    probe = choose_probe(exchanges, run.reference, run.memory.four_like)
    if probe is None and not any(
        has_numbers(run.reference.execute(exchange.call)) for exchange in exchanges
    ):
        return
    outcome = CheckOutcome(target, target, Layer.FINITE, 0.0, "")  # before the check is run
    may_be_trivial = probe is None or not probe.is_right_and_informative
    if may_be_trivial:
        parameters, name = {"target": target, "probe": probe}, f"{target}: no trivial answers"
        yield Check(name, require_nontrivial, outcome, parameters, needs_answers=False)
    if conditions is None or probe is None:
        return
    if may_be_trivial or not (all_passed or all_right(exchanges, run.reference)):
        yield Check(
            f"{target}: preconditions",
            expect_conditions,
            replace(outcome, trivial_answer=True),
            {"conditions": conditions},
            needs_answers=False,
        )


def run_concurrently(checks: Sequence[Check], run: CheckRun) -> list[CheckOutcome]:
    """Run the checks, and return the outcome of each, in the order of the checks.

    In each round, the next calls of all checks that have not ended are sent together. All outcomes
    are there in the round in which no check makes a call.
    """
    running = [_RunningCheck(check, run) for check in checks]
    while True:
        waiting = []
        questions = []
        outcomes = []
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
        """Go on to the step after this answer to the check's call.

        A reply is only kept: the function runs when the cache does not know the next action. An
        AttemptEnded is raised in the function at once, and ends the check unless the function makes
        another call. Such a step is not remembered.
        """
        if isinstance(answer, Reply):
            self._unseen_replies.append(answer)
            self._step = self._run.memory.after(self._step, answer)
        else:
            self._catch_up()
            self._step = ReplayNode()  # not remembered: the next attempt may answer
            self._note(self._function.throw(answer))

    def _catch_up(self) -> Call | BaseException | None:
        """Start the function if need be, and give it all replies that it has not received.

        Returns its next call; or the exception that ended it, or None if it passed. The result is
        also None if there was nothing to do.
        """
        action = None
        if not self._function:  # a greenlet is true from its start to its end
            # all calls are sent together by the greenlet that runs now
            runner = _SuspendingRunner(self._run.attempt.device, getcurrent().switch)
            action = self._function.switch(self._run, runner)
        while self._unseen_replies:
            action = self._function.switch(self._unseen_replies.pop(0))
        return action

    def _note(self, action: Call | BaseException | None) -> None:
        """Note this call as the action of this step, or the outcome of the check that ended so."""
        noted = (
            action if isinstance(action, Call) else outcome_of_check(self.check, action, self._run)
        )
        self._step = self._run.memory.note(self._step, noted)


@dataclass
class _SuspendingRunner:
    """The runner that checks are given when they run concurrently.

    A call suspends its check until all other checks have made a call or ended.
    """

    device: str
    # suspends the check, and returns the reply when it is there; raises AttemptEnded
    execute: Callable[[Call], Reply]
