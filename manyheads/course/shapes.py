"""Signatures of an exercise's functions with named axes: `(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)`.

They use Python's syntax. A tensor is annotated with its shape. A number is annotated with the axis whose size it is (by
default the axis of the same name), or with `float` if it is not a size. An object is annotated with the axes whose
sizes its attributes are (`{n_head: nh}`), a module with the name of the entry that gives its constructor. An axis may be
a product, as in `n_embd: nh * hd`. A class has two pairs of brackets, for its constructor and its forward:
`(n_embd: C, n_head: nh)(x: (B, T, C)) -> (B, T, C)`.

What is returned may be several tensors: `-> (y: (B, T, C), lse: (B, T))` is a tuple whose parts have names,
`-> ((B, T), (B,))` one without. `| None` after a shape says that the part may be None. `opaque`, for a result or a parameter,
is whatever the student likes: it stays in the box, and can be handed to a later call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..box.worker.form import Form, Path

OPAQUE = "opaque"  # the annotation of what nobody looks at
NO_AXIS = "float"  # the annotation of a number that is not a size, such as a temperature


@dataclass(frozen=True)
class Axis:
    """A named axis, a number, or a product of such."""

    factors: tuple[str | int, ...]


@dataclass(frozen=True)
class Parameter:
    """`shape`: of a tensor.

    `axis`: the axis whose size a number is. `attributes`: the axes of an object's attributes. `may_lack`: whether it can
    be left out, or be None.
    """

    name: str
    shape: tuple[Axis, ...] | None = None
    axis: Axis | None = None
    attributes: tuple[tuple[str, Axis], ...] = ()
    may_lack: bool = False


@dataclass(frozen=True)
class Signature:
    """The signature of a function or a module. `build`: the constructor's parameters, None for a function.

    returns: the shape of the tensor that is returned; of several, of the first. form, shapes: what is returned where it is not
    one tensor, and the shape of each leaf that has one, by its path.
    """

    call: tuple[Parameter, ...]
    returns: tuple[Axis, ...]
    build: tuple[Parameter, ...] | None = None
    form: Form | None = None
    shapes: tuple[tuple[Path, tuple[Axis, ...]], ...] = ()

    def shape_at(self, path: Path) -> tuple[Axis, ...] | None:
        """Return the shape of the leaf at this path; None where it has none."""
        return self.returns if self.form is None else dict(self.shapes).get(path)


def parse_signature(text: str) -> Signature:
    """Parse a signature. Raises ValueError with one sentence."""
    try:
        groups, returned = _split(text)
        form, shapes = _returned(returned)
        given = [_parameters(_function(group)) for group in groups]
        first = next((shape for _, shape in shapes), ())
        is_plain = form.kind == "tensor"
        return Signature(
            given[-1],
            first,
            given[0] if len(given) > 1 else None,
            None if is_plain else form,
            () if is_plain else shapes,
        )
    except (SyntaxError, ValueError, TypeError):
        raise ValueError(
            f"{text!r} is not a signature with named axes, such as '(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)'"
        ) from None


def _split(text: str) -> tuple[list[str], str]:
    """Return the pairs of brackets, one or two, and what follows the arrow."""
    groups: list[str] = []
    depth, start = 0, 0
    for i, character in enumerate(text):
        if depth == 0 and text.startswith("->", i):
            if not 1 <= len(groups) <= 2:
                raise ValueError
            return groups, text[i + 2 :].strip()
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and character == ")":
            groups.append(text[start : i + 1].strip())
            start = i + 1
    raise ValueError


Leaves = tuple[tuple[Path, tuple[Axis, ...]], ...]


def _returned(text: str) -> tuple[Form, Leaves]:
    """Return the form of what is returned, and the shapes of its leaves."""
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except SyntaxError:
        names, parts = _named(text)
        node, form = ast.Tuple(parts), Form("tuple", names, tuple(map(_form, parts)))
    else:
        form = _form(node)
    return form, tuple(_leaves(node, form, ()))


def _named(text: str) -> tuple[tuple[str, ...], list[ast.expr]]:
    """Return the parts of `(y: (B, T), state: opaque)`, which is written as parameters are."""
    given = _function(text).args
    if _has_more(given) or not given.args or any(arg.annotation is None for arg in given.args):
        raise ValueError
    return tuple(arg.arg for arg in given.args), [arg.annotation for arg in given.args if arg.annotation]


def _form(node: ast.expr) -> Form:
    if isinstance(node, ast.Name) and node.id == OPAQUE:
        return Form("opaque")
    if _is_leaf(node):
        return Form()
    return Form("tuple", (), tuple(map(_form, _parts(node))))


def _parts(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        raise ValueError
    return node.elts


def _is_leaf(node: ast.expr) -> bool:
    """Return whether this is a shape, None, or a shape that may be None: `(B, T) | None`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_none(node.right) and _is_leaf(node.left)
    is_shape = isinstance(node, ast.Tuple) and all(isinstance(elt, _AXES) for elt in node.elts)
    opaque = is_shape and any(isinstance(each, ast.Name) and each.id == OPAQUE for each in ast.walk(node))
    return _is_none(node) or (is_shape and not opaque)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_AXES = (ast.Name, ast.Constant, ast.BinOp)


def _leaves(node: ast.expr, form: Form, path: Path) -> Iterator[tuple[Path, tuple[Axis, ...]]]:
    """Yield the path and the shape of each leaf that has one."""
    if form.kind == "tensor":
        shape = node.left if isinstance(node, ast.BinOp) else node
        if not _is_none(shape):
            yield path, _shape(shape)
    elif not form.is_leaf:
        for place, (part, of_part) in enumerate(zip(_parts(node), form.parts, strict=True)):
            yield from _leaves(part, of_part, (*path, place))


def _function(text: str) -> ast.FunctionDef:
    (function,) = ast.parse(f"def f{text}: ...").body
    if not isinstance(function, ast.FunctionDef):
        raise ValueError
    return function


def _parameters(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    given = function.args
    if _has_more(given):
        raise ValueError
    return tuple(_parameter(arg.arg, arg.annotation) for arg in given.args)


def _has_more(given: ast.arguments) -> bool:
    """Return whether there are other parameters than plain ones without defaults."""
    return bool(given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults)


def _parameter(name: str, says: ast.expr | None) -> Parameter:
    if says is None:
        return Parameter(name, axis=Axis((name,)))
    if isinstance(says, ast.Tuple):
        return Parameter(name, shape=_shape(says))
    if isinstance(says, ast.Dict):
        pairs = zip(says.keys, says.values, strict=True)
        return Parameter(name, attributes=tuple((_name(key), _axis(value)) for key, value in pairs))
    if isinstance(says, ast.BinOp) and isinstance(says.op, ast.BitOr) and _is_none(says.right):
        return replace(_parameter(name, says.left), may_lack=True)
    if isinstance(says, ast.Name) and says.id in (NO_AXIS, OPAQUE):
        return Parameter(name, may_lack=says.id == OPAQUE)
    return Parameter(name, axis=_axis(says))


def _shape(node: ast.expr | None) -> tuple[Axis, ...]:
    if not isinstance(node, ast.Tuple):
        raise ValueError
    return tuple(_axis(elt) for elt in node.elts)


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
