"""Make all edits of an attempt that are worth trying, likely and cheap ones first.

A rule looks at one node of the syntax tree, and says what could stand in its place. Lower tiers are
tried first.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, islice, product

from .call_edits import arguments, calls, is_of_dropout
from .code_parts import Changes, Edit, Part, is_docstring, parts_of
from .value_edits import constants, names, operators

# the longest code that is edited: lines and characters, without lines of comments
LONGEST_LINES, LONGEST = 400, 20_000
# characters of code in all edits: a look loads each, and time allows no more
MOST_LOADED = 20_000_000
MOST = 4000  # edits that are made of one text: more are not tried
# of all edits, each a whole text: one emoji in it makes each character four bytes
MOST_BYTES = MOST * LONGEST
NEAR = 2  # by how many tiers an edit is tried sooner that stands on the line of an exception
SWAPPED = 6  # the most things of which pairs are swapped


def gates(code: Part, node: ast.AST) -> Changes:
    """Yield gates of what holds in training alone, put on and taken off, and a forgotten
    super().
    """
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield "gate", 1, {node: code.atom(body)}
            yield "gate", 1, {node: code.atom(orelse)}
        case ast.Call():
            yield from arguments(code, node)
        case ast.Assign(targets=[target, *_], value=value) if is_of_dropout(code.text(target)):
            yield "gate", 2, {value: f"{code.atom(value)} if self.training else 0.0"}
        case ast.If(test=test):
            yield "gate", 2, {test: "True"}
            yield "gate", 3, {test: f"({code.text(test)}) and self.training"}
        case ast.FunctionDef(name="__init__", body=body) if "super()" not in code.text(node):
            statement = next((s for s in body if not is_docstring(s)), body[-1])
            is_compound = isinstance(statement, ast.If | ast.For | ast.With | ast.While | ast.Try)
            between = f"\n{' ' * statement.col_offset}" if is_compound else "; "
            yield "super", 0, {statement: f"super().__init__(){between}{code.text(statement)}"}


def orders(code: Part, node: ast.AST) -> Changes:
    """Yield every pair of arguments, operands, entries of a shape and ways of a condition,
    swapped.
    """
    groups: list[Sequence[ast.expr]] = []
    match node:
        case ast.Call(args=args, keywords=keywords):
            groups = [args, [keyword.value for keyword in keywords]]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            groups = [elts]
        case ast.BinOp(
            op=ast.Sub() | ast.Div() | ast.FloorDiv() | ast.MatMult() | ast.Mod() | ast.Pow()
        ):
            groups = [[node.left, node.right]]
        case ast.IfExp(body=body, orelse=orelse):
            groups = [[body, orelse]]
    # nothing takes an argument apart
    placed = code.atom if isinstance(node, ast.BinOp | ast.IfExp) else code.text
    for group in groups:
        for a, b in combinations(
            [expression for expression in group if not isinstance(expression, ast.Starred)][
                :SWAPPED
            ],
            2,
        ):
            if code.text(a) != code.text(b):
                yield "swap", 1, {a: placed(b), b: placed(a)}


def statements(code: Part, node: ast.AST) -> Changes:
    """Yield every simple statement taken out, and the last one of a function returned."""
    match node:
        case ast.Expr() | ast.AugAssign() | ast.Assign() | ast.If() if node is not code.root:
            yield "statement", 3, {node: "pass"}
        case ast.FunctionDef(
            body=[*_, ast.Expr(value=x) | ast.Assign(targets=[ast.Name(), *_], value=x) as last]
        ):
            if not is_docstring(last):
                yield "return", 1, {last: f"return {code.text(x)}"}


RULES: Sequence[Callable[[Part, ast.AST], Changes]] = (
    gates,
    operators,
    calls,
    orders,
    constants,
    names,
    statements,
)


def candidates(
    source: str, targets: Collection[str], raised_on: Collection[int] = ()
) -> list[Edit]:
    """Return the edits of what calls of these functions and classes reach, each text once.

    raised_on: the lines of exceptions that ended failed calls. Empty for a text that is too long or
        cannot be parsed.
    """
    code = [line for line in source.split("\n") if not line.lstrip().startswith("#")]
    if len(code) > LONGEST_LINES or (length := sum(map(len, code))) > LONGEST:
        return []
    edits: dict[str, Edit] = {}
    for edit in islice(_edits(source, targets), min(MOST, MOST_BYTES // sys.getsizeof(source))):
        if edit.line and (edit.after not in edits or edit.tier < edits[edit.after].tier):
            edits[edit.after] = edit
    likely = sorted(edits.values(), key=lambda e: (e.tier - NEAR * (e.line in raised_on), e.line))
    return likely if len(likely) * length <= MOST_LOADED else []


def _edits(source: str, targets: Collection[str]) -> Iterator[Edit]:
    for code in parts_of(source, targets):
        for rule, node in product(RULES, code.nodes):
            yield from (code.edit(*change) for change in rule(code, node))
