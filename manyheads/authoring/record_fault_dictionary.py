"""Record the replies of the reference and of every mutant to calls on public inputs.

`recorded_file` returns the file of an exercise's fault dictionary. Right and wrong attempts also
answer the calls, so that visible checks can be chosen. `shares_of` serves the file of a trained
model: it recognises the attention weights of a reference's heads among the results of torch's
functions, as one (T, T) matrix for each head with rows that sum to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
)
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..box.worker.messages import TraceCall
from ..box.worker.trace_operations import trace
from ..checks.explain_exceptions import KINDS
from ..checks.runner import (
    LocalRecordingRunner,
    cast,
    must_end,
    namespace_of,
)
from ..course import CourseError, Exercise
from ..diagnosis.bank import Bank, MisconceptionText, load_bank
from ..diagnosis.evidence import REFUSES
from ..diagnosis.fault_dictionary import (
    FaultDictionary,
    PublicCheck,
    RecordedMutant,
    StepWeights,
)
from ..diagnosis.fingerprint import (
    REPLY_FIELDS,
    ReplyField,
    ReplyFingerprint,
    has_no_numbers,
)
from ..diagnosis.recording_file import key_of, save
from ..judge.run_hidden_checks import Catalogue
from ..student.choose_example_calls import examples, weights_by_call
from ..student.trace import TABLES, TIMES
from ..submission import Source
from .choose_recorded_calls import (
    PUBLIC,
    RecordedCalls,
    Replies,
    evidence_for_author,
    recorded_calls,
)
from .choose_visible_oracles import (
    Groups,
    LabelledProgram,
    ViolatedOracles,
    choose_all,
    groups_within,
)
from .make_stub import stub_of
from .record_pairs_and_sweeps import recorded_curves, recorded_pairs
from .remembered_steps import RememberedSteps
from .trusted_program import MutantRun, TrustedProgram, silenced

_ROUNDING = 1e-3  # how far the sum of a row may be from one


class _Shares(TorchFunctionMode):
    """Keep the last tensor of shape (1, nh, T, T) or (1, T, T) with rows that sum to one."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._sides = (tokens, tokens)
        self.last: Tensor | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            isinstance(result, Tensor)
            and result.is_floating_point()
            and result.shape[-2:] == self._sides
        ):
            with torch._C.DisableTorchFunction():
                is_shared_out = bool((result >= 0).all()) and bool(
                    ((result.sum(-1) - 1).abs() < _ROUNDING).all()
                )
            if is_shared_out:
                self.last = result
        return result


def shares_of(module: nn.Module, inputs: Tensor, attributes: Mapping[str, bool]) -> Tensor | None:
    """Return the attention weights of each head for one sequence, (nh, T, T).

    Return None if the module computes no such tensor.

    Args:
        module: The reference's module, in eval mode.
        inputs: Its input, (1, T, C).
        attributes: Attributes to set so that the weights are computed as a tensor, such as
            flash=False. They stay set.
    """
    for name, value in attributes.items():
        setattr(module, name, value)
    with torch.no_grad(), _Shares(inputs.shape[1]) as shares:
        module(inputs)
    if shares.last is None:
        return None
    weights: Tensor = shares.last[0]
    return weights if weights.dim() == 3 else weights[None]


# for each call the different replies, the reference's first
Every = Sequence[Sequence[ReplyFingerprint]]
# Misconceptions that need no mutant: an exception, a guard or an unreadable file is the evidence.
ALWAYS = {
    "load_error",
    REFUSES,
    *(error_kind.misconception for error_kind in KINDS if error_kind.misconception),
}
# The index at which a reply is stored. The reply itself stands for one that rounding may decide,
# and None for one that chance decides.
StoredIndex = int | ReplyFingerprint | None


def store_replies(stored_replies: Sequence[Replies], program: TrustedProgram) -> list[StoredIndex]:
    """Store new replies of a program, and return for each call the index of its stored reply.

    A reply that chance or rounding may decide is not stored. In place of an index, the list has
    None for chance and the reply itself for rounding. To see what rounding decides, the inputs are
    nudged, which makes equal numbers unequal. If no stored reply differs from the reference's,
    the mistake may be about equal numbers. Then the inputs are nudged in another way, by which
    equal numbers stay equal.

    Args:
        stored_replies: The different replies to every call, the reference's first.
        program: The program.
    """
    indices = _store_if_fixed(stored_replies, program, keep_equal=False)
    if differs_for_sure(indices) or not any(isinstance(p, ReplyFingerprint) for p in indices):
        return indices
    return _store_if_fixed(stored_replies, program, keep_equal=True)


