"""Require that an attempt's answers are not trivial.

A check of form (dtype, device, unchanged arguments) sees no numbers, so zeros would pass it. Four
calls a, b, c, d with a + b = c + d show whether an answer depends on its input as the reference's
does. The recorded preconditions are tested on a student's machine, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import torch
from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.messages import Build, Call, Output, Reply, tensors_of
from ..checks.answer import has_numbers, numbers_of
from ..checks.asserts import TOLERANCE, difference, expect, label
from ..checks.explain_exceptions import describe_exception
from ..checks.hidden_check import AttemptRaised, CheckFailed, Evidence, Number, Text
from ..checks.preconditions import Condition, first_failed_condition, judged_beside_numbers
from ..checks.runner import Exchange, Implementation, Runner, target_of
from ..diagnosis.fault_dictionary import FaultDictionary, RecordedCondition
from ..diagnosis.observed_reply import ObservedReply, first_of

# The least difference, as a fraction of the largest number, at which two answers of the reference
# count as different, or four as not adding up.
CLEAR_DIFFERENCE = 1e-2
ROUNDING = 1e-5  # numbers up to this size may be the remains of rounding, and show nothing
# Relative tolerance. A wrong answer is not this close by chance, not even if one weight of a
# softmax is nearly 1.
RIGHT = 1e-6
# With fewer numbers, an answer that changes by chance is noise, and noise may resemble the right
# answer by chance.
MIN_NUMBERS = 100
# `_relation` of noise to the right answer exceeds this once in a million times, at any length.
LEAST_RELATION = 25.0
# An answer is noise if repeating a call changes it by more than this fraction of the change that
# other inputs cause.
MOST_CHANGE_BY_CHANCE = 0.7
INFINITE = 1e3  # replaces infinite numbers: an infinity hides a score, and its size shows nothing
# The other inputs are the first ones, shuffled and scaled by this factor, so that they stay within
# the range that a check draws.
SMALLER = 0.75
# the most calls of a function that are tried, until the reference's answers show something
MOST_TRIED = 8
LEAST_SCALE = 1e-30  # in place of 0, if an answer has nothing but zeros
# Kinds of copies: an argument unchanged; or numbers of one argument, rearranged or selected.
COPY, MOVED = "copy", "moved"


@dataclass(frozen=True)
class Probe:
    """Calls of one function that show whether its answers depend on its input.

    Attributes:
        calls: Four calls as from `four_like`, or one if the function is given no numbers but only
            sizes.
        expected: The reference's replies to them.
        answers: Pairs of a reply of the attempt and the reference's reply. If there are four calls,
            the only pair answers the first one. Otherwise there is a pair for each call to the
            function that both answer with numbers.
    """

    calls: tuple[Call, ...]
    expected: tuple[Reply, ...]
    answers: tuple[tuple[Reply, Reply], ...]

    @cached_property
    def expected_rows(self) -> list[Tensor]:
        """The numbers of each of the reference's replies, in one row."""
        return [numbers_of(reply) for reply in self.expected]

    @cached_property
    def exceeds_rounding(self) -> bool:
        """Whether there are four calls, and a number of the reference exceeds ROUNDING."""
        if len(self.calls) == 1:
            return False
        return any(bool((row.abs() > ROUNDING).any()) for row in self.expected_rows)

    @cached_property
    def compares(self) -> bool:
        """Whether the reference's four answers do not add up.

        Then it compares numbers, as a softmax does. False if there is one call.
        """
        return self.exceeds_rounding and not _add_up(self.expected_rows, CLEAR_DIFFERENCE)

    @cached_property
    def depends_on_numbers(self) -> bool:
        """Whether the reference's answer changes with the numbers, and is no unchanged argument.

        The first two of four answers are compared. False if there is one call.
        """
        if not self.exceeds_rounding or self.copy_kind == COPY:
            return False
        first_row, second_row, *_ = self.expected_rows
        return difference(second_row, first_row) > CLEAR_DIFFERENCE

    @property
    def has_varied_numbers(self) -> bool:
        """Whether more than half of the numbers in each argument of the first call are distinct.

        If an argument repeats few numbers, a weighted sum may be a plain sum by chance.
        """
        return all(
            2 * value.unique().numel() > value.numel() for value in _numbers_given(self.calls[0])
        )

    @property
    def copy_kind(self) -> str:
        """COPY or MOVED if the reference's first answer is a copy of an argument, or ""."""
        copy_kind, _ = _copy_of_argument(self.expected[0], self.calls[0])
        return copy_kind

    @cached_property
    def is_right_and_informative(self) -> bool:
        """Whether the attempt's answers are the reference's, and are informative.

        They are not informative in these cases:

        1. There are four calls, and the reference's answers neither compare numbers (`compares`)
           nor change with them (`depends_on_numbers`). A single call has only sizes.
        2. Each of the reference's answers in `answers` is one number, repeated.
        3. There are no answers.
        """
        if len(self.calls) > 1 and not self.compares and not self.depends_on_numbers:
            return False
        rows = [numbers_of(expected) for _, expected in self.answers]
        are_constant = all(row.numel() > 1 and row.unique().numel() == 1 for row in rows)
        return not are_constant and all(_are_near(*pair) for pair in self.answers)


