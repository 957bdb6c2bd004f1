"""Suggest the usual repair for an exception.

Most suggestions are in a table, suggestions.txt, keyed by the messages of Python and PyTorch. The
others are found in the attempt's text, which is read and never run; `_RULES` has the functions that
do so. An attempt chooses the texts of its exceptions. So a pattern is matched only with a short
part of a message, and a word of a message is repeated only if the line has it.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import torch

from ..box.worker.messages import Raised
from ..checks.explain_exceptions import is_shape_fault
from ..submission import Source
from ..submission.newer_python import PYTHON, note_on_newer_syntax
from ..submission.source import DEFINITIONS, TEXT_ERRORS, has_no_content
from .definition_faults import wrong_length
from .slips_in_function_text import slip_behind_exception

MAX_LOOPS = 16  # each is compared with all nodes, so more would take quadratic time
MAX_OPTIONAL_NAMES = 50  # each is looked up in all conditions, for the same reason
MAX_SIMILAR_NAMES = 300  # each is compared with the misspelt one, letter by letter

# The most characters that are read of a name, of a message, of the code of the line that raised,
# and of the code above it. An attempt chooses them all, and some patterns are slow on long texts.
MAX_NAME, MAX_MESSAGE, MAX_CODE, MAX_CODE_ABOVE = 40, 400, 400, 4000
_Node = TypeVar("_Node", bound=ast.AST)
_NAME = rf"'(\w{{1,{MAX_NAME}}})'"
# Names that differ only in these characters are different on purpose, such as q, k and v.
_ALIKE = str.maketrans("kvKV123456789", "qqQQ000000000")
# A module without forward, and its class if the message begins with it.
_NO_FORWARD = re.compile(rf'\w+: (?:Module \[(\w{{1,{MAX_NAME}}})\])?.*required "forward"')
# torch.cat was given one tensor, and not the list that a loop collects.
_JOINS_A_TENSOR = re.compile(r"(?:cat|concat|stack)\(\): argument 'tensors' .* not Tensor")
_OWNERS: dict[str, object] = {
    "torch": torch,
    "torch.nn": torch.nn,
    "torch.nn.functional": torch.nn.functional,
    "Tensor": torch.Tensor,
    "Parameter": torch.nn.Parameter,
}


@cache
def table() -> dict[re.Pattern[str], str]:
    """Return the suggestion for each pattern of suggestions.txt, in its order."""
    text = Path(__file__).with_name("suggestions.txt").read_text(encoding="utf-8")
    _, *rows = text.split("\n\n")  # the first paragraph explains the format
    suggestions = {}
    for row in rows:
        *patterns, suggestion = row.splitlines()
        for pattern in patterns:
            suggestions[re.compile(pattern)] = suggestion.strip()
    return suggestions


def suggest(source: Source, raised: Raised) -> str:
    """Return the usual repair for this exception; "" if there is none.

    It is the first of these that has a suggestion: a missing forward, exchanged arguments, a loop,
    the length of a wrong axis (only if shapes do not fit), a slip of the text
    (`slip_behind_exception`), then the rules of `_RULES`.
    """
    file = _file(source, raised.line or 0)
    exception_text = f"{raised.type}: {raised.message[:MAX_MESSAGE]}".replace("\n", " ")
    forward = _NO_FORWARD.match(exception_text)
    suggestion = _advise_forward(file, forward[1]) if forward else ""
    suggestion = suggestion or _exchanged_arguments(file) or loop_fault(source, raised)
    if not suggestion and is_shape_fault(raised):
        suggestion = wrong_length(file.function_nodes)
    if suggestion := suggestion or slip_behind_exception(
        file.function_nodes, file.nodes, file.line, exception_text
    ):
        return suggestion
    for pattern, advise in _RULES:
        match = re.match(pattern, exception_text)
        if match and (suggestion := advise(file, *match.groups())):
            return suggestion
    return ""


def _advice_from_table(file: _File, exception_text: str) -> str:
    """Return the suggestion of the first row of suggestions.txt that fits; "" if none does.

    A pattern is matched with the exception's text, the code of the line, and the code above it. If
    it captures a `name`, the file must not define the name. If it captures a `method`, that method
    must lack `self` in the file. The suggestion may repeat the name.
    """
    text_and_code = f"{exception_text}\n{file.code}\n{file.code_above}"
    for pattern, suggestion in table().items():
        match = pattern.match(text_and_code)
        if match is None:
            continue
        groups = {"name": "", "method": None, **match.groupdict()}
        name, method = groups["name"], groups["method"]
        if name not in file.defined_names and method in {None, *file.methods_without_self}:
            return suggestion.replace("{name}", name or "")
    return ""


class _File:
    """The text of an attempt, as seen from one line, on which an exception was raised.

    Attributes:
        expressions: All expressions of the file that contain the line, with their parts.
        functions: The functions and methods of the file, without those that have a long name.
        code: The code from the line to the end of its expressions, in one line.
        code_above: The lines above the line, from the beginning of the top-level statement around
            it. Both texts are cut if they are long.
    """

    def __init__(self, source: Source, line: int) -> None:
        self.source, self.line, self.nodes = source, line, source.nodes
        self.expressions = [n for n in self.nodes if isinstance(n, ast.expr) and self.line_is_in(n)]
        functions = _all_of(self.nodes, ast.FunctionDef)
        self.functions = [function for function in functions if len(function.name) <= MAX_NAME]
        around_line = (s.lineno for s in source.statements if self.line_is_in(s))
        first_line = next(around_line, line)  # the start of the top-level statement
        last_line = max([line, *(node.end_lineno or 0 for node in self.expressions)])
        lines = source.lines
        index = max(line - 1, 0)  # in `lines`; an unknown line is 0
        code_lines = lines[index:last_line]
        lines_above = lines[max(first_line - 1, 0) : index]
        self.code = " ".join(code_line.strip() for code_line in code_lines)[:MAX_CODE]
        self.code_above = "\n".join(lines_above)[-MAX_CODE_ABOVE:]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """All classes of the file."""
        return _all_of(self.nodes, ast.ClassDef)

    @cached_property
    def methods_without_self(self) -> set[str]:
        """The names of methods without a decorator whose first parameter is not self."""
        methods = chain.from_iterable(map(_methods, self.classes))
        # a decorator such as staticmethod changes the first parameter
        plain = [method for method in methods if not method.decorator_list]
        return {method.name for method in plain if _parameters(method)[:1] != ["self"]}

    @cached_property
    def imported_names(self) -> set[str]:
        """The names that imports define."""
        aliases = _all_of(self.nodes, ast.alias)
        return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}

    @cached_property
    def defined_names(self) -> set[str]:
        """All names that the file defines anywhere, also as parameters."""
        declared_names = {
            getattr(n, "arg", getattr(n, "name", ""))
            for n in self.nodes
            if isinstance(n, (ast.arg, *DEFINITIONS))
        }
        return self.imported_names | _names(self.nodes, ast.Store) | declared_names

    @cached_property
    def stored_attributes(self) -> set[str]:
        """The attributes that the file sets, of any object, and its buffers."""
        attributes = _all_of(self.nodes, ast.Attribute)
        return self.buffers | {n.attr for n in attributes if isinstance(n.ctx, ast.Store)}

    @cached_property
    def buffers(self) -> set[str]:
        """The names under which `self.register_buffer` keeps tensors."""
        names = set()
        for node in self.nodes:
            match node:
                case ast.Call(
                    ast.Attribute(ast.Name("self"), "register_buffer"),
                    [ast.Constant(str(name)), *_],
                ):
                    names.add(name)
        return names

    @cached_property
    def function(self) -> ast.FunctionDef | None:
        """The innermost function around the line, or None."""
        functions = [function for function in self.functions if self.line_is_in(function)]
        return functions[-1] if functions else None

    @cached_property
    def function_nodes(self) -> list[ast.AST]:
        """All nodes of that function; [] if there is none."""
        return list(ast.walk(self.function)) if self.function is not None else []

    def line_is_in(self, node: ast.stmt | ast.expr, line: int = 0) -> bool:
        """Return whether a line of the file is in this node; 0 is the line that raised."""
        return node.lineno <= (line or self.line) <= (node.end_lineno or 0)


_file = lru_cache(maxsize=8)(_File)  # most exceptions of a text are raised on few lines


def _all_of(nodes: Iterable[ast.AST], type_: type[_Node]) -> list[_Node]:
    """Return those of the nodes that are of this type."""
    return [node for node in nodes if isinstance(node, type_)]


def _parameters(function: ast.FunctionDef) -> list[str]:
    """Return the names of the parameters that can be passed by position."""
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context] = ast.Load) -> set[str]:
    """Return the names that these nodes read, or store."""
    return {node.id for node in _all_of(nodes, ast.Name) if isinstance(node.ctx, context)}


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return the methods of a class, without those that have a long name."""
    return [m for m in _all_of(node.body, ast.FunctionDef) if len(m.name) <= MAX_NAME]


