"""Name the sizes of a call: (2, 5, 12) is (B, T, C) if B = 2, T = 5 and C = 12."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from ..box.worker.form import Path
from ..box.worker.messages import Build, Call, StandIn
from ..course.shapes import Axis, Parameter, Signature

Signatures = Mapping[str, Sequence[Signature]]
_NUMBERS = re.compile(r"(?<![\w.])\d{1,6}(?=\b|x)|(?<=x)\d{1,6}\b")
_PLACES = re.compile(r"\b(?:dimension|dim|axis|tensor number|argument|position) \d+")  # which are no sizes


@dataclass(frozen=True)
class Axes:
    """The size of each named axis.

    neighbours: pairs of axes that are adjacent in some tensor. packed: axes in which q, k and v may be packed.
    """

    sizes: Mapping[str, int]
    neighbours: frozenset[tuple[str, str]] = frozenset()
    packed: frozenset[str] = frozenset()

    def name(self, size: int, other: Axes | None = None, twin: int = 0) -> str:
        """Return the name of an axis of this size: T, a product such as nh·hd or 3·C, or the number if it has no name.

        twin: the size in the same place of a call with other axes. By chance 2 is B here; there it is B only if it is one.
        """
        for named in (list(self.sizes.items()), self.packings, self.joined):
            found = [n for n, own in named if own == size > 1 and (other is None or other.size(n) == twin)]
            if found:
                return found[0] if len(found) == 1 else str(size)
        return str(size)

    def shape(self, shape: Sequence[int], other: Axes | None = None, twin: Sequence[int] = ()) -> str:
        """Return (B, T, C) for (2, 5, 12). twin: the shape in the same place of a call with other axes."""
        is_alike = other is not None and len(twin) == len(shape)
        named = map(self.name, shape, [other] * len(shape), twin) if is_alike else map(self.name, shape)
        return f"({', '.join(named)})"

    def size(self, name: str) -> int:
        """Return the size of an axis, or of a product, by its name."""
        return math.prod(int(factor) if factor.isdigit() else self.sizes[factor] for factor in name.split("·"))

    @property
    def packings(self) -> list[tuple[str, int]]:
        """Axes in which q, k and v are packed: 3·C."""
        return [(f"3·{name}", 3 * self.sizes[name]) for name in sorted(self.packed)]

    @property
    def joined(self) -> list[tuple[str, int]]:
        """Adjacent axes that a view may join: B·T, B·nh, nh·hd, T·hd."""
        pairs = {*self.neighbours, *pairwise(name for name in _HEADS if name in self.sizes)}
        return [(f"{a}·{b}", self.sizes[a] * self.sizes[b]) for a, b in sorted(pairs)]


_HEADS = ("B", "nh", "T", "hd")


def said_of(calls: Sequence[tuple[Axes, str]]) -> str:
    """Return "Here 13 is T_k, 9 is T_q" for the numbers in the first call's message that are sizes; "" where none is.

    A number may be a size by chance: in calls of other sizes the same axis has to stand in its place.
    """
    (axes, first), *others = ((a, [*map(int, _NUMBERS.findall(_PLACES.sub("", message)))]) for a, message in calls)
    others = [(a, told) for a, told in others if len(told) == len(first) and a.sizes.keys() == axes.sizes.keys()]
    named = dict[str, None]()
    for place, size in enumerate(first if any(a.sizes != axes.sizes for a, _ in others) else ()):
        name = axes.name(size)
        if name != str(size) and all(other.size(name) == numbers[place] for other, numbers in others):
            named[f"{size} is {name}"] = None
    return f"Here {', '.join(named)}" if named else ""


def axes_of(
    signature: Signature,
    call: Call,
    returned: Sequence[int],
    others: Signatures,
    parts: Mapping[Path, Sequence[int]] | None = None,
) -> Axes | None:
    """Return the axes of a recorded call that returned a tensor of this shape; None if the signature does not fit the call.

    parts: where it returned several, the shape of each. Of a call with several steps, what is said is of the first.
    """
    rows = [*_rows(signature.call, call.args, call.kwargs, others)]
    if signature.build is not None:
        if not isinstance(call.subject, Build):
            return None
        rows = [*_rows(signature.build, call.subject.args, call.subject.kwargs, others), *rows]
    if signature.form is None:
        rows.append(_Row(signature.returns, returned))
    rows += [_Row(shape, parts[path]) for path, shape in signature.shapes if parts is not None and path in parts]
    sizes = _solved(rows)
    if sizes is None:
        return None
    tensors = (row.axes for row in rows if not row.is_number or len(row.axes[0].factors) > 1)
    beside = [[f for axis in axes for f in axis.factors if isinstance(f, str)] for axes in tensors]
    neighbours = frozenset(pair for names in beside for pair in pairwise(names) if pair[0] != pair[1])
    has_weights = any(isinstance(value, Build | StandIn) for value in call.given)
    return Axes(sizes, neighbours, frozenset(names[-1] for names in beside if names and has_weights))


@dataclass(frozen=True)
class _Row:
    """Axes that are side by side, and their sizes: an equation for each. None: what is given is of another kind."""

    axes: Sequence[Axis]
    sizes: Sequence[int] | None
    is_number: bool = False


def _rows(
    parameters: Sequence[Parameter], args: Sequence[object], by_name: Mapping[str, object], others: Signatures
) -> Iterator[_Row]:
    given = {**by_name, **dict(zip((each.name for each in parameters), args, strict=False))}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None and parameter.may_lack:
            continue
        if parameter.name not in given:
            yield _Row((), None)
        elif parameter.shape is not None:
            yield _Row(parameter.shape, value.shape if isinstance(value, Tensor) else ())
        elif parameter.attributes:
            known = value.attributes if isinstance(value, StandIn) else {}
            yield from (_number(axis, known.get(name)) for name, axis in parameter.attributes)
        elif isinstance(value, Build):
            made = others.get(str(parameter.axis.factors[0]) if parameter.axis else "", ())[:1]
            for build in (each.build for each in made if each.build is not None):
                yield from _rows(build, value.args, value.kwargs, others)
        elif parameter.axis is not None:
            yield _number(parameter.axis, value)


def _number(axis: Axis, value: object) -> _Row:
    return _Row((axis,), (value,) if isinstance(value, int) else None, is_number=True)


def _solved(rows: Sequence[_Row]) -> dict[str, int] | None:
    """Return the size of each axis, one unknown after the other; None where nothing fits, or some stay unknown."""
    if any(row.sizes is None or len(row.sizes) != len(row.axes) for row in rows):
        return None
    equations = [pair for row in rows for pair in zip(row.axes, row.sizes or (), strict=True)]
    sizes: dict[str, int] = {}
    waiting = equations
    while waiting:
        later = []
        for axis, size in waiting:
            unknown = [f for f in axis.factors if isinstance(f, str) and f not in sizes]
            if len(unknown) > 1:
                later.append((axis, size))
            elif unknown:
                sizes[unknown[0]] = size // max(_product(axis, sizes), 1)
        if len(later) == len(waiting):
            return None
        waiting = later
    return sizes if all(_product(axis, sizes) == size for axis, size in equations) else None


def _product(axis: Axis, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.get(factor, 1) if isinstance(factor, str) else factor for factor in axis.factors)
