"""Find slips that the text of a function shows: a variable that nothing reads, a pasted line.

The text is read and never run. Each sentence is true of the text alone, so that it may stand beside
any failure. `slip_behind_exception` looks at the line that raised, `slip_behind_answer` at a
function that answers wrongly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain, islice

MAX_NAME = 40  # characters of a name or an expression that a sentence may repeat
MAX_NODES = 60  # larger expressions are not written out: that recurses
MAX_BLOCKS = 16  # loops or conditions, each of which is compared with all nodes
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.While)


def slip_behind_exception(
    nodes: Sequence[ast.AST], file_nodes: Sequence[ast.AST], line: int, message: str
) -> str:
    """Return a sentence about a slip that may have caused an exception, or "".

    The message decides which slip is looked for:

    1. If it mentions an ellipsis: `...` that is left in the text.
    2. If an object is not callable: a value that is called as a layer.
    3. If sizes do not fit: an attribute of self that is replaced by a part of itself.
    4. Otherwise, or if there is no such attribute: a pasted line.

    Args:
        nodes: All nodes of the function around the line that raised.
        file_nodes: All nodes of the file.
        line: The line that raised.
        message: The exception's message.
    """
    if "ellipsis" in message:
        return _ellipsis_left(nodes)
    if "object is not callable" in message:
        return _value_called(file_nodes, line)
    if "size of tensor a" in message and (sentence := _cut_attribute(nodes)):
        return sentence
    return _pasted_line(nodes, line)


def slip_behind_answer(definition: ast.stmt, evidence: str) -> str:
    """Return a sentence about the first slip that may have caused a wrong answer, or "".

    Some slips are only looked for if the evidence is about a shape, or about values.

    Args:
        definition: The function or class that answers wrongly.
        evidence: What was observed.
    """
    for function in ast.walk(definition):
        if not isinstance(function, _Function):
            continue
        nodes = [*ast.walk(function)]
        sentence = (
            _return_in_loop(nodes)
            or (function.name != "__init__" and _cut_attribute(nodes))
            or _pasted_line(nodes)
            or _value_replaced_behind_if(nodes)
        )
        if not sentence and "should have shape" in evidence:
            sentence = _append_in_inner_loop(nodes)
        if not sentence and "values differ" in evidence:
            sentence = _start_below_zero(nodes) or _no_shares(nodes)
        sentence = sentence or _unused_variable(nodes)
        if sentence:
            return sentence
    return ""


def _assignments(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.Assign]]:
    """Yield each assignment to one name, with the name."""
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(name)]) if len(name) <= MAX_NAME:
                yield name, node


def _reads(node: ast.AST) -> set[str]:
    """Return the names that an expression or statement reads."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


def _text_of(expression: ast.expr) -> str:
    """Return an expression as text; "" if it is long."""
    node_count = sum(1 for _ in islice(ast.walk(expression), MAX_NODES))
    return ast.unparse(expression) if node_count < MAX_NODES else ""


