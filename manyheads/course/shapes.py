"""Signatures of an exercise's functions with named axes: `(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)`.

They use Python's syntax. A tensor is annotated with its shape. A number is annotated with the axis whose size it is (by
default the axis of the same name), or with `float` if it is not a size. An object is annotated with the axes whose
sizes its attributes are (`{n_head: nh}`), a module with the name of the entry that gives its constructor. An axis may be
a product, as in `n_embd: nh * hd`. A class has two pairs of brackets, for its constructor and its forward:
`(n_embd: C, n_head: nh)(x: (B, T, C)) -> (B, T, C)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

NO_AXIS = "float"  # the annotation of a number that is not a size, such as a temperature


@dataclass(frozen=True)
class Axis:
    """A named axis, a number, or a product of such."""

    factors: tuple[str | int, ...]


@dataclass(frozen=True)
class Parameter:
    """`shape`: of a tensor. `axis`: the axis whose size a number is. `attributes`: the axes of an object's attributes."""

    name: str
    shape: tuple[Axis, ...] | None = None
    axis: Axis | None = None
    attributes: tuple[tuple[str, Axis], ...] = ()


@dataclass(frozen=True)
class Signature:
    """The signature of a function or a module. `build`: the constructor's parameters, None for a function."""

    call: tuple[Parameter, ...]
    returns: tuple[Axis, ...]
    build: tuple[Parameter, ...] | None = None


def parse_signature(text: str) -> Signature:
    """Parse a signature. Raises ValueError with one sentence."""
    try:
        first, second = _brackets(text)
        if not second:
            function = _function(text)
            return Signature(_parameters(function), _shape(function.returns))
        function = _function(second)
        return Signature(_parameters(function), _shape(function.returns), _parameters(_function(first)))
    except (SyntaxError, ValueError, TypeError):
        raise ValueError(
            f"{text!r} is not a signature with named axes, such as '(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)'"
        ) from None


def _brackets(text: str) -> tuple[str, str]:
    """Split off the first pair of brackets. The second part is empty unless another pair follows directly."""
    depth = 0
    for i, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            rest = text[i + 1 :].lstrip()
            return text[: i + 1], rest if rest.startswith("(") else ""
    raise ValueError


def _function(text: str) -> ast.FunctionDef:
    (found,) = ast.parse(f"def f{text}: ...").body
    if not isinstance(found, ast.FunctionDef):
        raise ValueError
    return found


def _parameters(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        raise ValueError
    return tuple(_parameter(each.arg, each.annotation) for each in given.args)


def _parameter(name: str, says: ast.expr | None) -> Parameter:
    if says is None:
        return Parameter(name, axis=Axis((name,)))
    if isinstance(says, ast.Tuple):
        return Parameter(name, shape=_shape(says))
    if isinstance(says, ast.Dict):
        pairs = zip(says.keys, says.values, strict=True)
        return Parameter(name, attributes=tuple((_name(key), _axis(value)) for key, value in pairs))
    if isinstance(says, ast.Name) and says.id == NO_AXIS:
        return Parameter(name)
    return Parameter(name, axis=_axis(says))


def _shape(node: ast.expr | None) -> tuple[Axis, ...]:
    if not isinstance(node, ast.Tuple):
        raise ValueError
    return tuple(_axis(each) for each in node.elts)


def _axis(node: ast.expr) -> Axis:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return Axis(_axis(node.left).factors + _axis(node.right).factors)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Axis((node.value,))
    return Axis((_name(node),))


def _name(node: ast.expr | None) -> str:
    if not isinstance(node, ast.Name):
        raise ValueError
    return node.id
