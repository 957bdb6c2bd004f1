"""Find in an attempt's text that the size of the wrong axis is taken for a length.

`past = cache[0].shape[1]` beside `torch.cat([cache[0], k], dim=2)`: the tensor grows along axis 2,
and axis 1 is the number of heads. The text is read and never run, so nothing of a hidden input can
be in the sentence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

MAX_JOINS = 8  # each is compared with all nodes, so more would take quadratic time
LONGEST = 40  # characters of the text that a sentence repeats
JOINS = ("cat", "concat", "concatenate")
Layout = tuple[str, ...]  # the size of each axis, as the text writes it


@dataclass(frozen=True)
class AxisUse:
    """A line that uses one axis of a tensor: it reads its size, or joins tensors along it.

    Attributes:
        tensor: The tensor, as the text writes it.
        axis: The axis; a negative one counts from the end.
        line: The line.
        text: The expression that reads the size, or the name of the function that joins.
        added: The tensor that is joined to it, as the text writes it; "" if the size is read.
    """

    tensor: str
    axis: int
    line: int
    text: str
    added: str = ""


def wrong_length(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence if the text reads the size of another axis than the growing one, or "".

    The sentence is about the first tensor that grows and of which no size that is read can be the
    length.

    Args:
        nodes: All nodes of one function.
    """
    sizes = list(_sizes_read(nodes))
    for join in islice(_joins(nodes), MAX_JOINS):
        layout = _layout(nodes, join)
        reads = [size for size in sizes if size.tensor == join.tensor]
        if not reads or any(_may_be_equal(size.axis, join.axis, layout) for size in reads):
            continue
        size = reads[0]
        if max(len(size.text), len(join.tensor)) > LONGEST:
            continue
        is_in_layout = -len(layout) <= size.axis < len(layout)
        meaning = ""
        if is_in_layout and 0 < len(layout[size.axis]) <= LONGEST:
            meaning = f", which is {layout[size.axis]}"
        return (
            f"`{size.text}`, written on line {size.line}, is the size of axis {size.axis}{meaning}."
            f" The torch.{join.text} on line {join.line} makes axis {join.axis} longer, so the "
            "length is the size of that one."
        )
    return ""


def _sizes_read(nodes: Sequence[ast.AST]) -> Iterator[AxisUse]:
    """Yield each `x.shape[axis]` and `x.size(axis)` whose axis is written as a number."""
    for node in nodes:
        match node:
            case ast.Subscript(ast.Attribute(tensor, "shape"), index) | ast.Call(
                ast.Attribute(tensor, "size"), [index]
            ):
                axis = _integer(index)
                if axis is not None:
                    yield AxisUse(ast.unparse(tensor), axis, node.lineno, ast.unparse(node))


def _joins(nodes: Sequence[ast.AST]) -> Iterator[AxisUse]:
    """Yield each `torch.cat` of a pair of tensors along an axis that is written as a number."""
    for node in nodes:
        match node:
            case ast.Call(
                ast.Attribute(ast.Name("torch"), name),
                [ast.List([tensor, added]) | ast.Tuple([tensor, added]), *positional],
                keywords,
            ) if name in JOINS:
                axes = [*positional, *(k.value for k in keywords if k.arg in ("dim", "axis"))]
                axis = _integer(axes[0]) if len(axes) == 1 else None
                if axis is not None:
                    yield AxisUse(ast.unparse(tensor), axis, node.lineno, name, ast.unparse(added))


def _may_be_equal(axis: int, other_axis: int, layout: Layout) -> bool:
    """Return whether both may be the same axis: -2 is axis 2 only if there are four axes.

    If the layout is not known, a negative and a positive number may be the same axis.
    """
    if (axis < 0) == (other_axis < 0):
        return axis == other_axis
    return not layout or axis % len(layout) == other_axis % len(layout)


def _layout(nodes: Sequence[ast.AST], join: AxisUse) -> Layout:
    """Return the layout of the tensor that is added, by its last value above the join.

    Returns () if that value is no view.
    """
    layout: Layout = ()
    for node in nodes:
        match node:
            case ast.Assign([target], value) if ast.unparse(target) == join.added:
                if node.lineno < join.line:
                    layout = _layout_of_value(value)
    return layout


def _layout_of_value(value: ast.expr) -> Layout:
    """Return the sizes of a view, also after transpositions; () for any other expression."""
    match value:
        case ast.Call(ast.Attribute(tensor, "transpose" | "swapaxes"), [first, second]):
            layout = [*_layout_of_value(tensor)]
            a, b = _integer(first), _integer(second)
            valid_axes = range(-len(layout), len(layout))
            if a is None or b is None or not {a, b}.issubset(valid_axes):
                return ()
            layout[a], layout[b] = layout[b], layout[a]
            return tuple(layout)
        case ast.Call(ast.Attribute(_, "view" | "reshape"), [ast.Tuple(sizes)]) | ast.Call(
            ast.Attribute(_, "view" | "reshape"), sizes
        ):
            return tuple(ast.unparse(size) for size in sizes)
    return ()


def _integer(node: ast.expr) -> int | None:
    """Return the whole number that an expression writes, or None if it is another expression."""
    match node:
        case ast.Constant(int(number)) if type(number) is int:
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            return -number
    return None
