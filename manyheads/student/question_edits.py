"""Questions whose wrong options are what other code would give: edits of the student's own."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call, StandIn
from ..diagnosis.reached_parts import name_of
from .example import Example
from .question import Observe, Option, Question, Version, ask
from .question_versions import ChangedLine, Material, Small, nodes_of

SAME_TO = 1e-5  # the largest difference of numbers that count as the same, relative to the largest of them

# What an edit of one line does.

RAISES, SHAPE, NUMBERS, NOTHING = (
    "an exception",
    "a result of another shape",
    "the same shape with other numbers",
    "the same result as before",
)
_WHY_NOT = {
    RAISES: "It would raise if sizes met that do not fit.",
    SHAPE: "The shape would change if the result had other axes, or one of another size.",
    NUMBERS: "Numbers would change if others were computed, or the same stood elsewhere.",
    NOTHING: "It would stay the same if the line did not matter for this call.",
}


_TRIVIAL = frozenset(
    {"NameError", "UnboundLocalError", "AttributeError", "TypeError"}
)  # no tensor is needed to see these


def outcome(reply: Reply | None, own: Reply) -> str:
    """Return what becomes of the first result beside the student's own; "" where it is nothing of these."""
    if reply is None:
        return ""
    if reply.raised is not None:
        return "" if reply.raised.type in _TRIVIAL else RAISES
    mine, theirs = own.outputs[0].tensor, reply.outputs[0].tensor if len(reply.outputs) == len(own.outputs) else None
    if mine is None or theirs is None or (mine.dim() and not theirs.dim()):  # no tensor: a list, or a number
        return ""
    if mine.shape != theirs.shape:
        return SHAPE
    return NUMBERS if not _is_same(mine, theirs) else NOTHING if mine.dtype == theirs.dtype else ""


def _is_same(a: Tensor, b: Tensor) -> bool:
    a, b = a.double(), b.double()
    largest = max(float(a[a.isfinite()].abs().max()) if a.isfinite().any() else 0.0, 1.0)
    return bool(torch.allclose(a, b, rtol=0.0, atol=SAME_TO * largest, equal_nan=True))


def _outcome_of(call: Call) -> Observe:
    def observe(version: Version, own: Version) -> str:
        return outcome(version.reply(call), own.reply(call))

    return observe


def _outcomes(material: Material, small: Small) -> dict[str, list[ChangedLine]]:
    """Return the versions by what they do to this call."""
    replies = material.replies(small.call, [v.edit.after for v in small.versions])
    found: dict[str, list[ChangedLine]] = {}
    for version, reply in zip(small.versions, replies, strict=True):
        found.setdefault(outcome(reply, small.reply), []).append(version)
    unset = (NUMBERS, NOTHING) if _leaves_unset(material) else ()
    return {seen: some for seen, some in found.items() if seen and seen not in unset}


def _leaves_unset(material: Material) -> bool:
    """Return whether an edit may leave memory that is not set: its numbers are chance."""
    called = (name_of(node) for node in nodes_of(material.source.source) if isinstance(node, ast.Call))
    return any("empty" in name for name in called)


def _becomes(version: ChangedLine) -> str:
    return f"line {version.number} becomes `{version.after}`"


def _counts(small: Small) -> str:
    return " Only its first result counts." if len(small.reply.outputs) > 1 else ""


def edit_outcome(material: Material) -> Iterator[Question | None]:
    """Ask what one edit of the code changes."""
    for small in material.smalls:
        outcomes = _outcomes(material, small)
        for seen, versions in outcomes.items():
            for version in versions[:3]:
                observe = _outcome_of(small.call)
                right = Option(seen, f"Your code was run with that edit: {seen}.", version.edit, observe=observe)
                wrong = [
                    Option(other, f"{why} Here it comes to {seen}.") for other, why in _WHY_NOT.items() if other != seen
                ]
                text = f"{small.runs} In your code {_becomes(version)}. What comes of it?{_counts(small)}"
                yield ask("edit_outcome", text, right, wrong, material.rng, material.line(version.number))


_ASKED_OUTCOMES = {
    RAISES: "raises an exception",
    SHAPE: "gives a result of another shape",
    NUMBERS: "keeps the shape and gives other numbers",
    NOTHING: "gives the same result as before",
}


def edit_with_outcome(material: Material) -> Iterator[Question | None]:
    """Ask which of four edits has one outcome."""
    for small in material.smalls:
        observe = _outcome_of(small.call)
        options = {
            seen: [
                Option(f"L{_becomes(v)[1:]}", f"With that edit it {words}.", v.edit, observe=observe, shows=seen)
                for v in _outcomes(material, small).get(seen, ())
            ]
            for seen, words in _ASKED_OUTCOMES.items()
        }
        for wanted in (seen for seen, some in options.items() if some):
            wrong = [option for seen, some in options.items() if seen != wanted for option in some]
            material.rng.shuffle(wrong)
            text = f"{small.runs} Which of these edits of your code {_ASKED_OUTCOMES[wanted]}?{_counts(small)}"
            yield ask("edit_with_outcome", text, options[wanted][0], wrong, material.rng)


# What a small input shows.


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
            wrong = [
                *_versions_that_show(material, small, [small.call, moved], observe, right_text),
                *_sets(place, count, size),
            ]
            says = small.example.returns[out_axis].factors[0]
            text = (
                f"{small.runs} Then it runs again, and only position {place} of {name} along its axis {axis} is changed. "
                f"At which positions along {says}, axis {out_axis} of {_result(small)}, do numbers change?"
            )
            right = Option(right_text, "Your code was run both times.", observe=observe)
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
    moved = [not _is_same(a.select(axis, i), b.select(axis, i)) for i in range(a.shape[axis])]
    return _places([i for i, changed in enumerate(moved) if changed], len(moved))


def _places(places: Sequence[int], count: int) -> str:
    if not places:
        return "at none"
    return f"at all {count}" if len(places) == count else f"only at {', '.join(map(str, places))}"


def _sets(place: int, count: int, size: int) -> Iterator[Option]:
    yield Option(f"at all {count}", "That is so where it has a say at every position.")
    if size == count:  # else the same number is another place
        yield Option(_places([place], count), "That is so where it has a say at its own position alone.")
        yield Option(_places(range(place, count), count), "That is so where it has a say there and at all later ones.")
        yield Option(_places(range(place + 1), count), "That is so where it has a say there and at all earlier ones.")
        yield Option(_places(range(place + 1, count), count), "That is so where it has a say at all later ones alone.")
    yield Option("at none", "That is so where it has no say at all.")


def _versions_that_show(
    material: Material, small: Small, calls: Sequence[Call], observe: Observe, right: str
) -> list[Option]:
    """Return an option for each other thing that a version shows, in their random order."""
    for call in calls:
        material.replies(call, [v.edit.after for v in small.versions])
    found: dict[str, Option] = {}
    for version in () if _leaves_unset(material) else small.versions:
        seen = observe(material.version(version.edit), material.own)
        if seen and seen != right and seen not in found:
            found[seen] = Option(seen, f"That is what you get if {_becomes(version)}.", version.edit, observe=observe)
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
                Option(right_text, "Your code was run with these inputs.", observe=observe),
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
