"""A size in an exception that the call does not contain: then it was written in, and not read off a wrong axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from ..diagnosis.compared import Compared

_UNFIT = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def has_foreign_size(seen: Iterable[Compared]) -> bool:
    """Whether one of these calls raised because of a size that is none of the call's, and no product of two of them."""
    return any(_is_foreign(each) for each in seen)


def _is_foreign(seen: Compared) -> bool:
    raised = seen.reply.raised
    told = _UNFIT.search(raised.message) if raised is not None else None
    if told is None:
        return False
    sizes = {1, *sizes_of(seen.call)}
    known = {a * b for a, b in combinations_with_replacement(sizes, 2)}
    return any(int(size) not in known for size in told.groups())


def sizes_of(call: Call) -> Iterator[int]:
    """Every size of a tensor of the call, and every whole number that it passes."""
    for given in call.given:
        parts: list[object] = [given]
        if isinstance(given, StandIn):
            parts = [*given.linears.values(), *given.attributes.values()]
        elif isinstance(given, Build):
            parts = [*given.args, *given.kwargs.values()]
        for part in parts:
            if isinstance(part, Tensor):
                yield from part.shape
            elif isinstance(part, int):
                yield part
