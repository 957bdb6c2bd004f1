"""Single edits of the parts of an attempt that its failed calls reach.

Parts are functions, methods and the statements beside them. An edit adds or removes a call or an
argument, replaces a call by its sibling, or changes a constant, an operator or a name.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, permutations
from operator import ne
from typing import Any

from ..submission.source import Source, printable

NAMES = 40  # the most names of a part, and attributes of a class, that replace others
SHOWN = 160  # the most characters of a line in an edit's description
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict)
_LEFT_OUT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
_NO_CODE = ("annotation", "returns", "decorator_list", "type_params", "msg")

# The category and tier of an edit, and the new text of each changed node. The key type is Any
# because a mapping is invariant in its keys.
Change = tuple[str, int, Mapping[Any, str]]
Changes = Iterator[Change]


@dataclass(frozen=True)
class LineEdit:
    """A small change of a text.

    Attributes:
        category: The group of similar edits to which it belongs.
        tier: How late it is tried.
        line: The first line of the text that it changes, or 0 if it changes nothing.
        before: The text before the edit.
        after: The text after it.
    """

    category: str
    tier: int
    line: int
    before: str
    after: str

    @property
    def described(self) -> str:
        """The changed lines before and after the edit, for the instructor."""
        return f"{_changed(self.before, self.after)} → {_changed(self.after, self.before)}"


def _changed(text: str, other_text: str) -> str:
    """Return the lines in which a text differs from another one, as one line.

    They begin with the first difference and end with the last one.
    """
    lines, other_lines = text.split("\n"), other_text.split("\n")
    start = [*map(ne, lines, other_lines), True].index(True)
    alike_at_end = [*map(ne, lines[:start:-1], other_lines[:start:-1]), True].index(True)
    changed_lines = lines[start : len(lines) - alike_at_end]
    summary = printable(" ".join(line.strip() for line in changed_lines))
    return summary if len(summary) <= SHOWN else f"{summary[: SHOWN - 1]}…"


@dataclass(frozen=True, eq=False)
class CodePart:
    """A function, or a statement outside of all functions.

    Attributes:
        source: The whole text.
        data: The whole text in UTF-8.
        starts: The index in `data` at which each line begins, as the syntax tree counts lines.
        root: The node of the part.
        attributes: The attributes of self, each with the text of the function whose call made it,
            or "" if its value is not a call.
    """

    source: Source
    data: bytes
    starts: Sequence[int]
    root: ast.stmt
    attributes: Mapping[str, str]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        return _span(node, self.starts)

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.data[slice(*self.span(node))].decode()

    def atom(self, node: ast.AST) -> str:
        """Return the text of a node, in parentheses if a neighbour could split it."""
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def edit(self, category: str, tier: int, new: Mapping[ast.AST, str]) -> LineEdit:
        """Return the edit of the whole text that replaces these nodes by new texts."""
        data, line = self.data, 0
        for node in sorted(new, key=self.span, reverse=True):
            start, end = self.span(node)
            old, written = self.data[start:end], new[node].encode()
            if written != old:
                data = data[:start] + written + data[end:]
                lines = (text.splitlines(keepends=True) for text in (old, written))
                first_difference = [*map(ne, *lines), True].index(True)
                line = node.lineno + first_difference  # type: ignore[attr-defined]
        return LineEdit(category, tier, line, self.source.text, data.decode())

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The nodes that may be edited, each with its parent."""
        return dict(_inner(self.root, self.root))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes that may be edited, in the order of the text, outer ones first."""
        spans = {node: self.span(node) for node in self.parents if hasattr(node, "lineno")}
        return sorted(spans, key=lambda node: (spans[node][0], -spans[node][1]))

    @cached_property
    def names(self) -> list[str]:
        """The names of values, arguments first, without self."""
        nodes = list(ast.walk(self.root))
        names = [n.arg for n in nodes if isinstance(n, ast.arg)]
        names += [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return [n for n in dict.fromkeys(names) if n not in ("self", "_")][:NAMES]

    @cached_property
    def pairs(self) -> set[tuple[str, str]]:
        """Pairs of names that are bound in one statement, or are parameters of one function."""
        # few names, while a text may have thousands of such statements
        names = frozenset(self.names)
        pairs: set[tuple[str, str]] = set()
        for node in self.nodes:
            if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
                pairs.update(
                    permutations(names & {e.id for e in node.elts if isinstance(e, ast.Name)}, 2)
                )
            elif isinstance(node, ast.FunctionDef | ast.Lambda):
                pairs.update(permutations(names & {a.arg for a in node.args.args}, 2))
        return pairs


def _inner(node: ast.AST, outer: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the nodes whose text may be edited, each with its parent.

    Annotations, messages and docstrings are left out.
    """
    yield node, outer
    for value in (value for name, value in ast.iter_fields(node) if name not in _NO_CODE):
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and not isinstance(child, _LEFT_OUT)
                and not is_docstring(child)
            ):
                yield from _inner(child, node)


