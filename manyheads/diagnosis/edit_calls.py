"""Edits that add a call, take one away, or turn it into its sibling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .edit_text import Edit
from .reached_parts import Part, is_of_self, name_of

_SIBLINGS = {
    "view": ("reshape",),
    "tril": ("triu",),
    "triu": ("tril",),
    "tril_": ("triu_",),
    "triu_": ("tril_",),
    "ones": ("zeros",),
    "zeros": ("ones",),
    "sum": ("mean",),
    "mean": ("sum",),
    "max": ("min", "amax"),
    "min": ("max",),
    "log_softmax": ("softmax",),
    "chunk": ("split",),
    "split": ("chunk",),
    "repeat": ("repeat_interleave",),
    "repeat_interleave": ("repeat",),
    "lt": ("le", "gt", "ge"),
    "le": ("lt", "ge", "gt"),
    "gt": ("ge", "lt", "le"),
    "ge": ("gt", "le", "lt"),
}
_SHAPING = ("view", "reshape", "flatten", "unflatten", "contiguous", "unfold")
_PRODUCTS = ("matmul", "bmm", "einsum")
_MOVES = (".transpose(1, 2)", ".transpose(-2, -1)")
_KEYWORDS = {"dim", "keepdim", "bias", "diagonal", "scale", "dropout_p", "attn_mask", "persistent", "requires_grad"}


def call_edits(part: Part) -> Iterator[Edit]:
    """Yield every call, without it and beside it."""
    for node in part.nodes:
        if isinstance(node, ast.Call):
            yield from _without(part, node)
            yield from _sibling(part, node)
            if name_of(node) in _PRODUCTS:
                yield from _scaled(part, node, next((a for a in node.args if isinstance(a, ast.Name)), None))
            if isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPING:
                yield from _before_shaping(part, node, node.func)
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "mH"):
            yield part.replace("call", 1, (node, part.text.held(node.value)))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield from _of_product(part, node)
        elif isinstance(node, ast.Return | ast.Assign) and _is_one_value(node.value):
            assert node.value is not None
            yield from (part.after("call", 3, node.value, move) for move in _MOVES)
            yield from _layers(part, node.value)


def _is_one_value(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name | ast.Call | ast.BinOp | ast.Attribute | ast.Subscript)


def _without(part: Part, node: ast.Call) -> Iterator[Edit]:
    """Yield what the call was made of, in its place."""
    if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
        yield part.replace("call", 1, (node, part.text.held(node.func.value)))
    if node.args and not isinstance(node.args[0], ast.Starred):
        is_number = isinstance(node.args[0], ast.Constant)  # before a dot it would be another number
        held = f"({part.text.of(node.args[0])})" if is_number else part.text.held(node.args[0])
        yield part.replace("call", 1, (node, held))
    for keyword in node.keywords:
        if keyword.arg in _KEYWORDS:
            yield _without_keyword(part, node, keyword)


def _without_keyword(part: Part, node: ast.Call, given: ast.keyword) -> Edit:
    """Return the call without this argument, and without the comma on one side of it."""
    rest = [part.text.of(argument) for argument in (*node.args, *node.keywords) if argument is not given]
    return part.replace("keyword", 2, (node, f"{part.text.of(node.func)}({', '.join(rest)})"))


def _sibling(part: Part, node: ast.Call) -> Iterator[Edit]:
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else ""
    end = part.text.end(func)
    for other in _SIBLINGS.get(name, ()):
        yield part.text.edit("call", 1, (end - len(name.encode()), end, other))
        if name in ("tril", "triu"):
            yield from _other_triangle(part, node, end, name, other)
    if name in ("tril", "triu"):
        yield from _other_triangle(part, node, end, name, name)


def _other_triangle(part: Part, node: ast.Call, end: int, name: str, other: str) -> Iterator[Edit]:
    """Yield tril or triu with another diagonal, or with one at all."""
    alone = isinstance(node.func, ast.Attribute) and not _is_module(node.func.value)
    keywords = [k for k in node.keywords if k.arg == "diagonal"]
    place = node.args if alone else node.args[1:]
    kept = [] if alone else [part.text.of(a) for a in node.args[:1]]
    for diagonal in (0, 1, -1):
        if other == name and (keywords or place):
            continue  # its number is edited elsewhere
        inside = ", ".join([*kept, f"diagonal={diagonal}"])
        yield part.text.edit("call", 2, (end - len(name.encode()), part.text.end(node), f"{other}({inside})"))


def _before_shaping(part: Part, node: ast.Call, func: ast.Attribute) -> Iterator[Edit]:
    """Axes moved before a view, or memory put in order; and two sizes of the shape swapped with their axes."""
    held, rest = part.text.held(func.value), part.text.of(node)[len(part.text.of(func)) :]
    name = "reshape" if func.attr == "view" else func.attr
    yield part.replace("call", 1, (node, f"{held}.contiguous().{func.attr}{rest}"))
    for move in _MOVES:
        yield part.replace("call", 2, (node, f"{held}{move}.{name}{rest}"))
    yield part.after("call", 2, node, _MOVES[0])
    sizes = node.args
    if func.attr in ("view", "reshape") and len(sizes) == 1 and isinstance(sizes[0], ast.Tuple):
        sizes = sizes[0].elts
    texts = [part.text.of(size) for size in sizes]
    for i in range(len(texts) - 1):
        if func.attr in ("view", "reshape") and len(texts) > 2:
            swapped = [*texts[:i], texts[i + 1], texts[i], *texts[i + 2 :]]
            shape = f"{held}.{func.attr}({', '.join(swapped)})"
            yield part.replace("shape", 2, (node, f"{shape}.transpose({i}, {i + 1})"))


def _of_product(part: Part, node: ast.BinOp) -> Iterator[Edit]:
    """Yield a factor transposed; the product divided by the root of what was summed; a softmax of it."""
    for factor in (node.left, node.right):
        yield part.after("call", 2, factor, ".transpose(-2, -1)")
    yield from _scaled(part, node, node.left)
    yield part.after("call", 4, node, ".softmax(dim=-1)")


def _scaled(part: Part, node: ast.expr, factor: ast.expr | None) -> Iterator[Edit]:
    """Yield the product over the root of its factor's last size, where it is not divided already."""
    outer = part.parent(node)
    if isinstance(factor, ast.Name) and not (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)):
        yield part.replace("scale", 2, (node, f"({part.text.held(node)} / {factor.id}.shape[-1] ** 0.5)"))


def _layers(part: Part, node: ast.expr) -> Iterator[Edit]:
    """Yield a layer of self around the value, where it has such layers."""
    for name, made in part.attributes.items():
        if made.rpartition(".")[2] in ("Dropout", "Linear"):
            yield part.replace("layer", 3, (node, f"self.{name}({part.text.of(node)})"))


def _is_module(node: ast.expr) -> bool:
    """Return whether the name is a module's, such as torch, math, F or torch.nn.functional: no value to take a call from."""
    if isinstance(node, ast.Attribute):
        return not is_of_self(node) and _is_module(node.value)
    return isinstance(node, ast.Name) and node.id in ("torch", "math", "F", "nn", "np", "numpy", "functional", "einops")
