"""Suggest the usual repair for an exception, and report the parts of a file that raised one.

Most suggestions are in a table, cures.txt, keyed by the messages of Python and PyTorch. The others
are found in the attempt's text, which is read and never run. An attempt chooses its exceptions: a
pattern meets only a bounded text, and a word of a message is repeated only if the line has it.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path

import torch

from ..box.connection import End
from ..box.open_and_load import Stopped
from ..box.worker.messages import Raised
from ..checks.explain import explain, is_shape_fault, is_undefined, joined, missing_name, sanitize
from ..checks.runner import Exchange
from ..submission import Source, proved_line
from ..submission.newer_python import PYTHON, said_of_newer_syntax
from ..submission.source import (
    DEFINITIONS,
    TEXT_ERRORS,
    has_no_content,
    lines_of,
    pythons_words,
    texts_of_cells,
)
from .wrong_length_in_source import wrong_length

MAX_LOOPS = 16  # each is compared with all nodes, so more would take quadratic time

# the most characters that are read from a name, a message, a line, and the lines above it
LONGEST, MESSAGE, LINE, ABOVE = 40, 400, 400, 4000
_NAME = rf"'(\w{{1,{LONGEST}}})'"
_LACKS = re.compile(
    rf".*?(?:'(\w+)' object|module '([\w.]+)'|type object '\w+') has no attribute {_NAME}"
)
# Names that differ only in these characters are different on purpose, such as q, k and v.
_ALIKE = str.maketrans("kvKV123456789", "qqQQ000000000")
_OWNERS: dict[str, object] = {
    "torch": torch,
    "torch.nn": torch.nn,
    "torch.nn.functional": torch.nn.functional,
}
_OWNERS |= {"Tensor": torch.Tensor, "Parameter": torch.nn.Parameter}
_SHOWN = 3  # the most parts that are reported
_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]{0,80})'")


@cache
def table() -> dict[re.Pattern[str], str]:
    """Return the suggestion for each pattern of cures.txt, in its order."""
    _, *rows = Path(__file__).with_name("cures.txt").read_text(encoding="utf-8").split("\n\n")
    return {
        re.compile(pattern): suggestion.strip()
        for *patterns, suggestion in map(str.splitlines, rows)
        for pattern in patterns
    }


def suggest(source: Source, raised: Raised) -> str:
    """Return the usual repair for this exception; "" if there is none."""
    file, message = _file(source, raised.line or 0), raised.message[:MESSAGE].replace("\n", " ")
    if 'required "forward"' in message and (suggestion := _advise_forward(file, message)):
        return suggestion
    from_text = _exchanged(file) or loop_fault(source, raised)
    if not from_text and is_shape_fault(raised):
        from_text = wrong_length(file.inside)
    from_text = from_text or _by_type(source, file, raised.type, message)
    if from_text:
        return from_text
    text = f"{raised.type}: {message}\n{file.code}\n{file.around}"
    for pattern, sentence in table().items():
        if match := pattern.match(text):
            names = {"name": "", "method": None, **match.groupdict()}
            if names["name"] not in file.defined and names["method"] in {None, *file.selfless}:
                return sentence.replace("{name}", names["name"] or "")
    return _misspelt(file, message)


def _by_type(source: Source, file: _File, type_: str, message: str) -> str:
    """Return what the text suggests for an exception of this type, "" if it suggests nothing."""
    if type_ in TEXT_ERRORS:
        return said_of_newer_syntax(source.text)
    if type_ == "UnboundLocalError":
        return _unbound(file, message)
    if type_ == "ImportError":
        return _not_in_this_python(file, message)
    if type_ not in ("TypeError", "AttributeError"):
        return ""
    suggestion = (
        _without_return(file) or _not_given(file)
        if "NoneType" in message
        else _not_called(file, message)
    )
    return suggestion or _init_has_another_name(file, message)


def explain_text(source: Source, raised: Raised) -> str:
    """Return the sentence of `explain`, with Python's message if Python cannot parse the text.

    The judge parses the text itself: an attempt that raises a SyntaxError chooses its own message,
    which is not shown.
    """
    python_message = ""
    if raised.type in TEXT_ERRORS:
        python_message = sanitize(
            pythons_words(_cell_around(source, raised.line or raised.part or 1), raised.line or 0)
        )
    return (
        joined(
            explain(raised), python_message and f"Python says: {python_message}".removesuffix(".")
        )
        if python_message
        else explain(raised)
    )


def _cell_around(source: Source, line: int) -> str:
    """Return the cell around a line, below blank lines, so that line numbers stay the same.

    A script has no cells: its whole text is returned.
    """
    if not source.cells:
        return source.text
    first_line, text = [cell for cell in texts_of_cells(source) if cell[0] <= line][-1]
    return "\n" * (first_line - 1) + text


class _File:
    def __init__(self, source: Source, line: int) -> None:
        self.source, self.line, self.nodes = source, line, source.nodes
        self.here = [n for n in self.nodes if isinstance(n, ast.expr) and self.covers(n)]
        self.functions = [
            n for n in self.nodes if isinstance(n, ast.FunctionDef) and len(n.name) <= LONGEST
        ]
        lines, statements = lines_of(source.text), source.statements
        first_line = next(
            (statement.lineno for statement in statements if self.covers(statement)), line
        )
        ends = max([line, *(node.end_lineno or 0 for node in self.here)])
        self.code = " ".join(text.strip() for text in lines[max(line - 1, 0) : ends])[:LINE]
        self.around = "\n".join(lines[max(first_line - 1, 0) : max(line - 1, 0)])[-ABOVE:]

    @cached_property
    def selfless(self) -> set[str]:
        inner = {
            id(statement)
            for node in self.nodes
            if isinstance(node, ast.ClassDef)
            for statement in node.body
        }
        methods = [n for n in self.functions if id(n) in inner and not n.decorator_list]
        return {method.name for method in methods if _first_parameter(method) != "self"}

    @cached_property
    def imported(self) -> set[str]:
        return {
            (n.asname or n.name).partition(".")[0] for n in self.nodes if isinstance(n, ast.alias)
        }

    @cached_property
    def defined(self) -> set[str]:
        declared_names = {
            getattr(n, "arg", getattr(n, "name", ""))
            for n in self.nodes
            if isinstance(n, (ast.arg, *DEFINITIONS))
        }
        return self.imported | _names(self.nodes, ast.Store) | declared_names

    @cached_property
    def inside(self) -> list[ast.AST]:
        """All nodes of the innermost function around the line."""
        around = [function for function in self.functions if self.covers(function)][-1:]
        return [node for function in around for node in ast.walk(function)]

    def covers(self, node: ast.stmt | ast.expr, line: int = 0) -> bool:
        return node.lineno <= (line or self.line) <= (node.end_lineno or 0)


_file = lru_cache(maxsize=8)(_File)  # most exceptions of a text are raised on few lines


def _first_parameter(function: ast.FunctionDef) -> str:
    parameters = [*function.args.posonlyargs, *function.args.args]
    return parameters[0].arg if parameters else ""


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context] = ast.Load) -> set[str]:
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def _not_in_this_python(file: _File, message: str) -> str:
    """Return a sentence if a module of the standard library lacks the imported name, or "".

    The sentence suggests a similar name. If there is none, the name may belong to a newer Python.
    """
    match = re.match(rf"cannot import name {_NAME} from '([\w.]{{1,{LONGEST}}})'", message)
    module = (
        sys.modules.get(match[2])
        if match and match[2].partition(".")[0] in sys.stdlib_module_names
        else None
    )
    if match is None or module is None or hasattr(module, match[1]) or match[1] not in file.code:
        return ""
    if near := get_close_matches(match[1], dir(module), 1, 0.75):
        return f"Did you mean {near[0]}, where it says {match[1]}?"
    return (
        f"Attempts are run with Python {PYTHON} here, whose {match[2]} has no {match[1]}: do "
        "without it."
    )


def _unbound(file: _File, message: str) -> str:
    match = re.match(rf"cannot access local variable {_NAME} where", message)
    name_nodes = [n for n in file.inside if match and isinstance(n, ast.Name) and n.id == match[1]]
    lines = sorted(node.lineno for node in name_nodes if isinstance(node.ctx, ast.Store))
    if (
        not match
        or not lines
        or not any(map(file.covers, name_nodes))
        or any(isinstance(n.ctx, ast.Del) for n in name_nodes)
    ):
        return ""
    name = match[1]
    earlier_lines = [line for line in lines if line < file.line]
    if earlier_lines:
        return _bound_on_another_way(file, name, earlier_lines[-1])
    own_names = {getattr(statement, "name", "") for statement in file.source.statements}
    if name in own_names | file.imported | {*dir(builtins)}:
        return (
            f"A value, written on line {lines[0]}, takes the name of {name}: give the value "
            "another."
        )
    return (
        f"Its first value is written on line {lines[0]}: is a line missing above, or another "
        "name meant?"
    )


def _bound_on_another_way(file: _File, name: str, line: int) -> str:
    holds = [
        n
        for n in file.inside
        if hasattr(n, "body") and isinstance(n, ast.stmt) and file.covers(n, line)
    ]
    match [
        statement
        for statement in holds
        if not file.covers(statement) or isinstance(statement, ast.If)
    ]:
        case [*_, ast.If()]:
            return (
                f"`{name}` is bound in another branch, written on line {line}: on this way it "
                "needs a value, too."
            )
        case [*_, ast.For() | ast.While()]:
            return (
                f"`{name}` is bound in a loop that did not run, written on line {line}: bind "
                "it before the loop."
            )
    return ""


def _exchanged(file: _File) -> str:
    """Return which call gives the arguments of the function around the line in another order.

    Only the names show it: `f(mask, scores)` of `def f(scores, mask)`. Returns "" if there is none.
    """
    around = [function for function in file.functions if file.covers(function)][-1:]
    for function in around:
        parameters = [
            argument.arg for argument in (*function.args.posonlyargs, *function.args.args)
        ]
        for call in (node for node in file.nodes if isinstance(node, ast.Call)):
            arguments = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
            is_of_it = isinstance(call.func, ast.Name) and call.func.id == function.name
            are_exchanged = arguments != parameters[: len(arguments)] and sorted(
                arguments
            ) == sorted(parameters[: len(arguments)])
            if is_of_it and len(arguments) == len(call.args) and are_exchanged:
                written, signature = (
                    f"{function.name}({', '.join(names)})" for names in (arguments, parameters)
                )
                if len(signature) <= 2 * LONGEST:
                    return (
                        f"`{written}`, written on line {call.lineno}, exchanges the arguments "
                        f"of {signature}."
                    )
    return ""


def _advise_forward(file: _File, message: str) -> str:
    """Return a sentence that names the method to rename to forward, or "" if none stands out.

    If the module's class is not in the file, its functions are searched.
    """
    match = re.match(rf"Module \[(\w{{1,{LONGEST}}})\]", message)
    methods = _methods(file, match[1]) if match else []
    if near := get_close_matches(
        "forward", [method.name for method in methods or file.functions], 1
    ):
        return f"Did you mean forward, where it says {near[0]}?"
    other_methods = [method for method in methods if method.name != "__init__"]
    if len(other_methods) != 1:
        return ""
    return (
        f"A module calls its method forward, and this class has {other_methods[0].name} on line "
        f"{other_methods[0].lineno}."
    )


def _init_has_another_name(file: _File, message: str) -> str:
    match = re.match(rf"(\w{{1,{LONGEST}}})(\.__init__)?\(\) (takes|got)", message)
    methods = {method.name: method.lineno for method in (_methods(file, match[1]) if match else [])}
    near = [] if "__init__" in methods else get_close_matches("__init__", methods, 1)
    return next(
        (f"Did you mean __init__, where it says {name} on line {methods[name]}?" for name in near),
        "",
    )


def _methods(file: _File, name: str) -> list[ast.FunctionDef]:
    """Return the methods of the file's class of this name."""
    classes = [node for node in file.nodes if isinstance(node, ast.ClassDef) and node.name == name][
        -1:
    ]
    inner = {id(statement) for class_node in classes for statement in class_node.body}
    return [function for function in file.functions if id(function) in inner]


