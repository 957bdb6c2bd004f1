"""Wrong programs for `course verify`, and the reports about them.

Trials use mutants, pairs of mutants, and attempts made from right ones: without an answer, with a
trivial answer, or with one edit at a known line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import StringIO
from itertools import islice

from ...box.connection import Box
from ...checks.runner import Exchange, LocalRecordingRunner, target_of
from ...course import Course, Exercise
from ...diagnosis import Mutant, load_bank
from ...diagnosis.bank import Namespace
from ...diagnosis.recording_file import read
from ...judge.grade_submission import Judge, Settings
from ...judge.public_checks import Attribution, answer_public_calls
from ...judge.run_checks import Catalogue
from ...lines.edits import Edit
from ...lines.search import Bounds, candidates
from ...result import ExerciseResult, ProvedLine
from ...submission import AttemptSource
from ..record_answers import differs_for_sure
from ..record_calls import PUBLIC
from ..templates import filled


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


# used in place of the course's secret, so that a claim gives the same result on every machine
SECRET = b"verify"
FAULTS = 5  # for each exercise
# by the count alone, so that a slow machine finds as much as a fast one
PATIENT = Bounds(seconds=60.0)
ANOTHER_SEED = 1
_LOST = {"timeout", "crashed", "skipped", "missing"}  # how no check of a fault may end
_SAMPLED = 4000  # the most edits that are looked at for an exercise's faults

Attempt = tuple[str, str]  # what it does, and its text
# What is done in place of `right(*args, **kwargs)`. All else that could earn points by mistake
# is kept: names, weights, and of answers shapes, dtypes, devices, and the operations on the way.
SILENT = {
    "raises an error": "raise RuntimeError('no')",
    "refuses everything": "raise ValueError('no')",
    "asks Python to exit": "raise SystemExit(0)",
    "ends its process": "os._exit(0)",
    "never ends": "while True: pass",
    "returns None": "return None",
    "returns a tuple": "return (right(*args, **kwargs),)",
    "returns a list": "return [right(*args, **kwargs)]",
    "returns text": "return 'right'",
    "returns what equals everything": "return Equal()",
    "is a generator": "yield right(*args, **kwargs)",
}

# What is given instead of a tensor, and of a number. x: the first tensor of numbers that the
# function was given.
EMPTY = {
    "gives zeros": ("torch.zeros_like(out)", "0"),
    "gives ones": ("torch.ones_like(out)", "1"),
    "gives a ramp": ("torch.arange(out.numel()).view(out.shape).to(out)", "7"),
    "gives the identity matrix": (
        "torch.eye(*(1, *out.shape)[-2:]).expand(out.shape).to(out)",
        "7",
    ),
    "gives NaN": ("torch.full_like(out, float('nan'))", "float('nan')"),
    "gives infinity": ("torch.full_like(out, float('inf'))", "float('inf')"),
    "gives torch's noise": (
        "(torch.randn(out.shape) > 0 if truths(out) else torch.randn(out.shape)).to(out)",
        "torch.randn(()).item()",
    ),
    "gives noise of its own": ("noise(out, os.urandom(7))", "int.from_bytes(os.urandom(3), 'big')"),
    "gives the same noise each time": ("noise(out, b'0')", "7"),
    "gives ones and its argument's sum times 1e-9": (
        "torch.ones_like(out) + (x.sum() * 1e-9).to(out)",
        "7",
    ),
    "gives its argument in the right shape": ("filled(out, x)", "7"),
    "gives its argument": ("x", "7"),
    "gives a copy of its argument": ("x.clone()", "7"),
    "gives zeros like its argument": ("torch.zeros_like(x)", "7"),
    "gives noise like its argument": ("torch.randn_like(x)", "7"),
    "gives NaN like its argument": ("x * float('nan')", "7"),
}
WRONG = {
    "scales its numbers": ("out * 1.5 if out.is_floating_point() else out", "out * 2"),
    "gives one wrong number": ("with_a_wrong_number(out)", "out * 2"),
}


def silent_attempts(exercise: Exercise) -> list[Attempt]:
    """Return the attempts that give no answer: a function's, a forward's, and a constructor's."""
    has_modules = "def forward(" in exercise.solution.read_text("utf-8")
    methods = ("forward", "__init__") if has_modules else ("forward",)
    return [
        (behaviour, _replaced(exercise, body, method=method))
        for method in methods
        for behaviour, body in SILENT.items()
    ]


