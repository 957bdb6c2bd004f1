"""A sentence about a line that raised an exception, for mistakes that the line itself shows. It is read, never run."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice

import torch

from ..box.worker.answers import Raised
from ..checks.explain import is_shape_fault
from ..submission.source_text import DEFINITIONS, statements_of

NOT_CALLED = "On line {0} `{1}` is {2} that is not called: write {1}(…)."
_OF_A_FUNCTION = re.compile(
    r"'(?:function|method|builtin_function_or_method)'|got (?:function|method|builtin)|function object"
)
TRANSPOSED = "`.T` turns all the axes around, not the last two alone: .transpose(-2, -1) does."
AXIS_LOST = "A sum or a maximum over an axis loses that axis: with keepdim=True it stays, with size 1."
_REDUCTIONS = frozenset("sum mean amax amin max min logsumexp norm nansum".split())


def advice(source: str, raised: Raised, function: str = "") -> str:
    """Return the sentence, "" where the line shows none of these.

    function: the one that was called, which may have handed on what does not fit.
    """
    if raised.type in ("TypeError", "AttributeError") and _OF_A_FUNCTION.search(raised.message):
        return _not_called(source, raised, function)
    if not raised.line or not is_shape_fault(raised):
        return ""
    line, nodes = raised.line, [*_on_line(source, raised.line)]
    is_of_matrices = raised.message.startswith("mat1 and mat2")  # of a matrix .T turns what it should
    if not is_of_matrices and any(isinstance(node, ast.Attribute) and node.attr == "T" for node in nodes):
        return TRANSPOSED
    functions = (n for n in _nodes(source, line) if isinstance(n, ast.FunctionDef) and _covers(n, line))
    inside = (node for outermost in islice(functions, 1) for node in ast.walk(outermost))
    losing = (node for node in inside if isinstance(node, ast.Assign) and _loses_its_axis(node.value))
    lost = {target.id for node in losing for target in node.targets if isinstance(target, ast.Name)}
    divided = [node.right for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Sub)]
    if any(_loses_its_axis(n) or (isinstance(n, ast.Name) and n.id in lost) for n in divided):
        return AXIS_LOST
    return ""


def _not_called(source: str, raised: Raised, function: str) -> str:
    """Return a sentence about a function of the file, or a method, that is not called on this line or in the function."""
    parts = [part for part in statements_of(source) if isinstance(part, ast.FunctionDef)]
    names = {part.name for part in parts}
    inside = [node for part in parts if part.name == function for node in ast.walk(part)]
    for nodes in ([*_on_line(source, raised.line)], inside):
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in (node for node in nodes if id(node) not in called):
            if isinstance(node, ast.Name) and node.id in names:
                return NOT_CALLED.format(node.lineno, node.id, "a function")
            if isinstance(node, ast.Attribute) and inspect.ismethoddescriptor(getattr(torch.Tensor, node.attr, None)):
                return NOT_CALLED.format(node.lineno, f".{node.attr}", "a method")
    return ""


def of_another_kind(source: str, name: str, is_class: bool) -> str:
    """Return a sentence where what has the name is no plain function, or no class, where one is asked for; else "".

    is_class: whether a class is asked for.
    """
    found = [part for part in statements_of(source) if isinstance(part, DEFINITIONS) and part.name == name]
    match found[-1:]:
        case [ast.AsyncFunctionDef() as last] if not is_class:
            return f"It is an `async def`, written on line {last.lineno}, so that a call gives a coroutine: take `async` away"
        case [ast.ClassDef() as last] if not is_class:
            return f"It is a class, written on line {last.lineno}, and a function is asked for"
        case [ast.FunctionDef() as last] if not is_class and (yields := _yields_in(last)):
            return f"A `yield` makes it a generator, written on line {yields}: return the answer"
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as last] if is_class:
            return f"It is a function, written on line {last.lineno}, and a class is asked for"
    return ""


def in_another_order(source: str, name: str, due: Sequence[str]) -> str:
    """Return a sentence where a function takes the arguments that are due in another order; else ""."""
    found = [part for part in statements_of(source) if isinstance(part, ast.FunctionDef) and part.name == name]
    own = [arg.arg for each in found[-1:] for arg in (*each.args.posonlyargs, *each.args.args)]
    if own == list(due) or sorted(own) != sorted(due):
        return ""
    return f"It is written as {name}({', '.join(own)}), and called as {name}({', '.join(due)})"


def refuses_nothing(source: str, name: str) -> str:
    """Return a sentence where an assert of a function or class holds a pair in brackets, which is always true; else ""."""
    inside = (node for part in statements_of(source) if getattr(part, "name", "") == name for node in ast.walk(part))
    for node in inside:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            return f"The assert on line {node.lineno} refuses nothing: condition and message in one pair of brackets are always true"
    return ""


def _yields_in(function: ast.FunctionDef) -> int:
    """Return the line of the first `yield` that is the function's own, 0 where it has none."""
    left: list[ast.AST] = list(function.body)
    lines = []
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            lines.append(node.lineno)
        if not isinstance(node, (*DEFINITIONS, ast.Lambda, ast.GeneratorExp)):
            left += ast.iter_child_nodes(node)
    return min(lines, default=0)


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _loses_its_axis(node: ast.expr) -> bool:
    """Return whether this reduces over an axis that is named, and does not keep it: e.sum(-1), torch.sum(e, dim=-1)[0]."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCTIONS:
        return False
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    named = {keyword.arg for keyword in node.keywords}
    return (
        "keepdim" not in named
        and len(node.args) <= 1 + of_torch
        and (bool(named & {"dim", "axis"}) or len(node.args) == 1 + of_torch)
    )


LONGEST = 40  # characters of a name
ALIKE = 0.75  # of difflib's ratio
_LACKS = re.compile(r"(?:'(\w+)' object|module '([\w.]+)'|type object '\w+') has no attribute '(\w+)'")
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_MODULES = {"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional, "math": math}
_TENSORS = {"Tensor": torch.Tensor, "Parameter": torch.nn.Parameter}


def did_you_mean(source: str, raised: Raised) -> str:
    """Return "Did you mean transpose, where it says trasnpose?"; "" where no name is near, or the line does not have it.

    The exception says only which kind of object lacked a name. What is suggested is looked up in the text and in torch:
    nothing that an attempt computes can choose the word.
    """
    nodes = [*_on_line(source, raised.line)]
    if found := _LACKS.search(raised.message):
        kind, module, wrong = found.groups()
        written = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        if owner := _MODULES.get(module) or _TENSORS.get(kind):
            known = {*dir(owner)}
        else:  # of a module of the student's own; of another module nothing is known
            attributes = (node for node in _nodes(source) if isinstance(node, ast.Attribute) and not module)
            known = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    elif found := _UNDEFINED.search(raised.message):
        wrong, known = found[1], {*_defined(source), *dir(builtins)}
        written = {node.id for node in nodes if isinstance(node, ast.Name)}
    else:
        return ""
    if len(wrong) > LONGEST or wrong not in written:
        return ""
    names = sorted(name for name in known if len(name) <= LONGEST and name != wrong and not name.startswith("_"))
    same = [name for name in names if name.lower() == wrong.lower()]
    near = next(iter(same or get_close_matches(wrong, names, 1, ALIKE)), "")
    return f"Did you mean {near}, where it says {wrong}?" if near else ""


def _defined(source: str) -> Iterator[str]:
    """Yield the names that the text gives something to."""
    for node in _nodes(source):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.alias():
                yield (node.asname or node.name).partition(".")[0]


def _nodes(source: str, line: int | None = None) -> Iterator[ast.AST]:
    """Yield all that stands in the text; with a line, in its statements that cover the line."""
    parts = (part for part in statements_of(source) if line is None or _covers(part, line))
    return (node for part in parts for node in ast.walk(part))


def _on_line(source: str, line: int | None) -> Iterator[ast.expr]:
    """Return the expressions that cover a line."""
    nodes = (node for node in _nodes(source, line or 0) if isinstance(node, ast.expr))
    return (node for node in nodes if _covers(node, line or 0))
