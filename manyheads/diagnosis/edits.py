"""Say in words in what one call differs from another, whose answers are held together."""

from __future__ import annotations

from torch import Tensor, equal

from ..box.worker.messages import Build, Call, StandIn
from ..checks.asserts import label


def edit_of(first: Call, second: Call) -> str:
    """Return "an edit of the first argument in [:, 6:]", "another value of dropout in eval mode", "a second call"."""
    one, two = _given(first), _given(second)
    builds = [call.subject for call in (first, second) if isinstance(call.subject, Build)]
    mode = " in eval mode" if builds and not any(build.training for build in builds) else ""
    for name in one | two:
        mine, other = one.get(name), two.get(name)
        if isinstance(mine, Tensor) and isinstance(other, Tensor):
            if not equal(mine, other):
                return f"an edit of {label(name)}{_place(mine, other)}"
        elif repr(mine) != repr(other):
            return f"another value of {label(name)}{mode}"
    return f"a second call{mode}"


def _given(call: Call) -> dict[str, object]:
    """Return all that a call is given, by its name; of a module also what it is made with."""
    build, given = call.subject, dict[str, object]()
    if isinstance(build, Build):
        given = {f"argument {place} of {build.target}": value for place, value in enumerate(build.args, 1)}
        given |= {**build.kwargs, **build.attributes, **(build.state or {})}
    for name, value in call.arguments.items():
        parts = {f"{name}.{part}": weight for part, weight in getattr(value, "linears", {}).items()}
        given |= parts if isinstance(value, StandIn) else {name: value}
    return given


def _place(before: Tensor, after: Tensor) -> str:
    """Return where two tensors differ, as Python writes it: " in [:, 6:]"; "" where that is everywhere, or in no one piece."""
    cuts = []
    for axis, size in enumerate(before.shape if before.shape == after.shape else ()):
        hit = (before != after).movedim(axis, 0).reshape(size, -1).any(1).nonzero().flatten().tolist()
        first, end = hit[0], hit[-1] + 1
        if len(hit) < end - first:
            return ""
        cuts.append(str(first) if len(hit) == 1 < size else f"{first or ''}:{end if end < size else ''}")
    while cuts and cuts[-1] == ":":
        cuts.pop()
    return f" in [{', '.join(cuts)}]" if cuts else ""
