"""Require that an attempt answered, and that its answers are not trivial.

Every function that a check called must return a result like the reference's at least once. A check
of form (dtype, device, unchanged arguments) sees no numbers, so zeros would pass it. Four calls a,
b, c, d with a + b = c + d show whether an answer depends on its input as the reference's does. The
recorded preconditions are tested on a student's machine, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, product
from typing import Any

import torch
from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.messages import Build, Call, Output, Reply
from ..box.worker.result_structure import OPAQUE
from ..checks.answer import TABLES, Answer, answers_of, has_numbers, numbers_of
from ..checks.asserts import NONE, TOLERANCE, assert_finite, assert_shape, difference, expect, label
from ..checks.check_evidence import Evidence, Number
from ..checks.conditions import Condition, Judged, Rule, first_unmet, judged_beside_numbers
from ..checks.explain import describe_exception, kind_name
from ..checks.hidden_check import AttemptRaised, CheckFailed
from ..checks.runner import Exchange, Implementation, Runner, target_of
from ..diagnosis.fault_dictionary import FaultDictionary, RecordedCondition
from ..diagnosis.observed_reply import ObservedReply

# The least difference, as a fraction of the largest number, at which two answers of the reference
# count as different, or four as not adding up.
MUCH = 1e-2
ROUNDING = 1e-5  # numbers up to this size may be the remains of rounding, and show nothing
# Relative tolerance. A wrong answer is not this close by chance, not even if one weight of a
# softmax is nearly 1.
RIGHT = 1e-6
# If an answer has fewer numbers, one that changes by chance makes it noise, and all may resemble
# the right ones by chance.
FEW = 100
# `_relation` of noise to the right answer exceeds this once in a million times, at any length.
RELATED = 25.0
# An answer is noise if repeating a call changes it by more than this fraction of the change that
# other inputs cause.
BY_CHANCE = 0.7
INFINITE = 1e3  # replaces infinite numbers: an infinity hides a score, and its size shows nothing
# The other inputs are the first ones, shuffled and scaled by this factor, so that they stay within
# the range that a check draws.
SMALLER = 0.75
# the most calls of a function that are tried, until the reference's answers show something
TRIED = 8
# The answer is an argument unchanged; or numbers of one argument, rearranged or selected.
COPY, MOVED = "copy", "moved"
# For each leaf of what a function returns, the types that occur there ("tensor", "float").
Kinds = tuple[frozenset[str], ...]


class AsksNothingError(Exception):
    """The attempt cannot fail a check by not answering. That is a fault of the check."""


def missing_reply(
    exchanges: Sequence[Exchange], reference: Runner
) -> CheckFailed | AsksNothingError | None:
    """Return why a check that passed does not count, or None if it does."""
    if not exchanges:
        return AsksNothingError("it asks the attempt nothing")
    expected_kinds: dict[str, Kinds] = {}
    answered = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    for target in dict.fromkeys(target_of(exchange.call) for exchange in exchanges):
        target_kinds = kinds_of(
            (e.call for e in exchanges if target_of(e.call) == target), reference
        )
        # If the attempt answered, its own sizes may have made the reference refuse the call.
        if target_kinds is None and target not in answered:
            problem = f"it asks {target} for nothing that the reference answers"
            return AsksNothingError(f"{problem}: let it ask an allowed input, too")
        expected_kinds[target] = target_kinds or ()

    def demand_an_answer(exchange: Exchange) -> None:
        if target_of(exchange.call) not in answered:
            Answer(exchange.call, exchange.reply).must_return()
            raise CheckFailed("a module is built, and never answers")

    demands: Sequence[Callable[[Exchange], None]] = (
        lambda exchange: _demand_kind(exchange, expected_kinds[target_of(exchange.call)]),
        demand_an_answer,
        lambda exchange: _demand_numbers(exchange, reference),
    )
    for demand, exchange in product(demands, exchanges):
        try:
            demand(exchange)
        except CheckFailed as failed:
            failed.place = target_of(exchange.call)
            return failed
    return None


def kinds_of(calls: Iterable[Call], reference: Runner) -> Kinds | None:
    """Return the types that the reference returns to these calls of one function.

    A part may be None in one call and a tensor in another. If the function has one output, its
    first answer decides. Returns None if the reference answers none of the calls.
    """
    kind_sets: list[set[str]] = []
    for call in calls:
        outputs = reference.execute(call).outputs
        if outputs and call.form.is_leaf:
            return (frozenset({outputs[0].kind}),)
        if outputs:  # a call that only builds has no form of several parts
            kind_sets = kind_sets or [set() for _ in range(call.form.count)]
        for kind_set, output in zip(cycle(kind_sets), outputs, strict=False):
            kind_set.add(output.kind)
    return tuple(map(frozenset, kind_sets)) if kind_sets else None


def _demand_kind(exchange: Exchange, expected_kinds: Kinds) -> None:
    call, outputs = exchange.call, exchange.reply.outputs
    if outputs:
        Answer(call, exchange.reply).must_return()
    for out, allowed_kinds, answer in zip(
        outputs, cycle(expected_kinds), answers_of(call, exchange.reply), strict=False
    ):
        # A part may be None, or opaque.
        may_be = not call.form.is_leaf or out.kind in ("tensor", OPAQUE)
        is_due = out.kind in allowed_kinds and (
            may_be or (out.kind in TABLES and out.tensor is not None)
        )
        is_number = out.tensor is not None and out.tensor.dim() == 0
        if not is_due and (allowed_kinds <= {"tensor", NONE, OPAQUE} or not is_number):
            raise answer.wrong_type(min(allowed_kinds - {NONE}, default=NONE), out.kind)


def _demand_numbers(exchange: Exchange, reference: Runner) -> None:
    """Demand that no answer is NaN or infinite if the reference's answer is finite.

    In training mode, an infinite number may be a matter of chance.
    """
    call, reply = exchange.call, exchange.reply
    in_training = isinstance(call.subject, Build) and call.subject.training
    if in_training or all(
        out.tensor is None or bool(out.tensor.isfinite().all()) for out in reply.outputs
    ):
        return
    for actual, expected, name in _paired_outputs(call, reply, reference.execute(call)):
        if (
            actual.tensor is not None
            and expected.tensor is not None
            and not bool(expected.tensor.isnan().any())
        ):
            # If the reference masks with infinities, the attempt may mask other places. It may also
            # use infinities where the reference has booleans.
            masks = not expected.tensor.is_floating_point() or not bool(
                expected.tensor.isfinite().all()
            )
            assert_finite(
                actual.tensor.masked_fill(actual.tensor.isinf(), 0.0) if masks else actual.tensor,
                name,
            )


def wrong_type(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return why a check failed, if an ndarray, a list or a text came, or was expected, as numbers.

    Returns None if the check failed for any other reason.
    """
    for exchange in exchanges:
        expected_kinds = kinds_of([exchange.call], reference) or ()
        has_tables = TABLES & {out.kind for out in exchange.reply.outputs}.union(*expected_kinds)
        if has_tables and exchange.reply.raised is None:
            try:
                _demand_kind(exchange, expected_kinds)
            except CheckFailed as failed:
                return failed
    return None