def differs_for_sure(indices: Sequence[StoredIndex]) -> bool:
    """Return whether any stored reply differs from the reference's, which has index 0."""
    return any(isinstance(index, int) and index > 0 for index in indices)


def _store_if_fixed(
    stored_replies: Sequence[Replies], program: TrustedProgram, keep_equal: bool
) -> list[StoredIndex]:
    """Store new replies that are the same for nudged inputs. See `store_replies`.

    With `keep_equal`, equal numbers of an input are not nudged.
    """
    indices = list[StoredIndex]()
    for call, (replies, actual) in enumerate(zip(stored_replies, program.replies, strict=True)):
        # A reply that equals a stored one is sure, because that one is.
        index = replies.find(actual)
        if index is None and program.is_fixed(call, keep_equal):
            index = replies.add(actual)
        indices.append(actual if index is None and not program.is_drawn(call) else index)
    return indices


def without_rounding(
    stored_replies: Sequence[Replies], indices: Sequence[StoredIndex], broken: ViolatedOracles
) -> tuple[tuple[int | None, ...], ViolatedOracles]:
    """Return a mutant's reply indices and violations, without those that rounding may decide.

    A reply that rounding may decide becomes None, because another processor would compute other
    numbers. But it gets the index of a stored reply that is equal, if another mutant has given one.
    A violation is dropped if its group of calls has a reply that became None in this way. Random
    numbers need no such rule, because they are drawn from the call's seed and are the same
    everywhere.

    Args:
        stored_replies: The different replies to every call, after all mutants have answered.
        indices: The indices of one mutant's replies, from `store_replies`.
        broken: The oracles that the mutant violates.
    """
    sure, of_rounding = list[int | None](), set[int]()
    for call, (call_replies, index) in enumerate(zip(stored_replies, indices, strict=True)):
        if isinstance(index, ReplyFingerprint):
            index = call_replies.find(index)
            if index is None:
                of_rounding.add(call)
        sure.append(index)
    return tuple(sure), frozenset(
        (oracle, group) for oracle, group in broken if of_rounding.isdisjoint(group)
    )


class _MutantResult(NamedTuple):
    """The results of a mutant.

    Attributes:
        row: The outcomes of the hidden checks, from `kill_row`.
        indices: The indices of its replies, from `store_replies`.
        violations: The oracles that it violates.
    """

    row: str
    indices: list[StoredIndex]
    violations: ViolatedOracles


def recorded_file(catalogue: Catalogue, exercise: Exercise, steps: RememberedSteps) -> bytes:
    """Return the bytes of the file with the fault dictionary of an exercise.

    Only results that `steps` does not have are computed, and added to it.

    1. The reference runs the hidden checks with public inputs, and its calls are recorded.
    2. Right attempts must pass the hidden checks. They answer the recorded calls, and fields in
       which their replies differ from the reference's are not compared by visible checks.
    3. Wrong attempts and mutants answer the calls, and the hidden checks judge them.
    4. The oracles of the visible checks are chosen so that their verdicts agree with these.
    5. Pairs of mutants and mistakes with a number are recorded, and attention weights for pictures.

    Raises:
        CourseFault: The course is broken, for example because the reference or a right attempt
            fails a check, or because code does not end.
    """
    recorded, bank = recorded_calls(catalogue, exercise), load_bank(exercise)
    demand_right_attempts(catalogue, exercise, steps)
    programs = _LabelledPrograms(catalogue, exercise, recorded, steps)
    disputed = programs.add_right_attempts()
    programs.add_wrong_attempts()
    results = programs.add_mutants(bank)
    replies = tuple(tuple(call_replies.every) for call_replies in programs.stored_replies)
    recording = FaultDictionary(
        exercise=exercise.id,
        stub=Source("", stub_of(exercise)).code_digest,
        checks=_checks(recorded, replies, disputed, programs.labelled),
        calls=recorded.calls,
        expected=recorded.expected,
        replies=replies,
        mutants=tuple(programs.mutants),
        words=words_of(bank),
        hidden=tuple(programs.hidden),
        kills=tuple(result.row for result in results),
        pairs=recorded_pairs(bank, recorded.calls, replies, programs.mutants, steps),
        sweeps=recorded_curves(bank, recorded, steps),
        key=key_of(exercise),
        drawn=recorded.drawn,
        conditions=recorded.conditions,
    )
    return save(replace(recording, weights=recorded_weights(exercise, recording)))


