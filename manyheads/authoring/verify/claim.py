"""A claim about a course with its figures, and the trial of trusted code that claims ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...checks.local import LocalRecordingRunner, namespace_of
from ...checks.outcome import CheckOutcome
from ...course import Exercise
from ...diagnosis import Bank
from ...diagnosis.agree import agree
from ...diagnosis.recording_file import is_current, read
from ...judge.function_results import Functions
from ...judge.grade_submission import REMEMBERED
from ...judge.memory import Memory, RememberingRunner
from ...judge.public_checks import answer_public_calls
from ...judge.run_checks import Catalogue
from ...judge.tell_failed import places_of, with_hidden_checks
from ...result import Diagnosed
from ..record_calls import PUBLIC

SECRET = b"verify"  # used in place of the course's secret, so that a claim gives the same result on every machine
SHOWN = 10  # how many failures of a claim are listed


@dataclass(frozen=True)
class Claim:
    """`held` of `total` cases hold. The claim is kept if at least `share` of them do.

    failures: the cause of each case that does not hold. next: what to do if the claim is not kept.
    """

    about: str
    says: str
    held: int
    total: int
    failures: tuple[str, ...] = ()
    share: float = 1.0
    next: str = "course verify"

    @classmethod
    def but_for(
        cls, failures: Sequence[str], about: str, says: str, total: int, next: str, share: float = 1.0
    ) -> Claim:
        """Return the claim that all cases hold but these. Each of the failures is a case."""
        return cls(about, says, total - len(failures), total, tuple(failures), share, next)

    @property
    def kept(self) -> bool:
        """Whether enough cases hold."""
        return self.held >= self.share * self.total

    @property
    def figures(self) -> str:
        """How many cases hold, and where not all do and not all must, how many must."""
        found = f"{self.held} of {self.total}"
        return found if self.held == self.total or self.share == 1 else f"{found}, at least {self.share:.0%} asked"

    @property
    def lines(self) -> list[str]:
        """What is wrong, and what to do; empty if the claim is kept."""
        if self.kept:
            return []
        more = len(self.failures) - SHOWN
        return [*self.failures[:SHOWN], *([f"and {more} more"] if more > 0 else []), f"Next: {self.next}"]


# A trial of trusted code: its checks and its diagnosis, and what claims ask of them.

Namespace = Mapping[str, object]
Trial = Callable[[Namespace], tuple[Sequence[CheckOutcome], Sequence[Diagnosed]]]
Behaviour = tuple[tuple[str, str, str], ...]


class TrialRun:
    """Runs the checks and the diagnosis on trusted code."""

    def __init__(self, catalogue: Catalogue, exercise: Exercise, bank: Bank) -> None:
        self._catalogue, self._exercise, self._bank = catalogue, exercise, bank
        # All trials are asked the same calls: what the reference and the mutants answer to them is remembered.
        self._memory = Memory(REMEMBERED)
        self._reference = RememberingRunner(namespace_of(exercise.solution), only_values=True, memory=self._memory)
        self._recording = read(exercise.fingerprints)
        self._numbered = bank if is_current(exercise) else None  # as the recording's mutants are

    def run(self, namespace: Namespace) -> tuple[list[CheckOutcome], tuple[Diagnosed, ...]]:
        """Return the outcomes of the checks, and the names."""
        outcomes, told = self.tell(namespace)
        return outcomes, told.diagnosis.named

    def tell(self, namespace: Namespace) -> tuple[list[CheckOutcome], Functions]:
        """Return the outcomes of the checks, and what is told of the answers to public calls. Of a right attempt nothing is."""
        subject = LocalRecordingRunner(namespace)
        outcomes = self._catalogue.run(self._exercise, subject, self._reference, PUBLIC, self._exercise.id)
        if all(outcome.outcome == "passed" for outcome in outcomes):
            return outcomes, Functions()
        attempt = LocalRecordingRunner(namespace)
        told = answer_public_calls(self._recording, attempt, None, self._exercise, self._numbered, is_wrong=True)
        places = places_of(outcomes, subject.transcript, {}, lambda e: agree(e.reply, self._reference.execute(e.call)))
        return outcomes, with_hidden_checks(told, outcomes, places, "", self._bank.texts, self._exercise)


def behaviour_of(outcomes: Sequence[CheckOutcome]) -> Behaviour:
    """Return how the checks ended, and with which evidence."""
    return tuple((o.id, o.outcome, o.evidence) for o in outcomes)


def is_first(id_: str, diagnosis: Sequence[Diagnosed]) -> bool:
    """Return whether the misconception is named first, or may stand in place of the first."""
    return bool(diagnosis) and id_ in (diagnosis[0].id, *diagnosis[0].alternatives)
