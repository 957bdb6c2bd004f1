"""Run checks over one attempt, and say what became of each. Every verdict on an attempt is made here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ..box.connection import AttemptEnded, End
from ..checks.explain import explain
from ..checks.failed import AttemptRaised, CheckFailed
from ..checks.outcome import FAILED_ITSELF, CheckOutcome
from ..checks.recording import Exchange, target_of
from .answered import Kinds, kinds_of, unanswered
from .check_run import Check, CheckRun
from .collect import collect_checks
from .compare_with_reference import compare_with_reference
from .run_concurrently import run_concurrently
from .says_nothing import says_nothing
from .watchdog import HANG_SECONDS, watchdog
from .withhold import withhold

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
        self._asks: dict[Path, dict[str, set[str]]] = {}

    def unattempted(self, file: Path) -> list[CheckOutcome]:
        """The outcomes of a file's checks while no attempt has been judged; empty where it was not collected."""
        return [check.unattempted for check in self._checks.get(file, [])]

    def run(self, file: Path, run: CheckRun, only: Collection[str] = ()) -> list[CheckOutcome]:
        """The outcomes of all checks of the file, in its order. only: ids of checks; empty: all."""
        checks = [check for check in self._checks[file] if not only or check.id in only]
        with watchdog(self._hang_seconds):
            return run_checks(checks, run, self._kinds.setdefault(file, {}))

    def asks(self, file: Path, run: CheckRun, only: Collection[str]) -> Mapping[str, Set[str]]:
        """The functions that these checks ask, by the check's id. They are run once, with the reference.

        run: with the reference in place of an attempt.
        """
        known = self._asks.setdefault(file, {})
        if new := [id_ for id_ in only if id_ not in known]:
            known.update((id_, set()) for id_ in new)
            self.run(file, run, new)
            for exchange in run.attempt.transcript:
                known[exchange.check].add(target_of(exchange.call))
        return {id_: known[id_] for id_ in only}


def run_checks(checks: Sequence[Check], run: CheckRun, kinds: ReturnKinds) -> list[CheckOutcome]:
    """The outcomes of these checks, in their order; the attempt's transcript stands in that order, too.

    kinds: what is known of the reference's return values; it is completed here.
    """
    outcomes = run_concurrently(checks, run, lambda check, error: _judged(check, error, run, kinds))
    outcomes = _of_what_says_something(outcomes, run)
    order = {check.id: place for place, check in enumerate(checks)}
    run.attempt.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
    return outcomes


def _of_what_says_something(outcomes: Sequence[CheckOutcome], run: CheckRun) -> list[CheckOutcome]:
    """The outcomes, without the passes of checks that ask a function of which no answer says anything."""
    passed = {outcome.id for outcome in outcomes if outcome.outcome == "passed"}
    asked: dict[str, list[str]] = {}  # the functions of each check
    for exchange in run.attempt.transcript:
        if exchange.check in passed:
            asked.setdefault(exchange.check, []).append(target_of(exchange.call))
    targets = [target for each in asked.values() for target in each]
    empty = says_nothing(list(dict.fromkeys(targets)), run.attempt, run.reference)
    told = {check: empty[target] for check, each in asked.items() for target in reversed(each) if target in empty}
    return [replace(o, outcome="failed", evidence=told[o.id]) if o.id in told else o for o in outcomes]


def outcome_of(check: CheckOutcome, error: BaseException | None) -> CheckOutcome:
    """The outcome of a check that ended with this exception, or without one."""
    if error is None:
        return replace(check, outcome="passed")
    if isinstance(error, AttemptRaised):
        return replace(check, outcome="error", evidence=explain(error.raised), raised=error.raised)
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
    failed = (
        compare_with_reference(asked, run.reference)
        if outcome.fault
        else unanswered(asked, _return_kinds(check.id, asked, run, kinds), run.reference)
    )
    return outcome if failed is None else _told(outcome_of(check.unattempted, failed), failed, asked)


def _told(outcome: CheckOutcome, error: BaseException | None, asked: Sequence[Exchange]) -> CheckOutcome:
    """The outcome as a student may read it."""
    if not isinstance(error, CheckFailed) or isinstance(error, AttemptRaised):
        return outcome
    return replace(outcome, evidence=withhold(outcome.evidence, asked, error.expected))


def _return_kinds(check: str, asked: Sequence[Exchange], run: CheckRun, kinds: ReturnKinds) -> Mapping[str, Kinds]:
    """What the reference returns to this check, by the name of every function and class. It is asked once."""
    for target in dict.fromkeys(target_of(exchange.call) for exchange in asked):
        if (check, target) not in kinds:
            calls = (exchange.call for exchange in asked if target_of(exchange.call) == target)
            if found := kinds_of(calls, run.reference):
                kinds[check, target] = found
    return {target: kind for (of, target), kind in kinds.items() if of == check}