def _paired_outputs(
    call: Call, actual: Reply, expected: Reply
) -> Iterator[tuple[Output, Output, str]]:
    labels = (answer.label for answer in answers_of(call, actual))
    return zip(actual.outputs, expected.outputs, labels, strict=False)


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first difference in shape or type from the reference's answers.

    Returns None if all agree. A check that raises an exception because of such a difference (an
    index beyond an axis, arithmetic on bools) is not broken: a wrong attempt may return anything.
    """
    for exchange in exchanges:
        try:
            _compare(exchange.call, exchange.reply, reference.execute(exchange.call))
        except CheckFailed as failed:
            return failed
        except Exception:  # the reference cannot answer every call that an attempt can
            continue
    return None


def _compare(call: Call, actual_reply: Reply, expected_reply: Reply) -> None:
    if expected_reply.raised is not None:
        return
    Answer(call, actual_reply).must_return()
    for got, expected_output, name in _paired_outputs(call, actual_reply, expected_reply):
        if got.kind != expected_output.kind:
            raise CheckFailed(
                f"{kind_name(expected_output.kind)} was expected; yours returned"
                f" {kind_name(got.kind)}"
            )
        if got.tensor is None or expected_output.tensor is None:
            continue
        assert_shape(got.tensor, expected_output.tensor.shape, name)
        if got.tensor.is_floating_point() != expected_output.tensor.is_floating_point():
            expected, yours = (
                str(t.dtype).removeprefix("torch.") for t in (expected_output.tensor, got.tensor)
            )
            raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")
    for name, gradient in expected_reply.gradients.items():
        if (
            gradient is not None
            and (actual_gradient := actual_reply.gradients.get(name)) is not None
        ):
            assert_shape(actual_gradient, gradient.shape, "a gradient")


@dataclass(frozen=True)
class Probe:
    """Four calls with the reference's replies, or one call if a function is given no numbers.

    Attributes:
        calls: The calls.
        expected: The reference's replies to them.
        answers: Pairs of a reply of the attempt and the reference's reply: to the first of four
            calls, or, if there is one call, to all calls of the checks.
    """

    calls: tuple[Call, ...]
    expected: tuple[Reply, ...]
    answers: tuple[tuple[Reply, Reply], ...]

    @cached_property
    def rows(self) -> list[Tensor]:
        """The numbers of the reference's replies."""
        return [numbers_of(reply) for reply in self.expected]

    @cached_property
    def has_numbers(self) -> bool:
        """Whether there are four calls, and the reference's numbers exceed remains of rounding."""
        return len(self.calls) > 1 and any(bool((row.abs() > ROUNDING).any()) for row in self.rows)

    @cached_property
    def compares(self) -> bool:
        """Whether the reference compares numbers, so that its answers do not add up."""
        return self.has_numbers and not _add_up(self.rows, MUCH)

    @cached_property
    def depends_on_numbers(self) -> bool:
        """Whether the reference's answer changes with the numbers, and is not a copy."""
        return (
            self.has_numbers
            and difference(self.rows[1], self.rows[0]) > MUCH
            and self.copy_kind != COPY
        )

    @property
    def is_drawn(self) -> bool:
        """Whether more than half of the numbers of each argument are different.

        If few numbers are repeated, a weighted sum may be a plain sum by chance.
        """
        return all(
            2 * value.unique().numel() > value.numel() for value in _numbers_given(self.calls[0])
        )

    @property
    def copy_kind(self) -> str:
        """COPY or MOVED if the reference's answer is a copy of an argument, or ""."""
        return _copied(self.expected[0], self.calls[0])[0]

    @cached_property
    def is_right(self) -> bool:
        """Whether the attempt's answers are the reference's, if these show anything.

        An answer that repeats one number shows nothing.
        """
        if len(self.calls) > 1 and not self.compares and not self.depends_on_numbers:
            return False
        rows = [numbers_of(expected) for _, expected in self.answers]
        is_constant = all(row.numel() > 1 and row.unique().numel() == 1 for row in rows)
        return not is_constant and all(_are_near(*pair) for pair in self.answers)


