"""Wrong programs for `course verify`, and the reports about them.

`Trials` runs mutants and pairs of mutants in this process. `silent_attempts` and `saying_attempts`
make attempts from the solution: without an answer, or with trivial or wrong numbers. `FaultBench`
makes right attempts with one edit at a known line, and searches for this line in a box.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

from ...box.connection import Box
from ...checks.hidden_check import CheckOutcome, Edit
from ...checks.runner import Exchange, LocalRecordingRunner, target_of
from ...course import Course, Exercise
from ...diagnosis import BuiltMutant, load_bank
from ...diagnosis.bank import Bank, Namespace
from ...diagnosis.recording_file import read
from ...judge.attribute_public_replies import Attribution, attribute
from ...judge.edit_search import Bounds, candidates
from ...judge.grade_submission import Judge, Settings
from ...judge.parts_reached_by_calls import LineEdit
from ...judge.public_calls import PublicCalls, ask_public_calls, name_misconceptions
from ...judge.run_hidden_checks import Catalogue
from ...result import ExerciseResult, ProvedLine
from ...submission import Source
from ..choose_recorded_calls import PUBLIC
from ..record_fault_dictionary import differs_for_sure
from ..templates import filled_templates
from ..trusted_program import silenced


class MutantReport:
    """The diagnosis of a wrong attempt, from its replies to the public calls.

    Attributes:
        checks: The outcomes of the visible checks.
        named: The misconceptions that explain the attempt, the most likely first.
        names: Their ids.
        behaviour: A value that is equal for two attempts with the same replies.
        stops: Whether every call of a wrong function raised.
        unknown_name: If it stops, the first message about an undefined name, otherwise "".
    """

    def __init__(
        self,
        findings: Attribution,
        checks: Sequence[CheckOutcome] = (),
        answers: str = "",
        transcript: Sequence[Exchange] = (),
    ) -> None:
        self.checks, self.named = checks, [m.diagnosed for m in findings.explaining]
        self.names = [diagnosed.id for diagnosed in self.named]
        self.behaviour = (answers, sorted((check.id, check.outcome) for check in checks))
        wrong_functions = {
            verdict.name for verdict in findings.verdicts if verdict.state != "right"
        }
        raised = [
            exchange.reply.raised
            for exchange in transcript
            if target_of(exchange.call) in wrong_functions
        ]
        # An exception already shows the place of the fault, so a claim does not ask for more.
        self.stops = bool(raised) and None not in raised
        unknown_names = [
            exception.message
            for exception in raised
            if exception is not None and exception.type == "NameError"
        ]
        self.unknown_name = next(iter(unknown_names), "") if self.stops else ""

    def is_first(self, id_: str) -> bool:
        """Return whether the misconception is the first one named, or an alternative to it."""
        return any(id_ in (diagnosed.id, *diagnosed.alternatives) for diagnosed in self.named[:1])


class Trials:
    """Run an exercise's public calls, and single hidden checks, on trusted code.

    The results of the hidden checks on each mutant are read from the fault dictionary. The report
    about a mutant is made once.
    """

    def __init__(self, catalogue: Catalogue, exercise: Exercise) -> None:
        self.exercise, self.bank = exercise, load_bank(exercise)
        self.recording = read(exercise.fingerprints)
        self._catalogue, self._reference = catalogue, catalogue.remembering_reference(exercise)
        self._source = _text_with_numbers(exercise, self.bank)
        rows = zip(self.recording.kills, self.recording.mutants, strict=True)
        self._rows = dict(zip(map(id, self.bank.mutants), rows, strict=True))
        self._alone: dict[object, MutantReport] = {}

    def failed_checks(self, mutant: BuiltMutant, how: str = "12") -> list[str]:
        """Return the recorded hidden checks that a mutant fails.

        Args:
            mutant: The mutant.
            how: "1" for failures of the check itself, "2" for failures by a condition.
        """
        return [
            id_
            for id_, end in zip(self.recording.hidden, self._rows[id(mutant)][0], strict=True)
            if end in how
        ]

    def by_rounding(self, mutant: BuiltMutant) -> list[int]:
        """Return the indices of the calls whose replies are not recorded: rounding may decide them.

        The list is empty if a recorded reply of the mutant differs from the reference's.
        """
        _, recorded = self._rows[id(mutant)]
        if differs_for_sure(recorded.answers):
            return []
        return [i for i, reply_index in enumerate(recorded.answers) if reply_index is None]

    def report_of(self, mutant: BuiltMutant) -> MutantReport:
        """Return the report about a mutant.

        Mutants with the same misconception and the same recorded replies share one report.
        """
        key = (mutant.id, self._rows[id(mutant)][1].answers)
        if key not in self._alone:
            self._alone[key] = self.mutant_report(mutant.namespace)
        return self._alone[key]

    def mutant_report(self, namespace: Namespace) -> MutantReport:
        """Run the public calls on a program, and return the report about it.

        No hidden check is run. In grading, hidden checks can only add misconceptions.
        """
        attempt = LocalRecordingRunner(namespace)
        with silenced():
            calls = PublicCalls(self.recording, attempt)
            replies = ask_public_calls(calls, self._source, self.exercise, is_graded=True)
        diagnosis = name_misconceptions(replies, self.bank)
        findings = attribute(replies, diagnosis)
        outcomes = replies.outcomes()
        return MutantReport(findings, outcomes, diagnosis.answers, attempt.transcript)

    def suspects(self, mutant: BuiltMutant) -> Iterator[str]:
        """Yield for each hidden check that a mutant fails the misconception that it shows, or "".

        The check is run again, alone, when its item is asked for.
        """
        for check in self.failed_checks(mutant):
            attempt, id_ = LocalRecordingRunner(mutant.namespace), self.exercise.id
            outcomes = self._catalogue.run(
                self.exercise, attempt, self._reference, PUBLIC, id_, only=[check]
            )
            yield outcomes[0].suspect

    def behaves_like_simpler(
        self, pair: tuple[BuiltMutant, BuiltMutant], behaviour: object, names: set[str]
    ) -> bool:
        """Return whether a simpler pair of these misconceptions has the same replies as this pair.

        In a simpler pair, a mutant with fewer edits replaces one of the two. Together with the
        other fault, an edit may have no effect.

        Args:
            pair: The pair.
            behaviour: Its behaviour, from the report about it.
            names: The misconceptions. Pairs of others do not run.
        """
        for original, partner in (pair, pair[::-1]):
            for simpler in self.bank.mutants:
                if not simpler.faults.items() < original.faults.items():
                    continue
                if not {simpler.id, partner.id} <= names:
                    continue
                namespace = self.bank.combine(simpler, partner)
                if namespace is not None and self.mutant_report(namespace).behaviour == behaviour:
                    return True
        return False

    @cached_property
    def unfinished_programs(self) -> Sequence[UnfinishedProgram]:
        """For each function but the first, the reference with stubs from this function on."""
        reference = self._catalogue.reference(self.exercise).namespace
        targets = {target_of(call) for call in self.recording.calls}
        names = [name for name in reference if name in targets]
        programs = []
        for cut in range(1, len(names)):
            stubs = dict.fromkeys(names[cut:], _stub)
            report = self.mutant_report({**reference, **stubs})
            programs.append(UnfinishedProgram(names[cut], stubs, report))
        return programs


class UnfinishedProgram(NamedTuple):
    """The reference with stubs in place of its last functions.

    Attributes:
        first_stub: The name of the first of these functions.
        stubs: The stubs by name.
        report: The report about this program.
    """

    first_stub: str
    stubs: Namespace
    report: MutantReport


def _text_with_numbers(exercise: Exercise, bank: Bank) -> Source:
    """Return one text with the numbers of all mutants, in place of the text of each mutant.

    It is the bank's file, followed by a list of the integers in all edits: in the file, these are
    inside strings, and would not count as numbers.
    """
    numbers = set[int]()
    for mutant in bank.mutants:
        if isinstance(mutant.change, Edit):
            for new_text in mutant.change.changes.values():
                numbers.update(map(int, re.findall(r"\b\d+\b", new_text)))
    bank_text = exercise.misconceptions.read_text(encoding="utf-8")
    return Source("", f"{bank_text}\n{sorted(numbers)}\n")


def _stub(*arguments: object, **keywords: object) -> None:
    raise NotImplementedError


# used in place of the course's secret, so that a claim gives the same result on every machine
SECRET = b"verify"
FAULTS = 5  # for each exercise
# Only the number of edits ends the search, so that a slow machine finds as much as a fast one.
PATIENT = Bounds(seconds=60.0)
ANOTHER_SEED = 1
_LOST = {"timeout", "crashed", "skipped", "missing"}  # an edit with such an outcome is no fault
_SAMPLED = 4000  # the most edits that are drawn for an exercise's faults

BehaviourAndText = tuple[str, str]  # the attempt's behaviour, and its text
# The statement that replaces `right(*args, **kwargs)`. Everything else that could earn points by
# mistake is kept: names, weights, the shapes, dtypes and devices of outputs, and the operations.
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

# The expressions that replace a tensor and a number. `x` is the first tensor of numbers among the
# function's arguments.
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


def silent_attempts(exercise: Exercise) -> list[BehaviourAndText]:
    """Return the attempts without an answer: the solution, with SILENT in place of each function.

    In modules, `forward` is replaced, and in further attempts `__init__`.
    """
    has_modules = "def forward(" in exercise.solution.read_text("utf-8")
    methods = ("forward", "__init__") if has_modules else ("forward",)
    return [
        (behaviour, _replace_words(exercise, body, method=method))
        for method in methods
        for behaviour, body in SILENT.items()
    ]


def saying_attempts(
    exercise: Exercise, behaviours: Mapping[str, tuple[str, str]]
) -> list[BehaviourAndText]:
    """Return the attempts that return these tensors and numbers in place of the right ones.

    Args:
        exercise: The exercise.
        behaviours: EMPTY or WRONG: for each behaviour, the expressions for a tensor and a number.
    """
    body = "return nothing_of(right(*args, **kwargs), [*args, *kwargs.values()])"
    return [
        (behaviour, _replace_words(exercise, body, tensor=tensor, number=number))
        for behaviour, (tensor, number) in behaviours.items()
    ]


def _replace_words(exercise: Exercise, body: str, **words: str) -> str:
    words = {"body": body, "method": "forward", "tensor": "out", "number": "out", **words}
    ((_, ending),) = filled_templates("instead", words)
    return exercise.solution.read_text("utf-8") + ending.decode()


@dataclass(frozen=True)
class SampledFault:
    """A right attempt with one edit that makes it fail a check."""

    attempt: str  # the stem of the right attempt's file
    edit: LineEdit


class FaultBench:
    """Make faults of an exercise, and search for their lines in a box.

    A fault is a right attempt with one edit that makes it fail a check.
    """

    def __init__(
        self, course: Course, box: Box, exercise: Exercise, bounds: Bounds = PATIENT
    ) -> None:
        settings = Settings(SECRET, exercises=(exercise.id,), diagnoses=False, bounds=bounds)
        self._exercise, self._searching = exercise, Judge(course, box, settings)
        self._judge = Judge(course, box, replace(settings, lines=False))
        self.line_verdict = cache(self._line_verdict)  # two claims need it

    def faults(self, only_undone: bool = False) -> Iterator[SampledFault]:
        """Yield different faults in an order that is always the same.

        Right attempts and categories of edits are drawn equally often, at most _SAMPLED times. Each
        drawn edit is graded, to see whether the attempt fails.

        Args:
            only_undone: Only yield faults that a single edit undoes.
        """
        drawn = random.Random(self._exercise.id)
        paths = [self._exercise.solution, *self._exercise.right_attempts()]
        right_attempts = {
            path.stem: Source(f"{self._exercise.stem}.py", path.read_text(encoding="utf-8"))
            for path in paths
        }
        by_kind: dict[str, dict[str, list[LineEdit]]] = {name: {} for name in right_attempts}
        for name, right_attempt in right_attempts.items():
            for edit in candidates(right_attempt, ()):
                by_kind[name].setdefault(edit.category, []).append(edit)
        tried: set[Source] = set()
        for _ in range(_SAMPLED):
            name = drawn.choice(sorted(by_kind))
            if not by_kind[name]:
                continue
            edit = drawn.choice(by_kind[name][drawn.choice(sorted(by_kind[name]))])
            is_new = edit.after not in tried
            tried.add(edit.after)
            # A copy, because the edits are kept, and their syntax trees need much memory.
            copy = replace(edit.after)
            is_wanted = is_new and (
                not only_undone or right_attempts[name] in (e.after for e in candidates(copy, ()))
            )
            if is_wanted and self._fails(copy):
                yield SampledFault(name, edit)

    @cached_property
    def undone_faults(self) -> list[SampledFault]:
        """The first FAULTS faults that one edit undoes, or fewer if there are not so many."""
        return list(islice(self.faults(only_undone=True), FAULTS))

    def _line_verdict(self, fault: SampledFault) -> str:
        """Search for the line of a fault, and return the result as one word.

        "there": the line of the fault is found. "elsewhere": only other lines are found, and edits
        there also mend the attempt. "wrong": the edit of a line that is found does not mend the
        attempt on other inputs. "nothing": no line is found.
        """
        lines = self.lines(fault.edit.after)
        if not lines:
            return "nothing"
        if not all(self._repairs_on_other_inputs(fault.edit.after, line) for line in lines):
            return "wrong"
        return "there" if fault.edit.line in {line.line for line in lines} else "elsewhere"

    def lines(self, faulty: Source) -> tuple[ProvedLine, ...]:
        """Grade a faulty attempt, and return the lines in which one edit makes it pass."""
        return self._grade(self._searching, faulty).lines

    def _repairs_on_other_inputs(self, faulty: Source, line: ProvedLine) -> bool:
        """Return whether the edit of a proved line passes every check on other inputs.

        The search has not used these inputs.
        """
        edits = [
            edit
            for edit in candidates(faulty, ())
            if (edit.line, edit.description) == (line.line, line.edit)
        ]
        return any(self._grade(self._judge, e.after, ANOTHER_SEED).is_done for e in edits)

    def _fails(self, attempt: Source) -> bool:
        """Return whether the attempt can be imported, and fails a check because of its replies.

        False also if a check times out or crashes, is skipped, or its function is missing.
        """
        result = self._grade(self._judge, attempt)
        ends = {check.outcome for check in result.checks}
        imported = ends != {"error"} or len({check.evidence for check in result.checks}) > 1
        return imported and not result.is_done and not ends & _LOST

    def _grade(self, judge: Judge, attempt: Source, seed: int | None = None) -> ExerciseResult:
        return judge.grade_attempt("fault", self._exercise, attempt, seed)
