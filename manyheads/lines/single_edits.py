"""Single edits of a part of an attempt.

An edit adds or removes a call or an argument, replaces a call by its sibling, changes a constant,
an operator or a name, or swaps two arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product

from .code_parts import Changes, CodePart, is_docstring

SWAPPED = 6  # the most items of which all pairs are swapped
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
# The keyword arguments that are removed from calls.
_REMOVED_KEYWORDS = (
    "dim keepdim bias diagonal scale dropout_p attn_mask persistent requires_grad".split()
)
_SHAPING = "view reshape flatten unflatten contiguous unfold".split()
_MOVES = (".transpose(1, 2)", ".transpose(-2, -1)")
_LAYERS = ("Dropout", "Linear")
_MODULES = "torch math F nn np numpy functional einops".split()


def name_of(node: ast.Call) -> str:
    """Return the last part of the name of the called function, "" if it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return getattr(node.func, "id", "")


def is_of_dropout(name: str) -> bool:
    """Return whether a name is usual for the probability of dropout."""
    return "drop" in name or name in ("p", "dropout_p")


def arguments(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that add a gate to an argument, or an argument that is easily forgotten."""
    for keyword in node.keywords:
        if is_of_dropout(keyword.arg or ""):
            gated = f"{code.atom(keyword.value)} if self.training else"
            yield "gate", 1, {keyword.value: f"{gated} 0.0"}
            yield "gate", 2, {keyword.value: f"{gated} 0"}
        elif keyword.arg == "training":
            yield "gate", 1, {keyword.value: "self.training"}
    name, keyword_names = name_of(node), {keyword.arg for keyword in node.keywords}
    forgotten = _FORGOTTEN.get(name, "").split()
    if name == "Linear":
        forgotten += [f"bias={variable}" for variable in code.names if "bias" in variable]
    for argument in forgotten:
        if argument.partition("=")[0] not in keyword_names:
            args = (*node.args, *node.keywords)
            yield "keyword", 2, {node: _call_text(code, node, args, argument)}


def _call_text(code: CodePart, node: ast.Call, args: Iterable[ast.AST], *new_args: str) -> str:
    """Return the text of the call with these arguments, followed by new ones, in place of its."""
    return f"{code.text(node.func)}({', '.join([*map(code.text, args), *new_args])})"


def calls(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that remove a call, add one, or replace it by a similar one.

    A product may be scaled, or one of its factors transposed. The axes of an assigned or returned
    value may be moved, and a layer applied to it.
    """
    match node:
        case ast.Call(func, args):
            yield from _removals(code, node)
            if isinstance(func, ast.Attribute):
                yield from _siblings(code, node, func)
            if name_of(node) in ("matmul", "bmm", "einsum"):
                named_args = (argument for argument in args if isinstance(argument, ast.Name))
                yield from _scalings(code, node, next(named_args, None))
            if isinstance(func, ast.Attribute) and func.attr in _SHAPING:
                yield from _before_shaping(code, node, func)
        case ast.Attribute(value, "T" | "mT" | "H" | "mH"):
            yield "call", 1, {node: code.atom(value)}
        case ast.BinOp(left, ast.MatMult(), right):
            for factor in (left, right):
                yield "call", 2, {factor: code.atom(factor) + _MOVES[1]}
            yield from _scalings(code, node, left)
            yield "call", 4, {node: f"{code.atom(node)}.softmax(dim=-1)"}
        case ast.Return(value) | ast.Assign(_, value):
            if isinstance(value, ast.Name | ast.Call | ast.BinOp | ast.Attribute | ast.Subscript):
                yield from _calls_on_value(code, value)


def _calls_on_value(code: CodePart, value: ast.expr) -> Changes:
    """Yield edits that move the axes of a value, or apply a layer of self to it."""
    for move in _MOVES:
        yield "call", 3, {value: code.atom(value) + move}
    for name, maker in code.attributes.items():
        if maker.split(".")[-1] in _LAYERS:
            yield "layer", 3, {value: f"self.{name}({code.text(value)})"}


def _removals(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that replace a call by its receiver or first argument.

    Each of its _REMOVED_KEYWORDS may also be removed.
    """
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
        if left_out.arg in _REMOVED_KEYWORDS:
            kept_args = [argument for argument in args if argument is not left_out]
            yield "keyword", 2, {node: _call_text(code, node, kept_args)}


def _is_of_module(func: ast.expr) -> bool:
    """Return whether a function belongs to a module, such as torch or torch.nn.functional.

    Then it has no receiver that could replace the call.
    """
    owner = func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in _MODULES


def _siblings(code: CodePart, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield edits that call one of the _SIBLINGS instead; for tril and triu, other diagonals."""
    name, stem = func.attr, code.text(func).removesuffix(func.attr)
    siblings = _SIBLINGS.get(name, "").split()
    for sibling in siblings:
        yield "call", 1, {func: stem + sibling}
    if name not in ("tril", "triu"):
        return
    # A function of a module has the matrix as its first argument, a method as its receiver.
    matrix = [code.text(argument) for argument in node.args[:1] if _is_of_module(func)]
    has_keyword = any(keyword.arg == "diagonal" for keyword in node.keywords)
    if len(node.args) == len(matrix) and not has_keyword:
        siblings.append(name)  # otherwise the number of the diagonal is edited as a constant
    for sibling, diagonal in product(siblings, (0, 1, -1)):
        new_args = ", ".join([*matrix, f"diagonal={diagonal}"])
        yield "call", 2, {node: f"{stem}{sibling}({new_args})"}


def _before_shaping(code: CodePart, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield edits that move axes before or after a view, or make its memory contiguous.

    Two neighbouring sizes of the shape may be swapped, and the two axes swapped back afterwards.
    """
    receiver, suffix = code.atom(func.value), code.text(node)[len(code.text(func)) :]
    name = "reshape" if func.attr == "view" else func.attr
    yield "call", 1, {node: f"{receiver}.contiguous().{func.attr}{suffix}"}
    for move in _MOVES:
        yield "call", 2, {node: f"{receiver}{move}.{name}{suffix}"}
    yield "call", 2, {node: f"{code.text(node)}{_MOVES[0]}"}
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple):
        sizes = sizes[0].elts
    if func.attr in ("view", "reshape") and len(sizes) > 2:
        texts = [code.text(size) for size in sizes]
        for i in range(len(texts) - 1):
            swapped = ", ".join([*texts[:i], texts[i + 1], texts[i], *texts[i + 2 :]])
            yield "shape", 2, {node: f"{receiver}.{func.attr}({swapped}).transpose({i}, {i + 1})"}


def _scalings(code: CodePart, node: ast.expr, factor: ast.expr | None) -> Changes:
    """Yield an edit that divides the product by the root of the factor's last size.

    Nothing is yielded if the factor is not a name, or if the product is an operand of a division.
    """
    outer = code.parents[node]
    is_divided = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)
    if isinstance(factor, ast.Name) and not is_divided:
        yield "scale", 2, {node: f"({code.atom(node)} / {factor.id}.shape[-1] ** 0.5)"}


LONGEST_EQUATION = 80  # characters
# the bound of integers that are edited: no tensor holds a larger one, and Python cannot print one
# of 4,301 digits
LARGEST = 2**63
_AXES = (-1, -2, 1, 2, 0, 3, -3)
_AXIS_KEYWORDS = "dim dims axis diagonal dim0 dim1".split()
_MASKED = ("masked_fill", "masked_fill_", "where")
_FILLING = (*_MASKED, "full", "full_like", "fill_")
# The operators that replace an operator, in the order in which they are tried.
_REPLACEMENTS: dict[type, str] = {
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
        case ast.Compare(left, [_], [right]):
            yield from (
                ("comparison", 1, {node: f"{code.atom(left)} {operator} {code.atom(right)}"})
                for operator in replacements
            )
        case ast.BinOp(left, op, right):
            left_text, right_text = code.atom(left), code.atom(right)
            for operator in replacements:
                yield "operator", 1, {node: f"({left_text} {operator} {right_text})"}
            if isinstance(op, _SCALES):
                yield "operand", 1, {node: left_text}
                yield "operand", 3, {node: right_text}
            if isinstance(op, ast.Div | ast.Mult):
                exponent = 0.5 if isinstance(op, ast.Div) else -0.5
                yield "scale", 1, {right: f"({right_text} ** {exponent})"}
        case ast.UnaryOp(ast.USub() | ast.Invert() | ast.Not(), operand):
            yield "sign", 1, {node: code.atom(operand)}
        case ast.AugAssign(target, _, value):
            yield from (
                ("operator", 1, {node: f"{code.text(target)} {operator}= {code.atom(value)}"})
                for operator in replacements
            )
            yield "operator", 3, {node: f"{code.text(target)} = {code.atom(value)}"}
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield "comparison", 2, {test: f"not ({code.text(test)})"}
        case ast.Call():
            yield from _mask_edits(code, node)


def _replacements(node: ast.AST) -> list[str]:
    """Return the operators that replace the node's operator, if it has a single one."""
    op = getattr(node, "op", None)
    if isinstance(node, ast.Compare):
        op = node.ops[0]
    replacements = _REPLACEMENTS.get(type(op), "")
    return replacements.split(",") if replacements else []


def _mask_edits(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that invert a mask, negate a value that is filled in, or make it -inf."""
    name = name_of(node)
    masks = [keyword.value for keyword in node.keywords if keyword.arg == "attn_mask"]
    args = [*node.args, *masks]
    if name in _MASKED:
        masks = args[:1]
    elif masks or name == "scaled_dot_product_attention":
        masks = args[3:] or args[-1:]  # the arguments before are q, k and v
    for mask in masks:
        yield "sign", 1, {mask: f"~{code.atom(mask)}"}
    for value in node.args if name in _FILLING else ():
        if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
            yield "sign", 2, {value: f"-{code.atom(value)}"}
        if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
            yield "sign", 2, {value: 'float("-inf")'}


def constants(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits of a constant: True or False, a signed number, an infinity, an equation."""
    if not isinstance(node, ast.Constant):
        return
    literal: ast.AST = node  # the constant with its sign
    outer, value = code.parents[node], node.value
    is_negated = isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.USub)
    if is_negated and isinstance(value, int | float):
        literal, value = outer, -value
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
        case str() if "->" in value and len(value) <= LONGEST_EQUATION:
            quoted = code.text(node)
            if "\\" not in quoted:
                yield from _equations(node, quoted)


def _integers(code: CodePart, node: ast.AST, value: int) -> Changes:
    """Yield edits that replace an integer by an axis, if it may be one, or by a number near it."""
    outer = code.parents[node]
    is_axis = isinstance(outer, ast.Subscript | ast.Call) or (
        isinstance(outer, ast.keyword) and outer.arg in _AXIS_KEYWORDS
    )
    axes = _AXES if is_axis or isinstance(outer, ast.Tuple) else ()
    axis_tier = 1 if is_axis else 2
    for replacement in dict.fromkeys((*axes, value - 1, value + 1, 0, 1, 2, 3)):
        if replacement != value:
            tier = axis_tier if replacement in axes else 3
            yield "number", tier, {node: str(replacement)}


def _equations(node: ast.Constant, quoted: str) -> Changes:
    """Yield edits that swap two axes of one operand, or replace an axis by another one.

    An axis is a letter, as in einsum; or a word, as in einops, if the operands contain spaces.

    Args:
        node: The string.
        quoted: Its text with the quotes.
    """
    are_words = " " in quoted.replace(" -> ", "").replace(", ", "")
    pattern = r"[A-Za-z]\w*" if are_words else r"[A-Za-z]"
    # The text begins with a quote, or with the prefix of a literal such as r"ij->ji".
    axes = [axis for axis in re.finditer(pattern, quoted) if axis.start() > 0]
    for axis, later_axis in combinations(axes, 2):
        between = quoted[axis.end() : later_axis.start()]
        is_one_operand = "," not in between and "->" not in between
        if is_one_operand and axis[0] != later_axis[0]:
            start, end = quoted[: axis.start()], quoted[later_axis.end() :]
            yield "equation", 2, {node: f"{start}{later_axis[0]}{between}{axis[0]}{end}"}
    names_of_axes = dict.fromkeys(axis[0] for axis in axes)
    for axis, name in product(axes, names_of_axes):
        if name != axis[0]:
            new_text = f"{quoted[: axis.start()]}{name}{quoted[axis.end() :]}"
            yield "equation", 4, {node: new_text}


def names(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that replace a name by another name, or an attribute of self by a similar one.

    Attributes are similar if calls of the same function made both, or if no call made either.
    """
    match node:
        case ast.Name(name, ast.Load()) if name in code.names:
            for replacement in code.names:
                if replacement != name:
                    is_near = (name, replacement) in code.pairs or _look_alike(name, replacement)
                    yield "name", 2 if is_near else 4, {node: replacement}
            yield from _sizes_of_self(code, node)
        case ast.Attribute(ast.Name("self"), attr, ast.Load()) if attr in code.attributes:
            maker = code.attributes[attr]
            for attribute, maker_of_attribute in code.attributes.items():
                if attribute != attr and maker_of_attribute == maker:
                    yield "attribute", 2, {node: f"self.{attribute}"}
            if not maker:
                for name in code.names:
                    yield "attribute", 4, {node: name}


def _sizes_of_self(code: CodePart, node: ast.Name) -> Changes:
    """Yield edits that replace a name, which may be a size, by an attribute of self.

    Only attributes that no call made may be sizes. Under a root, they are tried sooner.
    """
    outer = code.parents[node]
    if isinstance(outer, ast.Attribute | ast.Subscript):
        return
    is_in_sqrt = isinstance(outer, ast.Call) and code.text(outer.func).endswith("sqrt")
    is_in_power = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow)
    tier = 2 if is_in_sqrt or is_in_power else 4
    for name, maker in code.attributes.items():
        if not maker:
            yield "attribute", tier, {node: f"self.{name}"}


def _look_alike(name: str, other_name: str) -> bool:
    """Return whether two names have one length and differ in one letter, and are of one case."""
    if len(name) != len(other_name) or name.isupper() != other_name.isupper():
        return False
    return sum(letter != second for letter, second in zip(name, other_name, strict=True)) == 1


def gates(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that add or remove a condition on training mode, such as around a dropout.

    Forgotten arguments and a forgotten super().__init__() are added, too.
    """
    match node:
        case ast.IfExp(_, body, orelse):
            yield "gate", 1, {node: code.atom(body)}
            yield "gate", 1, {node: code.atom(orelse)}
        case ast.Call():
            yield from arguments(code, node)
        case ast.Assign([target, *_], value) if is_of_dropout(code.text(target)):
            yield "gate", 2, {value: f"{code.atom(value)} if self.training else 0.0"}
        case ast.If(test):
            yield "gate", 2, {test: "True"}
            yield "gate", 3, {test: f"({code.text(test)}) and self.training"}
        case ast.FunctionDef("__init__", _, body) if "super()" not in code.text(node):
            code_statements = (statement for statement in body if not is_docstring(statement))
            start = next(code_statements, body[-1])
            # Python allows no compound statement after a semicolon.
            is_compound = isinstance(start, ast.If | ast.For | ast.With | ast.While | ast.Try)
            separator = f"\n{' ' * start.col_offset}" if is_compound else "; "
            yield "super", 0, {start: f"super().__init__(){separator}{code.text(start)}"}


def orders(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that swap two arguments, operands, sizes of a shape, or branches."""
    groups: list[Sequence[ast.expr]] = []
    match node:
        case ast.Call(_, args, keywords):
            groups = [args, [keyword.value for keyword in keywords]]
        case ast.Tuple(elts) | ast.List(elts):
            groups = [elts]
        case ast.BinOp(
            op=ast.Sub() | ast.Div() | ast.FloorDiv() | ast.MatMult() | ast.Mod() | ast.Pow()
        ):
            groups = [[node.left, node.right]]
        case ast.IfExp(_, body, orelse):
            groups = [[body, orelse]]
    # an argument needs no parentheses
    text_of = code.atom if isinstance(node, ast.BinOp | ast.IfExp) else code.text
    for group in groups:
        items = [item for item in group if not isinstance(item, ast.Starred)]
        for item, partner in combinations(items[:SWAPPED], 2):
            if code.text(item) != code.text(partner):
                yield "swap", 1, {item: text_of(partner), partner: text_of(item)}


def statements(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that replace a statement by `pass`, or return a function's last value."""
    match node:
        case ast.Expr() | ast.AugAssign() | ast.Assign() | ast.If() if node is not code.root:
            yield "statement", 3, {node: "pass"}
        case ast.FunctionDef(
            body=[
                *_,
                ast.Expr(value) | ast.Assign([ast.Name(), *_], value) as last,
            ]
        ):
            if not is_docstring(last):
                yield "return", 1, {last: f"return {code.text(value)}"}


RULES: Sequence[Callable[[CodePart, ast.AST], Changes]] = (
    gates,
    operators,
    calls,
    orders,
    constants,
    names,
    statements,
)
