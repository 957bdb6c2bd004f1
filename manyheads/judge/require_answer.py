"""Whether an attempt answered: without answers a check does not pass.

Some checks ask for what an attempt without any answer also does: leave an argument unchanged, or refuse an input. So
every function and class that the check called must have returned what the reference returns, a tensor or a number, at
least once, and never anything else. A refusal counts only if an allowed input was answered too. Where a check breaks on strange
answers, these are to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle

from ..box.worker.answers import Output, Reply
from ..box.worker.form import OPAQUE
from ..box.worker.messages import Build, Call
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_shape
from ..checks.implementation import Runner
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.sanitize import kind_name
from ..checks.transcript import Exchange, target_of


class AsksNothingError(Exception):
    """A check that an attempt cannot fail by not answering. That is a fault of the check."""


Kinds = tuple[frozenset[str], ...]  # what a function returns ("tensor", "float"), for each leaf of what it returns


def unanswered(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | AsksNothingError | None:
    """Return why a check with these exchanges that passed does not count; None if it counts."""
    if not exchanges:
        return AsksNothingError("it asks the attempt nothing")
    kinds: dict[str, Kinds] = {}
    answered = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    for target in dict.fromkeys(target_of(exchange.call) for exchange in exchanges):
        due = kinds_of((e.call for e in exchanges if target_of(e.call) == target), reference)
        if due is None and target not in answered:  # else the attempt's own sizes made the call one that is refused
            return AsksNothingError(
                f"it asks {target} for nothing that the reference answers: let it ask an allowed input, too"
            )
        kinds[target] = due or ()

    def silence(exchange: Exchange) -> CheckFailed | None:
        if target_of(exchange.call) in answered:
            return None
        raised = exchange.reply.raised
        return CheckFailed("a module is built, and never answers") if raised is None else AttemptRaised(raised)

    ways = (lambda e: _of_another_kind(e, kinds[target_of(e.call)]), silence, lambda e: _not_finite(e, reference))
    return next((failed for find in ways for exchange in exchanges if (failed := find(exchange))), None)


def kinds_of(calls: Iterable[Call], reference: Runner) -> Kinds | None:
    """Return what the reference returns to these calls of one function; None where it returns nothing to any.

    A part may be None in one call and a tensor in another; of a function with one output the first one says it.
    """
    found: list[set[str]] = []
    for call in calls:
        outputs = reference.execute(call).outputs
        if not outputs:  # a call that only builds has no form of several parts
            continue
        if call.form.is_leaf:
            return (frozenset({outputs[0].kind}),)
        found = found or [set() for _ in range(call.form.count)]
        for kinds, output in zip(cycle(found), outputs, strict=False):
            kinds.add(output.kind)
    return tuple(map(frozenset, found)) if any(found) else None


def _of_another_kind(exchange: Exchange, wanted: Kinds) -> CheckFailed | None:
    call, outputs = exchange.call, exchange.reply.outputs
    try:
        if outputs:
            Answer(call, exchange.reply).must_return()
    except CheckFailed as failed:
        return failed
    is_part = not call.form.is_leaf
    for out, due, answer in zip(outputs, cycle(wanted), answers_of(call, exchange.reply), strict=False):
        is_due = out.kind in due and (is_part or out.kind in ("tensor", OPAQUE))  # a part may be None, or opaque
        is_number = out.tensor is not None and out.tensor.dim() == 0
        if not is_due and (due <= {"tensor", NONE, OPAQUE} or not is_number):
            name = "None" if due == {NONE} else kind_name(min(due - {NONE}))
            where = f" as {answer.label}" if answer.path or call.then else ""
            return CheckFailed(f"{name} was expected{where}; yours returned {kind_name(out.kind)}")
    return None


def _parts(call: Call, mine: Reply, right: Reply) -> Iterator[tuple[Output, Output, str]]:
    for got, wanted, answer in zip(mine.outputs, right.outputs, answers_of(call, mine), strict=False):
        yield got, wanted, answer.label


def _not_finite(exchange: Exchange, reference: Runner) -> CheckFailed | None:
    """Say where an answer is NaN, or infinite, and nothing in the reference's is so. In training chance may bring it about."""
    call, reply = exchange.call, exchange.reply
    in_training = isinstance(call.subject, Build) and call.subject.training
    if in_training or all(out.tensor is None or bool(out.tensor.isfinite().all()) for out in reply.outputs):
        return None
    for mine, right, name in _parts(call, reply, reference.execute(call)):
        if mine.tensor is None or right.tensor is None or bool(right.tensor.isnan().any()):
            continue
        # Where the reference masks with infinities, an attempt may mask elsewhere, or may mask what others call False.
        masks = not right.tensor.is_floating_point() or not bool(right.tensor.isfinite().all())
        try:
            assert_finite(mine.tensor.masked_fill(mine.tensor.isinf(), 0.0) if masks else mine.tensor, name)
        except CheckFailed as failed:
            return failed
    return None


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first answer that differs from the reference's in shape or type, as a check would report it; None if all agree.

    A check that fails on one (an index beyond an axis, arithmetic on bools) is not broken: a wrong attempt may return anything.
    """
    for exchange in exchanges:
        try:
            _compare(exchange.call, exchange.reply, reference.execute(exchange.call))
        except CheckFailed as failed:
            return failed
        except Exception:  # a call that only an attempt can answer cannot be compared
            continue
    return None


def _compare(call: Call, mine: Reply, right: Reply) -> None:
    if right.raised is not None:
        return
    Answer(call, mine).must_return()
    for got, wanted, name in _parts(call, mine, right):
        if got.kind != wanted.kind:
            raise CheckFailed(f"{kind_name(wanted.kind)} was expected; yours returned {kind_name(got.kind)}")
        if got.tensor is None or wanted.tensor is None:
            continue
        assert_shape(got.tensor, wanted.tensor.shape, name)
        if got.tensor.is_floating_point() != wanted.tensor.is_floating_point():
            expected, yours = (str(t.dtype).removeprefix("torch.") for t in (wanted.tensor, got.tensor))
            raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")
    for name, gradient in right.gradients.items():
        if gradient is not None and (other := mine.gradients.get(name)) is not None:
            assert_shape(other, gradient.shape, "a gradient")