def loop_fault(source: Source, raised: Raised) -> str:
    """Return which statement of a loop keeps all rounds but one from the line that raised.

    A `return` may end the loop, or each round may empty a list or replace a value. Returns "" if
    the text has no such statement.
    """
    if raised.type != "RuntimeError":
        return ""
    file = _file(source, raised.line or 0)
    loops = (node for node in file.inside if isinstance(node, ast.For | ast.While))
    for loop in islice(loops, MAX_LOOPS):
        location = f"stands inside the loop that begins on line {loop.lineno}"
        for statement in loop.body:
            if isinstance(statement, ast.Return) and file.covers(statement):
                return (
                    f"The `return` on line {statement.lineno} {location}, and ends it at its first "
                    "turn."
                )
        if file.line <= (loop.end_lineno or 0):
            continue
        after = (
            node for node in file.inside if getattr(node, "lineno", 0) > (loop.end_lineno or 0)
        )
        # lists that are used after the loop, with the values of all rounds
        grown = {*map(_grown, ast.walk(loop))} & _names(after)
        for statement in loop.body:
            match statement:
                case ast.Assign([ast.Name(name)], ast.List([])) if (
                    name in grown and len(name) <= LONGEST
                ):
                    return (
                        f"`{name} = []` on line {statement.lineno} {location}: each turn empties "
                        "the list."
                    )
        if replaced := _replaced(file, loop):
            return replaced
    return ""


