"""Explain a student's forward pass: what each line does to shapes and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from ..box.worker.answers import Step, TensorInfo, Traced
from ..checks.answer import Answer
from ..checks.explain import describe_exception
from ..checks.outcome import CheckFailed
from ..checks.sanitize import joined
from ..judge.axes import Axes
from ..judge.cures import cure
from ..result import ExerciseResult
from ..submission import AttemptSource, lines_of, proved_line
from ..submission.source_text import printable
from ..submission.standing import in_cells
from .example import Example
from .follow import returned
from .origins import OriginTable, origins

LONGEST = 60  # the most steps of one round


@dataclass(frozen=True)
class Loop:
    """A loop: its first round and the number of rounds.

    `alike`: whether every round is exactly like the first.
    """

    body: tuple[Item, ...]
    times: int
    alike: bool

    def steps(self) -> list[int]:
        """Return the steps of the first round, inner loops unrolled once."""
        return [
            step
            for item in self.body
            for step in (item.steps() if isinstance(item, Loop) else [item])
        ]


Item = int | Loop


def fold(order: Sequence[int], key: Callable[[int], Hashable]) -> tuple[Item, ...]:
    """Fold the loops in a sequence, shortest rounds first.

    Steps with the same key count as the same.
    """
    items: list[Item] = list(order)
    length = 1
    while length <= min(LONGEST, len(items) // 2):
        shorter = _rounds(items, [_loosely(item, key) for item in items], length)
        # Start again where one was folded: it may be part of an outer loop's round.
        length = 1 if len(shorter) < len(items) else length + 1
        items = shorter
    return tuple(items)


def _loosely(item: Item, key: Callable[[int], Hashable]) -> Hashable:
    """Return the key of an item regardless of its count: in a growing loop, the inner loop's first
    run is a single step.
    """
    if isinstance(item, int):
        return key(item)
    body = tuple(_loosely(node, key) for node in item.body)
    return body[0] if len(body) == 1 else body


def _rounds(items: list[Item], keys: list[Hashable], length: int) -> list[Item]:
    found: list[Item] = []
    at = 0
    while at < len(items):
        times = 1
        while keys[at : at + length] == keys[at + times * length : at + (times + 1) * length]:
            times += 1
        if times == 1:
            found.append(items[at])
            at += 1
            continue
        rounds = [tuple(items[at + n * length : at + (n + 1) * length]) for n in range(times)]
        found.append(Loop(rounds[0], times, all(each == rounds[0] for each in rounds)))
        at += times * length
    return found


_READ_ANEW = frozenset("view reshape flatten unflatten reshape_as view_as".split())


def view_warning(step: Step, axes: Axes) -> str:
    """Return the warning, or "".

    A view or reshape keeps the order of the numbers, so if it changes the stride of the token axis,
    that axis no longer holds tokens.
    """
    if step.name not in _READ_ANEW or len(step.inputs) != 1 or len(step.outputs) != 1:
        return ""
    before, after = step.inputs[0].shape, step.outputs[0].shape
    for name, size in axes.sizes.items():
        was = [_stride(before, at) for at, other in enumerate(before) if other == size]
        now = [_stride(after, at) for at, other in enumerate(after) if other == size]
        if name[0] == "T" and size > 1 and was and now and not set(was) & set(now):
            then, here = axes.name(was[0]), axes.name(now[0])
            return (
                f"{name} is no longer {name}: a step along it was {then} numbers, here it is {here}"
            )
    return ""


def _stride(shape: Sequence[int], axis: int) -> int:
    return math.prod(shape[axis + 1 :])


_SIGNS = {"div": "/", "mul": "·", "add": "+", "sub": "−", "pow": "^", "mul_": "·", "div_": "/"}
_PLAIN = ("float32", "float64")


@dataclass(frozen=True)
class Operation:
    """One operation of a line.

    `data`: how its output's memory relates to the inputs. `warning`: a probable mistake.
    """

    name: str
    takes: str
    gives: str
    data: str = ""
    warning: str = ""
    raised: bool = False
    crop: Tensor | None = None
    whole: tuple[int, ...] = ()  # the shape of the tensor that the crop is from


@dataclass(frozen=True)
class TraceLine:
    """A line of the student's code, and the operations that it ran.

    `depth`: how many lines called it.

    proved: whether one small change of it is known to make every check pass.
    """

    depth: int
    label: str
    code: str
    operations: tuple[Operation, ...] = ()
    proved: bool = False


@dataclass(frozen=True)
class Repeated:
    """The lines from `first` to `last` ran `more` times more. `alike`: with the same shapes."""

    depth: int
    first: str
    last: str
    more: int
    alike: bool


@dataclass(frozen=True)
class Explained:
    """One explained call.

    returned, right: what it returned, and whether that is right. raised: the exception, if any.
    waits_for: another function, which a check has found to come first.
    """

    title: str
    sizes: str
    entries: tuple[TraceLine | Repeated, ...]
    returned: str = ""
    right: bool = False
    raised: str = ""
    dropped: int = 0
    waits_for: str = ""
    tables: tuple[OriginTable, ...] = ()


def explained(
    example: Example, traced: Traced, source: AttemptSource, last: ExerciseResult | None = None
) -> Explained:
    """Explain a traced example, with what was kept of its outputs.

    last: what the last check of the attempt found.
    """
    axes, proved = example.axes, {line.line for line in last.lines} if last else set[int]()
    waits = (
        next((f.waits_for for f in last.functions if f.name == example.target), "") if last else ""
    )
    items = fold(traced.order, lambda place: (traced.steps[place].lines, traced.steps[place].sites))
    operations = [
        _operation(*both, axes)
        for both in zip(traced.steps, example.beside(traced.steps), strict=True)
    ]
    entries = tuple(_entries(items, traced, operations, source, proved))
    sizes = ", ".join(f"{k} = {v}" for k, v in axes.sizes.items())
    later = f", which waits for {waits}" if waits else ""
    found = Explained(
        example.title + later, sizes, entries, dropped=traced.dropped, waits_for=waits
    )
    raised = traced.reply.raised
    if raised is not None:
        said = joined(f"It {describe_exception(raised)}", cure(source.source, raised))
        return replace(
            found, raised=in_cells(said if said.endswith(("?", ".")) else f"{said}.", source)
        )
    try:
        Answer(example.call, traced.reply).must_return()
    except CheckFailed as failed:
        return replace(found, returned=f"returns something else: {failed}")
    told = [returned(part, traced.reply.outputs[part.place]) for part in example.every]
    said = "; ".join(
        f"{each.label} {one}".lstrip() for each, (one, _) in zip(example.every, told, strict=True)
    )
    first, right = traced.reply.outputs[example.place].tensor, all(right for _, right in told)
    has_tables = (
        first is not None and first.shape == example.expected.shape and example.compares_values
    )
    tables = origins(example, first) if first is not None and has_tables else ()
    title = example.title if right else found.title
    return replace(found, title=title, returned=f"returns {said}", right=right, tables=tables)


def shortened(call: Explained, before: int) -> Explained:
    """Return the lines that are marked, with so many before each, or else the last; of the others
    the last operation alone.

    Of the tables three rows that are wrong.
    """
    lines = {place: line for place, line in enumerate(call.entries) if isinstance(line, TraceLine)}
    marked = [
        at
        for at, each in lines.items()
        if each.proved or any(o.warning or o.raised for o in each.operations)
    ]
    near = {place - back for place in marked or [len(call.entries)] for back in range(before + 1)}
    first = min(near & lines.keys(), default=0)  # what is repeated before it would repeat nothing
    brief = {
        at: replace(each, operations=each.operations[-1:])
        for at, each in lines.items()
        if at not in marked
    }
    shown = tuple(
        brief.get(at, each) for at, each in enumerate(call.entries) if at in near and at >= first
    )
    wrong = next((table for table in call.tables if table.wrong), None)
    tables = (
        call.tables
        if wrong is None
        else (replace(wrong, rows=wrong.wrong[:3], legend=call.tables[0].legend),)
    )
    return replace(call, entries=shown, tables=tables)


def _entries(
    items: Sequence[Item],
    traced: Traced,
    told: Sequence[Operation],
    source: AttemptSource,
    proved: Collection[int],
) -> Iterator[TraceLine | Repeated]:
    last, texts = tuple[int, ...](), lines_of(source.source)

    def label(number: int) -> str:
        place = proved_line(source, number)
        return f"cell {place.cell}, {place.line_in_cell}" if place.cell else str(number)

    def line_of(depth: int, number: int, done: Sequence[int] = ()) -> TraceLine:
        operations = tuple(told[place] for place in done)
        code = printable(texts[number - 1].strip()) if 0 < number <= len(texts) else ""
        return TraceLine(depth, label(number), code, operations, bool(done) and number in proved)

    for line in _lines(items, traced.steps):
        if isinstance(line, Repeated):
            yield replace(line, first=label(int(line.first)), last=label(int(line.last)))
            last = ()
            continue
        lines, done = line
        for depth, number in enumerate(lines[:-1]):
            if lines[: depth + 1] != last[: depth + 1]:
                yield line_of(depth, number)
        yield line_of(len(lines) - 1, lines[-1], done)
        last = lines
    raised = traced.reply.raised
    # it stopped before any operation of that line
    if raised and raised.line and raised.line not in last[-1:]:
        yield line_of(0, raised.line)


def _lines(
    items: Sequence[Item], steps: Sequence[Step]
) -> Iterator[tuple[tuple[int, ...], list[int]] | Repeated]:
    waiting: list[int] = []
    for item in items:
        if waiting and (isinstance(item, Loop) or steps[item].lines != steps[waiting[0]].lines):
            yield steps[waiting[0]].lines, waiting
            waiting = []
        if isinstance(item, Loop):
            yield from _lines(item.body, steps)
            body = [steps[place] for place in item.steps()]
            depth = min(len(node.lines) for node in body) - 1
            numbers = [node.lines[depth] for node in body]
            yield Repeated(depth, str(min(numbers)), str(max(numbers)), item.times - 1, item.alike)
        else:
            waiting.append(item)
    if waiting:
        yield steps[waiting[0]].lines, waiting


def _operation(step: Step, beside: tuple[Axes, Step | None], axes: Axes) -> Operation:
    other, twin = beside
    taken = zip(step.inputs, _counterparts(step.inputs, twin.inputs if twin else ()), strict=True)
    given = zip(
        step.outputs, _counterparts(step.outputs, twin.outputs if twin else ()), strict=True
    )
    number_there = twin.numbers[0] if twin and twin.numbers else None
    takes = _joined([_tensor(axes, here, other, there) for here, there in taken], step.input_count)
    if step.name in _SIGNS and len(step.inputs) == 1 and step.numbers:
        takes = (
            f"{takes} {_SIGNS[step.name]} "
            f"{number_in_words(axes, step.numbers[0], other, number_there)}"
        )
    elif "masked_fill" in step.name and step.numbers:
        number = f"{step.numbers[0]:.4g}".replace("-", "−")
        takes = f"{takes}, {number}"
    gives = _joined([_tensor(axes, here, other, there) for here, there in given], step.output_count)
    data = {"same": "the same tensor"}.get(
        step.storage, "" if step.storage == "new" else step.storage
    )
    if step.outputs and not step.outputs[0].contiguous:
        data = f"{data}, not contiguous" if data else "not contiguous"
    crop = step.crops[0] if step.crops else None
    whole = step.outputs[0].shape if step.outputs else ()
    return Operation(
        printable(step.name), takes, gives, data, view_warning(step, axes), step.raised, crop, whole
    )


def _counterparts(
    here: Sequence[TensorInfo], there: Sequence[TensorInfo]
) -> list[TensorInfo | None]:
    """Return for each tensor the one in its place in the twin, or the last one there; None where
    there is none.
    """
    return [there[min(place, len(there) - 1)] if there else None for place in range(len(here))]


def _tensor(axes: Axes, seen: TensorInfo, other: Axes, twin: TensorInfo | None) -> str:
    value_there = twin.value if twin else None
    if seen.value is not None and "(" in (
        number := number_in_words(axes, seen.value, other, value_there)
    ):
        return number
    if twin is None or len(twin.shape) != len(seen.shape):  # a name would be a coincidence
        shape = f"({', '.join(map(str, seen.shape))})"
    else:
        shape = axes.shape(seen.shape, other, twin.shape)
    return shape if seen.dtype in _PLAIN else f"{printable(seen.dtype)} {shape}"


def _joined(shapes: Sequence[str], count: int) -> str:
    if count > 1 and len(set(shapes)) == 1:
        return f"{count} × {shapes[0]}"
    return ", ".join(shapes) + (", …" if count > len(shapes) else "")


def number_in_words(axes: Axes, value: float, other: Axes, twin: float | None) -> str:
    """Return a number among the arguments, with its name if it has one: 2.646 (√hd).

    twin: the same one with other axes.
    """
    names = {
        name: n
        for name, n in _numbers(axes).items()
        if n != 1 and math.isclose(value, n, rel_tol=1e-5)
    }
    there = _numbers(other)
    title = next(
        (n for n in names if twin is not None and math.isclose(twin, there[n], rel_tol=1e-5)), ""
    )
    return f"{value:.4g} ({title})" if title else f"{value:.4g}"


def _numbers(axes: Axes) -> dict[str, float]:
    named = {f"√{name}": math.sqrt(size) for name, size in axes.sizes.items()} | dict(axes.sizes)
    return named | {f"1/{name}": 1 / number for name, number in named.items() if number}
