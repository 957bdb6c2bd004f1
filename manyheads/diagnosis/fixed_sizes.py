"""Sizes and numbers of axes that are fixed: by the text, and by which calls are right and which
have no answer.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from itertools import chain

from torch import Tensor

from ..box.worker.messages import Call
from ..checks.explain import is_refusal
from ..checks.runner import target_of
from ..submission.source import nodes_of
from .fingerprint import SIZES
from .observe import ObservedReply
from .row import Response
from .same_places import sizes_of

HARD_CODED = "hard_coded_shape"
WRONG_CALLS_SHARE = 2 / 3  # of the wrong calls: in others the size may stand for another axis, too
_READ = 300  # characters of a message
_END = re.compile(r"index (\d+) is out of bounds for dimension \d+ with size \1\b")
AXES = 3  # the largest number that is an axis in most texts


def _integers(source: str, of_ranges: bool = False) -> Iterator[int]:
    nodes: Iterable[ast.AST] = nodes_of(source)
    if of_ranges:
        calls = (node for node in nodes if isinstance(node, ast.Call))
        ranges = (
            call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "range"
        )
        nodes = chain.from_iterable(call.args for call in ranges)
    return (
        node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int
    )


def has_written_size(source: str) -> bool:
    """Return whether a text contains an integer that is a size and hardly an axis; True where the
    text is not at hand.
    """
    return not source or any(n > AXES for n in _integers(source))


def proven_by_size(row: Response, source: str) -> dict[int, str]:
    """Return the wrong calls of functions in which a size of the text stands where calls have
    another, with the name of that.

    Most that raise tell of the same size, which some of the calls have not, or stop a loop of that
    many steps; most others answer with it in place of another.
    """
    written = {n for n in _integers(source) if n > AXES}
    loops = {n for n in _integers(source, of_ranges=True) if n > AXES}
    functions: dict[str, list[ObservedReply]] = {}
    for observation in row.syndrome.values() if written else ():
        if observation.expected.raised is None:
            functions.setdefault(target_of(observation.call), []).append(observation)
    hard_coded = set[str]()
    for name, calls in functions.items():
        foreign = Counter(
            size for observation in calls for size in _foreign(observation, written, loops)
        )
        counts = foreign | Counter(
            size for observation in calls for size in written & {*_message_sizes(observation)}
        )
        if any(
            foreign[size] > 1 and count >= WRONG_CALLS_SHARE * len(calls)
            for size, count in counts.items()
        ):
            hard_coded.add(name)
    return {
        i: HARD_CODED
        for i, observation in row.syndrome.items()
        if observation.expected.raised is None and target_of(observation.call) in hard_coded
    }


def _message_sizes(observation: ObservedReply) -> list[int]:
    return (
        [*map(int, SIZES.findall(observation.reply.raised.message[:_READ]))]
        if observation.reply.raised
        else []
    )


def _foreign(observation: ObservedReply, written: Set[int], loops: Set[int]) -> set[int]:
    """Return the sizes of the text that an exception tells of and the call has not, or that an
    answer has in place of others.

    Where a size of the call is cut into so many parts, and leaves a rest, it may tell of what they
    have together.

    loops: those over which the text counts; where an index is as large as its axis, it has counted
        to the end of that.
    """
    if observation.reply.raised is not None:
        end = _END.search(observation.reply.raised.message[:_READ])
        if end:
            return {n for n in loops if n > int(end[1])}
        sizes = [*sizes_of(observation.call)]
        # a size that the call has may be told twice
        foreign = Counter(_message_sizes(observation)) - Counter(sizes)
        multiples = {
            n: {size - size % n for size in sizes if size > n and size % n} for n in written
        }
        return {n for n in written if n in foreign or not multiples[n].isdisjoint(foreign)}
    pairs = zip(observation.actual.outputs, observation.expected.outputs, strict=False)
    shapes = [
        (actual.shape, expected.shape)
        for actual, expected in pairs
        if actual.shape and expected.shape
    ]
    changed_sizes = {
        a
        for actual, expected in shapes
        if len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True)
        if a != b
    }
    return changed_sizes & written


def lines_that_turn_all_axes(source: str) -> set[int]:
    """Return the lines with a `.T`: an exception there is of more axes than two, and of no fixed
    size.
    """
    return {
        node.lineno
        for node in nodes_of(source)
        if isinstance(node, ast.Attribute) and node.attr == "T"
    }


def rank_of(call: Call) -> int:
    """Return the most axes that a tensor of the call has."""
    return max((value.dim() for value in call.inputs if isinstance(value, Tensor)), default=0)


def proven_by_rank(
    written: Mapping[int, ObservedReply], unexplained: Collection[int]
) -> dict[int, str]:
    """Return the calls that are wrong for their number of axes alone, with the name of that.

    unexplained: those that are wrong.
    """
    functions: dict[str, dict[int, ObservedReply]] = {}
    for i, observation in written.items():
        # a module takes one number of axes
        if isinstance(observation.call.subject, str) and rank_of(observation.call):
            functions.setdefault(target_of(observation.call), {})[i] = observation
    names: dict[int, str] = {}
    for calls in functions.values():
        syndrome = {i: observation for i, observation in calls.items() if i in unexplained}
        accepted_ranks = {
            rank_of(e.call)
            for i, e in calls.items()
            if i not in syndrome and e.reply.raised is None
        }
        ranks = {rank_of(comparison.call) for comparison in syndrome.values()}
        if (
            accepted_ranks
            and accepted_ranks.isdisjoint(ranks)
            and all(map(_has_no_answer, syndrome.values()))
        ):
            names |= dict.fromkeys(syndrome, HARD_CODED)
    return names


def _has_no_answer(observation: ObservedReply) -> bool:
    if observation.reply.raised is not None:
        return observation.expected.raised is None and not is_refusal(observation.reply.raised)
    return any(
        actual.tensor is not None and expected is not None and actual.tensor.dim() != expected.dim()
        for actual, expected in zip(
            observation.reply.outputs, observation.expected_outputs, strict=False
        )
    )
