"""Questions about one line of a student's own run: the shape of its result, an axis of it, its memory, where a number comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations, zip_longest

import torch
from torch import Tensor

from ..box.worker.answers import Step
from ..box.worker.messages import Call, TraceCall
from ..checks.cast import map_call
from .question import Observe, Option, Question, Version, ask
from .question_versions import Material
from .small_calls import CROP, Small


@dataclass(frozen=True)
class Visited:
    """The last operation of a line, which is the same in every visit of it."""

    number: int
    step: Step

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its result."""
        return self.step.outputs[0].shape


def visited_lines(traced_steps: tuple[Step, ...], order: tuple[int, ...]) -> list[Visited]:
    """Return the lines whose result is one tensor with axes, of the same shape in every visit."""
    results: dict[int, Step] = {}
    for place, after in zip_longest(order, order[1:]):
        step = traced_steps[place]
        if after is None or traced_steps[after].lines[: len(step.lines)] != step.lines:  # nor a line that it calls
            results[step.lines[-1]] = replace(step, crops=(), numbers=())
    last = {(step.lines[-1], step.sites[-1]) for step in results.values()}
    keys: dict[int, set[object]] = {}
    for step in traced_steps:
        if (step.lines[-1], step.sites[-1]) in last:
            keys.setdefault(step.lines[-1], set()).add(_key(step))
    found = ((number, step) for number, step in results.items() if len(keys[number]) == 1)
    return [
        Visited(n, s) for n, s in found if s.output_count == 1 and s.outputs and s.outputs[0].shape and not s.raised
    ]


def _key(step: Step) -> object:
    return step.name, step.storage, tuple(info.shape for info in step.outputs)


def _of(small: Small) -> list[Visited]:
    return [v for v in visited_lines(small.traced.steps, small.traced.order) if v.number in small.plain]


def _observe(call: Call, number: int, what: str) -> Observe:
    """Return how to see the shape of a line's result, or how its memory came about."""

    def observe(version: Version, own: Version) -> str:
        traced = version.traced(TraceCall(call, CROP))
        line = next((v for v in visited_lines(traced.steps, traced.order) if v.number == number), None)
        return "" if line is None else shown(line.shape) if what == "shape" else line.step.storage

    return observe


def shown(shape: tuple[int, ...]) -> str:
    """Return a shape as Python prints it."""
    return str(tuple(shape))


def shape_at_line(material: Material) -> Iterator[Question | None]:
    """Ask which shape a line's result has."""
    for small in material.smalls:
        lines = _of(small)
        for line in lines:
            right = Option(
                shown(line.shape),
                f"That is {small.named(line.shape) or 'what it has when your code runs'}.",
                observe=_observe(small.call, line.number, "shape"),
            )
            near = [o for o in lines if abs(len(o.shape) - len(line.shape)) <= 1 and len(o.shape) > 1]
            likely = [
                *(
                    Option(shown(s), f"That shape goes into the last operation of line {line.number}.")
                    for s in _inputs(line.step)
                ),
                *_reordered(line.shape),
                *(Option(shown(o.shape), f"That is the result of line {o.number}.") for o in near),
            ]
            material.rng.shuffle(likely)
            wrong = [*likely, *_joined(line.shape)]
            text = f"{small.runs} Which shape does the result of line {line.number} have?"
            yield ask("shape_at_line", text, right, wrong, material.rng, material.line(line.number))


def _inputs(step: Step) -> list[tuple[int, ...]]:
    return [info.shape for info in step.inputs if len(info.shape) > 1]


def _reordered(shape: tuple[int, ...]) -> Iterator[Option]:
    for a, b in combinations(range(len(shape)), 2):
        swapped = list(shape)
        swapped[a], swapped[b] = swapped[b], swapped[a]
        yield Option(shown(tuple(swapped)), f"There axes {a} and {b} stand the other way round.")


def _joined(shape: tuple[int, ...]) -> Iterator[Option]:
    for place in range(len(shape) - 1):
        joined = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
        yield Option(shown(joined), f"There axes {place} and {place + 1} are joined into one.")
    yield Option(shown((*shape, 1)), "There one axis more is kept, of size 1.")
    yield Option(shown((1, *shape)), "There one axis more stands in front, of size 1.")
    yield Option(shown(shape[:-1]), "There the last axis is gone.")


def axis_at_line(material: Material) -> Iterator[Question | None]:
    """Ask what one axis of a line's result counts."""
    for small in material.smalls:
        names = small.names
        for line in _of(small):
            axes = [names.get(size) for size in line.shape]
            for place, name in enumerate(axes):
                if name is None or len(axes) < 2:
                    continue
                others = [other for other in names.values() if other != name]
                wrong = [Option(_counted(small, other), _where_is(axes, other)) for other in others]
                size = line.shape[place]
                other = Option(f"nothing with a name: its size is {size + 1}", f"Its size is {size}.")
                material.rng.shuffle(wrong)
                right = Option(
                    _counted(small, name),
                    f"The result of line {line.number} has the shape {small.named(line.shape) or shown(line.shape)}.",
                    observe=_axis(small, line.number, place),
                )
                text = f"{small.runs} What does axis {place} of the result of line {line.number} count?"
                yield ask("axis_at_line", text, right, [*wrong, other], material.rng, material.line(line.number))


def _axis(small: Small, number: int, place: int) -> Observe:
    shape_of = _observe(small.call, number, "shape")

    def observe(version: Version, own: Version) -> str:
        sizes = [int(n) for n in shape_of(version, own).strip("()").split(",") if n.strip()]
        names = small.names
        return _counted(small, names[sizes[place]]) if place < len(sizes) and sizes[place] in names else ""

    return observe


