"""Find functions of a check that never answered, and answers of types that the reference lacks.

A check that passed fails after all if a function that it called never answered, or answered with a
wrong type or NaN. If a check failed or broke, a difference in type or shape may be the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, product

from ..box.worker.messages import Call, Output, Reply, dtype_name
from ..box.worker.result_form import OPAQUE
from ..checks.answer import TABLES, Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_shape
from ..checks.explain_exceptions import SafeText, kind_name
from ..checks.hidden_check import CheckFailed, Evidence
from ..checks.runner import Exchange, Runner, target_of
from .nontrivial_answers import is_in_training

# For each leaf of what a function returns, the types that occur there ("tensor", "float"). A reply
# calls the type of an output its kind.
Kinds = tuple[frozenset[str], ...]


class AsksNothingError(Exception):
    """The attempt cannot fail a check by not answering. That is a fault of the check."""


def missing_reply(
    exchanges: Sequence[Exchange], reference: Runner
) -> CheckFailed | AsksNothingError | None:
    """Return the exception with which a check that passed fails after all, or None.

    The result is an AsksNothingError, because the check itself is at fault, in two cases: it makes
    no call, or it calls a function without one call that the reference or the attempt answers.
    Otherwise these demands are tested, one after the other, in all calls:

    1. Each answer has a type that the reference returns (`_demand_kind`).
    2. Each function has answered at least once.
    3. No answer has a NaN or an infinity that the reference's has not (`_demand_numbers`).

    The CheckFailed has the function in `function`.
    """
    if not exchanges:
        return AsksNothingError("it asks the attempt nothing")
    calls_by_target: dict[str, list[Call]] = defaultdict(list)
    for exchange in exchanges:
        calls_by_target[target_of(exchange.call)].append(exchange.call)
    answered = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    expected_kinds = {}
    for target, calls in calls_by_target.items():
        target_kinds = kinds_of(calls, reference)
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
            failed.function = target_of(exchange.call)
            return failed
    return None


def kinds_of(calls: Iterable[Call], reference: Runner) -> Kinds | None:
    """Return for each output of a function the types that the reference returns to these calls.

    An output may be None in one call and a tensor in another. For a function with a single output,
    the first answered call decides. Returns None if the reference answers none of the calls.
    """
    kind_sets: list[set[str]] = []
    for call in calls:
        outputs = reference.execute(call).outputs
        if outputs and call.form.is_leaf:
            return (frozenset({outputs[0].kind}),)
        if not outputs:  # it raised, or only builds a module; then its form may be another one
            continue
        kind_sets = kind_sets or [set() for _ in range(call.form.count)]
        # A call that is made several times, or in several steps, repeats the outputs each time.
        for kind_set, output in zip(cycle(kind_sets), outputs, strict=False):
            kind_set.add(output.kind)
    return tuple(map(frozenset, kind_sets)) if kind_sets else None


def _demand_kind(exchange: Exchange, expected_kinds: Kinds) -> None:
    """Raise CheckFailed if an output has a type that the reference's output never has there.

    Also raises CheckFailed if the result has another structure than the call asks for.

    A number of any type is accepted if the reference may return a number. The only output of a
    function must not be None or a table without numbers. Nothing is tested if there is no output,
    or if `expected_kinds` is empty.

    Args:
        exchange: The call, with the attempt's reply.
        expected_kinds: From `kinds_of`, or empty.
    """
    call, outputs = exchange.call, exchange.reply.outputs
    if outputs:
        Answer(call, exchange.reply).must_return()
    # The outputs of repeated calls and of further steps have the same types in turn.
    for out, allowed_kinds, answer in zip(
        outputs, cycle(expected_kinds), answers_of(call, exchange.reply), strict=False
    ):
        is_number = out.tensor is not None and out.tensor.dim() == 0
        may_be_number = bool(allowed_kinds - {"tensor", NONE, OPAQUE, *TABLES})
        if is_number and may_be_number:
            continue
        # A part of a tuple may also be None.
        is_answer = (
            not call.form.is_leaf
            or out.kind in ("tensor", OPAQUE)
            or (out.kind in TABLES and out.tensor is not None)
        )
        if not is_answer or out.kind not in allowed_kinds:
            raise answer.wrong_type(min(allowed_kinds - {NONE}, default=NONE), out.kind)


def _demand_numbers(exchange: Exchange, reference: Runner) -> None:
    """Raise CheckFailed if an output has a NaN and the reference's output has none.

    An infinity is a failure, too, unless the reference's output has infinities, or is of booleans
    or integers. Outputs without a tensor are not compared. In training mode nothing is demanded:
    dropout may cause such numbers by chance.
    """
    call, reply = exchange.call, exchange.reply
    if is_in_training(call):
        return
    # The reference is called only if some number is not finite.
    if all(out.tensor is None or _is_finite(out) for out in reply.outputs):
        return
    for actual, expected, name in _paired_outputs(call, reply, reference.execute(call)):
        if actual.tensor is None or expected.tensor is None:
            continue
        if bool(expected.tensor.isnan().any()):
            continue
        # If the reference masks with infinities, the attempt may mask other places. It may also use
        # infinities in place of the reference's booleans.
        may_be_infinite = not expected.tensor.is_floating_point() or not _is_finite(expected)
        numbers = actual.tensor
        if may_be_infinite:
            numbers = numbers.masked_fill(numbers.isinf(), 0.0)
        assert_finite(numbers, name)


def _is_finite(output: Output) -> bool:
    """Return whether the output has a tensor, with neither NaN nor infinities."""
    return output.tensor is not None and bool(output.tensor.isfinite().all())


def wrong_type(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first wrong type that may explain why a check failed, or None.

    Only calls are compared in which the attempt did not raise, and in which the attempt or the
    reference returned an ndarray, a list, a tuple or a text (TABLES).
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
    """Return each output of the attempt with the reference's and its name in messages."""
    labels = (answer.label for answer in answers_of(call, actual))
    return zip(actual.outputs, expected.outputs, labels, strict=False)


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first difference in shape or type from the reference's answers (`_compare`).

    Returns None if all agree. Calls on which the reference or the comparison raises an exception
    are skipped.
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
    """Raise CheckFailed if the attempt's reply has outputs of other types or shapes.

    A tensor must also hold floating-point numbers if and only if the reference's does. Other
    differences of dtype do not count. A gradient that both replies have must have the same shape.
    Raises AttemptRaised if only the attempt raised. Nothing is compared if the reference raised. If
    one reply has more outputs than the other, these are not compared.
    """
    if expected_reply.raised is not None:
        return
    Answer(call, actual_reply).must_return()
    for actual, expected, name in _paired_outputs(call, actual_reply, expected_reply):
        if actual.kind != expected.kind:
            evidence = Evidence(
                "{} was expected; yours returned {}",
                kind_name(expected.kind),
                kind_name(actual.kind),
            )
            raise CheckFailed(evidence)
        if actual.tensor is None or expected.tensor is None:
            continue
        assert_shape(actual.tensor, expected.tensor.shape, name)
        if actual.tensor.is_floating_point() != expected.tensor.is_floating_point():
            evidence = Evidence(
                "a tensor of {} was expected; yours is of {}",
                SafeText(dtype_name(expected.tensor.dtype)),
                SafeText(dtype_name(actual.tensor.dtype)),
            )
            raise CheckFailed(evidence)
    for name, expected_gradient in expected_reply.gradients.items():
        gradient = actual_reply.gradients.get(name)
        if gradient is not None and expected_gradient is not None:
            assert_shape(gradient, expected_gradient.shape, "a gradient")
