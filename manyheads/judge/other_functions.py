"""What checks ask of one function after they have stopped at another: asked all the same, so that each has its verdict.

A check that asks two functions stops at the first that fails it. It is run again for the second alone, and the reference
answers in the first one's place. This decides no points: it says which function is right, and gives the diagnosis calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ..box.connection import AttemptEnded
from ..box.worker.answers import Raised, Reply
from ..box.worker.messages import Call
from ..checks.explain import says_unwritten
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, Question, RecordingRunner, replies_of, target_of
from .hidden_checks import CheckRun
from .run_checks import HiddenChecks

Rest = Sequence[tuple[str, CheckOutcome]]  # a function, and how a check of several functions ends for it alone
_WRONG = ("failed", "error")


def ask_the_rest(
    checks: HiddenChecks, file: Path, run: CheckRun, names: Mapping[str, object], outcomes: Sequence[CheckOutcome]
) -> Rest:
    """Ask what these checks did not come to ask. Raises nothing; a function that ends the process is told so.

    Args:
        checks: the collected checks.
        file: that of the exercise.
        run: as the checks were run, with their transcript.
        names: the reference's.
        outcomes: how the checks ended.
    """
    failed = [o.id for o in outcomes if o.outcome != "passed"]
    asked = [(e.check, target_of(e.call)) for e in run.attempt.transcript]
    if not failed or run.attempt.device != "cpu" or len({target for _, target in asked}) < 2:
        return ()
    asks = checks.asks(file, replace(run, attempt=LocalRecordingRunner(names)), failed)
    stopped_at = {check: target for check, target in asked if check in asks}
    together = {check: {*asks[check]} for check in stopped_at}
    for check, target in asked:
        if check in together:
            together[check].add(target)
    unknown = {check: sorted(those - {*stopped_at.values()}) for check, those in together.items()}

    def alone(asked: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, CheckOutcome]]:
        for name in dict.fromkeys(chain.from_iterable(asked.values())):
            runner = OneFunction(name, run.attempt, LocalRecordingRunner(names))
            ids = [check for check, those in asked.items() if name in those]
            for outcome in checks.run(file, replace(run, attempt=runner), ids):
                yield name, _unless_of_others(outcome, name, [e for e in runner.transcript if e.check == outcome.id])

    found = [*alone(unknown)]
    doubtful = {o.id: [stopped_at[o.id]] for _, o in found if o.outcome in _WRONG}  # did it stop for that alone?
    return [*found, *alone(doubtful)]


def _unless_of_others(outcome: CheckOutcome, name: str, exchanges: Sequence[Exchange]) -> CheckOutcome:
    """Return the outcome; none where it was another's answer that failed, beside what a planted kernel gave this function.

    That is what one attempt's own functions say of each other: the reference reaches the kernel in another way.
    """
    at_another = exchanges and target_of(exchanges[-1].call) != name
    is_planted = any(e.call.planted is not None for e in exchanges if target_of(e.call) == name)
    return replace(outcome, outcome="skipped") if outcome.outcome in _WRONG and at_another and is_planted else outcome


def past_unwritten(
    outcomes: Sequence[CheckOutcome], rest: Rest, transcript: Sequence[Exchange]
) -> tuple[list[CheckOutcome], list[Exchange]]:
    """Outcomes and transcript for a diagnosis.

    A check that stopped at what is not written yet ends as for a function that is written and fails it, and did not ask
    the other.
    """
    written = {o.id: o for _, o in reversed(rest) if o.outcome in _WRONG and not _is_unwritten(o.raised)}
    stopped = {o.id for o in outcomes if o.id in written and _is_unwritten(o.raised)}
    asked = [e for e in transcript if not (e.check in stopped and _is_unwritten(e.reply.raised))]
    return [written[o.id] if o.id in stopped else o for o in outcomes], asked


def _is_unwritten(raised: Raised | None) -> bool:
    return raised is not None and says_unwritten(raised)


def function_that_fails(outcome: CheckOutcome, place: str, rest: Rest) -> str:
    """Return the function at which a check failed: not the one at which it stopped, if that passes alone and another does not."""
    ends = {name: o.outcome for name, o in rest if o.id == outcome.id}
    wrong = [name for name, end in ends.items() if end in _WRONG]
    return wrong[0] if wrong and ends.get(place) == "passed" else place


@dataclass
class OneFunction:
    """A runner that asks the attempt for one function, and the reference for all others."""

    name: str
    attempt: RecordingRunner
    others: LocalRecordingRunner
    check: str = ""
    transcript: list[Exchange] = field(default_factory=list)

    @property
    def device(self) -> str:
        """The device of the attempt's computations."""
        return self.attempt.device

    def execute(self, call: Call) -> Reply:
        """Return the reply. Raises AttemptEnded."""
        return replies_of(self, [call], self.check)[0]

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """Return a reply to each question, or the AttemptEnded of a call that ended the process."""
        own = [q for q in questions if target_of(q.call) == self.name]
        others = [q for q in questions if target_of(q.call) != self.name]
        given = [*zip(own, self.attempt.execute_all(own), strict=True)] if own else []
        given += zip(others, self.others.execute_all(others), strict=True)
        answers = {id(question): answer for question, answer in given}
        self.transcript += [Exchange(q.check, q.call, a) for q, a in given if isinstance(a, Reply)]
        return [answers[id(question)] for question in questions]
