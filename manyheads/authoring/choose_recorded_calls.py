"""Choose the calls of a fault dictionary, and run the reference on them.

`recorded_calls` runs the hidden checks on the reference with public inputs, and records the calls
that they make. It also records the conditions that a function must meet before its checks count.
Replies that depend on chance or rounding are left out, because every machine would record different
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from ..box.worker import wire
from ..box.worker.answer_call import execute
from ..box.worker.messages import Build, Call, Reply
from ..checks.hidden_check import CheckOutcome, Draw, Drawn, input_seed
from ..checks.preconditions import Condition
from ..checks.runner import (
    Exchange,
    Implementation,
    LocalRecordingRunner,
    cast,
    map_call,
    must_end,
    namespace_of,
    round_to_float32,
    target_of,
)
from ..course import CourseError, Exercise
from ..diagnosis.bank import Namespace
from ..diagnosis.fault_dictionary import RecordedCondition
from ..diagnosis.fingerprint import (
    REPLY_FIELDS,
    ReplyField,
    ReplyFingerprint,
    comparable_fingerprint,
    fingerprint_of,
    has_no_numbers,
)
from ..diagnosis.mutants_explaining_nondeterminism import are_alike
from ..diagnosis.observed_reply import Expected, is_of_copies, summarise_copies
from ..judge.collect_checks import CONDITIONS
from ..judge.nontrivial_answers import choose_probe, four_like
from ..judge.run_hidden_checks import Catalogue
from .choose_visible_oracles import Groups, groups_of

ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded
FEW = 2  # copies that show whether code raises for a batch at all
VALUES: tuple[ReplyField, ...] = ("outputs", "gradients")
# Pairs of a relative change of the inputs and the seed that decides its signs, for float64 and for
# float32. The changes are larger than a rounding error. A number near the middle between two
# roundings moves to the other side for a change up or for a change down.
NUDGES = ((1e-9, 0),)
NARROW_NUDGES = ((2e-6, 0), (-2e-6, 0), (2e-6, 1), (-2e-6, 1))


class RecordedCall:
    """A call on which trusted code runs. Derived calls (cast, nudged, cut) are made only once."""

    def __init__(self, call: Call) -> None:
        self.call, self._cast = call, cast(call, call.dtype or "float64")
        self._is_of_copies = is_of_copies(call)
        self._nudged, self._of = cache(self._nudge), cache(self._with_fewer_copies)
        self.in_single = cache(lambda: RecordedCall(replace(call, dtype="float32")))

    def full_reply(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return the reply of the code, for a call on many copies the outputs of all copies.

        Code that raises for two copies does not run on hundreds; its reply to two is returned. It
        would raise there, too, and a mask with the size of the batch takes 2 GiB.

        Args:
            namespace: The code.
            only_values: Leave out the report on modules and on arguments that changed.
        """
        if self._is_of_copies and self.call.cotangent is None:
            small_reply = self._of(FEW).full_reply(namespace, only_values)
            if small_reply.raised is not None:
                return small_reply
        return execute(namespace, self._cast, "", only_values=only_values)

    def answer(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return the recorded form of the reply: for a call on many copies, only the extremes."""
        return summarise_copies(self.call, self.full_reply(namespace, only_values))

    @property
    def is_drawn(self) -> bool:
        """Whether chance may decide a reply: the call draws numbers, or a module is in training."""
        return self.call.random or (
            isinstance(self.call.subject, Build) and self.call.subject.training
        )

    def is_deterministic(self, namespace: Namespace) -> bool:
        """Return whether outputs and gradients are the same for another random seed."""
        if not self.is_drawn:
            return True
        again = RecordedCall(replace(self.call, seed=self.call.seed + 1))
        return fingerprint_of(self.answer(namespace)).agrees(
            fingerprint_of(again.answer(namespace)), VALUES
        )

    def is_fixed(
        self,
        namespace: Namespace,
        actual: ReplyFingerprint,
        expected: ReplyFingerprint,
        keep_equal: bool = False,
    ) -> bool:
        """Return whether neither chance nor rounding decides this reply.

        Rounding decides it, for example, if the code divides by a sum that cancels. Another
        processor then computes other numbers. So the inputs are nudged by more than a rounding
        error, and the seed is changed if chance may decide; the reply must stay the same.

        Args:
            namespace: The code that replied.
            actual: Its reply.
            expected: The reference's reply.
            keep_equal: Do not nudge equal numbers (`has_exact_sums`), so that they stay equal.
        """
        if (actual.raised or self.call.only_build) and not self.is_drawn:  # there are no numbers
            return True
        if actual.raised == "other":  # it agrees with nothing
            return False
        # If a size in the message depends on the number of copies, one copy more changes it.
        recorded_call = self._of(FEW + 1) if actual.raised and self._is_of_copies else self
        has_report = isinstance(self.call.subject, Build) and bool(self.call.subject.report)
        only_values = not has_report and not has_no_numbers(expected)
        fields = VALUES if only_values else None
        dtypes = {self.call.dtype, *actual.dtype}
        is_wide = self.call.autocast is None and dtypes <= {"float64", None}
        for by, seed in NUDGES if is_wide else NARROW_NUDGES:
            nudged = recorded_call._nudged(seed, by, only_values, keep_equal)
            reply = nudged.answer(namespace, only_values)
            if not actual.is_same(comparable_fingerprint(expected, self.call, reply), fields):
                return False
        return True

    def _nudge(self, seed: int, by: float, only_values: bool, keep_equal: bool) -> RecordedCall:
        """Return the call with floating-point inputs changed at random, relatively by `by`.

        If chance may decide a reply, the call also gets another seed.
        """
        generator = torch.Generator().manual_seed(seed)

        def change(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point() or tensor.device.type == "meta":
                return tensor
            nudged = tensor * (
                1 + by * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
            )
            return torch.where(has_exact_sums(tensor), tensor, nudged) if keep_equal else nudged

        another, watch = self.call.seed + self.is_drawn, self.call.watch and not only_values
        return RecordedCall(map_call(replace(self.call, seed=another, watch=watch), change))

    def _with_fewer_copies(self, copies: int) -> RecordedCall:
        """Return the same call on the first `copies` sequences, which are copies of one input.

        Every tensor with as many sequences as the first tensor argument is cut.
        """
        all_copies = next(len(value) for value in self.call.args if isinstance(value, Tensor))

        def change(value: object) -> object:
            is_of_all = isinstance(value, Tensor) and value.dim() > 0 and len(value) == all_copies
            return value[:copies] if is_of_all else value  # type: ignore[index]

        return RecordedCall(self.call.map(change))


@dataclass(frozen=True)
class RecordedCalls:
    """The calls of an exercise in the order of the checks, with the reference's replies.

    Attributes:
        outcomes: The outcomes of all hidden checks.
        asked_by: For each call, the id of the check that makes it.
        entries: The calls.
        fingerprints: For each call, the fingerprint of the reference's reply.
        expected: For each call, the reference's outputs.
        groups: For each check, the groups of calls to which each oracle applies.
        drawn: The numbers that the checks drew.
        conditions: The conditions that each function must meet before its checks count.
    """

    outcomes: tuple[CheckOutcome, ...]
    asked_by: tuple[str, ...]
    entries: tuple[RecordedCall, ...]
    fingerprints: tuple[ReplyFingerprint, ...]
    expected: tuple[Expected, ...]
    groups: Mapping[str, Groups]
    drawn: tuple[Drawn, ...] = ()
    conditions: tuple[RecordedCondition, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls themselves."""
        return tuple(entry.call for entry in self.entries)

    def call_indices(self, check: str) -> list[int]:
        """Return the indices of a check's calls."""
        return [i for i, asking in enumerate(self.asked_by) if asking == check]


def recorded_calls(catalogue: Catalogue, exercise: Exercise) -> RecordedCalls:
    """Return the calls that the hidden checks make of the reference on public inputs.

    A call is left out if it has more than ELEMENTS_LIMIT numbers, or if its reply depends on the
    random seed. Inputs are rounded to float32. Raises what `right_answers` raises.
    """
    reference, drawn = catalogue.reference(exercise).namespace, list[Drawn]()
    outcomes, transcript = right_answers(catalogue, exercise, drawn)
    asked_by, entries = list[str](), list[RecordedCall]()
    for exchange in transcript:
        if elements(exchange.call) <= ELEMENTS_LIMIT:
            entry = RecordedCall(round_to_float32(exchange.call))
            if entry.is_deterministic(reference):
                asked_by.append(exchange.check)
                entries.append(entry)
    calls = [entry.call for entry in entries]
    replies = [entry.answer(reference) for entry in entries]
    expected = tuple(map(_first_run, calls, replies))
    copies = {i for i, call in enumerate(calls) if is_of_copies(call)}
    groups = dict[str, Groups]()
    for outcome in outcomes:
        check_calls = [i for i, check in enumerate(asked_by) if check == outcome.id]
        edits = {(a, b) for a, b in combinations(check_calls, 2) if is_an_edit(calls[a], calls[b])}
        of_copies = copies.intersection(check_calls)
        groups[outcome.id] = groups_of(check_calls, expected, of_copies, edits)
    return RecordedCalls(
        tuple(outcomes),
        tuple(asked_by),
        tuple(entries),
        tuple(map(fingerprint_of, replies)),
        expected,
        groups,
        tuple(sorted(drawn)),
        recorded_conditions(catalogue, exercise, transcript),
    )


def _first_run(call: Call, reply: Reply) -> Expected:
    """Return the outputs of the call's first run."""
    count = len(call.steps) * call.form.count
    return tuple(output.tensor for output in reply.outputs[:count])


def has_exact_sums(tensor: Tensor) -> Tensor:
    """Return for each number whether the tensor repeats it and it fits into float16, as 4.0 does.

    The result is a tensor of truth values with the tensor's shape. Sums and products of such
    numbers are exact, so every processor computes the same.
    """
    values, value_indices, counts = tensor.unique(return_inverse=True, return_counts=True)
    is_short = values == values.half().to(values.dtype)
    is_exact: Tensor = (counts > 1) & is_short
    return is_exact[value_indices]


def is_an_edit(original: Call, edited: Call) -> bool:
    """Return whether the calls differ only in some numbers of one tensor argument.

    Calls with keyword arguments or later steps are no edits. A check of causality makes edits: it
    changes one position and sees which others change.
    """
    if original.then or edited.then or original.kwargs or edited.kwargs:
        return False
    if len(original.args) != len(edited.args) or not are_alike(original.subject, edited.subject):
        return False
    match [(a, b) for a, b in zip(original.args, edited.args, strict=True) if not are_alike(a, b)]:
        case [(Tensor() as a, Tensor() as b)] if (a.shape, a.dtype) == (b.shape, b.dtype):
            return "meta" not in (a.device.type, b.device.type) and bool((a == b).any())
    return False


def right_answers(
    catalogue: Catalogue, exercise: Exercise, drawn: list[Drawn] | None = None
) -> tuple[list[CheckOutcome], list[Exchange]]:
    """Run the hidden checks on the reference, and return the outcomes and all calls with replies.

    The inputs are public. All outcomes are passes.

    Args:
        catalogue: The checks and references of the course.
        exercise: The exercise.
        drawn: A list to which everything that the checks draw is added.

    Raises:
        CourseError: The reference fails a check, a check itself raises an error, or a condition
            names a function that no check calls.
        DoesNotEnd: The reference computes for too long.
    """
    reference = catalogue.reference(exercise)
    subject, again = LocalRecordingRunner(reference.namespace), f"then course release {exercise.id}"
    with must_end(f"the reference of {exercise.id}", exercise.solution, f"mend it, {again}"):
        outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id, drawn=drawn)
    if failed := next((outcome for outcome in outcomes if outcome.outcome != "passed"), None):
        if failed.fault:
            problem = f"a check of {exercise.id} raises an error of its own, {failed.fault}"
            raise CourseError(f"{problem}. Next: mend it in {exercise.checks.name}, {again}")
        problem = (
            f"the reference of {exercise.id} fails {failed.id}: "
            f"{evidence_for_author(failed, subject.transcript, exercise.solution)}"
        )
        mend = f"mend it in {exercise.solution.name}, or that check in {exercise.checks.name}"
        raise CourseError(f"{problem}. Next: {mend}, {again}")
    targets = dict.fromkeys(target_of(exchange.call) for exchange in subject.transcript)
    if unknown := next(
        (name for name in catalogue.conditions(exercise) if name not in targets), None
    ):
        problem = (
            f"{CONDITIONS} in {exercise.checks.name} names {unknown}, and its checks ask "
            f"{', '.join(targets)}"
        )
        raise CourseError(f"{problem}. Next: mend that name, {again}")
    return outcomes, subject.transcript