def choose_probe(
    exchanges: Sequence[Exchange],
    reference: Runner,
    make_calls: Callable[[Call], Sequence[Call]],
) -> Probe | None:
    """Return the most informative probe (`_informativeness`) that one of these exchanges gives.

    A call gives a probe if the attempt answered it with numbers, and if the reference answers all
    calls like it (`make_calls`) with equally many numbers. Returns None if no call does. The search
    ends with the first probe that compares numbers and is right and informative, or after
    MOST_TRIED probes.

    If the probe's call has no numbers to vary, so that `make_calls` returns it alone, the probe has
    the answers to all exchanges: they show whether the answers depend on the sizes.

    Args:
        exchanges: The calls of one function, with the attempt's replies.
        reference: The reference.
        make_calls: Returns the calls that `four_like` makes of a call.
    """
    tried = []
    for exchange in exchanges:
        if not has_numbers(exchange.reply):
            continue
        calls = tuple(make_calls(exchange.call))
        expected = tuple(map(reference.execute, calls))
        if not all(map(has_numbers, expected)):
            continue
        if len({numbers_of(reply).shape for reply in expected}) > 1:
            continue
        probe = Probe(calls, expected, ((exchange.reply, expected[0]),))
        tried.append(probe)
        if (probe.compares and probe.is_right_and_informative) or len(tried) == MOST_TRIED:
            break
    best = max(tried, key=_informativeness, default=None)
    if best is None or len(best.calls) > 1:
        return best
    pairs = [(exchange.reply, reference.execute(exchange.call)) for exchange in exchanges]
    return replace(best, answers=tuple(pair for pair in pairs if all(map(has_numbers, pair))))


def _informativeness(probe: Probe) -> tuple[bool, bool, bool, int]:
    """Return the key by which probes are compared: the most informative one has the largest."""
    return (
        probe.compares,
        probe.is_right_and_informative,
        probe.depends_on_numbers,
        len(probe.calls),
    )


def all_right(exchanges: Sequence[Exchange], reference: Runner) -> bool:
    """Return whether all comparable answers of a function are right, and there are any.

    An answer is comparable if it has numbers, as many as the reference's, and if the call is not in
    training mode: there the numbers may be random.
    """
    pairs = [
        (exchange.reply, reference.execute(exchange.call))
        for exchange in exchanges
        if not is_in_training(exchange.call)
    ]
    comparable = [pair for pair in pairs if _are_comparable(*pair)]
    return bool(comparable) and all(_are_near(*pair) for pair in comparable)


def is_in_training(call: Call) -> bool:
    """Return whether the call's subject is a module in training mode."""
    return isinstance(call.subject, Build) and call.subject.training


