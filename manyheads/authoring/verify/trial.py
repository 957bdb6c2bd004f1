"""A trial of trusted code: its checks and its diagnosis, and what claims ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...checks.local import LocalRecordingRunner
from ...checks.outcome import CheckOutcome
from ...checks.trusted import namespace_of
from ...course import Exercise
from ...diagnosis import Bank, diagnose
from ...judge.catalogue import Catalogue
from ...judge.grade import REMEMBERED
from ...judge.memory import Memory, RememberingRunner
from ...result import Diagnosed
from ..kill_matrix import INPUTS

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
        self._table = catalogue.tables.of(exercise)

    def run(self, namespace: Namespace) -> tuple[list[CheckOutcome], tuple[Diagnosed, ...]]:
        """The outcomes of the checks, and the names."""
        subject = LocalRecordingRunner(namespace)
        outcomes = self._catalogue.run(self._exercise, subject, self._reference, INPUTS, self._exercise.id)
        for call in self._table.calls:
            self._memory.hold_as_it_is(call)
        found = diagnose(
            self._bank,
            lambda: self._table,
            subject,
            self._reference,
            outcomes,
            [replace(exchange, call=self._memory.hold(exchange.call)) for exchange in subject.transcript],
            replays=self._memory.replays,
            checks_failed_by=lambda: self._catalogue.tables.checks_failed_by(self._exercise),
        )
        return outcomes, found.named


def behaviour_of(outcomes: Sequence[CheckOutcome]) -> Behaviour:
    """How the checks ended, and with which evidence."""
    return tuple((o.id, o.outcome, o.evidence) for o in outcomes)


def is_first(id_: str, diagnosis: Sequence[Diagnosed]) -> bool:
    """Whether the misconception is named first, or may stand in place of the first."""
    return bool(diagnosis) and id_ in (diagnosis[0].id, *diagnosis[0].alternatives)