def _ellipsis_left(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence about a line on which a name is still set to `...`, or ""."""
    for name, node in _assignments(nodes):
        if isinstance(node.value, ast.Constant) and node.value.value is ...:
            return f"`{name} = ...` on line {node.lineno} is still to be written."
    return ""


def _value_called(nodes: Sequence[ast.AST], line: int) -> str:
    """Return a sentence if the line calls an attribute of self that is no layer, or "".

    The file must set the attribute once, to a constant or a name. The sentence has the line of this
    assignment.
    """
    for call in nodes:
        match call:
            case ast.Call(ast.Attribute(ast.Name("self"), name)) if call.lineno == line:
                values = _values_of_attribute(nodes, name)
                if len(values) == 1 and isinstance(values[0], ast.Name | ast.Constant):
                    return (
                        f"`self.{name[:MAX_NAME]}` is called here like a layer, and line "
                        f"{values[0].lineno} sets it to `{_text_of(values[0])[:MAX_NAME]}`, which "
                        "is not a layer."
                    )
    return ""


def _values_of_attribute(nodes: Sequence[ast.AST], name: str) -> list[ast.expr]:
    """Return the values that the file assigns to self.name."""
    values = []
    for node in nodes:
        match node:
            case ast.Assign([ast.Attribute(ast.Name("self"), attribute)]) if attribute == name:
                values.append(node.value)
    return values


def _cut_attribute(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence about an attribute of self that is replaced by a part of itself, or ""."""
    for node in nodes:
        match node:
            case ast.Assign(
                [ast.Attribute(ast.Name("self"), name)],
                ast.Subscript(ast.Attribute(ast.Name("self"), cut)),
            ) if name == cut and len(name) <= MAX_NAME:
                return (
                    f"Line {node.lineno} replaces `self.{name}` by a part of itself, and the next "
                    "call finds only that part: keep the whole, and give the part a name of its "
                    "own."
                )
    return ""


def _pasted_line(nodes: Sequence[ast.AST], line: int = 0) -> str:
    """Return a sentence about a call that repeats the right side of an assignment above, or "".

    The assignment above must change a name that the right side reads: `v = k.view(…)` below
    `k = k.view(…)` cuts k once more.

    Args:
        nodes: All nodes of one function.
        line: The line of the copy; 0 accepts any.
    """
    changed_values = dict[str, tuple[str, int]]()
    for name, node in sorted(_assignments(nodes), key=lambda pair: pair[1].lineno):
        value = ast.unparse(node.value)
        if (
            value in changed_values
            and isinstance(node.value, ast.Call)
            and line in (0, node.lineno)
        ):
            first_name, first_line = changed_values[value]
            if name != first_name:
                return (
                    f"Line {node.lineno} has the same right side as line {first_line}: is "
                    f"`{name}` meant where it says `{first_name}`?"
                )
        if value and name in _reads(node.value):
            changed_values[value] = name, node.lineno
    return ""


def _return_in_loop(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence about a `return` that ends a loop in its first round, or ""."""
    for loop in nodes:
        if isinstance(loop, _LOOPS) and isinstance(loop.body[-1], ast.Return):
            leaves = (ast.Continue, ast.Break, ast.Return)
            statements = chain.from_iterable(map(ast.walk, loop.body[:-1]))
            if not any(isinstance(statement, leaves) for statement in statements):
                return (
                    f"The `return` on line {loop.body[-1].lineno} stands inside the loop that "
                    f"begins on line {loop.lineno}, and ends it in its first round"
                )
    return ""


def _value_replaced_behind_if(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence if code below an `if` replaces a value of the `if` before it is read.

    The value is set by the last statement of an `if` without `else`. Returns "" if there is none.
    """
    blocks = (getattr(node, "body", ()) for node in nodes if isinstance(node, ast.stmt))
    for block in blocks:
        conditions = (node for node in block if isinstance(node, ast.If) and not node.orelse)
        for condition in islice(conditions, MAX_BLOCKS):
            statements = block[block.index(condition) + 1 :]
            for name, set_in_if in _assignments(condition.body[-1:]):
                if (line := _replaced_on(name, statements)) and name not in _reads(condition.test):
                    return (
                        f"`{name}`, set on line {set_in_if.lineno}, is replaced on line {line} "
                        f"before anything reads it: the code below the `if` on line "
                        f"{condition.lineno} runs in any case"
                    )
    return ""


def _replaced_on(name: str, statements: Sequence[ast.stmt]) -> int:
    """Return the line that sets a name before any of these statements reads it, or 0."""
    for statement in statements:
        if name in _reads(statement):
            return 0
        if name in dict(_assignments([statement])):
            return statement.lineno
    return 0


def _unused_variable(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence about the first variable that is set to a computed value and never read.

    A value is computed if it contains a call. Returns "" if there is no such variable.
    """
    read_names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    declared = chain.from_iterable(n.names for n in nodes if isinstance(n, ast.Global))
    read_names.update(declared, ("_",))
    for name, node in _assignments(nodes):
        if name not in read_names and any(isinstance(n, ast.Call) for n in ast.walk(node.value)):
            return f"`{name}`, which is set on line {node.lineno}, is never used"
    return ""


def _append_in_inner_loop(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence about a list that grows in each turn of an inner loop, or ""."""
    for outer in islice((node for node in nodes if isinstance(node, _LOOPS)), MAX_BLOCKS):
        inner_loops = (node for node in ast.walk(outer) if isinstance(node, _LOOPS))
        for inner in islice(inner_loops, 1, MAX_BLOCKS):  # the first one is the outer loop
            for node in ast.walk(inner):
                match node:
                    case ast.Call(ast.Attribute(ast.Name(name), "append")) if len(name) < MAX_NAME:
                        return (
                            f"`{name}` grows on line {node.lineno} in each turn of the inner loop, "
                            f"which begins on line {inner.lineno}"
                        )
    return ""


def _start_below_zero(nodes: Sequence[ast.AST]) -> str:
    """Return a question about a slice in a loop whose start is a difference, or "".

    The start must not contain a call, such as `max`.
    """
    loops = islice((node for node in nodes if isinstance(node, _LOOPS)), MAX_BLOCKS)
    for node in chain.from_iterable(map(ast.walk, loops)):
        match node:
            case ast.Slice(ast.BinOp() as start, _) if not any(
                isinstance(n, ast.Call) for n in ast.walk(start)
            ):
                subtracts = any(isinstance(n, ast.Sub) for n in ast.walk(start))
                text = _text_of(start)
                if subtracts and 0 < len(text) <= MAX_NAME:
                    return (
                        f"Can `{text}` on line {node.lineno} be below 0? Such a start of a slice "
                        "is counted from the end"
                    )
    return ""


_BY_ITSELF = "turns each number into one between 0 and 1 by itself: a row of them need not sum to 1"
_LOGARITHMS = "gives the logarithms of shares, and no logarithm of a share is above 0"
# Functions in place of softmax. Without an exp, logarithms stay logarithms.
_NOT_SHARES = {
    "sigmoid": _BY_ITSELF,
    "log_softmax": _LOGARITHMS,
    "LogSoftmax": _LOGARITHMS,
    "Sigmoid": _BY_ITSELF,
}


def _no_shares(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence if a function is called that gives no shares, unlike softmax, or ""."""
    calls = {_called_name(node): node for node in nodes if isinstance(node, ast.Call)}
    for name, says in _NOT_SHARES.items():
        if name in calls and not {"exp", "exp_"} & calls.keys():
            return f"`{name}` on line {calls[name].lineno} {says}"
    return ""


def _called_name(call: ast.Call) -> str:
    """Return the last part of a called name, such as "exp" of `x.exp()`; "" without a name."""
    match call.func:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""
