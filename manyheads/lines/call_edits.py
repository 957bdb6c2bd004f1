"""Edits that add a call or an argument, take one away, or turn a call into its sibling."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .code_parts import Changes, Part, name_of

# The calls that are tried in place of a method, or of a function of a module.
_SIBLINGS = {
    "view": "reshape",
    "repeat": "repeat_interleave",
    "repeat_interleave": "repeat",
    "log_softmax": "softmax",
    "tril": "triu",
    "triu": "tril",
    "tril_": "triu_",
    "triu_": "tril_",
    "ones": "zeros",
    "zeros": "ones",
    "sum": "mean",
    "mean": "sum",
    "max": "min amax",
    "min": "max",
    "chunk": "split",
    "split": "chunk",
    "lt": "le gt ge",
    "le": "lt ge gt",
    "gt": "ge lt le",
    "ge": "gt le lt",
}
# Arguments that are put into a call of this name where it lacks them.
_FORGOTTEN = {
    "softmax": "dim=-1",
    "split": "dim=-1",
    "chunk": "dim=-1",
    "cat": "dim=-1",
    "stack": "dim=-1",
    "sum": "dim=-1 keepdim=True",
    "amax": "keepdim=True",
    "Linear": "bias=False",
    "dropout": "training=self.training",
    "scaled_dot_product_attention": "is_causal=True",
    "register_buffer": "persistent=False",
}
# Arguments that are left out.
_KEYWORDS = {
    "dim",
    "keepdim",
    "bias",
    "diagonal",
    "scale",
    "dropout_p",
    "attn_mask",
    "persistent",
    "requires_grad",
}
_SHAPING = ("view", "reshape", "flatten", "unflatten", "contiguous", "unfold")
_MOVES = (".transpose(1, 2)", ".transpose(-2, -1)")
_LAYERS = ("Dropout", "Linear")
_MODULES = ("torch", "math", "F", "nn", "np", "numpy", "functional", "einops")


def is_of_dropout(name: str) -> bool:
    """Return whether a name is that of a probability of dropout."""
    return "drop" in name or name in ("p", "dropout_p")


def arguments(code: Part, node: ast.Call) -> Changes:
    """Yield the call with gates on its arguments, and with those that are easily forgotten."""
    for keyword in node.keywords:
        if is_of_dropout(keyword.arg or ""):
            for off, tier in (("0.0", 1), ("0", 2)):
                yield (
                    "gate",
                    tier,
                    {keyword.value: f"{code.atom(keyword.value)} if self.training else {off}"},
                )
        elif keyword.arg == "training":
            yield "gate", 1, {keyword.value: "self.training"}
    name, keyword_names = name_of(node), {keyword.arg for keyword in node.keywords}
    of_bias = [
        f"bias={variable}" for variable in code.names if "bias" in variable and name == "Linear"
    ]
    for words in (*_FORGOTTEN.get(name, "").split(), *of_bias):
        if words.partition("=")[0] not in keyword_names:
            yield "keyword", 2, {node: _call(code, node, (*node.args, *node.keywords), words)}


def _call(code: Part, node: ast.Call, args: Iterable[ast.AST], *extra: str) -> str:
    """Return the text of the call with other arguments."""
    return f"{code.text(node.func)}({', '.join([*map(code.text, args), *extra])})"


def calls(code: Part, node: ast.AST) -> Changes:
    """Yield every call without it and as its sibling; a product scaled or with a factor transposed;
    a value moved.
    """
    match node:
        case ast.Call(func=func, args=args):
            yield from _without(code, node)
            if isinstance(func, ast.Attribute):
                yield from _siblings(code, node, func)
            if name_of(node) in ("matmul", "bmm", "einsum"):
                yield from _scaled(
                    code, node, next((a for a in args if isinstance(a, ast.Name)), None)
                )
            if isinstance(func, ast.Attribute) and func.attr in _SHAPING:
                yield from _before_shaping(code, node, func)
        case ast.Attribute(attr="T" | "mT" | "H" | "mH", value=value):
            yield "call", 1, {node: code.atom(value)}
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            yield from (
                ("call", 2, {factor: code.atom(factor) + _MOVES[1]}) for factor in (left, right)
            )
            yield from _scaled(code, node, left)
            yield "call", 4, {node: f"{code.atom(node)}.softmax(dim=-1)"}
        case ast.Return(value=value) | ast.Assign(value=value):
            if isinstance(value, ast.Name | ast.Call | ast.BinOp | ast.Attribute | ast.Subscript):
                yield from (("call", 3, {value: code.atom(value) + move}) for move in _MOVES)
                layers = [
                    name
                    for name, maker in code.attributes.items()
                    if maker.split(".")[-1] in _LAYERS
                ]
                yield from (
                    ("layer", 3, {value: f"self.{name}({code.text(value)})"}) for name in layers
                )


def _without(code: Part, node: ast.Call) -> Changes:
    """Yield what the call was made of, in its place; and the call without one of its arguments."""
    if isinstance(node.func, ast.Attribute) and not _is_of_module(node.func):
        yield "call", 1, {node: code.atom(node.func.value)}
    match node.args:
        case [ast.Constant() as first, *_]:  # before a dot it would be another number
            yield "call", 1, {node: f"({code.text(first)})"}
        case [first, *_] if not isinstance(first, ast.Starred):
            yield "call", 1, {node: code.atom(first)}
    args = (*node.args, *node.keywords)
    for left_out in node.keywords:
        if left_out.arg in _KEYWORDS:
            yield (
                "keyword",
                2,
                {
                    node: _call(
                        code, node, (argument for argument in args if argument is not left_out)
                    )
                },
            )


def _is_of_module(func: ast.expr) -> bool:
    """Return whether a function is a module's, such as torch or torch.nn.functional: there is no
    value to take it from.
    """
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in _MODULES


def _siblings(code: Part, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield the siblings of the call, and a triangle with another diagonal, or with one at all."""
    name, stem = func.attr, code.text(func).removesuffix(func.attr)
    siblings = _SIBLINGS.get(name, "").split()
    yield from (("call", 1, {func: stem + sibling}) for sibling in siblings)
    if name in ("tril", "triu"):
        kept_args = [code.text(argument) for argument in node.args[:1] if _is_of_module(func)]
        if len(node.args) == len(kept_args) and all(
            keyword.arg != "diagonal" for keyword in node.keywords
        ):
            siblings.append(name)  # else its number is edited elsewhere
        for sibling in siblings:
            for diagonal in (0, 1, -1):
                yield (
                    "call",
                    2,
                    {node: f"{stem}{sibling}({', '.join([*kept_args, f'diagonal={diagonal}'])})"},
                )


