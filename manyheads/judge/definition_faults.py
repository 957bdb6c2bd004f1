"""Find faults in the definition of a function that fails: its text is read, and never run.

Examples: a function where a class is asked for, arguments in another order, a tensor that is made
without the device, an assert that refuses nothing, the size of a wrong axis that is taken for a
length. Nothing of a hidden input can be in these sentences.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..box.worker.messages import Raised
from ..box.worker.result_form import Form
from ..submission import Source
from ..submission.source import DEFINITIONS

MAKES_A_TENSOR = frozenset(
    "arange empty eye full linspace ones rand randn tensor tril_indices triu_indices zeros".split()
)
REFUSALS = ("ValueError", "AssertionError", "Exception", "RuntimeError", "TypeError")
MAKES_A_NEW_TENSOR = frozenset(
    (
        "contiguous flatten masked_fill permute reshape softmax tril triu transpose unsqueeze view"
    ).split()
)
LAYERS = ("Linear", "Dropout", "LayerNorm", "Softmax")
MAX_NAME = 40  # characters of a name that a sentence may repeat
COLLECTIONS = (ast.Tuple, ast.List, ast.Dict)  # the types of an opaque part, such as a cache
MAX_JOINS = 8  # each is compared with all nodes, so more would take quadratic time
MAX_CODE = 40  # characters of an expression that a sentence may repeat
JOINS = ("cat", "concat", "concatenate")
Layout = tuple[str, ...]  # the size of each axis, as the text writes it


def definition_fault(
    source: Source, name: str, raised: Raised | None, arguments: Sequence[str], *, is_class: bool
) -> str:
    """Return the fault in the definition of a function that fails; "" if the text shows none.

    The name may stand for something else (`_wrong_type`), or its arguments may be in another order.

    Args:
        source: The attempt's text.
        name: The function or class.
        raised: Its exception, if there was one.
        arguments: The names of its arguments in the exercise, if they are known.
        is_class: Whether the exercise asks for a class.
    """
    wrong_type = _wrong_type(source, name, raised, is_class=is_class)
    return wrong_type or in_another_order(source, name, arguments)


def _wrong_type(source: Source, name: str, raised: Raised | None, *, is_class: bool) -> str:
    """Return a sentence if the name stands for something else than the exercise asks for, or "".

    1. The name is a function in small letters, and the call complained that it returned no module:
       the sentence says so.
    2. A class is asked for, and the call did not complain: "". Anything that returns a module is
       accepted, such as a function.
    3. In all other cases, `wrong_definition_type` decides.
    """
    returned_no_module = raised is not None and "not a torch.nn.Module" in raised.message
    is_function = isinstance(source.definitions.get(name), ast.FunctionDef)
    if returned_no_module and is_function and name.islower():
        return "What it returns is no module"
    if is_class and not returned_no_module:
        return ""
    return wrong_definition_type(source, name, is_class)


def wrong_definition_type(source: Source, name: str, is_class: bool) -> str:
    """Return a sentence if the name stands for no class, or for no plain function, or "".

    A function with `async` or `yield` is no plain function.

    Args:
        source: The attempt's text.
        name: The name.
        is_class: Whether the exercise asks for a class, and not for a function.
    """
    match source.definitions.get(name):
        case ast.FunctionDef() | ast.AsyncFunctionDef() as function if is_class:
            return f"It is a function, written on line {function.lineno}, and a class is asked for"
        case ast.ClassDef() as class_ if not is_class:
            return f"It is a class, written on line {class_.lineno}, and a function is asked for"
        case ast.AsyncFunctionDef() as function if not is_class:
            return (
                f"It is an `async def`, written on line {function.lineno}, so that a call gives a "
                "coroutine: take `async` away"
            )
        case ast.FunctionDef() as function if lines := _lines_with_yield(function):
            return (
                f"A `yield` makes it a generator, written on line {min(lines)}: return the answer"
            )
    return ""


def _lines_with_yield(function: ast.FunctionDef) -> list[int]:
    """Return the lines of the `yield`s that make this function a generator.

    Those of functions inside it do not count. The lines are in no order.
    """
    pending, lines = list[ast.AST](function.body), []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            lines.append(node.lineno)
        if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return lines


def in_another_order(source: Source, name: str, expected_names: Sequence[str]) -> str:
    """Return a sentence if a function takes its arguments in another order, or "".

    The names of its positional arguments must be the expected ones. Keyword-only arguments do not
    count.

    Args:
        source: The attempt's text.
        name: The function.
        expected_names: The names of the arguments in the expected order.
    """
    function = source.definitions.get(name)
    actual_names: list[str] = []
    if isinstance(function, ast.FunctionDef):
        arguments = (*function.args.posonlyargs, *function.args.args)
        actual_names = [argument.arg for argument in arguments]
    if actual_names == list(expected_names) or sorted(actual_names) != sorted(expected_names):
        return ""
    return (
        f"It is written as {name}({', '.join(actual_names)}), and called as"
        f" {name}({', '.join(expected_names)})"
    )


def return_order_advice(source: Source, name: str, form: Form | None) -> str:
    """Return a sentence if a `return` gives a pair in the other order; "" otherwise.

    The pair must be a tensor and an opaque part. They are exchanged if the first element is a
    collection and the second one is not.

    Args:
        source: The attempt's text.
        name: A function, or a class whose forward returns the pair.
        form: The form that course.yaml asks for, such as (y, cache), or None.
    """
    part_kinds = [part_form.kind for part_form in form.parts] if form and form.names else []
    if form is None or part_kinds != ["tensor", "opaque"]:
        return ""
    nodes = [*ast.walk(source.definition(name))]
    # variables that hold the opaque part: the name in the form, and names of collections
    _, opaque_name = form.names
    collections = {opaque_name}
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(variable)], ast.Tuple() | ast.List() | ast.Dict()):
                collections.add(variable)

    def is_collection(value: ast.expr) -> bool:
        return isinstance(value, COLLECTIONS) or getattr(value, "id", "") in collections

    for node in nodes:
        match node:
            case ast.Return(ast.Tuple([tensor, opaque])) if is_collection(tensor):
                if not is_collection(opaque):
                    return (
                        f"The `return` on line {node.lineno} gives the pair in the other order: "
                        f"({', '.join(form.names)}) is asked."
                    )
    return ""


def missing_device_advice(source: Source, name: str) -> str:
    """Return a sentence if a function takes `device` and makes a tensor without it, or ""."""
    function = source.definitions.get(name)
    if not isinstance(function, ast.FunctionDef):
        return ""
    arguments = (*function.args.args, *function.args.kwonlyargs)
    if "device" not in [argument.arg for argument in arguments]:
        return ""
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(ast.Name("torch"), maker), _, keywords) if (
                maker in MAKES_A_TENSOR
            ):
                if "device" not in [keyword.arg for keyword in keywords]:
                    return f"torch.{maker}, written on line {node.lineno}, is given no device"
    return ""


def ineffective_refusal_advice(source: Source, name: str) -> str:
    """Return a sentence if a refusal of a function or class has no effect; "" otherwise.

    Either an assert has condition and message in brackets, which make a tuple and are always true.
    Or an exception is made, and returned or dropped, but not raised.
    """
    for node in ast.walk(source.definition(name)):
        match node:
            case ast.Assert(ast.Tuple([_, *_])):
                return (
                    f"The assert on line {node.lineno} refuses nothing: condition and message in "
                    "one pair of brackets are always true"
                )
            case ast.Return(ast.Call(ast.Name(exception))) | ast.Expr(
                ast.Call(ast.Name(exception))
            ) if exception in REFUSALS:
                return (
                    f"The {exception} on line {node.lineno} is made and not raised: write `raise` "
                    "before it"
                )
    return ""


def unused_result_advice(source: Source, name: str) -> str:
    """Return a sentence if a layer or a method of tensors is called and its result is not used.

    Returns "" if there is no such call.
    """
    definition = source.definition(name)
    layers = [layer for layer in _layers_of(definition) if len(layer) <= MAX_NAME]
    for node in ast.walk(definition):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("self"), layer))) if layer in layers:
                return f"The result of self.{layer}(…) on line {node.lineno} is not used"
            case ast.Expr(ast.Call(ast.Attribute(_, method))) if method in MAKES_A_NEW_TENSOR:
                return (
                    f"The result of .{method}(…) on line {node.lineno} is not used: the method "
                    "returns a new tensor and does not change the old one"
                )
    return ""


def _layers_of(definition: ast.stmt) -> set[str]:
    """Return the attributes of self to which a definition assigns a layer of `LAYERS`."""
    layers = set()
    for node in ast.walk(definition):
        match node:
            case ast.Assign([ast.Attribute(ast.Name("self"), layer)], ast.Call(function)):
                maker = getattr(function, "attr", getattr(function, "id", ""))
                if maker in LAYERS:
                    layers.add(layer)
    return layers


def always_true_advice(source: Source, name: str) -> str:
    """Return a sentence if the condition of an `if` ends in `or` and a word in quotes, or "".

    Such a condition is always true. The word must be an identifier.
    """
    for node in ast.walk(source.definition(name)):
        match node:
            case ast.If(ast.BoolOp(ast.Or(), [*_, ast.Constant(str(text))])) if text.isidentifier():
                return (
                    f"The condition on line {node.lineno} is always true: `or` is followed by a "
                    "text instead of a comparison"
                )
    return ""


def call_of_helper(source: Source, name: str, line: int) -> str:
    """Return a sentence with the line on which a function calls a helper that raised, or "".

    The helper is another function at the top level, and the line that raised is in it. All its
    calls must stand on one line of the file, in the function that fails. Otherwise the line of the
    call is not known.

    Args:
        source: The attempt's text.
        name: The function or class that fails.
        line: The line that raised.
    """
    helper = next(
        (
            definition
            for definition in source.definitions.values()
            if isinstance(definition, ast.FunctionDef)
            if definition.lineno <= line <= (definition.end_lineno or 0)
        ),
        None,
    )
    if helper is None or helper.name == name or len(helper.name) > MAX_NAME:
        return ""
    lines, lines_elsewhere = list[int](), list[int]()
    for caller, definition in source.definitions.items():
        for node in ast.walk(definition):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == helper.name:
                (lines if caller == name else lines_elsewhere).append(node.lineno)
    if len(set(lines)) != 1 or lines_elsewhere:
        return ""
    return f"{helper.name} was called on line {lines[0]}."


@dataclass(frozen=True)
class AxisUse:
    """A line that uses one axis of a tensor: it reads its size, or joins tensors along it.

    Attributes:
        tensor: The tensor, as the text writes it.
        axis: The axis; a negative one counts from the end.
        line: The line.
        text: The expression that reads the size, or the name of the function that joins.
        added: The tensor that is joined to it, as the text writes it; "" if the size is read.
    """

    tensor: str
    axis: int
    line: int
    text: str
    added: str = ""


def wrong_length(nodes: Sequence[ast.AST]) -> str:
    """Return a sentence if the text reads the size of another axis than the growing one, or "".

    An example is `past = cache[0].shape[1]` beside `torch.cat([cache[0], k], dim=2)`: the tensor
    grows along axis 2, and axis 1 is the number of heads.

    The sentence is about the first tensor that grows and of which only sizes of other axes are
    read. A tensor with a long expression is skipped.

    Args:
        nodes: All nodes of one function.
    """
    sizes = list(_sizes_read(nodes))
    for join in islice(_joins(nodes), MAX_JOINS):
        layout = _layout(nodes, join)
        collection = join.tensor.partition("[")[0]
        counts = [size for size in sizes if size.text == f"len({collection})"]
        if counts and join.tensor != collection and len(join.tensor) <= MAX_CODE:
            return (
                f"`{counts[0].text}`, written on line {counts[0].line}, is the number of its "
                f"parts. The torch.{join.text} on line {join.line} makes axis {join.axis} of "
                f"`{join.tensor}` longer, so the length is the size of that axis."
            )
        reads = [size for size in sizes if size.tensor == join.tensor]
        if not reads or any(_may_be_equal(size.axis, join.axis, layout) for size in reads):
            continue
        size = reads[0]
        if max(len(size.text), len(join.tensor)) > MAX_CODE:
            continue
        is_in_layout = -len(layout) <= size.axis < len(layout)
        meaning = ""
        if is_in_layout and 0 < len(layout[size.axis]) <= MAX_CODE:
            meaning = f", which is {layout[size.axis]}"
        return (
            f"`{size.text}`, written on line {size.line}, is the size of axis {size.axis}{meaning}."
            f" The torch.{join.text} on line {join.line} makes axis {join.axis} longer, so the "
            "length is the size of that one."
        )
    return ""


def _sizes_read(nodes: Sequence[ast.AST]) -> Iterator[AxisUse]:
    """Yield each `len(x)`, and each `x.shape[axis]` and `x.size(axis)` with a number as axis."""
    for node in nodes:
        match node:
            case ast.Subscript(ast.Attribute(tensor, "shape"), index) | ast.Call(
                ast.Attribute(tensor, "size"), [index]
            ):
                axis = _integer(index)
                if axis is not None:
                    yield AxisUse(ast.unparse(tensor), axis, node.lineno, ast.unparse(node))
            case ast.Call(ast.Name("len"), [tensor]):
                yield AxisUse(ast.unparse(tensor), 0, node.lineno, ast.unparse(node))


def _joins(nodes: Sequence[ast.AST]) -> Iterator[AxisUse]:
    """Yield each `torch.cat` of a pair of tensors along an axis that is written as a number."""
    for node in nodes:
        match node:
            case ast.Call(
                ast.Attribute(ast.Name("torch"), name),
                [ast.List([tensor, added]) | ast.Tuple([tensor, added]), *positional],
                keywords,
            ) if name in JOINS:
                axes = [*positional, *(k.value for k in keywords if k.arg in ("dim", "axis"))]
                axis = _integer(axes[0]) if len(axes) == 1 else None
                if axis is not None:
                    yield AxisUse(ast.unparse(tensor), axis, node.lineno, name, ast.unparse(added))


def _may_be_equal(axis: int, other_axis: int, layout: Layout) -> bool:
    """Return whether both may be the same axis: -2 is axis 2 only if there are four axes.

    If the layout is not known, a negative and a positive number may be the same axis.
    """
    if (axis < 0) == (other_axis < 0):
        return axis == other_axis
    return not layout or axis % len(layout) == other_axis % len(layout)


def _layout(nodes: Sequence[ast.AST], join: AxisUse) -> Layout:
    """Return the layout of the tensor that is added, by its last value above the join.

    Returns () if it has no value there, or if that is no view.
    """
    layout: Layout = ()
    for node in nodes:
        match node:
            case ast.Assign([target], value) if ast.unparse(target) == join.added:
                if node.lineno < join.line:
                    layout = _layout_of_value(value)
    return layout


def _layout_of_value(value: ast.expr) -> Layout:
    """Return the sizes of a view, also after transpositions of axes; () if they are not known."""
    match value:
        case ast.Call(ast.Attribute(tensor, "transpose" | "swapaxes"), [first, second]):
            layout = [*_layout_of_value(tensor)]
            axis, other_axis = _integer(first), _integer(second)
            valid_axes = range(-len(layout), len(layout))
            if axis is None or other_axis is None or not {axis, other_axis}.issubset(valid_axes):
                return ()
            layout[axis], layout[other_axis] = layout[other_axis], layout[axis]
            return tuple(layout)
        case ast.Call(ast.Attribute(_, "view" | "reshape"), [ast.Tuple(sizes)]) | ast.Call(
            ast.Attribute(_, "view" | "reshape"), sizes
        ):
            return tuple(ast.unparse(size) for size in sizes)
    return ()


def _integer(node: ast.expr) -> int | None:
    """Return the whole number that an expression writes, or None if it is another expression."""
    match node:
        case ast.Constant(int(number)) if type(number) is int:
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            return -number
    return None