def _counted(small: Small, name: str) -> str:
    return f"{name}, {small.axes.sizes[name]} of them"


def _where_is(axes: list[str | None], name: str) -> str:
    return f"{name} is axis {axes.index(name)} there." if name in axes else f"No axis there is {name} by itself."


_MEMORY = {
    "view": ("a view: the same memory, read in another way", "It would be a view if no number were moved or computed."),
    "copy": ("a copy: the same numbers in new memory", "It would be a copy if the same numbers had to be moved."),
    "new": ("new memory with newly computed numbers", "It would be new if its numbers were computed there."),
    "in place": ("the same tensor, changed in place", "It would be in place if it wrote into the tensor that it was given."),
}  # fmt: skip
# Whose numbers are the same or not quite, or are not computed; and what has no name.
_UNCLEAR = frozenset(
    "to type type_as float double half bfloat16 int long bool pad empty empty_like new_empty torch_function".split()
)


def memory_at_line(material: Material) -> Iterator[Question | None]:
    """Ask how a line's result lies in memory."""
    for small in material.smalls:
        for line in _of(small):
            kinds = {step.storage for step in small.traced.steps if step.lines[-1] == line.number}
            kind, name = line.step.storage, line.step.name
            if kind not in _MEMORY or name in _UNCLEAR or (kind != "new" and kinds - {kind, "view", "same"}):
                continue  # what the line does to memory before its last operation tells another story
            wrong = [Option(text, why) for other, (text, why) in _MEMORY.items() if other != kind]
            right = Option(
                _MEMORY[kind][0],
                f"`{name}` does that here.",
                observe=_observe(small.call, line.number, "storage"),
                shows=kind,
            )
            text = f"{small.runs} What is the result of line {line.number}?"
            yield ask("memory_at_line", text, right, wrong, material.rng, material.line(line.number))


def origin_at_line(material: Material) -> Iterator[Question | None]:
    """Ask which number of a counted input stands at a place, after lines that only move numbers."""
    for small in material.smalls:
        counted = map_call(small.call, _counting)
        given = next((v for v in counted.args if isinstance(v, Tensor) and v.is_floating_point() and v.dim() > 1), None)
        name = next(
            (n for n, v in small.example.arguments.items() if isinstance(v, Tensor) and v.is_floating_point()), ""
        )
        if given is None or not name or not isinstance(counted.subject, str):
            continue
        traced = material.own.traced(TraceCall(counted, CROP))
        for place, step in enumerate(traced.steps):
            table = step.crops[0] if step.crops else None
            if table is None or traced.order.count(place) != 1 or step.lines[-1] not in small.plain:
                continue
            if not _is_moved(table, step.outputs[0].shape, given):
                continue
            yield _origin(material, small, counted, given, name, step, table)


def _counting(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point() or not tensor.dim():
        return tensor
    return torch.arange(tensor.numel(), dtype=tensor.dtype).view(tensor.shape)


def _is_moved(table: Tensor, shape: tuple[int, ...], given: Tensor) -> bool:
    """Return whether a whole result holds the input's numbers in another order, or in other axes."""
    whole = tuple(table.shape) == tuple(shape) and table.numel() == given.numel() and table.dim() > 1
    return whole and bool(torch.equal(table.flatten().sort().values, given.flatten())) and table.shape != given.shape


def _origin(
    material: Material, small: Small, call: Call, given: Tensor, name: str, step: Step, table: Tensor
) -> Question | None:
    number = step.lines[-1]
    index = _place(material, table)
    value = int(table[index])

    def observe(version: Version, own: Version) -> str:
        again = version.traced(TraceCall(call, CROP))
        tables = [
            s.crops[0] for s in again.steps if s.lines[-1] == number and s.crops and s.crops[0].shape == table.shape
        ]
        return str(int(tables[-1][index])) if tables else ""

    last = [s for s in material.own.traced(TraceCall(call, CROP)).steps if s.lines[-1] == number][-1]
    if not last.crops or not torch.equal(last.crops[0], table):  # the line computes something else in the end
        return None
    flat = given.flatten().view(table.shape)
    wrong = [
        Option(
            str(int(flat[index])), "That stands there if the numbers are only read in other axes: a view moves nothing."
        )
    ]
    for order in permutations(range(table.dim())):
        other = tuple(index[axis] for axis in order)
        if all(i < size for i, size in zip(other, table.shape, strict=True)) and other != index:
            wrong.append(Option(str(int(table[other])), f"That stands at {list(other)}."))
    for step_, why in ((1, "one further along"), (-1, "one back along")):
        axis = table.dim() - 2
        if 0 <= index[axis] + step_ < table.shape[axis]:
            other = (*index[:axis], index[axis] + step_, *index[axis + 1 :])
            wrong.append(Option(str(int(table[other])), f"That stands {why} axis {axis}."))
    text = (
        f"{small.runs} {name}, of shape {shown(tuple(given.shape))}, holds 0, 1, 2, … in order. "
        f"Which number stands at {list(index)} of the result of line {number}?"
    )
    right = Option(str(value), f"Row by row {name} is counted; line {number} brings {value} there.", observe=observe)
    return ask("origin_at_line", text, right, wrong, material.rng, material.line(number))


def _place(material: Material, table: Tensor) -> tuple[int, ...]:
    """Return a place whose index is not 0 along most axes."""
    first = 0 if table.dim() > 2 else 1
    return tuple(
        material.rng.randrange(min(first if axis == 0 else 1, size - 1), size if axis or first else 1)
        for axis, size in enumerate(table.shape)
    )