def saying_attempts(exercise: Exercise, behaviours: Mapping[str, tuple[str, str]]) -> list[Attempt]:
    """Return the attempts that give these tensors and numbers in place of the right ones."""
    body = "return nothing_of(right(*args, **kwargs), [*args, *kwargs.values()])"
    return [
        (behaviour, _replaced(exercise, body, tensor=tensor, number=number))
        for behaviour, (tensor, number) in behaviours.items()
    ]


def _replaced(exercise: Exercise, body: str, **words: str) -> str:
    words = {"body": body, "method": "forward", "tensor": "out", "number": "out", **words}
    ((_, ending),) = filled("instead", words)
    return exercise.solution.read_text("utf-8") + ending.decode()


@dataclass(frozen=True)
class SampledFault:
    """A right attempt with one edit, with which it fails a check."""

    attempt: str
    edit: Edit


class FaultBench:
    """Makes an exercise's faults, and asks for their lines."""

    def __init__(
        self, course: Course, box: Box, exercise: Exercise, bounds: Bounds = PATIENT
    ) -> None:
        settings = Settings(SECRET, exercises=(exercise.id,), diagnoses=False, bounds=bounds)
        self._exercise, self._searching = exercise, Judge(course, box, settings)
        self._judge = Judge(course, box, replace(settings, lines=False))
        self.told = cache(self._line_verdict)  # which two claims ask

    def faults(self, only_undone: bool = False) -> Iterator[SampledFault]:
        """Faults in an order that is always the same, each kind of edit as often.

        only_undone: those that one edit undoes.
        """
        drawn = random.Random(self._exercise.id)
        paths = [self._exercise.solution, *self._exercise.right_attempts()]
        texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
        by_kind: dict[str, dict[str, list[Edit]]] = {name: {} for name in texts}
        for name, text in texts.items():
            for edit in candidates(text, ()):
                by_kind[name].setdefault(edit.category, []).append(edit)
        tried: set[str] = set()
        for _ in range(_SAMPLED):
            name = drawn.choice(sorted(by_kind))
            if not by_kind[name]:
                continue
            edit = drawn.choice(by_kind[name][drawn.choice(sorted(by_kind[name]))])
            is_new = edit.after not in tried
            tried.add(edit.after)
            is_wanted = is_new and (
                not only_undone or texts[name] in (e.after for e in candidates(edit.after, ()))
            )
            if is_wanted and self._fails(edit.after):
                yield SampledFault(name, edit)

    @cached_property
    def undone(self) -> list[SampledFault]:
        """The first faults that one edit undoes."""
        return list(islice(self.faults(only_undone=True), FAULTS))

    def _line_verdict(self, fault: SampledFault) -> str:
        """Return what is told of a fault: its line ("there"), "elsewhere" where an edit mends it as
        well, "wrong", or "nothing".
        """
        lines = self.lines(fault.edit.after)
        if not lines:
            return "nothing"
        if not all(self._mends(fault.edit.after, line) for line in lines):
            return "wrong"
        return "there" if fault.edit.line in {line.line for line in lines} else "elsewhere"

    def lines(self, text: str) -> tuple[ProvedLine, ...]:
        """Return what a search finds."""
        return self._graded(self._searching, text).lines

    def _mends(self, text: str, line: ProvedLine) -> bool:
        """Return whether the edit that is told makes every check pass on inputs that the search has
        not seen.
        """
        edits = [e for e in candidates(text, ()) if (e.line, e.described) == (line.line, line.edit)]
        return any(self._graded(self._judge, e.after, ANOTHER_SEED).is_done for e in edits)

    def _fails(self, text: str) -> bool:
        """Return whether it is imported, and fails a check by what it answers."""
        result = self._graded(self._judge, text)
        ends = {check.outcome for check in result.checks}
        imported = ends != {"error"} or len({check.evidence for check in result.checks}) > 1
        return imported and not result.is_done and not ends & _LOST

    def _graded(self, judge: Judge, text: str, seed: int | None = None) -> ExerciseResult:
        return judge.grade_attempt(
            "fault", self._exercise, AttemptSource(f"{self._exercise.stem}.py", text), seed
        )