def _replaced(file: _File, loop: ast.For | ast.While) -> str:
    """Return which value each round replaces, though the line uses it; "" if there is none."""
    used = {*_names(ast.walk(loop))} | {_grown(node) for node in ast.walk(loop)}
    for statement in loop.body:
        match statement:
            case ast.Assign([ast.Name(name)]) if len(name) <= LONGEST:
                if name in _names(file.here) and name not in used:
                    return (
                        f"`{name}` on line {statement.lineno} is replaced in each turn "
                        f"of the loop that begins on line {loop.lineno}: only the last turn's is "
                        "left after it."
                    )
    return ""


def _grown(node: ast.AST) -> str:
    """Return the name of the list to which this call appends; "" if it is no such call."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(name), "append")):
            return name
    return ""


def _without_return(file: _File) -> str:
    alone = {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}
    calls = [
        node.func for node in file.nodes if isinstance(node, ast.Call) and id(node) not in alone
    ]
    used = {getattr(called, "id", getattr(called, "attr", "")) for called in calls}
    for function in (
        function
        for function in file.functions
        if function.name in used and not has_no_content(function)
    ):
        match function.body[-1]:
            case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.If(orelse=[]):
                return (
                    f"`{function.name}`, written on line {function.lineno}, ends without a"
                    " `return`, and gives None."
                )
    return ""


def _not_given(file: _File) -> str:
    conditions = [
        (n, _names(ast.walk(n.test))) for n in file.inside if isinstance(n, ast.If | ast.IfExp)
    ]
    earlier_nodes = [n for n in file.inside if getattr(n, "lineno", file.line) < file.line]
    written = _names(file.here) - _names(earlier_nodes, ast.Store)
    lists = (
        zip(n.args[::-1], n.defaults[::-1], strict=False)
        for n in file.inside
        if isinstance(n, ast.arguments)
    )
    names = [
        a.arg
        for pairs in lists
        for a, value in pairs
        if getattr(value, "value", 0) is None and a.arg in written
    ]
    for name in [name for name in names if len(name) <= LONGEST][:50]:
        asking = [node for node, words in conditions if name in words]
        for node in (
            node for node in asking if isinstance(node, ast.If) and any(map(file.covers, node.body))
        ):
            match node.test:
                case ast.Compare(
                    ast.Name(left), [ast.Is() | ast.Eq()], [ast.Constant(None)]
                ) | ast.UnaryOp(ast.Not(), ast.Name(left)) if left == name:
                    return (
                        f"The condition written on line {node.lineno} is the wrong way round: "
                        f"`{name} is not None` is meant."
                    )
        if not asking:
            return f"`{name}` is None where it is not given: ask `if {name} is not None` first."
        if (first_line := min(node.lineno for node in asking)) > file.line:
            asked_below = f"`if {name} is not None` stands only below, on line {first_line}"
            return f"`{name}` is None where it is not given, and {asked_below}: ask first."
    return ""


def _not_called(file: _File, message: str) -> str:
    names = {n.name for n in file.functions}
    called = {id(n.func) for n in file.nodes if isinstance(n, ast.Call)}
    arguments = [
        a
        for n in file.nodes
        if isinstance(n, ast.Call) and getattr(n.func, "id", "") in names
        for a in n.args
    ]
    assigned = [n.value for n in file.nodes if isinstance(n, ast.Assign)]
    name_nodes = [n for n in (*assigned, *arguments) if isinstance(n, ast.Name)]
    mentions_function = "__index__" not in message and re.search(
        r"\b(function|method|builtin_function_or_method)\b", message
    )
    for node in (
        node for node in (*file.here, *name_nodes) if mentions_function and id(node) not in called
    ):
        attr = getattr(node, "attr", "")
        method = (
            None
            if isinstance(getattr(torch, attr, 0), torch.dtype)
            else getattr(torch.Tensor, attr, None)
        )
        callee = f".{attr}" if callable(method) else ""
        if isinstance(node, ast.Name) and node.id in names:
            callee = node.id
        if callee:
            return (
                f"`{callee}`, written on line {node.lineno}, is not called there: write"
                f" {callee}(…)."
            )
    return ""


def _misspelt(file: _File, message: str) -> str:
    """Return which name is meant, or a question about an attribute that is never set.

    The name is looked up in the text and in torch, so an attempt cannot compute the word.
    """
    written, near = {getattr(node, "attr", "") for node in file.here}, ""
    stored = {
        n.attr for n in file.nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    if match := _LACKS.match(message):
        type_name, module, word = match.groups()
        owner = module or type_name
        # The names in a module that is not part of torch are not known here.
        vocabulary = set() if module else stored
        if owner in _OWNERS:
            vocabulary = {*dir(_OWNERS[owner])}
    elif match := re.match(rf"name {_NAME} is not defined", message):
        word, vocabulary, written = match[1], {*file.defined, *dir(builtins)}, _names(file.here)
        is_no_function = len(word) < 2 or isinstance(
            getattr(torch, word, torch), type | type(torch)
        )
        near = "" if is_no_function else f"torch.{word}"
        if word in stored:
            near = f"self.{word}"
    if not match or word not in written or (word in file.defined and match.re is not _LACKS):
        return ""
    vocabulary = {
        n
        for n in vocabulary
        if abs(len(n) - len(word)) < 3 and n.translate(_ALIKE) != word.translate(_ALIKE)
    }
    names = sorted(vocabulary, key=lambda name: (name[0] != word[0], name))[:300]
    same = [near] if near else [name for name in names if name.lower() == word.lower()]
    near = next(iter(same or get_close_matches(word, names, 1, 0.75 if len(word) > 4 else 1)), "_")
    is_own_class = match.re is _LACKS and any(
        isinstance(n, ast.ClassDef) and n.name == type_name for n in file.nodes
    )
    unset = f"Is self.{word} set in __init__, before it is used?" * (
        is_own_class and word not in {*stored, *file.defined}
    )
    return unset if near.startswith("_") else f"Did you mean {near}, where it says {word}?"


def stopped_parts(
    source: Source, stopped: Sequence[Stopped], describe: Callable[[Raised], str]
) -> str:
    """Return a sentence for each of the first parts that did not run to their end.

    Args:
        source: The attempt.
        stopped: The parts that did not run to their end.
        describe: Returns the description of an exception that may be shown.
    """
    sentences, words = [], set[str]()
    for stop in stopped[:_SHOWN]:
        name, location = missing_name(stop.raised), proved_line(source, stop.line).place
        reason = f"did not run to its end either: it needs {name}." if name in words else ""
        is_text = stop.raised is not None and stop.raised.type in TEXT_ERRORS
        cell = Source(source.name, _cell_around(source, stop.line)) if is_text else source
        sentences.append(
            f"{location[0].upper()}{location[1:]} {reason or _reason(stop, describe, cell)}"
        )
        words |= _words(source, stop.line)
    if (omitted := len(stopped) - _SHOWN) > 0:
        sentences.append(f"{omitted} more did not run to their end.")
    return " ".join(sentences)


def as_note(sentences: str) -> str:
    """Return these sentences as a note on a file whose functions were judged all the same."""
    return (
        f"{sentences} The lines below ran: only what is defined there is missing."
        if sentences
        else ""
    )


def _reason(stopped: Stopped, describe: Callable[[Raised], str], source: Source) -> str:
    raised = stopped.raised
    if raised is None:
        is_late = stopped.ended is End.TIMEOUT
        why = (
            f"was still at work after {stopped.seconds:.2g} seconds"
            if is_late
            else "ended the whole process"
        )
        return f"was left out: it {why}."
    if raised.type == "ModuleNotFoundError" and (module := _MODULE.fullmatch(raised.message)):
        near = get_close_matches(
            module[1], ("torch", "torch.nn", "numpy", "math", "einops", "typing"), 1
        )
        suggestion = f" Did you mean {near[0]}?" if near else ""
        return (
            f"did not run to its end: there is no module {module[1]} where attempts are "
            f"judged.{suggestion}"
        )
    return joined(
        f"did not run to its end: it {describe(raised)}", suggest(source, raised) or " "
    ).rstrip()


def are_the_cause(
    source: Source, stopped: Sequence[Stopped], transcript: Sequence[Exchange]
) -> bool:
    """Return whether the parts that did not run are the reason why no call was answered.

    That is so if more than half of the calls lacked a name from such a part, or if the file defines
    nothing else and all names were undefined.
    """
    raised = [exchange.reply.raised for exchange in transcript]
    if not stopped or None in raised:
        return False
    words = _words(source, *(stop.line for stop in stopped))
    wanting = [exception for exception in raised if missing_name(exception) in words]
    statements = source.statements  # empty if Python cannot parse the text
    defines_nothing = bool(statements) and not any(
        isinstance(statement, DEFINITIONS) for statement in statements
    )
    return len(wanting) > len(raised) / 2 or (
        defines_nothing and all(map(is_undefined, filter(None, raised)))
    )


def _words(source: Source, *begins: int) -> set[str]:
    """Return the words of the parts that begin on these lines.

    If a cell cannot be parsed, its part goes from that line to its end.
    """
    lines, statements = lines_of(source.text), source.statements
    first_lines = [statement.lineno for statement in statements]
    last_lines = [statement.end_lineno or 0 for statement in statements]
    words, previous_end = set[str](), 0
    for line in sorted(set(begins)):
        index = bisect_right(first_lines, line) - 1
        if index >= 0 and last_lines[index] >= line:
            end = last_lines[index]
        else:
            after = bisect_right(source.cells, line)
            end = source.cells[after] - 1 if after < len(source.cells) else len(lines)
        words.update(
            *(re.findall(r"\w+", text) for text in lines[max(line - 1, previous_end) : end])
        )
        previous_end = max(previous_end, end)
    return words