def _not_in_this_python(file: _File, name: str, module_name: str) -> str:
    """Return a sentence if a module of the standard library lacks the imported name, or "".

    The line must have the name. The sentence suggests a similar name. If there is none, it says
    which Python is used, because the name may belong to a newer one. Returns "" also if the module
    is not loaded here.
    """
    if module_name.partition(".")[0] not in sys.stdlib_module_names:
        return ""
    module = sys.modules.get(module_name)
    if module is None or hasattr(module, name) or name not in file.code:
        return ""
    if near := get_close_matches(name, dir(module), 1, 0.75):
        return f"Did you mean {near[0]}, where it says {name}?"
    return (
        f"Attempts are run with Python {PYTHON} here, whose {module_name} has no {name}: do "
        "without it."
    )


def _unbound_variable(file: _File, name: str) -> str:
    """Return a sentence about the line that binds a variable without a value; "" if none is known.

    1. If lines above bind it, they are on a path that was not run (`_bound_on_another_path`).
    2. If only lines below bind it, and a function, class, import or builtin has the same name: the
       variable hides that.
    3. Otherwise a line may be missing above.

    Returns "" also if the line does not have the name, or if the function deletes the variable.
    """
    uses = [use for use in _all_of(file.function_nodes, ast.Name) if use.id == name]
    bound_lines = sorted(node.lineno for node in uses if isinstance(node.ctx, ast.Store))
    is_deleted = any(isinstance(node.ctx, ast.Del) for node in uses)
    if not bound_lines or is_deleted or not any(map(file.line_is_in, uses)):
        return ""
    earlier_lines = [line for line in bound_lines if line < file.line]
    if earlier_lines:
        return _bound_on_another_path(file, name, earlier_lines[-1])
    top_level_names = {getattr(statement, "name", "") for statement in file.source.statements}
    if name in top_level_names | file.imported_names | {*dir(builtins)}:
        return (
            f"A value, written on line {bound_lines[0]}, takes the name of {name}: give the value "
            "another."
        )
    return (
        f"Its first value is written on line {bound_lines[0]}: is a line missing above, or another "
        "name meant?"
    )


