"""What is told of trusted code that is wrong: mutants, pairs of them, and what is made of one for
the trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from io import StringIO

from ...checks.local import LocalRecordingRunner
from ...checks.transcript import Exchange, target_of
from ...course import Exercise
from ...diagnosis import Mutant, load_bank
from ...diagnosis.family import Namespace
from ...diagnosis.recording_file import read
from ...judge.public_checks import Attribution, answer_public_calls
from ...judge.run_checks import Catalogue
from ..fingerprints import differs_for_sure
from ..record_conditions import PUBLIC


class MutantReport:
    """What is told of a wrong attempt, by its answers to the public calls."""

    def __init__(self, findings: Attribution, transcript: Sequence[Exchange] = ()) -> None:
        self.checks, self.named = findings.checks, findings.diagnosis.named
        self.names = [diagnosed.id for diagnosed in self.named]
        # What two attempts share that answer alike.
        self.seen = (
            findings.diagnosis.answers,
            sorted((check.id, check.outcome) for check in findings.checks),
        )
        wrong_functions = {
            function.name for function in findings.functions if function.state != "right"
        }
        raised = [
            exchange.reply.raised
            for exchange in transcript
            if target_of(exchange.call) in wrong_functions
        ]
        # its exception says where, and need not say why
        self.stops = bool(raised) and None not in raised

    def is_first(self, id_: str) -> bool:
        """Return whether the misconception is named first, or may stand in place of the first."""
        return any(id_ in (diagnosed.id, *diagnosed.alternatives) for diagnosed in self.named[:1])


class Trials:
    """Puts an exercise's public calls to trusted code, and single hidden checks.

    Each mutant is asked once.
    """

    def __init__(self, catalogue: Catalogue, exercise: Exercise) -> None:
        self.exercise, self.bank, self.recording = (
            exercise,
            load_bank(exercise),
            read(exercise.fingerprints),
        )
        self._catalogue, self._reference = catalogue, catalogue.remembering(exercise)
        # in which the mutants' numbers stand
        self._text = exercise.misconceptions.read_text(encoding="utf-8")
        rows = zip(self.recording.kills, self.recording.mutants, strict=True)
        self._rows = dict(zip(map(id, self.bank.mutants), rows, strict=True))
        self._alone: dict[object, MutantReport] = {}

    def failed(self, mutant: Mutant, how: str = "12") -> list[str]:
        """Return the hidden checks that a mutant fails, by the record.

        how: "1" by the check itself, "2" by a condition.
        """
        return [
            id_
            for id_, end in zip(self.recording.hidden, self._rows[id(mutant)][0], strict=True)
            if end in how
        ]

    def by_rounding(self, mutant: Mutant) -> list[int]:
        """Return the calls whose answers rounding may decide, if the mutant differs from the
        reference in no other call.
        """
        _, recorded = self._rows[id(mutant)]
        return (
            []
            if differs_for_sure(recorded.answers)
            else [i for i, a in enumerate(recorded.answers) if a is None]
        )

    def alone(self, mutant: Mutant) -> MutantReport:
        """Return what is told of a mutant.

        Of those that answer alike by the record, the first is asked.
        """
        key = (mutant.id, self._rows[id(mutant)][1].answers)
        if key not in self._alone:
            self._alone[key] = self.mutant_report(mutant.namespace)
        return self._alone[key]

    def mutant_report(self, namespace: Namespace) -> MutantReport:
        """Return what is told of a wrong attempt.

        Hidden checks add names to these, and take none away.
        """
        attempt = LocalRecordingRunner(namespace)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            findings = answer_public_calls(
                self.recording, attempt, self._text, self.exercise, self.bank
            )
        return MutantReport(findings, attempt.transcript)

    def suspects(self, mutant: Mutant) -> Iterator[str]:
        """Yield the misconception that each check which a mutant fails proves by itself; "" where
        it proves none.
        """
        for check in self.failed(mutant):
            attempt, id_ = LocalRecordingRunner(mutant.namespace), self.exercise.id
            yield self._catalogue.run(
                self.exercise, attempt, self._reference, PUBLIC, id_, only=[check]
            )[0].suspect

    def simpler(
        self, first: Mutant, second: Mutant, mutant_report: MutantReport
    ) -> Iterator[set[str]]:
        """Yield the names of pairs with fewer changes that behave so: beside the other fault a
        change may do nothing.
        """
        for original, partner in ((first, second), (second, first)):
            for fewer in (
                mutant
                for mutant in self.bank.mutants
                if mutant.faults.items() < original.faults.items()
            ):
                namespace = self.bank.combine(fewer, partner)
                if (
                    namespace is not None
                    and self.mutant_report(namespace).seen == mutant_report.seen
                ):
                    yield {fewer.id, partner.id}

    @cached_property
    def unfinished(self) -> Sequence[tuple[str, Namespace, MutantReport]]:
        """Of each function but the first: its name, its and later ones' stubs, and what is told of
        the reference with them.
        """
        reference = self._catalogue.reference(self.exercise).namespace
        targets = {target_of(call) for call in self.recording.calls}
        names = [name for name in reference if name in targets]
        stubs = [dict.fromkeys(names[cut:], _stub) for cut in range(1, len(names))]
        return [
            (next(iter(stubbed)), stubbed, self.mutant_report({**reference, **stubbed}))
            for stubbed in stubs
        ]


def _stub(*arguments: object, **named: object) -> None:
    raise NotImplementedError
