"""Find sizes and numbers of axes that are written into the code.

The evidence is the integers of the attempt's text, the calls that are right, and the calls that
raise or return another shape.
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
MIN_SHARE = 2 / 3  # part of the wrong calls; in others the size may stand for another axis as well
_READ = 300  # characters of a message
_END = re.compile(r"index (\d+) is out of bounds for dimension \d+ with size \1\b")
MAX_AXIS = 3  # an integer up to this is usually an axis or a number of axes, not a size


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
    """Return whether a text contains an integer that is likely a size, or is not at hand."""
    return not source or any(n > MAX_AXIS for n in _integers(source))


def proven_by_size(row: Response, source: str) -> dict[int, str]:
    """Return the wrong calls of functions with a size that is written into the code.

    Each call is mapped to the misconception. A function has it if most of its wrong calls show the
    same integer of the text: in the exception's message, as the length of a loop that runs past the
    end of an axis, or as a size of the output. At least two calls must show it although none of
    their inputs has an axis of that size.
    """
    written = {n for n in _integers(source) if n > MAX_AXIS}
    loops = {n for n in _integers(source, of_ranges=True) if n > MAX_AXIS}
    functions: dict[str, list[ObservedReply]] = {}
    for observation in row.syndrome.values() if written else ():
        if observation.expected.raised is None:
            functions.setdefault(target_of(observation.call), []).append(observation)
    hard_coded = set[str]()
    for name, calls in functions.items():
        foreign, in_messages = Counter[int](), Counter[int]()
        for observation in calls:
            foreign.update(_foreign(observation, written, loops))
            in_messages.update(written & {*_message_sizes(observation)})
        counts = foreign | in_messages
        least = MIN_SHARE * len(calls)
        if any(foreign[size] > 1 and count >= least for size, count in counts.items()):
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
    """Return the integers of the text that a wrong call shows although no input has such a size.

    They are in the exception's message, or in the output's shape instead of the right size. If an
    axis is cut into parts of that size and a remainder is left, the message may contain the total
    size of the whole parts instead. If an index is as large as its axis, a loop has run past the
    end of the axis: then each longer loop counts.

    Args:
        observation: the wrong call.
        written: the integers of the text.
        loops: those that are arguments of `range`.
    """
    if observation.reply.raised is not None:
        end = _END.search(observation.reply.raised.message[:_READ])
        if end:
            return {n for n in loops if n > int(end[1])}
        sizes = [*sizes_of(observation.call)]
        # a size that one axis of the inputs has, but that the message contains twice, counts
        foreign = Counter(_message_sizes(observation)) - Counter(sizes)
        return {n for n in written if n in foreign or _cuts(n, sizes, foreign)}
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


def _cuts(divisor: int, sizes: Iterable[int], foreign: Collection[int]) -> bool:
    """Return whether a size, without its remainder after the division, is in `foreign`."""
    return any(
        size > divisor and size % divisor and size - size % divisor in foreign for size in sizes
    )


def lines_that_turn_all_axes(source: str) -> set[int]:
    """Return the lines with a `.T`.

    An exception there is due to a third axis, and not to a fixed size.
    """
    return {
        node.lineno
        for node in nodes_of(source)
        if isinstance(node, ast.Attribute) and node.attr == "T"
    }


def rank_of(call: Call) -> int:
    """Return the largest number of axes of the call's tensors."""
    return max((value.dim() for value in call.inputs if isinstance(value, Tensor)), default=0)


def proven_by_rank(
    written: Mapping[int, ObservedReply], unexplained: Collection[int]
) -> dict[int, str]:
    """Return the calls that fail because of their number of axes, mapped to the misconception.

    A function accepts some numbers of axes, and raises or returns another number of axes for all
    others.

    Args:
        written: the replies, by call.
        unexplained: the wrong calls.
    """
    functions: dict[str, dict[int, ObservedReply]] = {}
    for i, observation in written.items():
        # modules are left out: they take one number of axes
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
