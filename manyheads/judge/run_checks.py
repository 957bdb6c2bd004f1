"""Run checks over one attempt, and say what became of each. Every verdict on an attempt is made here."""

from __future__ import annotations

import faulthandler
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ..box.connection import AttemptEnded, End
from ..checks.explain import explain
from ..checks.outcome import FAILED_ITSELF, AttemptRaised, CheckFailed, CheckOutcome
from ..checks.transcript import Exchange, target_of
from .hidden_checks import Check, CheckRun, collect_checks
from .non_answers import says_nothing
from .require_answer import Withdrawn, compare_with_reference, unanswered
from .run_concurrently import run_concurrently
from .withhold import withhold

HANG_SECONDS = 300.0  # for all checks of one exercise over one attempt
STDERR = 2  # the descriptor, because sys.stderr may have been replaced


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

    def unattempted(self, file: Path) -> list[CheckOutcome]:
        """Return the outcomes of a file's checks while no attempt has been judged; empty where it was not collected."""
        return [check.unattempted for check in self._checks.get(file, [])]

    def run(self, file: Path, run: CheckRun, only: Collection[str] = ()) -> list[CheckOutcome]:
        """Return the outcomes of all checks of the file, in its order. only: ids of checks; empty: all.

        Where a check itself hangs, the watchdog ends this process, with the traceback of every thread. Its timer runs outside
        Python, so neither a busy loop nor a C function that never returns can delay it. Calls of an attempt have a deadline of
        their own (`AttemptRunner`).
        """
        checks = [check for check in self._checks[file] if not only or check.id in only]
        faulthandler.dump_traceback_later(self._hang_seconds, exit=True, file=STDERR)
        try:
            return run_checks(checks, run)
        finally:
            faulthandler.cancel_dump_traceback_later()


def run_checks(checks: Sequence[Check], run: CheckRun) -> list[CheckOutcome]:
    """Return the outcomes of these checks, in their order; the attempt's transcript stands in that order, too."""
    outcomes = run_concurrently(checks, run, lambda check, error: _judged(check, error, run))
    outcomes = _of_what_says_something(outcomes, run)
    order = {check.id: place for place, check in enumerate(checks)}
    run.attempt.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
    return outcomes


def _judged(check: Check, error: BaseException | None, run: CheckRun) -> CheckOutcome:
    """As `outcome_of`; but a check passes only on answers, and where it broke, the answers may be to blame."""
    asked = [exchange for exchange in run.attempt.transcript if exchange.check == check.id]
    outcome = outcome_of(check.unattempted, error, asked)
    if outcome.fault:
        differs = compare_with_reference(asked, run.reference)
        return outcome if differs is None else outcome_of(check.unattempted, differs, asked)
    why = unanswered(asked, run.reference) if outcome.outcome == "passed" else None
    if why is None:
        return outcome
    failed, place = why
    return Withdrawn(**vars(outcome_of(check.unattempted, failed, asked)), place=place)


def outcome_of(check: CheckOutcome, error: BaseException | None, asked: Sequence[Exchange]) -> CheckOutcome:
    """Return the outcome, as a student may read it, of a check that ended with this exception, or without one."""
    if error is None:
        return replace(check, outcome="passed")
    if isinstance(error, AttemptRaised):
        evidence = ". ".join(filter(None, (explain(error.raised), error.due)))
        return replace(check, outcome="error", evidence=evidence, raised=error.raised)
    if isinstance(error, CheckFailed):
        evidence = withhold(str(error), asked, error.expected)
        return replace(check, outcome="failed", evidence=evidence, suspect=error.suspect)
    if isinstance(error, AttemptEnded):
        return replace(check, outcome="timeout" if error.end is End.TIMEOUT else "crashed", evidence=str(error))
    if isinstance(error, pytest.skip.Exception):
        return replace(check, outcome="skipped", evidence=str(error))
    fault = f"{check.id}: {type(error).__name__}: {error}"
    return replace(check, outcome="skipped", evidence=FAILED_ITSELF, fault=fault)


def _of_what_says_something(outcomes: Sequence[CheckOutcome], run: CheckRun) -> list[CheckOutcome]:
    """Return the outcomes, without the passes of checks that ask a function of which no answer says anything."""
    asked: dict[str, list[str]] = {outcome.id: [] for outcome in outcomes if outcome.outcome == "passed"}
    for exchange in run.attempt.transcript:
        if exchange.check in asked:
            asked[exchange.check].append(target_of(exchange.call))
    targets = dict.fromkeys(target for functions in asked.values() for target in functions)
    empty = says_nothing([*targets], run.attempt, run.reference)
    told = {check: empty[target] for check, each in asked.items() for target in reversed(each) if target in empty}
    return [replace(o, outcome="failed", evidence=told[o.id]) if o.id in told else o for o in outcomes]
