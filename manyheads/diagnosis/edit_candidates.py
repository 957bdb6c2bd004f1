"""Make all edits of an attempt that are worth trying, likely and cheap ones first."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, islice

from .edit_calls import call_edits
from .edit_constants import constant_edits, operator_edits
from .edit_names import name_edits
from .edit_text import Edit
from .reached_parts import FUNCTIONS, Part, is_docstring, name_of, parts_of

# Edits of what holds in training alone, and of arguments that are easily forgotten.

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


def gate_edits(part: Part) -> Iterator[Edit]:
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
    for keyword in node.keywords:
        if keyword.arg and _names_dropout(keyword.arg):
            held = part.text.held(keyword.value)
            yield part.replace("gate", 1, (keyword.value, f"{held} if self.training else 0.0"))
            yield part.replace("gate", 2, (keyword.value, f"{held} if self.training else 0"))
        elif keyword.arg == "training":
            yield part.replace("gate", 1, (keyword.value, "self.training"))
    of_bias = [f"bias={other}" for other in part.names if "bias" in other] if name == "Linear" else []
    for words in (*_FORGOTTEN.get(name, ()), *of_bias):
        if all(k.arg != words.partition("=")[0] for k in node.keywords):
            inside = [part.text.of(argument) for argument in (*node.args, *node.keywords)]
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


# Edits that change the order of two things: arguments, operands, entries of a shape, the ways of a condition.

SWAPPED = 6  # the most things of which pairs are swapped
_ONE_WAY = (ast.Sub, ast.Div, ast.FloorDiv, ast.MatMult, ast.Mod, ast.Pow)


def order_edits(part: Part) -> Iterator[Edit]:
    """Yield every pair, swapped."""
    for node in part.nodes:
        if isinstance(node, ast.Call):
            yield from _pairs(part, [a for a in node.args if not isinstance(a, ast.Starred)])
            yield from _pairs(part, [k.value for k in node.keywords])
        elif isinstance(node, ast.Tuple | ast.List):
            yield from _pairs(part, [e for e in node.elts if not isinstance(e, ast.Starred)])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, _ONE_WAY):
            yield from _pairs(part, [node.left, node.right])
        elif isinstance(node, ast.IfExp):
            yield from _pairs(part, [node.body, node.orelse])


def _pairs(part: Part, nodes: Sequence[ast.expr]) -> Iterator[Edit]:
    for a, b in combinations(nodes[:SWAPPED], 2):
        if part.text.of(a) != part.text.of(b):
            yield part.replace("swap", 1, (a, _placed(part, b)), (b, _placed(part, a)))


def _placed(part: Part, node: ast.expr) -> str:
    """As it stands among arguments or in a tuple, where nothing takes it apart; else held together."""
    outer = part.parent(node)
    return part.text.held(node) if isinstance(outer, ast.BinOp | ast.IfExp) else part.text.of(node)


# Edits of whole statements: one taken out, a value returned.


def statement_edits(part: Part) -> Iterator[Edit]:
    """Yield every simple statement taken out, and the last one of a function returned."""
    for node in part.nodes:
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign | ast.If) and node is not part.root:
            yield part.replace("statement", 3, (node, "pass"))
        if isinstance(node, FUNCTIONS):
            yield from _returned(part, node.body[-1])


def _returned(part: Part, last: ast.stmt) -> Iterator[Edit]:
    is_value = isinstance(last, ast.Expr) and not is_docstring(last)
    if is_value or (isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name)):
        assert isinstance(last, ast.Expr | ast.Assign)
        yield part.replace("return", 1, (last, f"return {part.text.of(last.value)}"))


# All edits of an attempt that are worth trying, likely and cheap ones first.

LONGEST_LINES, LONGEST = 400, 20_000  # the longest text that is edited: lines and characters
MOST = 4000  # edits that are made of one text: more are not tried
MOST_BYTES = (
    4000 * 20_000
)  # of all edits, each of which is a whole text: one emoji in it makes each character four bytes
NEAR = 2  # by how many tiers an edit is tried sooner that stands on the line of an exception
_FAMILIES: tuple[Callable[[Part], Iterator[Edit]], ...] = (
    gate_edits,
    operator_edits,
    call_edits,
    order_edits,
    constant_edits,
    name_edits,
    statement_edits,
)


def candidates(source: str, targets: Collection[str], raised_on: Collection[int] = ()) -> list[Edit]:
    """Return the edits of what calls of these functions and classes reach, each text once.

    raised_on: the lines of exceptions that ended failed calls. Empty for a text that is too long or cannot be parsed.
    """
    if len(source) > LONGEST or source.count("\n") >= LONGEST_LINES:
        return []
    edits: dict[str, Edit] = {}
    try:
        for edit in islice(_edits(source, targets), min(MOST, MOST_BYTES // sys.getsizeof(source))):
            if edit.line and (edit.after not in edits or edit.tier < edits[edit.after].tier):
                edits[edit.after] = edit
    except RecursionError:  # an expression of a thousand brackets
        return []
    near = set(raised_on)
    return sorted(edits.values(), key=lambda e: (e.tier - NEAR * (e.line in near), e.line))


def _edits(source: str, targets: Collection[str]) -> Iterator[Edit]:
    for part in parts_of(source, targets):
        for family in _FAMILIES:
            yield from family(part)
