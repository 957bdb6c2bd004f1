"""Read what a call returned, part by part, as its form asks. No code of the attempt runs meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor

from .answers import Output, dtype_name
from .form import OPAQUE, Form, Path, misfit
from .text import NAME_LIMIT, plain, type_name
from .wire import bare

LENGTH_LIMIT = 9  # the largest length of a tuple or a list that is told
_MISSING = object()


def outputs_of(result: object, form: Form, depth: int = 0) -> list[Output]:
    """Return an output for each leaf of the form. Opaque parts are named and not described."""
    if form.kind == "opaque":
        return [Output(OPAQUE)]
    if form.is_leaf:
        return [output_of(result)]
    parts = _parts(result, form)
    if isinstance(parts, str):
        return [Output(plain(misfit(depth, parts), NAME_LIMIT))] * form.count
    pairs = zip(parts, form.parts, strict=True)
    return [output for part, of_part in pairs for output in outputs_of(part, of_part, depth + 1)]


def fits(result: object, form: Form) -> bool:
    """Return whether the result has the structure that is asked."""
    if form.is_leaf:
        return True
    parts = _parts(result, form)
    return not isinstance(parts, str) and all(map(fits, parts, form.parts))


def part_at(result: object, form: Form, path: Path) -> object:
    """Return the part at this path of a result that fits the form."""
    for place in path:
        result, form = cast("list[object]", _parts(result, form))[place], form.parts[place]
    return result


def leaves_of(result: object, form: Form) -> list[object]:
    """Return the value at each leaf of a result that fits the form."""
    return [part_at(result, form, path) for path, _ in form.leaves()]


def output_of(result: object) -> Output:
    """Return a tensor or a number as data; of anything else the name of its type."""
    if issubclass(type(result), Tensor):  # isinstance would call the object's __class__
        value = bare(cast("Tensor", result))
        dtype, device, shape = dtype_name(value.dtype), value.device.type, tuple(value.shape)
        if value.layout is not torch.strided or value.is_quantized or value.is_complex() or value.is_nested:
            return Output(f"{str(value.layout).removeprefix('torch.')} {dtype} tensor")
        return Output("tensor", None if value.device.type == "meta" else value.cpu().clone(), dtype, device, shape)
    if isinstance(result, bool | int | float):
        return Output(type_name(type(result)), torch.tensor(float(result), dtype=torch.float64), shape=())
    return Output(type_name(type(result)))


def _parts(result: object, form: Form) -> list[object] | str:
    """Return the parts, in the form's order; or what came in place of them. A dict, like an object, may have more."""
    kind = type(result)
    if form.kind == "tuple":
        if not issubclass(kind, tuple | list):
            return _came(result)
        held: Iterable[object] = cast("Iterable[object]", result)
        found: list[object] = list((tuple if issubclass(kind, tuple) else list).__iter__(held))  # type: ignore[arg-type]
        return found if len(found) == len(form.parts) else _came(result)
    if form.kind == "dict":
        if not issubclass(kind, dict):
            return _came(result)
        parts = [dict.get(cast("dict[str, object]", result), name, _MISSING) for name in form.names]
    else:
        fields = _fields_of(kind)
        if fields is None:
            return _came(result)
        parts = [_field(result, name) if name in fields else _MISSING for name in form.names]
    lacking = [name for name, part in zip(form.names, parts, strict=True) if part is _MISSING]
    return f"without {lacking[0]}" if lacking else parts


def _came(result: object) -> str:
    """Return the name of the result's type, with its length where it is a tuple or a list."""
    kind = type(result)
    if issubclass(kind, Tensor):
        return "tensor"
    if issubclass(kind, tuple | list):
        length = tuple.__len__(result) if issubclass(kind, tuple) else list.__len__(result)  # type: ignore[arg-type]
        return f"{'tuple' if issubclass(kind, tuple) else 'list'} of {min(length, LENGTH_LIMIT)}"
    return "dict" if issubclass(kind, dict) else type_name(kind)


def _fields_of(kind: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, or of a named tuple's; None for any other type."""
    for base in type.mro(kind):
        held: Any = type.__getattribute__(base, "__dict__")
        for name in ("__dataclass_fields__", "_fields"):
            if name in held and isinstance(held[name], dict | tuple):
                return tuple(each for each in held[name] if type(each) is str)
    return None


def _field(result: object, name: str) -> object:
    """Return a field, past any __getattribute__ of the attempt's own."""
    try:
        return object.__getattribute__(result, name)
    except AttributeError:
        return _MISSING