def choose_probe(
    exchanges: Sequence[Exchange], reference: Runner, made_of: Callable[..., Sequence[Call]]
) -> Probe | None:
    """Return the calls that show most about the function of these exchanges.

    Returns None if the function never answered with numbers.

    Args:
        exchanges: The calls of one function, with the attempt's replies.
        reference: The reference.
        made_of: Returns the calls that `four_like` makes of a call.
    """
    tried: list[Probe] = []
    for exchange in (exchange for exchange in exchanges if has_numbers(exchange.reply)):
        calls = tuple(made_of(exchange.call, four_like))
        expected = tuple(map(reference.execute, calls))
        if (
            all(map(has_numbers, expected))
            and len({numbers_of(reply).shape for reply in expected}) == 1
        ):
            tried.append(Probe(calls, expected, ((exchange.reply, expected[0]),)))
            if (tried[-1].compares and tried[-1].is_right) or len(tried) == TRIED:
                break
    best = max(
        tried,
        key=lambda probe: (
            probe.compares,
            probe.is_right,
            probe.depends_on_numbers,
            len(probe.calls),
        ),
        default=None,
    )
    if best is None or len(best.calls) > 1:
        return best
    both = [(exchange.reply, reference.execute(exchange.call)) for exchange in exchanges]
    return replace(best, answers=tuple(pair for pair in both if all(map(has_numbers, pair))))


