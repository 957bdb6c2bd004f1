"""The pytest side of the judge: fixtures for checks, and a test loop that waits for attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import pytest

from ..box.connection import AttemptEnded, End
from ..result import Outcome
from .answered import target_of, unanswered
from .belt import Belt
from .candidate import AttemptRaised, Candidate, CheckFailed
from .draw import Draw
from .explain import explain
from .marks import Layer, Mark
from .subject import Exchange
from .together import run_together
from .turn import PlainCheck, Turn, check_id, plain_check
from .unfit import unfit

FAILED_ITSELF = "The grader itself failed here; this is not your fault."


@dataclass(frozen=True)
class CheckOutcome:
    """What became of one check. `score` is its points if it passed. `ended` says that the process died in it."""

    id: str
    title: str
    layer: Layer
    points: float
    hint: str
    outcome: Outcome = "skipped"
    evidence: str = ""
    suspect: str = ""  # the misconception that this failure alone proves
    raised: Any = None  # the attempt's Raised, for the diagnosis
    fault: str = ""  # the grader's own error

    @property
    def score(self) -> float:
        """The points earned."""
        return self.points if self.outcome == "passed" else 0.0


class JudgePlugin:
    """Collects once, then runs every turn that `next_turn` gives until it gives None."""

    def __init__(
        self,
        next_turn: Callable[[], Turn | None],
        answer: Callable[[list[CheckOutcome]], None],
        device: str,
        belt: Belt,
    ) -> None:
        self._next_turn, self._answer, self._device, self._belt = next_turn, answer, device, belt
        self._unattempted: dict[pytest.Item, CheckOutcome] = {}
        self._plain: dict[pytest.Item, PlainCheck] = {}
        self._kinds: dict[tuple[Path, str], dict[str, str]] = {}  # what the reference returns, by check and function
        self._turn: Turn | None = None
        self._outcome: CheckOutcome | None = None
        self.collected: dict[Path, list[CheckOutcome]] = {}
        self.problem = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the mark of `check` known."""
        config.addinivalue_line("markers", "hidden_check(mark): points, layer and hint of a hidden check")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the first collection error."""
        if report.failed and not self.problem:
            self.problem = str(report.longreprtext).strip().splitlines()[-1]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is another device's, and note every check as one that nobody has attempted."""
        items[:] = [item for item in items if not is_elsewhere(item, self._device)]
        for item in items:
            try:
                self._unattempted[item] = _unattempted(item)
            except pytest.UsageError as error:
                self.problem = str(error)
                raise
            self.collected.setdefault(item.path, []).append(self._unattempted[item])
            if (plain := plain_check(item)) is not None:
                self._plain[item] = plain

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run turns in place of pytest's own loop."""
        if session.testsfailed:
            raise session.Interrupted(self.problem)
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.path, []).append(item)
        self._answer([])
        while (turn := self._next_turn()) is not None:
            self._turn = turn
            items = by_file.get(turn.checks, [])
            self._answer(self._take(turn, items))
        return True

    def _take(self, turn: Turn, items: list[pytest.Item]) -> list[CheckOutcome]:
        """Plain checks side by side, then the others; the record as if each had asked in its place."""
        plain = [item for item in items if item in self._plain]
        ended: list[BaseException | None] = []
        if plain:
            with self._belt.around(plain[0]):
                ended = run_together([self._plain[item] for item in plain], turn)
        outcomes = {
            item: self._outcome_of(turn, self._unattempted[item], error)
            for item, error in zip(plain, ended, strict=True)
        }
        others = [item for item in items if item not in self._plain]
        outcomes |= {item: self._by_protocol(turn, item, next_) for item, next_ in zip_longest(others, others[1:])}
        order = {self._unattempted[item].id: place for place, item in enumerate(items)}
        turn.subject.transcript.sort(key=lambda exchange: order.get(exchange.check, -1))
        return [outcomes[item] for item in items]

    def _by_protocol(self, turn: Turn, item: pytest.Item, following: pytest.Item | None) -> CheckOutcome:
        self._outcome = self._unattempted[item]
        turn.subject.check = self._outcome.id
        # The next item in the same file keeps pytest from tearing the file down after every check.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self._outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Turn how a check ended into its outcome.

        In place of pytest's own report, whose traceback with source lines nobody reads and costs 25 ms a failure.
        """
        assert self._outcome is not None
        assert call.when != "collect"
        if call.excinfo is not None or call.when == "call":
            assert self._turn is not None
            self._outcome = self._outcome_of(self._turn, self._outcome, call.excinfo and call.excinfo.value)
        ended: Literal["passed", "failed"] = "passed" if call.excinfo is None else "failed"
        return pytest.TestReport(item.nodeid, item.location, {}, ended, None, call.when)

    def _outcome_of(self, turn: Turn, check: CheckOutcome, error: BaseException | None) -> CheckOutcome:
        """As `outcome_of`; but a check passes only on answers, and where it broke, the answers may be to blame."""
        outcome = outcome_of(check, error)
        if outcome.outcome != "passed" and not outcome.fault:
            return outcome
        asked = [exchange for exchange in turn.subject.transcript if exchange.check == check.id]
        failed = (
            unfit(asked, turn.reference) if outcome.fault else unanswered(asked, self._kinds_of(turn, check.id, asked))
        )
        return outcome if failed is None else outcome_of(check, failed)

    def _kinds_of(self, turn: Turn, check: str, asked: Sequence[Exchange]) -> Mapping[str, str]:
        """What the reference returns to this check, by the name of every function and class. It is asked once."""
        known = self._kinds.setdefault((turn.checks, check), {})
        for exchange in asked:
            target = target_of(exchange.call)
            if target not in known and (outputs := turn.reference.perform(exchange.call).outputs):
                known[target] = outputs[0].kind
        return known

    @pytest.fixture
    def attempt(self) -> Candidate | Draw:
        """The attempt under judgement."""
        return self._given("attempt", "")

    @pytest.fixture
    def reference(self) -> Candidate | Draw:
        """The reference solution."""
        return self._given("reference", "")

    @pytest.fixture
    def draw(self, request: pytest.FixtureRequest) -> Candidate | Draw:
        """Fresh random inputs of this check."""
        return self._given("draw", request.node.name)

    def _given(self, fixture: str, check: str) -> Candidate | Draw:
        assert self._turn is not None
        return self._turn.given(fixture, check)


def is_elsewhere(item: pytest.Item, device: str) -> bool:
    """Whether this is a check for another device alone."""
    marker = item.get_closest_marker("hidden_check")
    return marker is not None and marker.args[0].device not in ("", device)


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


def _unattempted(item: pytest.Item) -> CheckOutcome:
    marker = item.get_closest_marker("hidden_check")
    function = getattr(item, "function", None)
    title = (function.__doc__ or "").strip().splitlines()
    if marker is None or not title:
        raise pytest.UsageError(f"{item.nodeid} needs @check(points=…, layer=…) and a docstring")
    mark: Mark = marker.args[0]
    return CheckOutcome(check_id(item), title[0], mark.layer, mark.points, mark.hint)