def _bound_on_another_path(file: _File, name: str, line: int) -> str:
    """Return a sentence if a branch or loop that was not run binds a variable, or "".

    Args:
        file: The file.
        name: The variable.
        line: A line that binds the variable.
    """
    blocks = [n for n in file.function_nodes if hasattr(n, "body") and isinstance(n, ast.stmt)]
    # The line that raised may be in another branch of the same `if`, but not in the same loop.
    skipped_blocks = [
        block
        for block in blocks
        if file.line_is_in(block, line)
        and (isinstance(block, ast.If) or not file.line_is_in(block))
    ]
    # `ast.walk` gives a block before the blocks in it
    innermost = skipped_blocks[-1] if skipped_blocks else None
    if isinstance(innermost, ast.If):
        return (
            f"`{name}` is bound in another branch, written on line {line}: on this way it needs a "
            "value, too."
        )
    if isinstance(innermost, ast.For | ast.While):
        return (
            f"`{name}` is bound in a loop that did not run, written on line {line}: bind it before "
            "the loop."
        )
    return ""


def _exchanged_arguments(file: _File) -> str:
    """Return a sentence about a call that exchanges arguments of the function around the line.

    Only the names of the arguments show it: `f(mask, scores)` of `def f(scores, mask)`. All
    arguments by position must be names. Returns "" if there is no such call. Calls are skipped if
    the signature is long.
    """
    function = file.function
    if function is None:
        return ""
    parameters = _parameters(function)
    for call in _all_of(file.nodes, ast.Call):
        is_of_function = isinstance(call.func, ast.Name) and call.func.id == function.name
        arguments = [argument.id for argument in _all_of(call.args, ast.Name)]
        if not is_of_function or len(arguments) != len(call.args):
            continue
        expected = parameters[: len(arguments)]
        are_exchanged = arguments != expected and sorted(arguments) == sorted(expected)
        written = f"{function.name}({', '.join(arguments)})"
        signature = f"{function.name}({', '.join(parameters)})"
        if are_exchanged and len(signature) <= 2 * MAX_NAME:
            return (
                f"`{written}`, written on line {call.lineno}, exchanges the arguments of "
                f"{signature}."
            )
    return ""


