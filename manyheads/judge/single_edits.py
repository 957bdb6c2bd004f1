"""Single edits of a part of an attempt.

An edit adds or removes a call or an argument, replaces a call by its sibling, changes a constant,
an operator or a name, or swaps two arguments. Each function of RULES yields the edits of one node,
and none if the rule does not concern such a node.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product

from .parts_reached_by_calls import Changes, CodePart, is_docstring

# Only the first items of a longer list are swapped, because the pairs grow as the square.
MAX_SWAPPED = 6
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
_MOVE_HEADS = ".transpose(1, 2)"  # from (B, T, nh, hd) to (B, nh, T, hd), or back
_TRANSPOSE = ".transpose(-2, -1)"
_MOVES = (_MOVE_HEADS, _TRANSPOSE)
_LAYERS = ("Dropout", "Linear")
_MODULES = "torch math F nn np numpy functional einops".split()


def name_of(node: ast.Call) -> str:
    """Return the last part of the name of the called function; "" if it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return getattr(node.func, "id", "")


def is_of_dropout(name: str) -> bool:
    """Return whether a name is usual for the probability of dropout."""
    return "drop" in name or name in ("p", "dropout_p")


def _argument_edits(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that change a keyword argument of a call, or add one.

    1. A dropout probability p becomes `p if self.training else 0`.
    2. The value of `training` becomes `self.training`.
    3. An argument of _FORGOTTEN is added, unless the call has it. For Linear, this is also
       `bias=NAME`, for each name with "bias" in it.
    """
    for keyword in node.keywords:
        if is_of_dropout(keyword.arg or ""):
            gated = f"{code.atom(keyword.value)} if self.training else"
            yield "gate", 1, {keyword.value: f"{gated} 0.0"}
            # The argument may be an integer: names such as drop_last count as dropout's, too.
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
    """Return the text of the call with these arguments and new ones in place of its arguments.

    Args:
        code: The part.
        node: The call.
        args: Nodes of arguments that stay.
        new_args: The texts of arguments after them.
    """
    return f"{code.text(node.func)}({', '.join([*map(code.text, args), *new_args])})"


def calls(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that remove a call, add one, or replace it by a similar one.

    1. A call is replaced by its receiver or first argument (`_removals`), or by one of its
       _SIBLINGS. A keyword argument is removed.
    2. A matrix product is divided by the root of a size (`_scalings`). A product by `@` is also
       given a softmax, or one of its factors is transposed.
    3. Edits before or after a call of _SHAPING, such as a view (`_before_shaping`).
    4. A transposition by an attribute such as `.T` is removed.
    5. The axes of an assigned or returned value are moved, or a layer is applied to it.
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
                yield "call", 2, {factor: code.atom(factor) + _TRANSPOSE}
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

    A function of a module has no receiver. Further edits remove each keyword argument of
    _REMOVED_KEYWORDS.
    """
    if isinstance(node.func, ast.Attribute) and not _is_of_module(node.func):
        yield "call", 1, {node: code.atom(node.func.value)}
    match node.args:
        # without parentheses, a dot after it would change the number
        case [ast.Constant() as argument, *_]:
            yield "call", 1, {node: f"({code.text(argument)})"}
        case [argument, *_] if not isinstance(argument, ast.Starred):
            yield "call", 1, {node: code.atom(argument)}
    args = (*node.args, *node.keywords)
    for keyword in node.keywords:
        if keyword.arg in _REMOVED_KEYWORDS:
            remaining_args = [argument for argument in args if argument is not keyword]
            yield "keyword", 2, {node: _call_text(code, node, remaining_args)}


def _is_of_module(func: ast.expr) -> bool:
    """Return whether a function belongs to a module, such as torch or torch.nn.functional.

    Then it has no receiver that could replace the call.
    """
    owner = func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in _MODULES


def _siblings(code: CodePart, node: ast.Call, func: ast.Attribute) -> Changes:
    """Yield edits that call one of the _SIBLINGS in place of this function or method.

    For tril and triu, other edits call the sibling with each usual diagonal, and also the function
    itself if the call states no diagonal.

    Args:
        code: The part.
        node: The call.
        func: Its function or method, `node.func`.
    """
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
    """Yield edits of a call of _SHAPING, such as a view.

    1. The memory is made contiguous before the call.
    2. Axes are moved before the call, or the heads after it. After moved axes, a view becomes a
       reshape.
    3. In a view or reshape to more than two axes, two neighbouring sizes are swapped, and the two
       axes are swapped back afterwards.
    """
    receiver = code.atom(func.value)
    arguments = code.text(node)[len(code.text(func)) :]  # in their parentheses
    name = "reshape" if func.attr == "view" else func.attr
    yield "call", 1, {node: f"{receiver}.contiguous().{func.attr}{arguments}"}
    for move in _MOVES:
        yield "call", 2, {node: f"{receiver}{move}.{name}{arguments}"}
    yield "call", 2, {node: f"{code.text(node)}{_MOVE_HEADS}"}
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple):
        sizes = sizes[0].elts
    if func.attr in ("view", "reshape") and len(sizes) > 2:
        texts = [code.text(size) for size in sizes]
        for axis in range(len(texts) - 1):
            texts_before, texts_after = texts[:axis], texts[axis + 2 :]
            swapped = ", ".join([*texts_before, texts[axis + 1], texts[axis], *texts_after])
            new_text = f"{receiver}.{func.attr}({swapped}).transpose({axis}, {axis + 1})"
            yield "shape", 2, {node: new_text}


