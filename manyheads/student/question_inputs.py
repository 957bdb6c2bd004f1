"""Questions about what small inputs show: where the result changes with one of them, and a row of it that is easy to compute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call, StandIn
from .example import Example
from .question import Observe, Option, Question, Version, ask
from .question_edits import becomes, is_same, leaves_unset
from .question_versions import Material
from .small_calls import Small

# Where the result changes with one position of an input.


def positions_moved(material: Material) -> Iterator[Question | None]:
    """Ask where the result changes if one position of an input does."""
    for small in material.smalls:
        for name, value, axis, out_axis in _moving_axes(small.example):
            size = value.shape[axis]
            place = material.rng.randrange(1, size - 1) if size > 2 else 1
            moved = _with(small.call, value, _moved_at(value, axis, place))

            def observe(
                version: Version, own: Version, small: Small = small, moved: Call = moved, out: int = out_axis
            ) -> str:
                return _changed_places(
                    version.reply(small.call), version.reply(moved), small.example.expected.shape, out
                )

            count = small.example.expected.shape[out_axis]
            right_text = observe(material.own, material.own)
            if not right_text:
                continue
            meanings = _sets(name, place, count, size)
            wrong = [
                *_versions_that_show(material, small, [small.call, moved], observe, right_text),
                *(Option(places, f"That would mean that {meaning}.") for places, meaning in meanings.items()),
            ]
            says = small.example.returns[out_axis].factors[0]
            text = (
                f"{small.runs} Then it runs again, and only position {place} of {name} along its axis {axis} is changed. "
                f"At which positions along {says}, axis {out_axis} of {_result(small)}, do numbers change?"
            )
            meaning = meanings.get(right_text, "numbers change at these positions")
            right = Option(right_text, f"In your code {meaning}: both runs were compared.", observe=observe)
            yield ask("positions_moved", text, right, wrong, material.rng)


def _moving_axes(example: Example) -> Iterator[tuple[str, Tensor, int, int]]:
    """Yield an argument, its value, an axis of it, and the axis of the result along which positions are asked."""
    names = [axis.factors[0] if len(axis.factors) == 1 else "" for axis in example.returns]
    for parameter in example.signature.call if example.signature else ():
        value = example.arguments.get(parameter.name)
        if not isinstance(value, Tensor) or not value.is_floating_point() or not parameter.shape:
            continue
        for axis, each in enumerate(parameter.shape):
            name = each.factors[0]
            outs = [
                out
                for out, other in enumerate(names)
                if other and str(other)[0] == "T" and example.expected.shape[out] > 2
            ]
            if str(name)[0] == "T" and value.shape[axis] > 2 and outs:
                out = next((o for o in outs if names[o] == name), outs[0])
                yield parameter.name, value, axis, out


def _moved_at(value: Tensor, axis: int, place: int) -> Tensor:
    moved = value.clone()
    moved.select(axis, place).add_(
        1.0 + torch.arange(moved.select(axis, place).numel()).view_as(moved.select(axis, place)) / 7
    )
    return moved


def _with(call: Call, value: Tensor, other: Tensor) -> Call:
    return call.map(lambda given: other if given is value else given)


def _result(small: Small) -> str:
    return "the result" if len(small.reply.outputs) == 1 else "its first result"


def _changed_places(before: Reply, after: Reply, shape: tuple[int, ...], axis: int) -> str:
    if before.raised or after.raised or not before.outputs or not after.outputs:
        return ""
    a, b = before.outputs[0].tensor, after.outputs[0].tensor
    if a is None or b is None or a.shape != shape or b.shape != shape:
        return ""
    moved = [not is_same(a.select(axis, i), b.select(axis, i)) for i in range(a.shape[axis])]
    return _places([i for i, changed in enumerate(moved) if changed], len(moved))


def _places(places: Sequence[int], count: int) -> str:
    if not places:
        return "at none"
    return f"at all {count}" if len(places) == count else f"only at {', '.join(map(str, places))}"


def _sets(name: str, place: int, count: int, size: int) -> dict[str, str]:
    """Return what the numbers that change mean, by their positions as an option has them."""
    on = f"on position {place} of {name}"
    found = {f"at all {count}": f"every position of the result depends {on}"}
    if size == count:  # else the same number is another place
        found |= {
            _places([place], count): f"only position {place} of the result depends {on}",
            _places(range(place, count), count): f"position {place} of the result and all later ones depend {on}",
            _places(range(place + 1), count): f"position {place} of the result and all earlier ones depend {on}",
            _places(range(place + 1, count), count): f"only positions of the result after {place} depend {on}",
        }
    return {**found, "at none": f"no position of the result depends {on}"}


def _versions_that_show(
    material: Material, small: Small, calls: Sequence[Call], observe: Observe, right: str
) -> list[Option]:
    """Return an option for each other thing that a version shows, in their random order."""
    for call in calls:
        material.replies(call, [v.edit.after for v in small.versions])
    found: dict[str, Option] = {}
    for version in () if leaves_unset(material) else small.versions:
        seen = observe(material.version(version.edit), material.own)
        if seen and seen != right and seen not in found:
            found[seen] = Option(seen, f"That is what you get if {becomes(version)}.", version.edit, observe=observe)
    return list(found.values())


# What a row of numbers is, for inputs that are easy to compute with.

_EASY = 24  # easy numbers are multiples of 1/12 below this
_LONGEST_ROW = 6


def easy_row(material: Material) -> Iterator[Question | None]:
    """Ask for a row of the result where inputs are zeros, ones or counted, so that the numbers can be found in one's head."""
    for small in material.smalls:
        for call, words in _easy_calls(small):
            reply = material.own.reply(call)
            rows = _rows(reply)
            if rows is None or not _is_easy(rows):
                continue
            place = material.rng.randrange(min(1, len(rows) - 1), len(rows))

            def observe(
                version: Version, own: Version, call: Call = call, place: int = place, rows: Tensor = rows
            ) -> str:
                found = _rows(version.reply(call))
                fits = found is not None and found.shape == rows.shape and _is_near(found)
                return _row_text(found[place]) if found is not None and fits else ""

            right_text = _row_text(rows[place])
            others = [Option(_row_text(row), f"That is row {i}.") for i, row in enumerate(rows) if i != place]
            wrong = [*_versions_that_show(material, small, [call], observe, right_text), *others]
            what = (
                "",
                _result(small),
                f"row {place} of {_result(small)}",
                f"row {place} of {_result(small)}, at index 0 of the axes before",
            )
            cut = small.example.expected.shape[-1] > _LONGEST_ROW
            asked = (
                f"{what[min(small.example.expected.dim(), 3)]}{f', its first {_LONGEST_ROW} numbers' if cut else ''}"
            )
            text = f"{small.runs} {words}What is {asked}?"
            yield ask(
                "easy_row",
                text,
                Option(right_text, "That is what your code returned for these inputs.", observe=observe),
                wrong,
                material.rng,
            )
            break