def _span(node: Any, starts: Sequence[int]) -> tuple[int, int]:
    """Return the bytes at which a node with a position begins and ends.

    Args:
        node: The node.
        starts: The index at which each line begins.
    """
    return starts[node.lineno - 1] + node.col_offset, starts[
        node.end_lineno - 1
    ] + node.end_col_offset


def name_of(node: ast.Call) -> str:
    """Return the last part of the name of the called function, "" if it has none."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_docstring(node: ast.AST) -> bool:
    """Return whether this is a statement that consists of a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def parts_of(source: Source, targets: Collection[str]) -> Iterator[CodePart]:
    """Yield the parts that calls of these functions and classes reach.

    If the text defines no target, yield all parts.
    """
    data, statements = source.text.encode(), source.statements
    starts = list(accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0))
    reached = _reached(statements, targets)
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            if statement.name in reached:
                attributes = _attributes(statement, data, starts)
                for member in statement.body:
                    name = member.name if isinstance(member, ast.FunctionDef) else "__"
                    if name in reached or name == "forward" or name.startswith("__"):
                        yield CodePart(source, data, starts, member, attributes)
        elif not isinstance(statement, ast.FunctionDef) or statement.name in reached:
            yield CodePart(source, data, starts, statement, {})


def _attributes(statement: ast.ClassDef, data: bytes, starts: Sequence[int]) -> dict[str, str]:
    """Return the attributes of self, each with the text of the function that made it.

    The text is "" if the value of the attribute is not a call.
    """
    makers: dict[str, str] = {}
    for node in ast.walk(statement):
        match node:
            case ast.Assign(targets=targets, value=value):
                maker = (
                    data[slice(*_span(value.func, starts))].decode()
                    if isinstance(value, ast.Call)
                    else ""
                )
                for target in targets:
                    match target:
                        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                            makers.setdefault(attr, maker)
            case ast.Call(
                func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=name), *_]
            ):
                makers[str(name)] = "register_buffer"
    return dict(list(makers.items())[:NAMES])


def _reached(statements: Sequence[ast.stmt], targets: Collection[str]) -> set[str]:
    """Return the names of all functions, methods and classes that the targets use.

    Both direct and indirect uses count.
    """
    bodies: dict[str, list[ast.stmt]] = defaultdict(list)
    for statement in statements:
        for member in (statement, *(statement.body if isinstance(statement, ast.ClassDef) else ())):
            # An assignment may give a function another name.
            for node in member.targets if isinstance(member, ast.Assign) else [member]:
                if name := getattr(node, "id", getattr(node, "name", "")):
                    bodies[name].append(member)
    waiting = [t for t in targets if t in bodies] or list(bodies)
    reached: set[str] = set()
    looked_at: set[ast.stmt] = set()  # a statement may have thousands of names: a = b = c = …
    while waiting:
        name = waiting.pop()
        new = set() if name in reached else {*bodies[name]} - looked_at
        reached.add(name)
        looked_at |= new
        used = (
            getattr(node, "id", getattr(node, "attr", ""))
            for body in new
            for node in ast.walk(body)
        )
        waiting += [used_name for used_name in used if used_name in bodies]
    return reached


# The methods, or functions of a module, that replace another one.
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
# The arguments that are added to a call of this name, if it lacks them.
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
# The arguments that are removed.
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
    """Return whether a name is usual for the probability of dropout."""
    return "drop" in name or name in ("p", "dropout_p")