def _are_comparable(actual: Reply, expected: Reply) -> bool:
    """Return whether both replies have numbers, and equally many."""
    if not has_numbers(actual) or not has_numbers(expected):
        return False
    return len(numbers_of(actual)) == len(numbers_of(expected))


def require_nontrivial(attempt: Implementation, target: str, probe: Probe | None) -> None:
    """Raise CheckFailed if the function's answers are trivial.

    The calls of the probe are made, and the first one is repeated. The answers are trivial if:

    1. there is no probe: the function counts as one that never answers with numbers;
    2. a call raises an exception, has the wrong structure, or has no numbers;
    3. the answers have unequally many numbers;
    4. the answers are noise: the repeated call changes them, and they have fewer than MIN_NUMBERS
       numbers, or change about as much as from the first call to the last;
    5. the answers depend on the sizes or numbers that are given less than the reference's do
       (`_expect_dependence_on_sizes` for one call, `_expect_dependence_on_numbers` for four). Four
       calls show nothing if the reference neither compares numbers nor depends on them.

    Args:
        attempt: The attempt.
        target: The name of the function.
        probe: The calls to make, from `choose_probe`, or None if there is none.
    """
    if probe is None:
        raise CheckFailed(Evidence("{} never gives a finite number", target))
    answers = [attempt.ask(call) for call in (*probe.calls, probe.calls[0])]
    for answer in answers:
        answer.must_return()
    *rows, repeated_row = (numbers_of(answer.reply) for answer in answers)
    # With one call this is the same row: then any change by chance is noise.
    first_row, last_row = rows[0], rows[-1]
    expect(repeated_row.numel() > 0, Evidence("{} never gives a finite number", target))
    expect(
        len({row.shape for row in (*rows, repeated_row)}) == 1,
        Evidence("{} gives another shape each time", target),
    )
    change_by_chance = float((first_row - repeated_row).norm())
    change_by_input = float((first_row - last_row).norm())
    if change_by_chance > TOLERANCE * float(repeated_row.norm()):
        is_noise = (
            repeated_row.numel() < MIN_NUMBERS
            or change_by_chance > MOST_CHANGE_BY_CHANCE * change_by_input
        )
        expect(
            not is_noise,
            Evidence("{} gives another answer each time, whatever it is given", target),
        )
    if len(rows) == 1:
        _expect_dependence_on_sizes(target, probe)
    elif probe.compares or probe.depends_on_numbers:
        _expect_dependence_on_numbers(attempt, target, probe, answers[0].reply, rows)


def _expect_dependence_on_numbers(
    attempt: Implementation, target: str, probe: Probe, first_reply: Reply, rows: Sequence[Tensor]
) -> None:
    """Raise CheckFailed if a function of numbers ignores them, copies them, or adds them up.

    1. The first answer may be a copy of an argument only if the reference's is a copy of the same
       kind. Moved numbers are a copy only if the answers add up.
    2. The second answer must differ from the first.
    3. If the reference compares numbers, the four answers must not add up; this CheckFailed is
       marked `is_trivial_answer`. They may add up if an argument repeats few numbers, if the first
       answer has a NaN, or if its numbers change one by one (`_changes_number_by_number`).

    Args:
        attempt: The attempt.
        target: The name of the function.
        probe: The four calls.
        first_reply: The attempt's reply to the first call.
        rows: The numbers of the attempt's replies to all four.
    """
    first_row, second_row, *_ = rows
    copy_kind, description = _copy_of_argument(first_reply, probe.calls[0])
    # A function that compares numbers may add up by chance if an argument repeats few numbers.
    adds_up = _add_up(rows, TOLERANCE) and (probe.has_varied_numbers or not probe.compares)
    # A function whose moved numbers do not add up selects them by their size, such as a maximum.
    is_copy = copy_kind == COPY or (copy_kind == MOVED and adds_up)
    expect(not is_copy or copy_kind == probe.copy_kind, Evidence("{} {}", target, description))
    scale = max(LEAST_SCALE, float(first_row.abs().max()))
    is_same = difference(first_row, second_row, scale) <= TOLERANCE
    expect(not is_same, _unchanging_answer(target, first_row))
    has_nan = any(bool(tensor.isnan().any()) for tensor in tensors_of(first_reply))
    if not probe.compares or not adds_up or has_nan:
        return
    if not _changes_number_by_number(attempt, probe.calls[0], first_row):
        evidence = Evidence(
            "{} compares nothing: each number that it is given adds the same to its answer, "
            "whatever the others are",
            target,
        )
        failed = CheckFailed(evidence)
        failed.is_trivial_answer = True
        raise failed