def _rows(reply: Reply) -> Tensor | None:
    table = reply.outputs[0].tensor if reply.outputs and reply.raised is None else None
    if table is None or not table.dim() or not table.numel():
        return None
    while table.dim() > 2:
        table = table[0]
    return table.view(-1, table.shape[-1])[:, :_LONGEST_ROW]


def _row_text(row: Tensor) -> str:
    if row.dtype == torch.bool:
        return f"[{', '.join(str(bool(v)) for v in row)}]"
    return f"[{', '.join(_number(float(v)) for v in row)}]"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value).replace("-", "−")
    return f"{round(value, 2) + 0.0:g}".replace("-", "−")


def _is_easy(rows: Tensor) -> bool:
    differ = len({_row_text(row) for row in rows}) > 1 or (len(rows) == 1 and bool(rows.any()))
    return differ and _is_near(rows)


def _is_near(rows: Tensor) -> bool:
    numbers = rows.double()[rows.double().isfinite()] * 12
    return not numbers.numel() or bool(
        (numbers - numbers.round()).abs().max() < 1e-3 and numbers.abs().max() < 12 * _EASY
    )


def _easy_calls(small: Small) -> Iterator[tuple[Call, str]]:
    """Yield the call with easy tensors, and what they are."""
    names = [
        n for n, v in small.example.arguments.items() if isinstance(v, Tensor) and v.is_floating_point() and v.dim()
    ]
    layers = _layers(small.call)
    weights: list[tuple[frozenset[str], str]] = [(frozenset(), "")]
    if layers:
        weights = [(frozenset(zero), _of_layers(zero)) for n in (1, 2, 0) for zero in combinations(layers, n)][:12]
    for zeros, of_layers in weights:
        for counted in (names[-1:], names) if len(names) > 1 else (names,):
            flat = all(small.example.arguments[n].dim() == 1 for n in counted)  # type: ignore[attr-defined]
            yield _easy(small, counted, zeros), f"{_of_inputs(names, counted, flat)}{of_layers}"


def _of_inputs(names: Sequence[str], counted: Sequence[str], flat: bool) -> str:
    zeros = [n for n in names if n not in counted]
    first = f"All numbers of {', '.join(zeros)} are 0. " if zeros else ""
    rows = "number 0 is 1, number 1 is 2" if flat else "every row 0 is all 1, every row 1 all 2"
    return f"{first}In {', '.join(counted)} {rows}, and so on. " if counted else first


def _of_layers(zero: Sequence[str]) -> str:
    others = "every other weight" if zero else "every weight"
    first = f"The weights {', '.join(zero)} are 0. " if zero else ""
    return f"{first}Row i of {others} has a 1 in column i % its width, and 0 elsewhere; every bias is 0. "


def _layers(call: Call) -> list[str]:
    if isinstance(call.subject, Build):
        return [
            name for name, value in (call.subject.state or {}).items() if isinstance(value, Tensor) and value.dim() == 2
        ]
    given = [value for value in call.args if isinstance(value, StandIn)]
    return list(given[0].linears) if given else []


def _easy(small: Small, counted: Sequence[str], zeros: frozenset[str]) -> Call:
    by_value = {id(value): name for name, value in small.example.arguments.items()}

    def easy(value: object) -> object:
        if isinstance(value, StandIn):
            return replace(value, linears={n: _weight(w, n in zeros) for n, w in value.linears.items()})
        if not isinstance(value, Tensor) or not value.is_floating_point() or not value.dim():
            return value
        return _counted(value) if by_value.get(id(value)) in counted else torch.zeros_like(value)

    call = small.call.map(easy)
    if isinstance(call.subject, Build) and call.subject.state is not None:
        state = {n: _weight(w, n in zeros) if isinstance(w, Tensor) else w for n, w in call.subject.state.items()}
        call = replace(call, subject=replace(call.subject, state=state))
    return call


def _counted(value: Tensor) -> Tensor:
    if value.dim() < 2:
        return torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape)
    rows = torch.arange(1, value.shape[-2] + 1, dtype=value.dtype)
    return rows.unsqueeze(-1).expand(value.shape).contiguous()


def _weight(value: Tensor, zero: bool) -> Tensor:
    if zero or value.dim() != 2:
        return torch.zeros_like(value)
    return torch.eye(value.shape[1], dtype=value.dtype).repeat(-(-value.shape[0] // value.shape[1]), 1)[
        : value.shape[0]
    ]