def _methods_of(file: _File, class_name: str | None) -> list[ast.FunctionDef]:
    """Return the methods of the file's last class of this name; [] if there is none."""
    classes = [node for node in file.classes if node.name == class_name]
    return _methods(classes[-1]) if classes else []


def _advise_forward(file: _File, class_name: str | None) -> str:
    """Return a sentence about the method that should be forward, or "" if none stands out.

    It is the first of these: a forward that stands inside another method; a method with a similar
    name; the only method besides __init__. A class that has forward gets no sentence. If the class
    is unknown or has no methods in the file, a similar name is looked for among all functions of
    the file.

    Args:
        file: The file.
        class_name: The class that lacks forward, or None if the message does not name it.
    """
    methods = _methods_of(file, class_name)
    if any(method.name == "forward" for method in methods):
        return ""
    if inside := _forward_inside(methods):
        return inside
    # The forward of another class in the file is not misspelt.
    names = [f.name for f in methods or file.functions if f.name != "forward"]
    if near := get_close_matches("forward", names, 1):
        return f"Did you mean forward, where it says {near[0]}?"
    other_methods = [method for method in methods if method.name != "__init__"]
    if len(other_methods) != 1:
        return ""
    return (
        f"A module calls its method forward, and this class has {other_methods[0].name} on line "
        f"{other_methods[0].lineno}."
    )


def _forward_inside(methods: Sequence[ast.FunctionDef]) -> str:
    """Return advice if forward is defined inside another method; "" if it is not.

    Args:
        methods: The methods of a class, without a forward.
    """
    for method in methods:
        for node in ast.walk(method):
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                return (
                    f"`forward` on line {node.lineno} stands inside {method.name}: give its `def` "
                    f"the indentation of the `def` on line {method.lineno}."
                )
    return ""


def _comma_after_value(file: _File) -> str:
    """Return a sentence about a line that ends with a comma and so makes a called name a tuple.

    Returns "" if there is no such line.
    """
    called = {_name_of(node.func) for node in file.expressions if isinstance(node, ast.Call)}
    for node in file.nodes:
        match node:
            case ast.Assign([target], ast.Tuple([_])) if _name_of(target) in called - {""}:
                return (
                    f"The comma at the end of line {node.end_lineno} makes `{_name_of(target)}` a "
                    "tuple: take it out."
                )
    return ""