def all_right(exchanges: Sequence[Exchange], reference: Runner) -> bool:
    """Return whether a function's comparable answers are the reference's, and there are any.

    An answer is comparable if the reference's has equally many numbers. Calls in training mode are
    left out, because their numbers may be random.
    """
    plain = (
        e for e in exchanges if not (isinstance(e.call.subject, Build) and e.call.subject.training)
    )
    pairs = [(e.reply, reference.execute(e.call)) for e in plain]
    comparable = [pair for pair in pairs if _are_comparable(*pair)]
    return bool(comparable) and all(_are_near(*pair) for pair in comparable)


def _are_comparable(actual: Reply, expected: Reply) -> bool:
    if not has_numbers(actual) or not has_numbers(expected):
        return False
    return len(numbers_of(actual)) == len(numbers_of(expected))


def require_nontrivial(attempt: Implementation, target: str, probe: Probe | None) -> None:
    """Fail if the answers of the function of this name are trivial.

    Args:
        attempt: The attempt.
        target: The name of the function.
        probe: The calls to make, or None if the function never answered with numbers.
    """
    if probe is None:
        raise CheckFailed(f"{target} never gives a finite number")
    answers = [attempt.ask(call) for call in (*probe.calls, probe.calls[0])]
    for answer in answers:
        answer.must_return()
    *rows, again = (numbers_of(answer.reply) for answer in answers)
    expect(again.numel() > 0, f"{target} never gives a finite number")
    expect(
        len({row.shape for row in (*rows, again)}) == 1, f"{target} gives another shape each time"
    )
    by_chance, by_input = (float((rows[0] - row).norm()) for row in (again, rows[-1]))
    if by_chance > TOLERANCE * float(again.norm()):
        is_noise = again.numel() < FEW or by_chance > BY_CHANCE * by_input
        expect(not is_noise, f"{target} gives another answer each time, whatever it is given")
    if len(rows) == 1:
        _expect_to_go_by_sizes(target, probe)
    elif probe.compares or probe.depends_on_numbers:
        _expect_to_go_by_numbers(attempt, target, probe, answers[0].reply, rows)


def _expect_to_go_by_numbers(
    attempt: Implementation, target: str, probe: Probe, first_reply: Reply, rows: Sequence[Tensor]
) -> None:
    """Fail if a function of numbers ignores them, copies them, or adds them up.

    The answers must change with the numbers. They may be a copy, or add up, only if the reference's
    do.
    """
    copy_kind, copied = _copied(first_reply, probe.calls[0])
    adds_up = _add_up(rows, TOLERANCE) and (probe.is_drawn or not probe.compares)
    is_copy = copy_kind == COPY or (
        copy_kind == MOVED and adds_up
    )  # otherwise it selects numbers by their size
    expect(not is_copy or copy_kind == probe.copy_kind, f"{target} {copied}")
    is_same = difference(rows[0], rows[1], max(1e-30, float(rows[0].abs().max()))) <= TOLERANCE
    expect(not is_same, _gives_always(target, rows[0]))
    has_nan = any(
        out.tensor is not None and bool(out.tensor.isnan().any()) for out in first_reply.outputs
    )
    if (
        probe.compares
        and adds_up
        and not has_nan
        and not _goes_number_by_number(attempt, probe.calls[0], rows[0])
    ):
        problem = (
            "compares nothing: each number that it is given adds the same to its answer, "
            "whatever the others are"
        )
        failed = CheckFailed(f"{target} {problem}")
        failed.unmet = True
        raise failed


