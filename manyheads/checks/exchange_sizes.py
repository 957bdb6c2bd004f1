"""Find the sizes and numbers in the calls of a check, and in their replies.

In grading, they decide which numbers the evidence of the check may show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

from torch import Tensor

from ..box.worker.messages import Call, Reply


def shapes_in_calls(calls: Sequence[Call]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes in these calls. A whole number is the shape of one axis."""
    for leaf in leaves_of(calls):
        if isinstance(leaf, Tensor):
            yield tuple(leaf.shape)
        elif isinstance(leaf, int) and not isinstance(leaf, bool):
            yield (leaf,)


def leaves_of(value: object) -> Iterator[object]:
    """Yield all tensors, numbers and other single values in calls, collections and dataclasses."""
    match value:
        case Call():
            yield from leaves_of((*value.inputs, *value.cotangents))
        case Mapping():
            yield from leaves_of((*value.values(),))
        case list() | tuple():
            for element in value:
                yield from leaves_of(element)
        case _ if is_dataclass(value):
            yield from leaves_of([getattr(value, field.name) for field in fields(value)])
        case _:
            yield value


def shapes_in_reply(reply: Reply) -> Iterator[tuple[int, ...]]:
    """Yield the shapes and sizes in a reply, all of which the attempt chose.

    A whole number that is no shape, such as an attribute, counts as the shape of one axis.
    """
    yield from (output.shape for output in reply.outputs if output.shape is not None)
    yield from (
        tuple(gradient.shape) for gradient in reply.gradients.values() if gradient is not None
    )
    for facts in reply.modules:
        for entries in (facts.parameters, facts.buffers, facts.plain):
            yield from (entry.shape for entry in entries.values())
        yield from ((value,) for value in facts.attributes.values() if isinstance(value, int))
    if reply.operations is not None:
        yield from ((size,) for size in reply.operations.made)
        yield from reply.operations.shapes
    if reply.peak is not None:
        yield (reply.peak,)