def _before_shaping(code: Part, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield axes moved before a view, or memory put in order; and two sizes of the shape swapped
    with their axes.
    """
    receiver, suffix = code.atom(func.value), code.text(node)[len(code.text(func)) :]
    name = "reshape" if func.attr == "view" else func.attr
    yield "call", 1, {node: f"{receiver}.contiguous().{func.attr}{suffix}"}
    yield from (("call", 2, {node: f"{receiver}{move}.{name}{suffix}"}) for move in _MOVES)
    yield "call", 2, {node: f"{code.text(node)}{_MOVES[0]}"}
    sizes = (
        node.args[0].elts
        if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple)
        else node.args
    )
    if func.attr in ("view", "reshape") and len(sizes) > 2:
        texts = [code.text(size) for size in sizes]
        for i in range(len(texts) - 1):
            swapped = ", ".join([*texts[:i], texts[i + 1], texts[i], *texts[i + 2 :]])
            yield "shape", 2, {node: f"{receiver}.{func.attr}({swapped}).transpose({i}, {i + 1})"}


def _scaled(code: Part, node: ast.expr, factor: ast.expr | None) -> Changes:
    """Yield the product over the root of its factor's last size, where it is not divided
    already.
    """
    outer = code.parents[node]
    if isinstance(factor, ast.Name) and not (
        isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)
    ):
        yield "scale", 2, {node: f"({code.atom(node)} / {factor.id}.shape[-1] ** 0.5)"}