def _expect_to_go_by_sizes(target: str, probe: Probe) -> None:
    """Fail if a function that is given no numbers always answers alike, or unlike the reference."""
    pairs = [
        (numbers_of(actual, INFINITE), numbers_of(expected, INFINITE))
        for actual, expected in probe.answers
    ]
    single = [
        (float(actual), float(expected))
        for actual, expected in pairs
        if actual.numel() == expected.numel() == 1
    ]
    values = {actual for actual, _ in single}
    expected_values = {expected for _, expected in single}
    expect(
        len(values) != 1 or len(expected_values) == 1,
        f"{target} gives the same answer, whatever it is given",
    )
    varied = [i for i, (_, expected) in enumerate(pairs) if expected.unique().numel() > 1]
    constant = [_is_constant(pairs[i][0], probe.answers[i][0]) for i in varied]
    if varied:
        expect(not all(constant), _gives_always(target, pairs[varied[0]][0]))
    large = [
        i for i in varied if len(pairs[i][1]) >= FEW and pairs[i][0].shape == pairs[i][1].shape
    ]
    problem = f"what {target} gives has nothing to do with what it is given"
    related = [
        _relation(pairs[i][0], mirror) for i in large for mirror in _turned(probe.answers[i][1])
    ]
    expect(not large or max(related) >= RELATED, problem)


def _turned(reply: Reply) -> Iterator[Tensor]:
    """Yield the numbers of an answer, and those of its mirror images.

    A table that is the wrong way round still depends on its sizes.
    """
    tensor = next(out.tensor for out in reply.outputs if out.tensor is not None)
    table = numbers_of(reply, INFINITE)
    table = table.view(tensor.shape) if table.numel() == tensor.numel() else table
    for axes in ((), *((axis,) for axis in range(table.dim())), tuple(range(table.dim()))):
        yield table.flip(axes).flatten()


def _relation(actual: Tensor, expected: Tensor) -> float:
    """Return how closely one answer follows the other: about 1 for noise of any length."""
    return (
        len(actual) * float(torch.corrcoef(torch.stack([actual, expected]))[0, 1].nan_to_num()) ** 2
    )


def _goes_number_by_number(attempt: Implementation, call: Call, answer: Tensor) -> bool:
    """Return whether one changed number in each argument changes no more numbers of the answer.

    Masked scores behave like that if the softmax is missing.
    """

    def change(value: Any) -> object:
        if not _is_of_numbers(value):
            return value
        return torch.where(
            torch.arange(value.numel()).view(value.shape) == value.numel() // 2, value + 1, value
        )

    changed = attempt.ask(call.map(change))
    changed.must_return()
    return 0 < int((numbers_of(changed.reply) != answer).sum()) <= len(_numbers_given(call))


def _are_near(actual: Reply, expected: Reply) -> bool:
    if _tensor_shapes(actual) != _tensor_shapes(expected):
        return False
    return difference(numbers_of(actual), numbers_of(expected)) <= RIGHT


def _tensor_shapes(reply: Reply) -> list[torch.Size]:
    return [out.tensor.shape for out in reply.outputs if out.tensor is not None]


def four_like(call: Call) -> tuple[Call, ...]:
    """Return the plain call and three like it, with a + b = c + d.

    If the call is given no numbers, return it alone.
    """
    alone: dict[str, Any] = dict.fromkeys(("second", "watch", "memory"), False)
    call = replace(call, **alone, cotangent=None, runs=1)
    generator = torch.Generator().manual_seed(0)

    def shuffled(tensor: Tensor) -> Tensor:
        return tensor.flatten()[torch.randperm(tensor.numel(), generator=generator)].view(
            tensor.shape
        )

    pairs = [(SMALLER * shuffled(value), shuffled(value) / 2) for value in _numbers_given(call)]
    if not pairs:
        return (call,)

    def changed(index: int) -> Call:
        drawn = iter(pairs)

        def change(value: Any) -> object:
            if not _is_of_numbers(value):
                return value
            counterpart, apart = next(drawn)
            return (
                counterpart,
                (value + counterpart) / 2 + apart,
                (value + counterpart) / 2 - apart,
            )[index]

        return call.map(change)

    return (call, *map(changed, range(3)))


def _numbers_given(call: Call) -> list[Tensor]:
    return [
        value
        for value in call.arguments.values()
        if isinstance(value, Tensor) and _is_of_numbers(value)
    ]