def _name_of(node: ast.expr) -> str:
    """Return a name, or an attribute of self as "self.x"; "" for others and if it is long."""
    match node:
        case ast.Name(name) if len(name) <= MAX_NAME:
            return name
        case ast.Attribute(ast.Name("self"), name) if len(name) <= MAX_NAME:
            return f"self.{name}"
    return ""


def _init_has_another_name(file: _File, class_name: str) -> str:
    """Return a question that names the method which is probably meant to be __init__.

    Return "" if the class has __init__, or no method with a similar name.
    """
    methods = _methods_of(file, class_name)
    lines = {method.name: method.lineno for method in methods}
    near = get_close_matches("__init__", lines, 1)
    if not near or "__init__" in lines:
        return ""
    return f"Did you mean __init__, where it says {near[0]} on line {lines[near[0]]}?"


def loop_fault(source: Source, raised: Raised) -> str:
    """Return advice on a statement that spoils all rounds of a loop but one; "" if there is none.

    The loops are those of the function around the line that raised, at most MAX_LOOPS. The first
    loop with such a statement counts, and in it the first of these:

    1. A `return` on the line ends the loop in its first round.
    2. Each round replaces a value by a part of itself.
    3. Each round empties a list, and the line is below the loop.
    4. Each round replaces a value, and the line is below the loop.

    Returns "" also for most exceptions: it must be a RuntimeError, or say that torch.cat or a
    similar function was given one tensor (_JOINS_A_TENSOR).
    """
    if raised.type != "RuntimeError" and not _JOINS_A_TENSOR.match(raised.message):
        return ""
    file = _file(source, raised.line or 0)
    loops = (node for node in file.function_nodes if isinstance(node, ast.For | ast.While))
    for loop in islice(loops, MAX_LOOPS):
        fault = _early_return(file, loop) or _value_cut_again(file, loop)
        if not fault and file.line > (loop.end_lineno or 0):
            fault = _emptied_list(file, loop) or _replaced_value(file, loop)
        if fault:
            return fault
    return ""


def _early_return(file: _File, loop: ast.For | ast.While) -> str:
    """Return a sentence if the line that raised is a `return` directly in the loop, or "".

    Such a `return` ends the loop in its first round.
    """
    for statement in loop.body:
        if isinstance(statement, ast.Return) and file.line_is_in(statement):
            return (
                f"The `return` on line {statement.lineno} stands inside the loop that begins on "
                f"line {loop.lineno}, and ends it in its first round."
            )
    return ""


def _value_cut_again(file: _File, loop: ast.For | ast.While) -> str:
    """Return a sentence if each round of a `for` replaces a value by a part of itself, or "".

    The value must come from above the loop. The index must depend on another name that the loop
    sets: otherwise the same part is taken on purpose.
    """
    if not isinstance(loop, ast.For):
        return ""
    nodes_above = (
        n for n in file.function_nodes if getattr(n, "lineno", loop.lineno) < loop.lineno
    )
    parameters = _parameters(file.function) if file.function is not None else []
    values_above = {*parameters, *_names(nodes_above, ast.Store)}
    names_in_loop = _names(ast.walk(loop), ast.Store)
    for statement in loop.body:
        if not isinstance(statement, ast.Assign):
            continue
        targets = [_name_of(node) for node in _elements(statement.targets[0])]
        for target, value in zip(targets, _elements(statement.value), strict=False):
            match value:
                case ast.Subscript(ast.Name(name), index) if name == target in values_above:
                    if _names(ast.walk(index)) & (names_in_loop - {name}):
                        return (
                            f"`{name}` on line {statement.lineno} is replaced by a part of itself "
                            "in each turn of the loop: the next turn needs the whole, so give the "
                            "part another name."
                        )
    return ""


def _elements(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a tuple, or the expression itself."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _emptied_list(file: _File, loop: ast.For | ast.While) -> str:
    """Return a sentence about a list that each round empties, or "".

    The loop must append to the list, and the function must use the list below the loop.
    """
    end = loop.end_lineno or 0
    nodes_below = (node for node in file.function_nodes if getattr(node, "lineno", 0) > end)
    collected = {*map(_list_appended_to, ast.walk(loop))} & _names(nodes_below)
    for statement in loop.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.List([])) if (
                name in collected and len(name) <= MAX_NAME
            ):
                return (
                    f"`{name} = []` on line {statement.lineno} stands inside the loop that begins "
                    f"on line {loop.lineno}: each turn empties the list."
                )
    return ""