def evidence_for_author(failed: CheckOutcome, transcript: Sequence[Exchange], path: Path) -> str:
    """Return a text about the reason why trusted code fails a check.

    Its author may read Python's message with the line, which is hidden from students. If the check
    failed by an exception, the calls of the check are made again to find the line.

    Args:
        failed: The outcome of the check.
        transcript: All calls of the checks, with the replies.
        path: The file of the code.
    """
    namespace = namespace_of(path)
    calls = [exchange.call for exchange in transcript if exchange.check == failed.id]
    missing = next((name for call in calls if (name := target_of(call)) not in namespace), None)
    if missing is not None:
        return f"it asks for {missing}, which {path.name} does not define"
    if failed.raised is None:
        return failed.fault or failed.evidence
    replies = (execute(namespace, cast(call, call.dtype or "float64"), str(path)) for call in calls)
    raised = next((reply.raised for reply in replies if reply.raised is not None), failed.raised)
    line = f" ({path.name}, line {raised.line})" if raised.line else ""
    return f"raised {raised.type}: {raised.message}{line}"


def elements(call: Call) -> int:
    """Return how many numbers a call holds in its tensors."""
    tensors = list[Tensor]()
    wire.to_body(call, tensors)
    return sum(tensor.numel() for tensor in tensors)


