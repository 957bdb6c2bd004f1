"""Edits of what holds in training alone, and of arguments that are easily forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .part import FUNCTIONS, Part, is_docstring, name_of
from .text import Edit

# Fixed words for a call of this name that lacks the argument.
_FORGOTTEN = {
    "scaled_dot_product_attention": ("is_causal=True",),
    "Linear": ("bias=False",),
    "softmax": ("dim=-1",),
    "sum": ("dim=-1", "keepdim=True"),
    "split": ("dim=-1",),
    "chunk": ("dim=-1",),
    "cat": ("dim=-1",),
    "stack": ("dim=-1",),
    "amax": ("keepdim=True",),
    "register_buffer": ("persistent=False",),
    "dropout": ("training=self.training",),
}


def edits(part: Part) -> Iterator[Edit]:
    """Gates put on and taken off, and arguments added."""
    for node in part.nodes:
        if isinstance(node, ast.IfExp):
            yield part.replace("gate", 1, (node, part.text.held(node.body)))
            yield part.replace("gate", 1, (node, part.text.held(node.orelse)))
        elif isinstance(node, ast.Call):
            yield from _of_call(part, node)
        elif isinstance(node, ast.Assign) and _names_dropout(part.text.of(node.targets[0])):
            yield part.replace("gate", 2, (node.value, f"{part.text.held(node.value)} if self.training else 0.0"))
        elif isinstance(node, ast.If):
            yield part.replace("gate", 2, (node.test, "True"))
            yield part.replace("gate", 3, (node.test, f"({part.text.of(node.test)}) and self.training"))
        elif isinstance(node, FUNCTIONS) and node.name == "__init__" and "super()" not in part.text.of(node):
            yield _with_super(part, node)


def _of_call(part: Part, node: ast.Call) -> Iterator[Edit]:
    name = name_of(node)
    for given in node.keywords:
        if given.arg and _names_dropout(given.arg):
            held = part.text.held(given.value)
            yield part.replace("gate", 1, (given.value, f"{held} if self.training else 0.0"))
            yield part.replace("gate", 2, (given.value, f"{held} if self.training else 0"))
        elif given.arg == "training":
            yield part.replace("gate", 1, (given.value, "self.training"))
    of_bias = [f"bias={each}" for each in part.names if "bias" in each] if name == "Linear" else []
    for words in (*_FORGOTTEN.get(name, ()), *of_bias):
        if all(k.arg != words.partition("=")[0] for k in node.keywords):
            inside = [part.text.of(each) for each in (*node.args, *node.keywords)]
            yield part.replace("keyword", 2, (node, f"{part.text.of(node.func)}({', '.join([*inside, words])})"))


def _names_dropout(name: str) -> bool:
    return "drop" in name or name in ("p", "dropout_p")


def _with_super(part: Part, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Edit:
    """super().__init__() before the first statement that is no docstring."""
    first = next((s for s in node.body if not is_docstring(s)), node.body[-1])
    start = part.text.start(first)
    is_compound = isinstance(first, ast.If | ast.For | ast.With | ast.While | ast.Try)
    between = f"\n{' ' * first.col_offset}" if is_compound else "; "
    return part.text.edit("super", 0, (start, start, f"super().__init__(){between}"))
