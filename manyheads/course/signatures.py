"""Parse signatures with named axes, such as `(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)`.

Signatures use Python's syntax. A tensor is annotated with its shape. A number is annotated with the
axis that has this size (by default the axis of the same name), or with `float` if it is not a size.
The annotation of an object gives an axis for each attribute (`{n_head: nh}`), and a module is
annotated with the name of its entry in course.yaml. An axis may be a product, as in
`n_embd: nh * hd`. A class has brackets for its constructor, then for its forward:
`(n_embd: C)(x: (B, T, C)) -> (B, T, C)`.

A function may return several tensors: `-> (y: (B, T, C), lse: (B, T))` is a tuple with named parts,
and `-> ((B, T), (B,))` one without names. `| None` after a shape means that the part may be None.
The student chooses the type of an `opaque` result or parameter. Its value stays in the box, and can
be passed to a later call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..box.worker.result_structure import Form, PartPath

OPAQUE = "opaque"  # the annotation of a value that is never read
_AXES = (ast.Name, ast.Constant, ast.BinOp)


@dataclass(frozen=True)
class Axis:
    """A named axis, a number, or a product of such."""

    factors: tuple[str | int, ...]


Leaves = tuple[tuple[PartPath, tuple[Axis, ...]], ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter: a tensor, a number or an object."""

    name: str
    shape: tuple[Axis, ...] | None = None  # the shape, for a tensor
    axis: Axis | None = None  # the axis with this size, for a number
    attributes: tuple[
        tuple[str, Axis], ...
    ] = ()  # for an object: the axis with the size of each attribute
    may_lack: bool = False  # whether it can be left out, or be None


@dataclass(frozen=True)
class Signature:
    """The signature of a function or a module."""

    call: tuple[Parameter, ...]
    returns: tuple[Axis, ...]  # the shape of the first tensor that is returned
    build: tuple[Parameter, ...] | None = None  # the constructor's parameters; None for a function
    form: Form | None = None  # the structure of the result, if it is not one tensor
    shapes: Leaves = ()  # for a form: the path and the shape of each leaf that has one

    def shape_at(self, path: PartPath) -> tuple[Axis, ...] | None:
        """Return the shape of the leaf at this path, or None if it has no shape."""
        return self.returns if self.form is None else dict(self.shapes).get(path)


def parse_signature(text: str) -> Signature:
    """Parse a signature. Raises ValueError with one sentence."""
    head, _, returned = text.partition("->")
    *build, call = re.split(r"(?<=\))\s*(?=\()", head.strip())
    try:
        if len(build) > 1:
            raise ValueError
        try:
            form, shapes = _read_form(ast.parse(returned.strip(), mode="eval").body, ())
        except SyntaxError:  # (y: (B, T), state: opaque) has the syntax of parameters
            args = _arguments(returned)
            form, shapes = _read_tuple(
                [arg.annotation for arg in args], (), tuple(arg.arg for arg in args)
            )
        returns = shapes[0][1] if shapes else ()
        constructor = _parameters(build[0]) if build else None
        signature = Signature(_parameters(call), returns, constructor)
        return signature if form.kind == "tensor" else replace(signature, form=form, shapes=shapes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        example = "'(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)'"
        raise ValueError(
            f"{text!r} is not a signature with named axes, such as {example}"
        ) from None


def _read_form(node: ast.expr | None, path: PartPath) -> tuple[Form, Leaves]:
    if isinstance(node, ast.Name) and _is_opaque(node):
        return Form("opaque"), ()
    tensor = _not_none(node)
    match tensor:
        case ast.Constant(value=None):
            return Form(), ()
        case ast.Tuple(elts=axes) if all(
            isinstance(axis, _AXES) for axis in axes
        ) and not _is_opaque(tensor):
            return Form(), ((path, tuple(map(_axis, axes))),)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if tensor is node:
            return _read_tuple(elements, path)
    raise ValueError


def _is_opaque(node: ast.expr) -> bool:
    return any(isinstance(child, ast.Name) and child.id == OPAQUE for child in ast.walk(node))


def _read_tuple(
    elements: Sequence[ast.expr | None], path: PartPath, names: tuple[str, ...] = ()
) -> tuple[Form, Leaves]:
    if not elements:
        raise ValueError
    pairs = [_read_form(element, (*path, index)) for index, element in enumerate(elements)]
    return Form("tuple", names, tuple(form for form, _ in pairs)), tuple(
        leaf for _, leaves in pairs for leaf in leaves
    )


def _arguments(text: str) -> list[ast.arg]:
    match ast.parse(f"def f {text}: ...").body:
        case [ast.FunctionDef(args=ast.arguments(args=args) as given)]:
            if not (
                given.vararg
                or given.kwarg
                or given.kwonlyargs
                or given.posonlyargs
                or given.defaults
            ):
                return args
    raise ValueError


def _parameters(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameter(argument.arg, argument.annotation) for argument in _arguments(text))


def _parameter(name: str, says: ast.expr | None) -> Parameter:
    match says:
        case None:
            return Parameter(name, axis=Axis((name,)))
        case ast.Tuple(elts=elements):
            return Parameter(name, shape=tuple(map(_axis, elements)))
        case ast.Dict(keys=keys, values=values):
            return Parameter(
                name, attributes=tuple(zip(map(_name, keys), map(_axis, values), strict=True))
            )
        case ast.Name(id="float" | "opaque" as word):
            return Parameter(name, may_lack=word == OPAQUE)
    needed = _not_none(says)
    return (
        Parameter(name, axis=_axis(says))
        if needed is says
        else replace(_parameter(name, needed), may_lack=True)
    )


def _not_none(node: ast.expr | None) -> ast.expr | None:
    match node:
        case ast.BinOp(left=before, op=ast.BitOr(), right=ast.Constant(value=None)):
            return before
    return node


def _axis(node: ast.expr) -> Axis:
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return Axis(_axis(left).factors + _axis(right).factors)
        case ast.Constant(value=int(number)) if type(number) is int:
            return Axis((number,))
    return Axis((_name(node),))


def _name(node: ast.expr | None) -> str:
    if not isinstance(node, ast.Name):
        raise ValueError
    return node.id