def _scalings(code: CodePart, node: ast.expr, factor: ast.expr | None) -> Changes:
    """Yield an edit that divides the product by the root of the factor's last size.

    Nothing is yielded if the factor is not a name, or if the product is an operand of a division.

    Args:
        code: The part.
        node: The product.
        factor: One of its factors, or None if none is a name.
    """
    outer = code.parents[node]
    is_divided = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)
    if isinstance(factor, ast.Name) and not is_divided:
        yield "scale", 2, {node: f"({code.atom(node)} / {factor.id}.shape[-1] ** 0.5)"}


MAX_EQUATION = 80  # characters: the edits grow as the square
# the bound of integers that are edited: no tensor holds a larger one, and Python cannot print one
# of 4,301 digits
MAX_INTEGER = 2**63
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
    """Yield edits of an operator, a sign, a condition or a mask.

    1. An operator is replaced by one of its _REPLACEMENTS.
    2. An operation is replaced by one of its operands, and `a += b` by `a = b`.
    3. A divisor is replaced by its root, and a right factor by the inverse of its root.
    4. A sign, `~` or `not` is removed.
    5. A condition is inverted.
    6. A mask and its values are edited (`_mask_edits`).
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
    """Return the operators that replace the node's operator; [] if there are none.

    For a chain of comparisons, these are the ones of its first operator.
    """
    op = getattr(node, "op", None)
    if isinstance(node, ast.Compare):
        op = node.ops[0]
    replacements = _REPLACEMENTS.get(type(op), "")
    return replacements.split(",") if replacements else []


def _mask_edits(code: CodePart, node: ast.Call) -> Changes:
    """Yield edits that invert a mask, negate a value that is filled in, or make it -inf.

    The mask is the first argument of a function of _MASKED. In a call of attention (with
    `attn_mask`, or of scaled_dot_product_attention) it is any positional argument after q, k and v,
    or `attn_mask`. A value that is filled in is any positional argument of a function of _FILLING.
    """
    name = name_of(node)
    masks = [keyword.value for keyword in node.keywords if keyword.arg == "attn_mask"]
    if name in _MASKED:
        masks = node.args[:1]
    elif masks or name == "scaled_dot_product_attention":
        masks = [*node.args[3:], *masks]
    for mask in masks:
        yield "sign", 1, {mask: f"~{code.atom(mask)}"}
    for value in node.args if name in _FILLING else ():
        if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
            yield "sign", 2, {value: f"-{code.atom(value)}"}
        if isinstance(value, ast.Constant | ast.UnaryOp | ast.Call):
            yield "sign", 2, {value: 'float("-inf")'}


def constants(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits of a constant.

    1. True and False replace each other.
    2. A number with its sign is replaced by other numbers (for integers, `_integers`).
    3. The text of an infinity, as in float("inf"), gets the other sign.
    4. Axes of an equation with "->" are edited (`_equations`), unless the text is long or has an
       escape.
    """
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
        case int() if abs(value) < MAX_INTEGER:
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
        case str() if "->" in value and len(value) <= MAX_EQUATION:
            quoted = code.text(node)
            if "\\" not in quoted:  # the letter of an escape is no axis
                yield from _equations(node, quoted)


