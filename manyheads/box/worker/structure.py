"""Read what a call returned, part by part, as its form asks.

Plain numbers become a tensor: the kind says what they were.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from .answers import Output, dtype_name
from .form import OPAQUE, Form, Path, misfit
from .text import NAME_LIMIT, plain, type_name
from .wire import bare

LENGTH_LIMIT = 9  # the largest length of a tuple or a list that is told


def outputs_of(result: object, form: Form, depth: int = 0) -> list[Output]:
    """Return an output for each leaf of the form. Opaque parts are named and not described."""
    if form.kind == "opaque":
        return [Output(OPAQUE)]
    if form.is_leaf:
        return [output_of(result)]
    elements = _elements_of(result, form)
    if isinstance(elements, str):
        return [Output(plain(misfit(depth, elements), NAME_LIMIT))] * form.count
    pairs = zip(elements, form.parts, strict=True)
    return [
        output for element, of_part in pairs for output in outputs_of(element, of_part, depth + 1)
    ]


def fits(result: object, form: Form) -> bool:
    """Return whether the result has the structure that is asked."""
    if form.is_leaf:
        return True
    elements = _elements_of(result, form)
    return not isinstance(elements, str) and all(map(fits, elements, form.parts))


def part_at(result: object, form: Form, path: Path) -> object:
    """Return the part at this path of a result that fits the form."""
    for index in path:
        result, form = cast("list[object]", _elements_of(result, form))[index], form.parts[index]
    return result


def leaves_of(result: object, form: Form) -> list[object]:
    """Return the value at each leaf of a result that fits the form."""
    return [part_at(result, form, path) for path, _ in form.leaves()]


def output_of(result: Any) -> Output:
    """Return a tensor, or plain numbers of another kind, as data; of anything else the name of its
    type.
    """
    if issubclass(type(result), Tensor):  # isinstance would call the object's __class__
        value = bare(result)
        dtype, device, shape = dtype_name(value.dtype), value.device.type, tuple(value.shape)
        if (
            value.layout is not torch.strided
            or value.is_quantized
            or value.is_complex()
            or value.is_nested
        ):
            return Output(f"{str(value.layout).removeprefix('torch.')} {dtype} tensor")
        return Output(
            "tensor",
            None if value.device.type == "meta" else value.cpu().clone(),
            dtype,
            device,
            shape,
        )
    # NumPy's numbers are numbers like Python's own
    if issubclass(type(result), np.integer | np.floating):
        name = "int" if issubclass(type(result), np.integer) else "float"
        return Output(name, torch.tensor(float(result), dtype=torch.float64), shape=())
    if isinstance(result, bool | int | float):
        return Output(
            type_name(type(result)), torch.tensor(float(result), dtype=torch.float64), shape=()
        )
    is_list = type(result) in (list, tuple) and all(
        type(p) in (bool, int, float, list, tuple) for p in result
    )
    if is_list or type(result) in (str, np.ndarray) or issubclass(type(result), np.generic):
        # rows of different lengths, other things than numbers, what such a thing raises
        with suppress(Exception):
            array = np.asarray(list(map(ord, result)) if type(result) is str else result)
            dtype = {"b": "bool", "f": f"float{min(8 * array.itemsize, 64)}"}.get(
                array.dtype.kind, "int64"
            )
            numbers = torch.from_numpy(array.astype(dtype, order="C", casting="same_kind"))
            return Output(
                type_name(type(result)),
                numbers,
                dtype_name(numbers.dtype),
                shape=tuple(numbers.shape),
            )
    return Output(type_name(type(result)))


def _elements_of(result: object, form: Form) -> list[object] | str:
    """Return the parts of a tuple or a list; or what came in place of them."""
    base: Any = tuple if issubclass(type(result), tuple) else list
    elements = list(base.__iter__(result)) if issubclass(type(result), base) else []
    return elements if len(elements) == len(form.parts) else _came(result)


def _came(result: object) -> str:
    """Return the name of the result's type, with its length where it is a tuple or a list."""
    result_type = type(result)
    if issubclass(result_type, Tensor):
        return "tensor"
    if issubclass(result_type, tuple | list):
        base: Any = tuple if issubclass(result_type, tuple) else list
        length = base.__len__(result)
        return (
            f"{'tuple' if issubclass(result_type, tuple) else 'list'} of"
            f" {min(length, LENGTH_LIMIT)}"
        )
    return "dict" if issubclass(result_type, dict) else type_name(result_type)
