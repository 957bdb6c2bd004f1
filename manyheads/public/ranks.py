"""A fixed number of axes, from recorded calls: a function is right for some numbers of axes, and has no answer for others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..checks.explain import is_refusal
from ..checks.recording import target_of
from ..diagnosis.compared import Compared
from ..diagnosis.own_sizes import HARD_CODED
from ..diagnosis.ranks import rank_of


def proven_by_rank(written: Mapping[int, Compared], unexplained: Collection[int]) -> dict[int, str]:
    """The calls that are wrong for their number of axes alone, with the name of that. unexplained: those that are wrong."""
    functions: dict[str, dict[int, Compared]] = {}
    for i, each in written.items():
        if isinstance(each.call.subject, str) and rank_of(each.call):  # a module takes one number of axes
            functions.setdefault(target_of(each.call), {})[i] = each
    found: dict[int, str] = {}
    for calls in functions.values():
        wrong = {i: each for i, each in calls.items() if i in unexplained}
        right = {rank_of(e.call) for i, e in calls.items() if i not in wrong and e.reply.raised is None}
        ranks = {rank_of(each.call) for each in wrong.values()}
        if right and right.isdisjoint(ranks) and all(map(_has_no_answer, wrong.values())):
            found |= dict.fromkeys(wrong, HARD_CODED)
    return found


def _has_no_answer(seen: Compared) -> bool:
    """Whether it raises, or answers with another number of axes."""
    if seen.reply.raised is not None:
        return seen.right.raised is None and not is_refusal(seen.reply.raised)
    return any(
        mine.tensor is not None and due is not None and mine.tensor.dim() != due.dim()
        for mine, due in zip(seen.reply.outputs, seen.expected, strict=False)
    )
