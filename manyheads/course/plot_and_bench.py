"""What an exercise's row in course.yaml says of `course bench`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .shapes import Axis, Parameter, Signature, parse_signature

# Sizes as course.yaml writes them: a number, or arithmetic with names of other sizes, such as `min(T, 256)`.

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"min": min, "max": max}


def size_of(text: str | int, known: Mapping[str, int]) -> int:
    """Return the size that the text says. Raises ValueError with one sentence."""
    try:
        return _value(ast.parse(str(text), mode="eval").body, known)
    except KeyError as unknown:
        raise ValueError(f"{text!r} names {unknown.args[0]!r}, which has no size") from None
    except (SyntaxError, TypeError):
        raise ValueError(f"{text!r} is not a size, such as 64, T + 1 or min(T, 256)") from None


def _value(node: ast.expr, known: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, known), _value(node.right, known))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
        and not node.keywords
    ):
        return _FUNCTIONS[node.func.id](*(_value(arg, known) for arg in node.args))
    raise TypeError


# What `course bench` measures of an exercise, as its row in course.yaml says.

Sizes = dict[str, int | str]
Quantity = Literal["time", "memory", "value"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasuredLine(_Model):
    """One column of the table, and one line of the plot: a call, and what differs from the measurement's sizes."""

    name: str = Field(min_length=1, description="what it is called in the table")
    call: str = Field(min_length=1, description="a function or class that has shapes")
    sizes: Sizes = Field({}, description="such as T: 1, T_k: min(T, 256)")
    after: Sizes | None = Field(
        None, description="sizes of a call before it, not measured, whose opaque result it is given"
    )


class Measurement(_Model):
    """What is measured while one size grows."""

    title: str = Field(min_length=1)
    teaches: str = Field(min_length=1, description="in one sentence: what the numbers show")
    measures: Quantity = Field(
        description="time of a call, the most memory that its tensors hold at once, or the number of bytes that it returns"
    )
    over: str = Field(min_length=1, description="the name of the size that grows")
    label: str = Field("", description="what that size is called in the table [default: its name]")
    values: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=2, description="that size, from small to large")
    sizes: Sizes = Field({}, description="the sizes of all lines: numbers, or arithmetic with names such as nh * hd")
    lines: tuple[MeasuredLine, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _values_grow(self) -> Measurement:
        if sorted(set(self.values)) != list(self.values):
            raise ValueError(f"the values of {self.over} should grow")
        return self

    def known(self, line: MeasuredLine, value: int, before: bool = False) -> dict[str, int]:
        """Return every size of a line at a value; of the call before it, where asked. Raises ValueError."""
        written = {**self.sizes, **line.sizes, **((line.after or {}) if before else {})}
        plain = {name: size for name, size in written.items() if isinstance(size, int)}
        known = {**plain, self.over: value}
        return {**known, **{name: size_of(text, known) for name, text in written.items() if isinstance(text, str)}}


def signature_for(signatures: tuple[Signature, ...], sizes: Mapping[str, int]) -> Signature | None:
    """Return the signature all of whose sizes are known, with the most parts; None where there is none."""
    able = [signature for signature in signatures if all(name in sizes for name in _names(signature))]
    return max(able, key=lambda each: len(set(_names(each))), default=None)


def product(axis: Axis, sizes: Mapping[str, int]) -> int:
    """Return the size of an axis."""
    found = 1
    for factor in axis.factors:
        found *= sizes[factor] if isinstance(factor, str) else factor
    return found


def refuse_unknown(measurements: tuple[Measurement, ...], shapes: Mapping[str, str | tuple[str, ...]]) -> None:
    """Raise ValueError for a line whose call cannot be made: its function has no shapes, or a size is missing."""
    for measurement in measurements:
        for line in measurement.lines:
            if line.call not in shapes:
                raise ValueError(f"{measurement.title}, {line.name}: {line.call} has no shapes")
            listed = shapes[line.call]
            signatures = tuple(map(parse_signature, (listed,) if isinstance(listed, str) else listed))
            for value in measurement.values:
                known = measurement.known(line, value), measurement.known(line, value, before=True)
                if any(signature_for(signatures, sizes) is None for sizes in known):
                    raise ValueError(f"{measurement.title}, {line.name}: sizes that {line.call} names are missing")


def _names(signature: Signature) -> Iterator[str]:
    """Yield the sizes that arguments of this signature need."""
    for parameter in (*(signature.build or ()), *signature.call):
        yield from _names_of(parameter)


def _names_of(parameter: Parameter) -> Iterator[str]:
    if parameter.may_lack:
        return
    if parameter.attributes:
        yield f"{parameter.name}, an object"  # which nobody can give as a size
    axes = parameter.shape or ((parameter.axis,) if parameter.axis else (Axis((parameter.name,)),))
    yield from (factor for axis in axes for factor in axis.factors if isinstance(factor, str))
