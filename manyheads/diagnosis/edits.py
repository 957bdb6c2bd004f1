"""Say in words in what one call differs from another, whose answers are held together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import torch
from torch import Tensor

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
            if not torch.equal(mine, other):
                return f"an edit of {label(name)}{_place(mine, other)}"
        elif not _is_same(mine, other):
            return f"another value of {label(name)}{mode}"
    return f"a second call{mode}"


def _given(call: Call) -> dict[str, object]:
    """Return all that a call is given, by its name; of a module also what it is made with."""
    build = call.subject
    given: dict[str, object] = {}
    if isinstance(build, Build):
        given = {f"argument {place + 1} of {build.target}": value for place, value in enumerate(build.args)}
        given |= {**build.kwargs, **build.attributes, **(build.state or {})}
    for name, value in call.arguments.items():
        parts = value.linears if isinstance(value, StandIn) else None
        given |= {name: value} if parts is None else {f"{name}.{part}": weight for part, weight in parts.items()}
    return given


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if is_dataclass(one) and type(one) is type(other):
        return all(_is_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and one == other


def _place(before: Tensor, after: Tensor) -> str:
    """Return where two tensors differ, as Python writes it: " in [:, 6:]"; "" where that is everywhere, or in no one piece."""
    if before.shape != after.shape:
        return ""
    apart, cuts = before != after, []
    for axis, size in enumerate(before.shape):
        hit = apart.movedim(axis, 0).reshape(size, -1).any(1).nonzero().flatten().tolist()
        first, last = hit[0], hit[-1]
        if hit != list(range(first, last + 1)):
            return ""
        ends = f"{first or ''}:{last + 1 if last + 1 < size else ''}"
        cuts.append(str(first) if first == last and size > 1 else ends)
    while cuts and cuts[-1] == ":":
        cuts.pop()
    return f" in [{', '.join(cuts)}]" if cuts else ""