class Replies:
    """Different replies to one call, in the order in which they were added."""

    def __init__(
        self, *fingerprints: ReplyFingerprint, fields: tuple[ReplyField, ...] = REPLY_FIELDS
    ) -> None:
        """Begin with these replies.

        Args:
            fingerprints: The first replies.
            fields: The fields in which two replies must agree to be the same.
        """
        self._fields, self.every = fields, [*fingerprints]

    def find(self, fingerprint: ReplyFingerprint) -> int | None:
        """Return the index of the first reply that is the same up to rounding, or None."""
        return next(
            (i for i, reply in enumerate(self.every) if reply.is_same(fingerprint, self._fields)),
            None,
        )

    def add(self, reply: ReplyFingerprint) -> int:
        """Add a reply, and return its index."""
        self.every.append(reply)
        return len(self.every) - 1


PUBLIC = b"public inputs: drawn without the course's secret"  # in place of the secret


def recorded_conditions(
    catalogue: Catalogue, exercise: Exercise, transcript: Sequence[Exchange]
) -> tuple[RecordedCondition, ...]:
    """Return the conditions of an exercise's functions, with the reference's outputs.

    Each function with a suitable call has the condition "answers": its outputs must depend on its
    inputs. The file of checks may add conditions (PRECONDITIONS).

    Args:
        catalogue: The checks and references of the course.
        exercise: The exercise.
        transcript: The calls of its checks, with the reference's replies.
    """
    reference = catalogue.reference(exercise)
    implementation = Implementation(reference, forms=exercise.forms)
    functions = dict.fromkeys(target_of(exchange.call) for exchange in transcript)
    conditions: list[RecordedCondition] = []
    for function in functions:
        exchanges = [exchange for exchange in transcript if target_of(exchange.call) == function]
        chosen = choose_probe(exchanges, reference, four_like)
        if chosen is not None:
            calls = tuple(round_to_float32(call) for call in chosen.calls)
            expected = tuple(first_tensor(reference.execute(call)) for call in calls)
            conditions.append(RecordedCondition(function, "answers", calls, expected))
    for function, make in catalogue.conditions(exercise).items():
        draw = Draw(input_seed(PUBLIC, exercise.id, function))
        conditions.extend(_of_function(function, make, implementation, draw))
    return tuple(conditions)


def _of_function(
    function: str, make: Callable[..., Iterable[Condition]], reference: Implementation, draw: Draw
) -> Iterator[RecordedCondition]:
    """Yield the preconditions of a function, each with the reference's answer.

    Args:
        function: The name of the function.
        make: The generator of its preconditions.
        reference: The reference.
        draw: Draws the inputs.
    """
    for condition in make(reference, draw):
        call = round_to_float32(condition.answer.call)
        expected = first_tensor(reference.runner.execute(call))
        yield RecordedCondition(
            function,
            condition.rule,
            (call,),
            (expected,),
            condition.message,
            condition.left_out,
            condition.least,
        )


def first_tensor(reply: Reply) -> Tensor:
    """Return the first tensor of a reply, or an empty tensor if there is none."""
    tensors = (output.tensor for output in reply.outputs if output.tensor is not None)
    return next(tensors, torch.zeros(0))