def _is_of_numbers(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and not value.is_meta


def _add_up(answers: Sequence[Tensor], tolerance: float) -> bool:
    a, b, c, d = answers
    scale = max(float(answer.abs().max()) if answer.numel() else 0.0 for answer in answers)
    return difference(a + b, c + d, scale) <= tolerance


def _gives_always(target: str, numbers: Tensor) -> Evidence:
    if numbers.numel() > 1 and bool((numbers == numbers[0]).all()):
        number = Number(float(numbers[0]))
        return Evidence("{} gives {} in every place, whatever it is given", target, number)
    return Evidence("{} gives the same answer, whatever it is given", target)


def _is_constant(numbers: Tensor, reply: Reply) -> bool:
    """Return whether the answer repeats one number, or is an identity matrix."""
    shape = next(out.tensor.shape for out in reply.outputs if out.tensor is not None)
    is_table = len(shape) > 1 and numbers.numel() == shape.numel()
    identity = torch.eye(*shape[-2:]).double().expand(shape).flatten() if is_table else None
    return bool((numbers == numbers[0]).all()) or (
        identity is not None and torch.equal(numbers, identity)
    )


def _copied(reply: Reply, call: Call) -> tuple[str, str]:
    """Return whether an answer is a COPY of an argument or MOVED, and the words that say so.

    Returns two empty strings if it is neither.
    """
    tensor = next(out.tensor for out in reply.outputs if out.tensor is not None)
    row = tensor.flatten().float()  # the attempt may have answered in float32
    for name, argument in call.arguments.items():
        if isinstance(argument, Tensor) and _is_of_numbers(argument) and row.numel() > 1:
            theirs = argument.flatten().float()
            if argument.shape == tensor.shape and torch.equal(row, theirs):
                return COPY, f"gives back {label(name)}, unchanged"
            is_whole = row.numel() == theirs.numel() and torch.equal(
                row.sort().values, theirs.sort().values
            )
            if is_whole or (bool((theirs == row[0]).any()) and bool(torch.isin(row, theirs).all())):
                return MOVED, f"gives back numbers of {label(name)}, and has computed nothing"
    return "", ""


def unmet_condition(
    recording: FaultDictionary,
    attempt: Runner,
    function: str,
    observations: Mapping[int, ObservedReply],
) -> str:
    """Return why a function does not meet its preconditions, "" if it does."""
    conditions = [condition for condition in recording.conditions if condition.function == function]
    try:
        for condition in conditions:
            if condition.rule == "answers":
                _expect_answers(condition, attempt, observations)
        judgements = [
            _judged(condition, rule, attempt)
            for condition in conditions
            if (rule := condition.rule) != "answers"
        ]
        return first_unmet(judgements)
    except AttemptRaised as error:
        return describe_exception(error.raised, error.due)
    except (CheckFailed, AttemptEnded) as error:
        return str(error)


def _judged(condition: RecordedCondition, rule: Rule, attempt: Runner) -> Judged:
    answer = Implementation(attempt).ask(condition.calls[0])
    actual = Condition(rule, answer, condition.message, condition.left_out, condition.least)
    return judged_beside_numbers(actual, condition.expected[0])


def _expect_answers(
    condition: RecordedCondition, attempt: Runner, observations: Mapping[int, ObservedReply]
) -> None:
    """Fail if a function's answers are trivial, as `require_nontrivial` does in grading."""
    rights = tuple(_reply_with(tensor) for tensor in condition.expected)
    if len(condition.calls) > 1:
        answers = [(attempt.execute(condition.calls[0]), rights[0])]
    else:  # a function of sizes only: its answers to several sizes are compared
        answers = list(_replies_with_expected(condition.function, observations))
    probe = Probe(condition.calls, rights, tuple(answers))
    if not all(has_numbers(actual) for actual, _ in answers) or not probe.is_right:
        require_nontrivial(Implementation(attempt), condition.function, probe)


def _replies_with_expected(
    function: str, observations: Mapping[int, ObservedReply]
) -> Iterator[tuple[Reply, Reply]]:
    """Yield the attempt's reply and the reference's, for each call of the function with numbers."""
    for observed in observations.values():
        expected = observed.expected_outputs[0] if observed.expected_outputs else None
        if (
            target_of(observed.call) == function
            and expected is not None
            and has_numbers(observed.reply)
        ):
            yield observed.reply, _reply_with(expected)


def _reply_with(tensor: Tensor) -> Reply:
    return Reply(outputs=(Output("tensor", tensor, shape=tuple(tensor.shape)),))
