"""A claim about a course with its figures, and the trial of trusted code that claims ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...box.worker.answers import Reply
from ...box.worker.messages import Call
from ...checks.local import LocalRecordingRunner
from ...checks.transcript import target_of
from ...course import Exercise
from ...diagnosis import Bank
from ...diagnosis.family import Namespace
from ...diagnosis.fingerprint import ReplyFingerprint
from ...diagnosis.recording import Recording
from ...judge.public_checks import answer_public_calls
from ...judge.run_checks import Catalogue
from ...result import CheckResult, Diagnosed
from ..mutant_answers import answers_of
from ..record_calls import PUBLIC, recorded_calls

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


class Told(NamedTuple):
    """What is told of a wrong attempt: names, and its visible checks. answers: to the recorded calls, in their order."""

    named: tuple[Diagnosed, ...]
    checks: tuple[CheckResult, ...] = ()
    answers: tuple[ReplyFingerprint, ...] = ()

    @property
    def names(self) -> list[str]:
        """The ids of the misconceptions that are named."""
        return [each.id for each in self.named]

    def is_first(self, id_: str) -> bool:
        """Return whether the misconception is named first, or may stand in place of the first."""
        return any(id_ in (each.id, *each.alternatives) for each in self.named[:1])

    def answers_as(self, other: Told) -> bool:
        """Return whether both answer every recorded call alike."""
        return all(a.is_same(b) for a, b in zip(self.answers, other.answers, strict=True))


Trial = Callable[[Namespace], Told]


class _Known(LocalRecordingRunner):
    """Trusted code of which some replies are known, by the id of the call."""

    def __init__(self, namespace: Namespace, known: Mapping[int, Reply]) -> None:
        super().__init__(namespace)
        self._known = known

    def execute(self, call: Call) -> Reply:
        return self._known.get(id(call)) or super().execute(call)


class TrialRun:
    """Puts an exercise's public calls to trusted code, and single hidden checks."""

    def __init__(self, catalogue: Catalogue, exercise: Exercise, bank: Bank, recording: Recording) -> None:
        self._catalogue, self._exercise, self._bank, self.recording = catalogue, exercise, bank, recording
        self._reference, self._recorded = catalogue.remembering(exercise), recorded_calls(catalogue, exercise)
        self._text = exercise.misconceptions.read_text(encoding="utf-8")  # in which the mutants' numbers stand

    def told(self, namespace: Namespace) -> Told:
        """Return what is told of a wrong attempt. Hidden checks add names to these, and take none away."""
        answers = answers_of(self._recorded, namespace)
        known = zip(self.recording.calls, answers, strict=False)  # other calls, where another engine recorded
        attempt = _Known(namespace, {id(call): each.whole for call, each in known})
        told = answer_public_calls(self.recording, attempt, self._text, self._exercise, self._bank)
        return Told(told.diagnosis.named, told.checks, tuple(each.told.found for each in answers))

    def stops(self, told: Told) -> bool:
        """Return whether no function that is wrong answers anything: its exception says where it stops, and need not say why."""
        functions = [target_of(call) for call in self._recorded.calls]
        answers = list(zip(functions, told.answers, self._recorded.right, strict=True))
        wrong = {function for function, mine, right in answers if not mine.is_same(right)}
        return bool(wrong) and not any(f in wrong and mine.raised is None for f, mine, _ in answers)

    def suspects(self, namespace: Namespace, failed: Iterable[str]) -> Iterator[str]:
        """Yield the misconception that each of the failed checks proves by itself; "" where it proves none."""
        for check in failed:
            attempt = LocalRecordingRunner(namespace)
            run = self._catalogue.run(self._exercise, attempt, self._reference, PUBLIC, self._exercise.id, only=[check])
            yield run[0].suspect

    def proves_another(self, namespace: Namespace, failed: Iterable[str], id_: str) -> str:
        """Return the other misconception that each of the failed checks proves by itself; "" where one of them does not."""
        suspect = ""
        for suspect in self.suspects(namespace, failed):
            if suspect in ("", id_):
                return ""
        return suspect