def _expect_dependence_on_sizes(target: str, probe: Probe) -> None:
    """Raise CheckFailed if the answers of a function without numbers ignore the sizes it is given.

    1. Answers of a single number must not all be equal, unless the reference's are.
    2. If the numbers of the reference's answers vary, not all answers to the same calls may be
       constant or identity matrices (`_is_constant_or_identity`).
    3. If such answers have MIN_NUMBERS numbers or more, and as many as the reference's, at least
       one must correlate with the reference's answer or with its mirror image.
    """
    single_numbers = set()
    expected_single_numbers = set()
    varied_answers = []
    relations: list[float] = []
    for reply, expected_reply in probe.answers:
        actual, expected = numbers_of(reply, INFINITE), numbers_of(expected_reply, INFINITE)
        if actual.numel() == expected.numel() == 1:
            single_numbers.add(float(actual))
            expected_single_numbers.add(float(expected))
        if expected.unique().numel() == 1:
            continue
        varied_answers.append((actual, reply))
        if len(expected) >= MIN_NUMBERS and actual.shape == expected.shape:
            relations += [_relation(actual, mirror) for mirror in _mirror_images(expected_reply)]
    expect(
        len(single_numbers) != 1 or len(expected_single_numbers) == 1,
        Evidence("{} gives the same answer, whatever it is given", target),
    )
    if varied_answers and all(_is_constant_or_identity(*answer) for answer in varied_answers):
        first_numbers, _ = varied_answers[0]
        raise CheckFailed(_unchanging_answer(target, first_numbers))
    problem = Evidence("what {} gives has nothing to do with what it is given", target)
    expect(not relations or max(relations) >= LEAST_RELATION, problem)


def _mirror_images(reply: Reply) -> Iterator[Tensor]:
    """Yield the numbers of an answer, then those of the answer flipped in each axis and in all.

    An attempt's answer that resembles a flipped one still depends on the sizes. An answer of
    several tensors is flipped as one row of numbers.
    """
    first_tensor = tensors_of(reply)[0]
    table = numbers_of(reply, INFINITE)
    if table.numel() == first_tensor.numel():  # all numbers are in one tensor
        table = table.view(first_tensor.shape)
    all_axes = range(table.dim())
    single_axes = [(axis,) for axis in all_axes]
    for flipped_axes in ((), *single_axes, tuple(all_axes)):
        yield table.flip(flipped_axes).flatten()


def _relation(actual: Tensor, expected: Tensor) -> float:
    """Return the squared correlation of two answers, times their length.

    For noise of any length it is about 1. It is 0 if one answer repeats one number.
    """
    correlation = torch.corrcoef(torch.stack([actual, expected]))[0, 1]
    return len(actual) * float(correlation.nan_to_num()) ** 2