def _list_appended_to(node: ast.AST) -> str:
    """Return the name of the list to which this call appends; "" if it is no such call."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(name), "append")):
            return name
    return ""


def _replaced_value(file: _File, loop: ast.For | ast.While) -> str:
    """Return a sentence about a value that each round replaces, or "".

    The line that raised is below the loop, and uses the value. The loop must not read the value
    itself.
    """
    read_in_loop = _names(ast.walk(loop))
    for statement in loop.body:
        match statement:
            case ast.Assign([ast.Name(name)]) if len(name) <= MAX_NAME:
                if name in _names(file.expressions) and name not in read_in_loop:
                    return (
                        f"`{name}` on line {statement.lineno} is replaced in each turn "
                        f"of the loop that begins on line {loop.lineno}: only the last turn's is "
                        "left after it."
                    )
    return ""


def _function_without_return(file: _File) -> str:
    """Return a sentence about the first function that gives None although its result is used.

    Such a function has code, and its last statement is an assignment, an expression, or an `if`
    without `else`. Returns "" if no function is like this.
    """
    discarded_ids = {id(statement.value) for statement in _all_of(file.nodes, ast.Expr)}
    calls = _all_of(file.nodes, ast.Call)
    callees = [call.func for call in calls if id(call) not in discarded_ids]
    # a function is called by its name, a method by the name of an attribute
    used_names = {getattr(callee, "id", getattr(callee, "attr", "")) for callee in callees}
    for function in file.functions:
        if function.name not in used_names or has_no_content(function):
            continue
        match function.body[-1]:
            case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.If(orelse=[]):
                return (
                    f"`{function.name}`, written on line {function.lineno}, ends without a"
                    " `return`, and gives None."
                )
    return ""


def _unchecked_none(file: _File) -> str:
    """Return a sentence about an argument that the line uses although it may be None, or "".

    The condition about the argument is inverted, missing, or only below the line.
    """
    conditions = [n for n in file.function_nodes if isinstance(n, ast.If | ast.IfExp)]
    names_in_conditions = [_names(ast.walk(condition.test)) for condition in conditions]
    for name in _optional_names(file):
        with_name = [
            condition
            for condition, names in zip(conditions, names_in_conditions, strict=True)
            if name in names
        ]
        if inverted := _inverted_condition(file, name, with_name):
            return inverted
        if not with_name:
            return f"`{name}` is None where it is not given: ask `if {name} is not None` first."
        first_line = min(node.lineno for node in with_name)
        if first_line > file.line:
            asked_below = f"`if {name} is not None` stands only below, on line {first_line}"
            return f"`{name}` is None where it is not given, and {asked_below}: ask first."
    return ""


def _optional_names(file: _File) -> list[str]:
    """Return the parameters with default None that the line uses, unless a line above sets them.

    Only positional parameters with a short name are returned, at most MAX_OPTIONAL_NAMES.
    """
    nodes_above = [n for n in file.function_nodes if getattr(n, "lineno", file.line) < file.line]
    used_names = _names(file.expressions) - _names(nodes_above, ast.Store)
    names = []
    for node in _all_of(file.function_nodes, ast.arguments):
        # the defaults belong to the last parameters
        pairs = zip(reversed(node.args), reversed(node.defaults), strict=False)
        names += [a.arg for a, default in pairs if getattr(default, "value", 0) is None]
    short_names = [name for name in names if name in used_names and len(name) <= MAX_NAME]
    return short_names[:MAX_OPTIONAL_NAMES]


def _inverted_condition(file: _File, name: str, conditions: Iterable[ast.If | ast.IfExp]) -> str:
    """Return advice on an `if` that runs the line only if this argument is None; "" without one.

    Conditional expressions are skipped.
    """
    for node in conditions:
        if not isinstance(node, ast.If) or not any(map(file.line_is_in, node.body)):
            continue
        match node.test:
            case ast.Compare(
                ast.Name(left), [ast.Is() | ast.Eq()], [ast.Constant(None)]
            ) | ast.UnaryOp(ast.Not(), ast.Name(left)) if left == name:
                return (
                    f"The condition written on line {node.lineno} is the wrong way round: "
                    f"`{name} is not None` is meant."
                )
    return ""


def _function_not_called(file: _File) -> str:
    """Return advice on the first function or method that is written without call parentheses.

    It is a function of the file, or a method of tensors. The line that raised is searched first;
    then names that the file assigns or passes to its own functions, because the exception may be
    raised far from the line that forgets the call. Returns "" if no call is missing.
    """
    names = {function.name for function in file.functions}
    calls = _all_of(file.nodes, ast.Call)
    assigned = [statement.value for statement in _all_of(file.nodes, ast.Assign)]
    calls_of_functions = [call for call in calls if getattr(call.func, "id", "") in names]
    arguments = [argument for call in calls_of_functions for argument in call.args]
    passed_on = _all_of((*assigned, *arguments), ast.Name)
    called_ids = {id(call.func) for call in calls}
    for node in (*file.expressions, *passed_on):
        if id(node) in called_ids:
            continue
        callee = ""
        if isinstance(node, ast.Name) and node.id in names:
            callee = node.id
        elif isinstance(node, ast.Attribute) and _is_tensor_method(node.attr):
            callee = f".{node.attr}"
        if callee:
            return (
                f"`{callee}`, written on line {node.lineno}, is not called there: write"
                f" {callee}(…)."
            )
    return ""


def _is_tensor_method(name: str) -> bool:
    """Return whether tensors have this method, and torch has no dtype of the same name."""
    is_dtype = isinstance(getattr(torch, name, None), torch.dtype)
    return not is_dtype and callable(getattr(torch.Tensor, name, None))


def _misspelt_attribute(file: _File, type_name: str | None, module: str | None, word: str) -> str:
    """Return advice on an attribute that does not exist, or "".

    The line must have the attribute. The advice is the first of these:

    1. A similar name. If the object is a part of torch (_OWNERS), it is one of its names; if the
       object is no module, one of the attributes that the file sets.
    2. If the object's class is in the file: the first line that sets the attribute, if that line is
       below the one that raised (`_set_below`).
    3. If the object's class is in the file, and the file never sets or defines the name: a question
       about __init__.

    Args:
        file: The file.
        type_name: The type of the object without the attribute, or None.
        module: The module without the attribute, or None.
        word: The name of the attribute.
    """
    if word not in {getattr(node, "attr", "") for node in file.expressions}:
        return ""
    owner = module or type_name or ""
    vocabulary = file.stored_attributes
    if owner in _OWNERS:
        vocabulary = {*dir(_OWNERS[owner])}
    elif module:  # not part of torch, so its names are not known here
        vocabulary = set()
    if near := _similar_name(word, vocabulary):
        return f"Did you mean {near}, where it says {word}?"
    classes = {node.name for node in file.classes}
    if type_name in classes and (line := _set_below(file, word)):
        return f"self.{word} gets its value only below, on line {line}."
    if type_name in classes and word not in file.stored_attributes | file.defined_names:
        return f"Is self.{word} set in __init__, before it is used?"
    return ""


def _set_below(file: _File, word: str) -> int:
    """Return the first line of the function that sets self.word, or 0 if there is none.

    Return 0 also if that line is not below the one that raised.
    """
    lines = [
        node.lineno
        for node in file.function_nodes
        if isinstance(node, ast.Attribute) and _name_of(node) == f"self.{word}"
        if isinstance(node.ctx, ast.Store)
    ]
    return min(lines) if lines and min(lines) > file.line else 0


def _misspelt_name(file: _File, word: str) -> str:
    """Return advice on a name that is not defined, or "".

    The line must have the name. The first of these that is true gives the advice:

    1. The name is the class around the line, which does not exist there yet.
    2. The name is a buffer, and the line is in a method: `self.` is missing.
    3. The file defines the name somewhere: no advice.
    4. The file sets an attribute of this name: `self.` is missing.
    5. torch has a function or constant of this name, with more than one letter: `torch.` is
       missing.
    6. A name of the file or of Python is similar.
    """
    if word not in _names(file.expressions):
        return ""
    for node in file.nodes:
        if isinstance(node, ast.ClassDef) and node.name == word and file.line_is_in(node):
            return (
                f"Line {file.line} stands inside the class {word}, which is not there before its "
                "last line has run: is it indented too far?"
            )
    has_self = file.function is not None and _parameters(file.function)[:1] == ["self"]
    if word in file.buffers and has_self:
        return f"Did you mean self.{word}, where it says {word}?"
    if word in file.defined_names:
        return ""
    in_torch = getattr(torch, word, torch)
    is_function = len(word) > 1 and not isinstance(in_torch, type | type(torch))
    if word in file.stored_attributes:
        near = f"self.{word}"
    elif is_function:
        near = f"torch.{word}"
    else:
        near = _similar_name(word, file.defined_names | {*dir(builtins)})
    return f"Did you mean {near}, where it says {word}?" if near else ""


def _similar_name(word: str, vocabulary: Iterable[str]) -> str:
    """Return the name of the vocabulary that is most similar to a word; "" if none is.

    A name that differs only in upper and lower case is preferred. A word of at most four letters
    has no other similar name. Names that differ only in characters such as q, k and v (`_ALIKE`)
    are different on purpose. If the most similar name begins with _, "" is returned: no user should
    be pointed to it, and the next one has another meaning.
    """
    candidates = [
        name
        for name in vocabulary
        if abs(len(name) - len(word)) < 3 and name.translate(_ALIKE) != word.translate(_ALIKE)
    ]
    candidates.sort(key=lambda name: (name[:1] != word[:1], name))
    near = [name for name in candidates if name.lower() == word.lower()]
    if not near and len(word) > 4:
        near = get_close_matches(word, candidates[:MAX_SIMILAR_NAMES], 1, 0.75)
    return near[0] if near and not near[0].startswith("_") else ""


# Rules by the type and the message of an exception. The first that has a suggestion counts. A
# function gets the file, and the groups of the pattern.
_RULES: Sequence[tuple[str, Callable[..., str]]] = (
    (rf"(?:{'|'.join(TEXT_ERRORS)}): ", lambda file: note_on_newer_syntax(file.source)),
    (rf"UnboundLocalError: cannot access local variable {_NAME} where", _unbound_variable),
    (
        rf"ImportError: cannot import name {_NAME} from '([\w.]{{1,{MAX_NAME}}})'",
        _not_in_this_python,
    ),
    (r"(?:TypeError|AttributeError): .*NoneType", _function_without_return),
    (r"(?:TypeError|AttributeError): .*NoneType", _unchecked_none),
    (r"TypeError: 'tuple' object is not callable$", _comma_after_value),
    # Python's message about the indices of a slice mentions "an __index__ method".
    (
        r"(?:TypeError|AttributeError): (?!.*(?:NoneType|__index__)).*"
        r"\b(?:function|method|builtin_function_or_method)\b",
        _function_not_called,
    ),
    (
        rf"(?:TypeError|AttributeError): (\w{{1,{MAX_NAME}}})(?:\.__init__)?\(\) (?:takes|got)",
        _init_has_another_name,
    ),
    (r"(.*)", _advice_from_table),
    (
        rf".*?(?:'(\w+)' object|module '([\w.]+)'|type object '\w+') has no attribute {_NAME}",
        _misspelt_attribute,
    ),
    (rf"\w+: name {_NAME} is not defined", _misspelt_name),
)
