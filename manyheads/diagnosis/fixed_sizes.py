"""Sizes and numbers of axes that are fixed: by the text, and by which calls are right and which have no answer."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from torch import Tensor

from ..box.worker.messages import Call
from ..checks.explain import is_refusal
from ..checks.transcript import target_of
from ..submission.unwritten import statements_of
from .observe import Observed

HARD_CODED = "hard_coded_shape"
AXES = 3  # the largest number that is an axis in most texts


def has_written_size(source: str) -> bool:
    """Return whether a text contains an integer that is a size and hardly an axis; True where the text is not at hand."""
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return not source or any(isinstance(n, ast.Constant) and type(n.value) is int and n.value > AXES for n in nodes)


def lines_that_turn_all_axes(source: str) -> set[int]:
    """Return the lines with a `.T`: an exception there is of more axes than two, and of no fixed size."""
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return {node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr == "T"}


def rank_of(call: Call) -> int:
    """Return the most axes that a tensor of the call has."""
    return max((value.dim() for value in call.given if isinstance(value, Tensor)), default=0)


def proven_by_rank(written: Mapping[int, Observed], unexplained: Collection[int]) -> dict[int, str]:
    """Return the calls that are wrong for their number of axes alone, with the name of that. unexplained: those that are wrong."""
    functions: dict[str, dict[int, Observed]] = {}
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


def _has_no_answer(seen: Observed) -> bool:
    """Return whether it raises, or answers with another number of axes."""
    if seen.reply.raised is not None:
        return seen.right.raised is None and not is_refusal(seen.reply.raised)
    return any(
        mine.tensor is not None and due is not None and mine.tensor.dim() != due.dim()
        for mine, due in zip(seen.reply.outputs, seen.expected, strict=False)
    )