def _changes_number_by_number(attempt: Implementation, call: Call, answer: Tensor) -> bool:
    """Return whether one changed number per argument changes at most as many numbers of the answer.

    The number in the middle of each argument is changed. At least one number of the answer must
    change. Masked scores behave like that if the softmax is missing. Raises CheckFailed if the
    changed call is not answered.

    Args:
        attempt: The attempt.
        call: The call before the change.
        answer: The numbers of the answer to it.
    """

    def change(value: Any) -> object:
        if not _is_of_numbers(value):
            return value
        indices = torch.arange(value.numel()).view(value.shape)
        return torch.where(indices == value.numel() // 2, value + 1, value)

    changed = attempt.ask(call.map(change))
    changed.must_return()
    changed_count = int((numbers_of(changed.reply) != answer).sum())
    return 0 < changed_count <= len(_numbers_given(call))


def _are_near(actual: Reply, expected: Reply) -> bool:
    """Return whether two replies have the same shapes, and equal numbers up to rounding."""
    if _tensor_shapes(actual) != _tensor_shapes(expected):
        return False
    return difference(numbers_of(actual), numbers_of(expected)) <= RIGHT


def _tensor_shapes(reply: Reply) -> list[torch.Size]:
    return [out.tensor.shape for out in reply.outputs if out.tensor is not None]


def four_like(call: Call) -> tuple[Call, ...]:
    """Return four calls whose arguments a, b, c, d are other numbers, so that a + b = c + d.

    The first has the arguments of the call itself. Each is run once, and none asks for gradients or
    other measurements. If the call has no numbers, the result is that call alone.
    """
    call = replace(call, second=False, watch=False, memory=False, cotangent=None, runs=1)
    generator = torch.Generator().manual_seed(0)

    def shuffle(tensor: Tensor) -> Tensor:
        order = torch.randperm(tensor.numel(), generator=generator)
        return tensor.flatten()[order].view(tensor.shape)

    arguments_b, arguments_c, arguments_d = list[Tensor](), list[Tensor](), list[Tensor]()
    for value in _numbers_given(call):
        argument_b = SMALLER * shuffle(value)
        mean, distance = (value + argument_b) / 2, shuffle(value) / 2
        arguments_b.append(argument_b)
        arguments_c.append(mean + distance)
        arguments_d.append(mean - distance)
    if not arguments_b:
        return (call,)

    def with_arguments(arguments: Sequence[Tensor]) -> Call:
        remaining = iter(arguments)
        return call.map(lambda value: next(remaining) if _is_of_numbers(value) else value)

    return (call, *map(with_arguments, (arguments_b, arguments_c, arguments_d)))


def _numbers_given(call: Call) -> list[Tensor]:
    """Return the call's arguments that are tensors of floating-point numbers, not on "meta"."""
    return [value for value in call.arguments.values() if _is_of_numbers(value)]


def _is_of_numbers(value: object) -> TypeGuard[Tensor]:
    """Return whether this is a tensor of floating-point numbers. On the meta device it has none."""
    return isinstance(value, Tensor) and value.is_floating_point() and not value.is_meta


def _add_up(answers: Sequence[Tensor], tolerance: float) -> bool:
    """Return whether a + b = c + d for these four answers, up to a fraction of the largest number.

    Args:
        answers: The numbers of the answers to the calls of `four_like`.
        tolerance: The fraction.
    """
    a, b, c, d = answers
    scale = max(float(answer.abs().max()) if answer.numel() else 0.0 for answer in answers)
    return difference(a + b, c + d, scale) <= tolerance


def _unchanging_answer(target: str, numbers: Tensor) -> Evidence:
    """Return the evidence that a function always answers with these numbers.

    If they are one number repeated, the evidence names it.
    """
    if numbers.numel() > 1 and bool((numbers == numbers[0]).all()):
        number = Number(float(numbers[0]))
        return Evidence("{} gives {} in every place, whatever it is given", target, number)
    return Evidence("{} gives the same answer, whatever it is given", target)


def _is_constant_or_identity(numbers: Tensor, reply: Reply) -> bool:
    """Return whether the answer repeats one number, or consists of identity matrices.

    Args:
        numbers: All numbers of the answer. An answer of several tensors is no identity matrix.
        reply: The answer, for the shape of its first tensor.
    """
    shape = tensors_of(reply)[0].shape
    if bool((numbers == numbers[0]).all()):
        return True
    if len(shape) < 2 or numbers.numel() != shape.numel():
        return False
    identity = torch.eye(*shape[-2:]).double().expand(shape)
    return torch.equal(numbers, identity.flatten())


def _copy_of_argument(reply: Reply, call: Call) -> tuple[str, Text]:
    """Return COPY or MOVED and a description if an answer consists of numbers of one argument.

    Only the first tensor of the answer is compared, with each argument in turn: it is a COPY if it
    is equal, and MOVED if all its numbers occur in the argument. The first argument that fits
    decides. Returns two empty strings if none fits, or if the tensor has fewer than two numbers.
    """
    first_tensor = tensors_of(reply)[0]
    row = first_tensor.flatten().float()  # the attempt may have answered in float32
    if row.numel() < 2:
        return "", ""
    for name, argument in call.arguments.items():
        if not _is_of_numbers(argument):
            continue
        argument_row = argument.flatten().float()
        if argument.shape == first_tensor.shape and torch.equal(row, argument_row):
            return COPY, Evidence("gives back {}, unchanged", label(name))
        if _is_selected(row, argument_row):
            return MOVED, Evidence(
                "gives back numbers of {}, and has computed nothing", label(name)
            )
    return "", ""


def _is_selected(row: Tensor, source: Tensor) -> bool:
    """Return whether each number of a row is one of the source's, in any order."""
    # The first number decides in most cases, and is compared much faster than all.
    return bool((source == row[0]).any()) and bool(torch.isin(row, source).all())


def failed_precondition(
    dictionary: FaultDictionary,
    attempt: Runner,
    function: str,
    observations: Mapping[int, ObservedReply],
) -> str:
    """Return a sentence if a function does not meet its recorded preconditions; "" if it does.

    The first recorded one has the rule "answers": the function's answers must not be trivial
    (`_expect_nontrivial`). Each of the others has one call. Its answer must have numbers and
    satisfy the rule. All these calls are made before the first rule is tested.

    Args:
        dictionary: The fault dictionary, with the preconditions.
        attempt: The attempt.
        function: The name of the function.
        observations: The attempt's replies to the recorded calls, by the number of the call.
    """
    conditions = [
        condition for condition in dictionary.conditions if condition.function == function
    ]
    judgements = []
    try:
        for condition in conditions:
            if condition.rule == "answers":
                _expect_nontrivial(condition, attempt, observations)
                continue
            answer = Implementation(attempt).ask(condition.calls[0])
            actual = Condition(
                condition.rule, answer, condition.message, condition.left_out, condition.least
            )
            judgements.append(judged_beside_numbers(actual, condition.expected[0]))
        return first_failed_condition(judgements)
    except AttemptRaised as error:
        return describe_exception(error.raised, error.requirement)
    except (CheckFailed, AttemptEnded) as error:
        return str(error)


def _expect_nontrivial(
    condition: RecordedCondition, attempt: Runner, observations: Mapping[int, ObservedReply]
) -> None:
    """Raise CheckFailed if grading would call a function's answers trivial (`require_nontrivial`).

    To save calls, only the first one is made at first: if its answer is right and informative, that
    is enough. A function of sizes is not called at first, because `observations` have its answers
    to several sizes. Raises AttemptEnded.
    """
    expected = tuple(_reply_with(tensor) for tensor in condition.expected)
    if len(condition.calls) > 1:
        answers = [(attempt.execute(condition.calls[0]), expected[0])]
    else:  # a function of sizes
        answers = []
        for observed in observations.values():
            expected_tensor = first_of(observed.expected_outputs)
            is_of_function = target_of(observed.call) == condition.function
            if is_of_function and expected_tensor is not None and has_numbers(observed.reply):
                answers.append((observed.reply, _reply_with(expected_tensor)))
    probe = Probe(condition.calls, expected, tuple(answers))
    if not all(has_numbers(actual) for actual, _ in answers) or not probe.is_right_and_informative:
        require_nontrivial(Implementation(attempt), condition.function, probe)


def _reply_with(tensor: Tensor) -> Reply:
    """Return a reply whose only output is this tensor."""
    return Reply(outputs=(Output("tensor", tensor, shape=tuple(tensor.shape)),))