def arguments(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that add a gate to an argument, or an argument that is easily forgotten."""
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


def _call(code: CodePart, node: ast.Call, args: Iterable[ast.AST], *extra: str) -> str:
    """Return the text of the call with other arguments."""
    return f"{code.text(node.func)}({', '.join([*map(code.text, args), *extra])})"


def calls(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that remove a call, or replace it by a similar one.

    A product may also be scaled, or one of its factors transposed. A value may get its axes moved.
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


def _without(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that replace a call by its receiver or first argument, or remove an argument."""
    if isinstance(node.func, ast.Attribute) and not _is_of_module(node.func):
        yield "call", 1, {node: code.atom(node.func.value)}
    match node.args:
        # without parentheses, a dot after it would change the number
        case [ast.Constant() as first, *_]:
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
    """Return whether a function belongs to a module, such as torch or torch.nn.functional.

    Then it has no receiver that could replace the call.
    """
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in _MODULES


def _siblings(code: CodePart, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield similar calls, and for a triangle other diagonals."""
    name, stem = func.attr, code.text(func).removesuffix(func.attr)
    siblings = _SIBLINGS.get(name, "").split()
    yield from (("call", 1, {func: stem + sibling}) for sibling in siblings)
    if name in ("tril", "triu"):
        kept_args = [code.text(argument) for argument in node.args[:1] if _is_of_module(func)]
        if len(node.args) == len(kept_args) and all(
            keyword.arg != "diagonal" for keyword in node.keywords
        ):
            siblings.append(name)  # otherwise the number of the diagonal is edited as a constant
        for sibling in siblings:
            for diagonal in (0, 1, -1):
                yield (
                    "call",
                    2,
                    {node: f"{stem}{sibling}({', '.join([*kept_args, f'diagonal={diagonal}'])})"},
                )


def _before_shaping(code: CodePart, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield edits that move axes around a view, or make its memory contiguous.

    Two neighbouring sizes of the shape may also be swapped, together with their axes.
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


def _scaled(code: CodePart, node: ast.expr, factor: ast.expr | None) -> Changes:
    """Yield the product, divided by the root of its factor's last size.

    Nothing is yielded if the product is divided already.
    """
    outer = code.parents[node]
    if isinstance(factor, ast.Name) and not (
        isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)
    ):
        yield "scale", 2, {node: f"({code.atom(node)} / {factor.id}.shape[-1] ** 0.5)"}


LONGEST = 80  # characters of an equation
# the bound of integers that are edited: no tensor holds a larger one, and Python cannot print one
# of 4,301 digits
LARGEST = 2**63
_AXES = (-1, -2, 1, 2, 0, 3, -3)
_BY_WORD = ("dim", "dims", "axis", "diagonal", "dim0", "dim1")
_MASKED = ("masked_fill", "masked_fill_", "where")
_FILLING = (*_MASKED, "full", "full_like", "fill_")
# The operators that replace another one.
_OTHERS: dict[type, str] = {
    ast.Lt: "<=,>,>=",
    ast.LtE: "<,>=,>",
    ast.Gt: ">=,<,<=",
    ast.GtE: ">,<=,<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.Mult: "/,//,@,+",
    ast.Div: "*",
    ast.FloorDiv: "*,%",
    ast.Mod: "//",
    ast.MatMult: "*",
    ast.Add: "-,*",
    ast.Sub: "+",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
_SCALES = (ast.Mult, ast.Div, ast.Add, ast.Sub, ast.Pow, ast.FloorDiv, ast.MatMult)


def operators(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that replace or remove an operator, or change a sign.

    A condition or a mask may also be inverted.
    """
    replacements = _replacements(node)
    match node:
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            yield from (
                ("comparison", 1, {node: f"{code.atom(left)} {o} {code.atom(right)}"})
                for o in replacements
            )
        case ast.BinOp(left=left, op=op, right=right):
            a, b = code.atom(left), code.atom(right)
            yield from (
                ("operator", 1, {node: f"({a} {replacement} {b})"}) for replacement in replacements
            )
            if isinstance(op, _SCALES):
                yield "operand", 1, {node: a}
                yield "operand", 3, {node: b}
            if isinstance(op, ast.Div | ast.Mult):
                yield "scale", 1, {right: f"({b} ** {0.5 if isinstance(op, ast.Div) else -0.5})"}
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            yield "sign", 1, {node: code.atom(operand)}
        case ast.AugAssign(target=target, value=value):
            yield from (
                ("operator", 1, {node: f"{code.text(target)} {o}= {code.atom(value)}"})
                for o in replacements
            )
            yield "operator", 3, {node: f"{code.text(target)} = {code.atom(value)}"}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "comparison", 2, {test: f"not ({code.text(test)})"}
        case ast.Call():
            yield from _filled(code, node)


def _replacements(node: ast.AST) -> list[str]:
    """Return the operators that replace the node's operator, if it has a single one."""
    op = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    return [replacement for replacement in _OTHERS.get(type(op), "").split(",") if replacement]


def _filled(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that invert a mask, or change the sign of a value that is filled in."""
    name, masks = name_of(node), [k.value for k in node.keywords if k.arg == "attn_mask"]
    args = [*node.args, *masks]
    if name in _MASKED:
        masks = args[:1]
    elif masks or name == "scaled_dot_product_attention":
        masks = args[3:] or args[-1:]
    yield from (("sign", 1, {mask: f"~{code.atom(mask)}"}) for mask in masks)
    for value in node.args if name in _FILLING else ():
        if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
            yield "sign", 2, {value: f"-{code.atom(value)}"}
        if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
            yield "sign", 2, {value: 'float("-inf")'}


def constants(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits of a constant: True or False, a signed number, an infinity, an equation."""
    if not isinstance(node, ast.Constant):
        return
    literal, value = code.parents[node], node.value
    if (
        isinstance(value, int | float)
        and isinstance(literal, ast.UnaryOp)
        and isinstance(literal.op, ast.USub)
    ):
        value = -value
    else:
        literal = node
    match value:
        case bool():
            yield "truth", 1, {literal: str(not value)}
        case int() if abs(value) < LARGEST:
            yield from _integers(code, literal, value)
        case float():
            replacements = (-value, 1 - value, 0.5, -0.5, 1.0, 0.0)
            yield from (
                ("number", 3, {literal: repr(replacement)})
                for replacement in replacements
                if replacement != value
            )
        case str() if value.strip("+-") in ("inf", "Inf", "infinity"):
            yield "sign", 1, {node: '"inf"' if value.startswith("-") else '"-inf"'}
        case str() if "->" in value and len(value) <= LONGEST and "\\" not in code.text(node):
            yield from _equations(node, code.text(node))


def _integers(code: CodePart, node: ast.AST, value: int) -> Changes:
    """Yield other axes, if the integer may be an axis, and numbers near it."""
    outer = code.parents[node]
    is_axis = isinstance(outer, ast.Subscript | ast.Call) or (
        isinstance(outer, ast.keyword) and outer.arg in _BY_WORD
    )
    axes = _AXES if is_axis or isinstance(outer, ast.Tuple) else ()
    for replacement in dict.fromkeys((*axes, value - 1, value + 1, 0, 1, 2, 3)):
        if replacement != value:
            tier = 1 if is_axis else 2
            if replacement not in axes:
                tier = 3
            yield "number", tier, {node: str(replacement)}


def _equations(node: ast.Constant, quoted: str) -> Changes:
    """Yield edits that swap two letters of one operand, or replace a letter by another one.

    If the axes are words, as in einops, words take the place of letters.
    """
    are_words = " " in quoted.replace(" -> ", "").replace(", ", "")
    letters = [
        m
        for m in re.finditer(r"[A-Za-z]\w*" if are_words else r"[A-Za-z]", quoted)
        if m.start() > 0
    ]
    for i, a in enumerate(letters):
        for b in letters[i + 1 :]:
            between = quoted[a.end() : b.start()]
            if "," not in between and "->" not in between and a[0] != b[0]:
                yield (
                    "equation",
                    2,
                    {node: f"{quoted[: a.start()]}{b[0]}{between}{a[0]}{quoted[b.end() :]}"},
                )
    for a in letters:
        for letter in dict.fromkeys(m[0] for m in letters):
            if letter != a[0]:
                yield "equation", 4, {node: f"{quoted[: a.start()]}{letter}{quoted[a.end() :]}"}


def names(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that replace a name by another name, or an attribute of self by a similar one.

    Attributes are similar if calls of the same function made both, or if no call made either.
    """
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in code.names:
            for replacement in (candidate for candidate in code.names if candidate != name):
                near = (name, replacement) in code.pairs or _look_alike(name, replacement)
                yield "name", 2 if near else 4, {node: replacement}
            yield from _sizes_of_self(code, node)
        case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if (
            attr in code.attributes
        ):
            maker = code.attributes[attr]
            alike = [
                attribute
                for attribute, by in code.attributes.items()
                if attribute != attr and by == maker
            ]
            yield from (("attribute", 2, {node: f"self.{attribute}"}) for attribute in alike)
            if not maker:
                yield from (("attribute", 4, {node: name}) for name in code.names)


def _sizes_of_self(code: CodePart, node: ast.Name) -> Changes:
    """Yield attributes of self for a name that may be a size, with a lower tier under a root."""
    outer = code.parents[node]
    if not isinstance(outer, ast.Attribute | ast.Subscript):
        is_root = isinstance(outer, ast.Call) and code.text(outer.func).endswith("sqrt")
        is_root = is_root or (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow))
        sizes = [name for name, maker in code.attributes.items() if not maker]
        yield from (("attribute", 2 if is_root else 4, {node: f"self.{name}"}) for name in sizes)


def _look_alike(a: str, b: str) -> bool:
    """Return whether both names are equally long and differ in one letter, but not in case."""
    return (
        len(a) == len(b)
        and a.isupper() == b.isupper()
        and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
