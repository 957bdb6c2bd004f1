"""Run checks over one attempt, and say what became of each. Every verdict on an attempt is made here."""

from __future__ import annotations

import faulthandler
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ..box.connection import AttemptEnded, End
from ..box.worker.answers import Output, Reply
from ..box.worker.messages import Call
from ..checks.answer import Answer, answers_of
from ..checks.asserts import assert_shape
from ..checks.explain import explain
from ..checks.implementation import Runner
from ..checks.outcome import FAILED_ITSELF, AttemptRaised, CheckFailed, CheckOutcome
from ..checks.sanitize import kind_name
from ..checks.transcript import Exchange, target_of
from .hidden_checks import Check, CheckRun, collect_checks
from .non_answers import says_nothing
from .require_answer import Kinds, Withdrawn, kinds_of, unanswered
from .run_concurrently import run_concurrently
from .withhold import withhold

# Find why a check raised an error of its own: the attempt's answers may have an unexpected shape or type.
#
# A wrong attempt may return anything. If a check fails on that (an index beyond an axis, arithmetic on bools), the
# grader is not broken. The reference is asked the same calls, and the student is told how the answers differ in shape
# or type.


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first answer that differs from the reference's in shape or type, as a check would report it; None if all agree."""
    for exchange in exchanges:
        try:
            right = reference.execute(exchange.call)
            if right.raised is None:
                _compare(exchange.call, exchange.reply, right)
        except CheckFailed as failed:
            return failed
        except Exception:  # a call that only an attempt can answer cannot be compared
            continue
    return None


def _compare(call: Call, mine: Reply, right: Reply) -> None:
    Answer(call, mine).must_return()
    for got, wanted, answer in zip(mine.outputs, right.outputs, answers_of(call, mine), strict=False):
        _compare_outputs(got, wanted, answer.label)
    for name, gradient in right.gradients.items():
        other = mine.gradients.get(name)
        if gradient is not None and other is not None:
            assert_shape(other, gradient.shape, "a gradient")


def _compare_outputs(got: Output, wanted: Output, label: str) -> None:
    if got.kind != wanted.kind:
        raise CheckFailed(f"{kind_name(wanted.kind)} was expected; yours returned {kind_name(got.kind)}")
    if got.tensor is None or wanted.tensor is None:
        return
    assert_shape(got.tensor, wanted.tensor.shape, label)
    if got.tensor.is_floating_point() != wanted.tensor.is_floating_point():
        expected, yours = (str(t.dtype).removeprefix("torch.") for t in (wanted.tensor, got.tensor))
        raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")


# End the process if a check hangs in the judge itself, for example in an endless loop of the check.
#
# This is not for attempts that hang: their calls have a deadline (`AttemptRunner`).

HANG_SECONDS = 300.0  # for all checks of one exercise over one attempt
STDERR = 2  # the descriptor, because sys.stderr may have been replaced


@contextmanager
def watchdog(seconds: float) -> Iterator[None]:
    """End this process, with the traceback of every thread on stderr, unless the block ends in time.

    The timer runs outside Python, so neither a busy loop nor a C function that never returns can delay it. The run then
    stops with the message that a judge process ended.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


ReturnKinds = dict[tuple[str, str], Kinds]  # what the reference returns, by check and function


class HiddenChecks:
    """The collected checks of some exercises, ready to judge any number of attempts."""

    def __init__(self, files: Sequence[Path], device: str = "cpu", hang_seconds: float = HANG_SECONDS) -> None:
        """Collect these files. Raises GraderFault.

        device: checks for another device alone are left out.
        hang_seconds: after which a check that hangs in the judge ends this process.
        """
        # Checks are many and their tensors small: with threads, waking them costs four times as much as the work.
        torch.set_num_threads(1)
        self._checks = collect_checks(files, device)
        self._hang_seconds = hang_seconds
        self._kinds: dict[Path, ReturnKinds] = {}

    def unattempted(self, file: Path) -> list[CheckOutcome]:
        """Return the outcomes of a file's checks while no attempt has been judged; empty where it was not collected."""
        return [check.unattempted for check in self._checks.get(file, [])]

    def run(self, file: Path, run: CheckRun, only: Collection[str] = ()) -> list[CheckOutcome]:
        """Return the outcomes of all checks of the file, in its order. only: ids of checks; empty: all."""
        checks = [check for check in self._checks[file] if not only or check.id in only]
        with watchdog(self._hang_seconds):
            return run_checks(checks, run, self._kinds.setdefault(file, {}))


