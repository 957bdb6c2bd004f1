"""Which name may be meant by one that is misspelt: as Python tells at a prompt, read from the text and from torch's own names.

The exception says only which kind of object lacked a name. The name must stand on its line, and what is suggested is looked
up here: nothing that an attempt computes can choose the word.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

import torch

from ..box.worker.answers import Raised
from ..submission.statements import statements_of

LONGEST = 40  # characters of a name
ALIKE = 0.75  # of difflib's ratio
_LACKS = re.compile(r"(?:'(\w+)' object|module '([\w.]+)'|type object '\w+') has no attribute '(\w+)'")
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_MODULES = {"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional, "math": math}
_TENSORS = {"Tensor": torch.Tensor, "Parameter": torch.nn.Parameter}


def did_you_mean(source: str, raised: Raised) -> str:
    """Return "did you mean transpose, where it says trasnpose?"; "" where no name is near, or the line does not have it."""
    if found := _LACKS.search(raised.message):
        kind, module, wrong = found.groups()
        known = _own_names(source, kind or "", module or "")
        written = (node.attr for node in _on_line(source, raised.line) if isinstance(node, ast.Attribute))
    elif found := _UNDEFINED.search(raised.message):
        wrong, known = found[1], {*_defined(source), *dir(builtins)}
        written = (node.id for node in _on_line(source, raised.line) if isinstance(node, ast.Name))
    else:
        return ""
    if len(wrong) > LONGEST or wrong not in written:
        return ""
    near = _nearest(wrong, known)
    return f"Did you mean {near}, where it says {wrong}?" if near else ""


def _nearest(wrong: str, known: Collection[str]) -> str:
    names = sorted(name for name in known if len(name) <= LONGEST and name != wrong and not name.startswith("_"))
    same = [name for name in names if name.lower() == wrong.lower()]
    return next(iter(same or get_close_matches(wrong, names, 1, ALIKE)), "")


def _own_names(source: str, kind: str, module: str) -> set[str]:
    """Return the attributes of a module, of a tensor, or of a module of the student's own."""
    if module:
        return set(dir(_MODULES[module])) if module in _MODULES else set()
    if kind in _TENSORS:
        return set(dir(_TENSORS[kind]))
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def _defined(source: str) -> set[str]:
    """Return the names that the text gives something to."""
    found: set[str] = set()
    for node in (node for part in statements_of(source) for node in ast.walk(part)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.alias():
                found.add((node.asname or node.name).partition(".")[0])
    return found


def _on_line(source: str, line: int | None) -> Iterable[ast.expr]:
    """Return the expressions that cover a line."""
    around = (part for part in statements_of(source) if line and part.lineno <= line <= (part.end_lineno or 0))
    nodes = (node for part in around for node in ast.walk(part) if isinstance(node, ast.expr))
    return (node for node in nodes if node.lineno <= (line or 0) <= (node.end_lineno or 0))