def _integers(code: CodePart, node: ast.AST, value: int) -> Changes:
    """Yield edits that replace an integer by another axis, by a number near it, or by 0 to 3.

    Axes are tried if the integer is a subscript, a positional argument, one of _AXIS_KEYWORDS, or
    in a tuple. In a tuple they are tried later.

    Args:
        code: The part.
        node: The literal with its sign.
        value: Its value.
    """
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
    """Yield edits that replace a name, or an attribute of self.

    1. A name is replaced by another one, sooner if both are in `pairs` or look alike.
    2. A name is replaced by an attribute of self that may be a size.
    3. An attribute of self is replaced by another one that a call of the same function made. If no
       call made it, it is replaced by another one that no call made, or by a name.
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
    """Yield edits that replace a name by an attribute of self that may be a size.

    An attribute that a call made, such as a layer, is no size. A name is not replaced if it is
    followed by an attribute or a subscript. In a square root or a power, the edits are tried
    sooner.
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
    """Return whether two names have one length and differ in one letter.

    Both must be in capitals, or neither.
    """
    if len(name) != len(other_name) or name.isupper() != other_name.isupper():
        return False
    letter_pairs = zip(name, other_name, strict=True)
    return sum(letter != other_letter for letter, other_letter in letter_pairs) == 1


def gates(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits of training mode, of arguments, and of a missing super().__init__().

    1. A conditional expression is replaced by one of its two values.
    2. A value that is assigned to a name usual for dropout becomes 0 outside of training.
    3. A condition of `if` is replaced by True, or training mode is added to it.
    4. Arguments of any call are edited (`_argument_edits`).
    5. If __init__ has no super(), super().__init__() is added before its first statement that is
       not a docstring.
    """
    match node:
        case ast.IfExp(_, body, orelse):
            yield "gate", 1, {node: code.atom(body)}
            yield "gate", 1, {node: code.atom(orelse)}
        case ast.Call():
            yield from _argument_edits(code, node)
        case ast.Assign([target, *_], value) if is_of_dropout(code.text(target)):
            yield "gate", 2, {value: f"{code.atom(value)} if self.training else 0.0"}
        case ast.If(test):
            yield "gate", 2, {test: "True"}
            yield "gate", 3, {test: f"({code.text(test)}) and self.training"}
        case ast.FunctionDef("__init__", _, body) if "super()" not in code.text(node):
            code_statements = (statement for statement in body if not is_docstring(statement))
            start = next(code_statements, body[-1])
            # Python allows no compound statement after a semicolon: a match has cases, and every
            # other one has a body.
            is_compound = isinstance(start, ast.Match) or hasattr(start, "body")
            separator = f"\n{' ' * start.col_offset}" if is_compound else "; "
            yield "super", 0, {start: f"super().__init__(){separator}{code.text(start)}"}


def orders(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that swap two items of one node.

    These are positional arguments, values of keyword arguments, items of a tuple or list, operands
    whose order matters, or the two values of a conditional expression.
    """
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
        for item, partner in combinations(items[:MAX_SWAPPED], 2):
            if code.text(item) != code.text(partner):
                yield "swap", 1, {item: text_of(partner), partner: text_of(item)}


def statements(code: CodePart, node: ast.AST) -> Changes:
    """Yield edits that replace a statement in a part by `pass`, or return a function's last value.

    The function must end with an expression, or with an assignment to a name.
    """
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
