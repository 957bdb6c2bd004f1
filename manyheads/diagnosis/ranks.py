"""Find a fixed number of axes: by calls with axes taken away or added, and from recorded calls."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.explain import is_refusal
from ..checks.implementation import Runner
from ..checks.transcript import BatchRunner, Exchange, replies_of, target_of
from ..submission.unwritten import statements_of
from .agree import agree
from .comparison import Comparison
from .fixed_sizes import HARD_CODED

# Find a fixed number of axes: call the attempt with the same numbers, and leading axes taken away or added.
#
# An attempt that is right then, and raises or has another number of axes in its answer before, is right for one number
# of axes alone.

ADDED = 2  # the most axes that are added
TRIED = 3  # the most calls of a function that are changed, each with another number of axes


def lines_that_turn_all_axes(source: str) -> set[int]:
    """Return the lines with a `.T`: an exception there is of more axes than two, and of no fixed size."""
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return {node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr == "T"}


def works_for_another_rank(subject: BatchRunner, reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Return whether a function is right with another number of axes in each call where it is wrong. Raises AttemptEnded."""
    wrong: dict[str, dict[int, Exchange]] = {}
    for exchange in exchanges:
        if isinstance(exchange.call.subject, str) and not agree(exchange.reply, reference.execute(exchange.call)):
            wrong.setdefault(target_of(exchange.call), {}).setdefault(rank_of(exchange.call), exchange)
    return any(
        all(_may_be_a_matter_of_rank(other.reply, reference.execute(other.call)) for other in by_rank.values())
        and all(_is_right_elsewhere(subject, reference, other.call) for other in [*by_rank.values()][:TRIED])
        for by_rank in wrong.values()
    )


def rank_of(call: Call) -> int:
    """Return the most axes that a tensor of the call has."""
    return max((value.dim() for value in call.given if isinstance(value, Tensor)), default=0)


def _may_be_a_matter_of_rank(reply: Reply, right: Reply) -> bool:
    if reply.raised is not None:
        return right.raised is None and not is_refusal(reply.raised)
    return _ranks(reply) != _ranks(right)


def _ranks(reply: Reply) -> list[int]:
    return [-1 if out.tensor is None else out.tensor.dim() for out in reply.outputs]


def _is_right_elsewhere(subject: BatchRunner, reference: Runner, call: Call) -> bool:
    """Return whether it is right with another number of axes, and wrong with its own where no gradient is asked for either."""
    call = dataclasses.replace(call, cotangent=None, second=False, watch=False, memory=False, runs=1)
    (here,) = replies_of(subject, [call])
    if agree(here, reference.execute(call)):
        return False
    allowed = [(other, right) for other in _other_ranks(call) if (right := reference.execute(other)).raised is None]
    replies = replies_of(subject, [each for each, _ in allowed])
    return any(agree(mine, right) for mine, (_, right) in zip(replies, allowed, strict=True))


def _other_ranks(call: Call) -> Iterator[Call]:
    """Yield the call with fewer and with more leading axes in the tensors that have most axes.

    Two axes are left: with one, a sum that has lost its axis is right by chance.
    """
    rank = rank_of(call)
    for more in (*range(-1, 1 - rank, -1), *range(1, ADDED + 1)):
        yield dataclasses.replace(
            call,
            args=tuple(_with_axes(value, rank, more) for value in call.args),
            kwargs={name: _with_axes(value, rank, more) for name, value in call.kwargs.items()},
        )


def _with_axes(value: object, rank: int, more: int) -> object:
    if not isinstance(value, Tensor) or value.dim() < rank or not value.is_floating_point():
        return value
    if more < 0:
        return value[(0,) * -more]
    for _ in range(more):
        value = torch.stack([value, -value])
    return value


# A fixed number of axes, from recorded calls: a function is right for some numbers of axes, and has no answer for
# others.


def proven_by_rank(written: Mapping[int, Comparison], unexplained: Collection[int]) -> dict[int, str]:
    """Return the calls that are wrong for their number of axes alone, with the name of that. unexplained: those that are wrong."""
    functions: dict[str, dict[int, Comparison]] = {}
    for i, each in written.items():
        if isinstance(each.call.subject, str) and rank_of(each.call):  # a module takes one number of axes
            functions.setdefault(target_of(each.call), {})[i] = each
    found: dict[int, str] = {}
    for calls in functions.values():
        wrong = {i: each for i, each in calls.items() if i in unexplained}
        right = {rank_of(e.call) for i, e in calls.items() if i not in wrong and e.reply.raised is None}
        ranks = {rank_of(comparison.call) for comparison in wrong.values()}
        if right and right.isdisjoint(ranks) and all(map(_has_no_answer, wrong.values())):
            found |= dict.fromkeys(wrong, HARD_CODED)
    return found


def _has_no_answer(seen: Comparison) -> bool:
    """Return whether it raises, or answers with another number of axes."""
    if seen.reply.raised is not None:
        return seen.right.raised is None and not is_refusal(seen.reply.raised)
    return any(
        mine.tensor is not None and due is not None and mine.tensor.dim() != due.dim()
        for mine, due in zip(seen.reply.outputs, seen.expected, strict=False)
    )