class _LabelledPrograms:
    """Right attempts, wrong attempts and mutants, with the hidden checks that each fails.

    The oracles of the visible checks are chosen by them.

    Attributes:
        hidden: the ids of the hidden checks.
        stored_replies: for each recorded call, the different replies of the mutants.
        labelled: the programs, in the order in which they were added.
        mutants: the mutants, as the fault dictionary has them.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        exercise: Exercise,
        recorded: RecordedCalls,
        steps: RememberedSteps,
    ) -> None:
        self._exercise = exercise
        self._recorded = recorded
        self._steps = steps
        self._mutant_run = MutantRun(catalogue, exercise, recorded)
        self._groups = list(recorded.groups.values())
        self.hidden = [outcome.id for outcome in recorded.outcomes]
        self.stored_replies = [*map(Replies, recorded.fingerprints)]
        self.labelled: list[LabelledProgram] = []
        self.mutants: list[RecordedMutant] = []

    def add_right_attempts(self) -> set[tuple[int, ReplyField]]:
        """Add the right attempts.

        Returns:
            The reply fields in which a right attempt differs from the reference, each with the
            index of its call. No check compares them.
        """
        disputed = set[tuple[int, ReplyField]]()
        for path in self._exercise.right_attempts():
            with _must_end(self._exercise, f"the right attempt {path.name}", path, path):
                program = self._program_in(path)
                violations = program.violations(self._groups)
            for i, reply in enumerate(program.replies):
                expected = self._recorded.fingerprints[i]
                disputed |= {(i, f) for f in REPLY_FIELDS if not reply.agrees(expected, (f,))}
            self.labelled.append(LabelledProgram(frozenset(), violations, is_right=True))
        return disputed

    def add_wrong_attempts(self) -> None:
        """Add the wrong attempts that no mutant stands for."""
        for path in self._exercise.wrong_attempts():
            with _must_end(self._exercise, f"the wrong attempt {path.name}", path, path):
                program = self._program_in(path)
                violations = program.violations(self._groups)
                failed = _failed_checks(self.hidden, program.kill_row(self._mutant_run))
            self.labelled.append(LabelledProgram(failed, violations))

    def add_mutants(self, bank: Bank) -> list[_MutantResult]:
        """Add the mutants, and return the result of each, in the order of the bank.

        A reply that rounding decides is known as such only after all mutants have answered.
        """
        results = self._results_of(bank)
        for mutant, result in zip(bank.mutants, results, strict=True):
            indices, violations = without_rounding(
                self.stored_replies, result.indices, result.violations
            )
            self.mutants.append(RecordedMutant(mutant.id, indices))
            failed = _failed_checks(self.hidden, result.row)
            self.labelled.append(LabelledProgram(failed, violations, mutant.id))
        return results

    def _results_of(self, bank: Bank) -> list[_MutantResult]:
        """Return the result of each mutant.

        A mutant gets the result of an earlier one with the same misconception and the same replies,
        unless all its replies are the reference's or decided by chance.
        """
        solution, misconceptions = self._exercise.solution, self._exercise.misconceptions
        behaviours = list[object]()
        results = list[_MutantResult]()
        for mutant in bank.mutants:
            with _must_end(self._exercise, f"the mutant {mutant.id}", solution, misconceptions):
                steps = self._steps.of_mutant(mutant)
                program = TrustedProgram(mutant.namespace, self._recorded, steps)
                behaviour = mutant.id, program.replies
                result = results[behaviours.index(behaviour)] if behaviour in behaviours else None
                if result is None or not any(result.indices):
                    result = _MutantResult(
                        program.kill_row(self._mutant_run),
                        store_replies(self.stored_replies, program),
                        program.violations(self._groups),
                    )
            behaviours.append(behaviour)
            results.append(result)
        return results

    def _program_in(self, path: Path) -> TrustedProgram:
        """Return the right or wrong attempt in a file."""
        return TrustedProgram(namespace_of(path), self._recorded, self._steps.of_file(path))


def recorded_weights(exercise: Exercise, recording: FaultDictionary) -> dict[int, StepWeights]:
    """Return the reference's attention weights, by the index of the recorded call.

    The calls are those that `course plot` may show. A call without weights is left out. The weights
    are found in a trace, as a student's are, so that equal code shows equal weights.
    """
    namespace, weights = namespace_of(exercise.solution), dict[int, StepWeights]()
    for chosen in examples(exercise, recording):
        for example in (chosen, *chosen.instead):
            if not example.axes.packed:
                continue
            message = TraceCall(cast(example.call, "float32"), TABLES, TIMES)
            with silenced():
                traced = trace(namespace, message, str(exercise.solution))
            tables = weights_by_call(example, traced)
            if any(table is not None for table in tables):
                weights[example.index] = tables
    return weights


def demand_right_attempts(catalogue: Catalogue, exercise: Exercise, steps: RememberedSteps) -> None:
    """Raise CourseError, with the attempt's file, if a right attempt fails a hidden check.

    Visible checks compare only what all right attempts share. A wrong one among them makes these
    checks blind, and mutants lose their names: so nothing is recorded. An attempt that is known to
    pass is not run.
    """
    reference = catalogue.remembering_reference(exercise)
    for path in exercise.right_attempts():
        attempt_steps = steps.of_file(path)
        if attempt_steps.is_known_to_pass:
            continue
        attempt = LocalRecordingRunner(namespace_of(path))
        with silenced(), _must_end(exercise, f"the right attempt {path.name}", path, path):
            outcomes = catalogue.run(exercise, attempt, reference, PUBLIC, exercise.id)
        failed = next((outcome for outcome in outcomes if outcome.outcome != "passed"), None)
        if failed is not None:
            problem = (
                f"{path.relative_to(exercise.root)} fails {failed.id}: "
                f"{evidence_for_author(failed, attempt.transcript, path)}"
            )
            mend = (
                f"mend it, move it to grader/wrong/{exercise.id}/, or mend that check in "
                f"{exercise.checks.name}"
            )
            raise CourseError(f"{problem}. Next: {mend}, then course release {exercise.id}")
        attempt_steps.row = "0" * len(outcomes)


def _must_end(
    exercise: Exercise, label: str, compiled_as: Path, source: Path
) -> AbstractContextManager[None]:
    next_step = f"mend it in {source.relative_to(exercise.root)}, then course release {exercise.id}"
    return must_end(label, compiled_as, next_step)


def _failed_checks(hidden: Sequence[str], row: str) -> frozenset[str]:
    """Return the checks that fail on their own.

    A check that fails because of a condition is left out, because no oracle shows a condition.
    """
    return frozenset(check for check, bit in zip(hidden, row, strict=True) if bit == "1")


def words_of(bank: Bank) -> dict[str, MisconceptionText]:
    """Return the texts about misconceptions that students may read, by id.

    These are the misconceptions of the bank's mutants, and those in ALWAYS. A misconception without
    a text is left out.
    """
    ids = ALWAYS | {mutant.id for mutant in bank.mutants}
    return {id_: bank.texts[id_] for id_ in sorted(ids & bank.texts.keys())}


def _checks(
    recorded: RecordedCalls,
    replies: Every,
    disputed: set[tuple[int, ReplyField]],
    subjects: Sequence[LabelledProgram],
) -> tuple[PublicCheck, ...]:
    """Return a public check for every hidden one that has recorded calls.

    Args:
        recorded: The recorded calls.
        replies: The different replies to each call.
        disputed: The calls with the fields in which right attempts differ from the reference. A
            check does not compare outputs in a call with disputed outputs, and it compares another
            field only if the field is disputed in none of its calls.
        subjects: The programs with known verdicts.
    """
    # An attempt may raise if it looks at numbers that are not there.
    without_numbers = {
        i for i, expected in enumerate(recorded.fingerprints) if has_no_numbers(expected)
    }
    undisputed, groups = dict[str, tuple[int, ...]](), dict[str, Groups]()
    for outcome in recorded.outcomes:
        calls = recorded.call_indices(outcome.id)
        if calls:
            compared = tuple(i for i in calls if (i, "outputs") not in disputed)
            undisputed[outcome.id] = compared
            groups[outcome.id] = groups_within(
                recorded.groups[outcome.id], [*compared, *without_numbers.intersection(calls)]
            )
    chosen = choose_all(groups, subjects)
    checks = list[PublicCheck]()
    for outcome in recorded.outcomes:
        if outcome.id in groups:
            public = PublicCheck(
                id=outcome.id,
                title=outcome.title,
                layer=outcome.layer,
                hint=outcome.hint,
                points=outcome.points,
                calls=undisputed[outcome.id],
                reply_fields=_compared_fields(undisputed[outcome.id], replies, disputed),
                **vars(chosen[outcome.id]),
            )
            checks.append(public)
    return tuple(checks)


def _compared_fields(
    calls: Sequence[int], replies: Every, disputed: set[tuple[int, ReplyField]]
) -> tuple[ReplyField, ...]:
    """Return the reply fields that a visible check compares in these calls.

    These are "outputs", and each further one that detects a mutant which the fields before it do
    not detect.
    """
    fields: list[ReplyField] = ["outputs"]
    reply_pairs = [(reply, replies[i][0]) for i in calls for reply in replies[i][1:]]
    for name in REPLY_FIELDS[1:]:
        if any((i, name) in disputed for i in calls):
            continue
        is_needed = any(
            reply.agrees(expected, tuple(fields)) and not reply.agrees(expected, (name,))
            for reply, expected in reply_pairs
        )
        if is_needed:
            fields.append(name)
    return tuple(fields)