def run_checks(checks: Sequence[Check], run: CheckRun, kinds: ReturnKinds) -> list[CheckOutcome]:
    """Return the outcomes of these checks, in their order; the attempt's transcript stands in that order, too.

    kinds: what is known of the reference's return values; it is completed here.
    """
    outcomes = run_concurrently(checks, run, lambda check, error: _judged(check, error, run, kinds))
    outcomes = _of_what_says_something(outcomes, run)
    order = {check.id: place for place, check in enumerate(checks)}
    run.attempt.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
    return outcomes


def _of_what_says_something(outcomes: Sequence[CheckOutcome], run: CheckRun) -> list[CheckOutcome]:
    """Return the outcomes, without the passes of checks that ask a function of which no answer says anything."""
    passed = {outcome.id for outcome in outcomes if outcome.outcome == "passed"}
    asked: dict[str, list[str]] = {}  # the functions of each check
    for exchange in run.attempt.transcript:
        if exchange.check in passed:
            asked.setdefault(exchange.check, []).append(target_of(exchange.call))
    targets = [target for call in asked.values() for target in call]
    empty = says_nothing(list(dict.fromkeys(targets)), run.attempt, run.reference)
    told = {check: empty[target] for check, each in asked.items() for target in reversed(each) if target in empty}
    return [replace(o, outcome="failed", evidence=told[o.id]) if o.id in told else o for o in outcomes]


def outcome_of(check: CheckOutcome, error: BaseException | None) -> CheckOutcome:
    """Return the outcome of a check that ended with this exception, or without one."""
    if error is None:
        return replace(check, outcome="passed")
    if isinstance(error, AttemptRaised):
        evidence = ". ".join(filter(None, (explain(error.raised), error.due)))
        return replace(check, outcome="error", evidence=evidence, raised=error.raised)
    if isinstance(error, CheckFailed):
        return replace(check, outcome="failed", evidence=str(error), suspect=error.suspect)
    if isinstance(error, AttemptEnded):
        return replace(check, outcome="timeout" if error.end is End.TIMEOUT else "crashed", evidence=str(error))
    if isinstance(error, pytest.skip.Exception):
        return replace(check, outcome="skipped", evidence=str(error))
    fault = f"{check.id}: {type(error).__name__}: {error}"
    return replace(check, outcome="skipped", evidence=FAILED_ITSELF, fault=fault)


def _judged(check: Check, error: BaseException | None, run: CheckRun, kinds: ReturnKinds) -> CheckOutcome:
    """As `outcome_of`; but a check passes only on answers, and where it broke, the answers may be to blame."""
    asked = [exchange for exchange in run.attempt.transcript if exchange.check == check.id]
    outcome = _told(outcome_of(check.unattempted, error), error, asked)
    if outcome.outcome != "passed" and not outcome.fault:
        return outcome
    if outcome.fault:
        differs = compare_with_reference(asked, run.reference)
        return outcome if differs is None else _told(outcome_of(check.unattempted, differs), differs, asked)
    why = unanswered(asked, _return_kinds(check.id, asked, run, kinds), run.reference)
    if why is None:
        return outcome
    failed, place = why
    return Withdrawn(**vars(_told(outcome_of(check.unattempted, failed), failed, asked)), place=place)


def _told(outcome: CheckOutcome, error: BaseException | None, exchanges: Sequence[Exchange]) -> CheckOutcome:
    """Return the outcome as a student may read it."""
    if not isinstance(error, CheckFailed) or isinstance(error, AttemptRaised):
        return outcome
    return replace(outcome, evidence=withhold(outcome.evidence, exchanges, error.expected))


def _return_kinds(check: str, exchanges: Sequence[Exchange], run: CheckRun, kinds: ReturnKinds) -> Mapping[str, Kinds]:
    """Return what the reference returns to this check, by the name of every function and class. It is asked once."""
    for target in dict.fromkeys(target_of(exchange.call) for exchange in exchanges):
        if (check, target) not in kinds:
            calls = (exchange.call for exchange in exchanges if target_of(exchange.call) == target)
            if found := kinds_of(calls, run.reference):
                kinds[check, target] = found
    return {target: kind for (of, target), kind in kinds.items() if of == check}
