"""The state of each function of an exercise: right, wrong, not written, or waiting for another one.

A function waits if it uses another one that is not right. The calls have shown which functions are
wrong. The uses are read from the text, which is never run.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..box.worker.messages import Raised
from ..box.worker.result_structure import Form
from ..checks.explain import (
    LIMIT,
    is_left_open,
    joined,
    kind_of,
    missing_name,
    sanitize,
    says_unwritten,
)
from ..result import FunctionResult, State
from ..submission import Source
from ..submission.source import DEFINITIONS

STUB_ENDS = "the stub's raise"  # The evidence about a left-over raise begins with these words.
FINE = ("right", "unseen", "so_far")
MAKES_A_TENSOR = frozenset(
    "arange empty eye full linspace ones rand randn tensor tril_indices triu_indices zeros".split()
)
REFUSALS = ("ValueError", "AssertionError", "Exception", "RuntimeError", "TypeError")
COLLECTIONS = (ast.Tuple, ast.List, ast.Dict)


@dataclass(frozen=True)
class FunctionSummary:
    """The observations about one function.

    Attributes:
        name: The function.
        is_asked: Whether it was called.
        is_undefined: Whether the file does not define it.
        is_empty: Whether it was called, and has no code yet.
        is_wrong: Whether it fails a check, or its answers show a misconception.
        stopped_at: The first wrong function, if it stopped a check that tests this one further.
        check: The title of the failed check whose evidence is shown.
        evidence: The evidence of that check.
        raised: The exception of that check.
        is_class: Whether the exercise asks for a class.
        arguments: The names of the arguments in the exercise, if they are known.
    """

    name: str
    is_asked: bool = False
    is_undefined: bool = False
    is_empty: bool = False
    is_wrong: bool = False
    stopped_at: str = ""
    check: str = ""
    evidence: str = ""
    raised: Raised | None = None
    is_class: bool = False
    arguments: tuple[str, ...] = ()


def states_of(
    summaries: Sequence[FunctionSummary], source: Source, explained: Collection[str]
) -> tuple[FunctionResult, ...]:
    """Return the state of each function, in the order of the file.

    Args:
        summaries: The observations about each function, in the order of the file.
        source: The attempt's text.
        explained: The functions with a misconception. Their failures do not follow from other
            functions alone.
    """
    # if all functions are right, the text need not be read
    in_question = any(function.is_wrong or not function.is_asked for function in summaries)
    unwritten = source.unwritten_names if in_question else frozenset[str]()
    unwritten |= {
        e.name
        for e in summaries
        if e.is_wrong and is_left_open(e.raised) and source.left_over_raise(e.name)
    }
    definitions = (
        [statement for statement in source.statements if isinstance(statement, DEFINITIONS)]
        if in_question
        else []
    )
    functions: dict[str, FunctionResult] = {}
    for summary in summaries:
        used = source.uses(summary.name) if in_question else frozenset[str]()
        raised_in = (
            definition.name for definition in definitions if _holds(definition, _line_of(summary))
        )
        needed = {*used, missing_name(summary.raised), *raised_in}
        blockers = [n for n in functions if n in needed and functions[n].state not in FINE]
        is_explained = summary.name in explained
        is_waiting = (
            bool(blockers) and not is_explained and not _stopped_before(summary, source, blockers)
        )
        state = _state(summary, unwritten, is_waiting, is_explained)
        waits_for = {"waiting": next(iter(blockers), ""), "so_far": summary.stopped_at}
        near = ""
        if state == "undefined":
            near = _near(summary.name, source, [s.name for s in summaries])
        functions[summary.name] = FunctionResult(
            name=summary.name,
            state=state,
            waits_for=waits_for.get(state, ""),
            check=summary.check if state in ("wrong", "waiting") else "",
            evidence=_evidence(summary, source, state),
            near=near,
        )
    return tuple(functions.values())


def _state(
    summary: FunctionSummary, unwritten: Collection[str], is_waiting: bool, is_explained: bool
) -> State:
    if summary.is_undefined:
        return "undefined"
    if summary.name in unwritten:
        return "unwritten"
    if summary.is_wrong:
        if is_waiting:
            return "waiting"
        is_empty = summary.is_empty or (says_unwritten(summary.raised) and not is_explained)
        return "unwritten" if is_empty else "wrong"
    if not summary.is_asked:
        return "unseen"
    return "so_far" if summary.stopped_at else "right"


def _stopped_before(summary: FunctionSummary, source: Source, blockers: Sequence[str]) -> bool:
    """Return whether a function raised before it came to use any of these.

    Then its exception does not follow from them.
    """
    if summary.raised and (error_kind := kind_of(summary.raised)) and error_kind.at_call:
        return True
    line, definition = _line_of(summary), source.definitions.get(summary.name)
    if (
        not isinstance(definition, ast.FunctionDef)
        or missing_name(summary.raised)
        or not _holds(definition, line)
    ):
        return False
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.For | ast.While) and _holds(node, line) for node in nodes):
        return False  # it may have used them in an earlier round
    used_names = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (used_names | source.uses(*used_names)).isdisjoint(blockers)


def _line_of(summary: FunctionSummary) -> int:
    return (summary.raised and summary.raised.line) or 0


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _near(name: str, source: Source, required_names: Sequence[str]) -> str:
    other_names = [
        defined_name for defined_name in source.names_used if defined_name not in required_names
    ]
    same = [other_name for other_name in other_names if other_name.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, other_names, 1)), "")


def _evidence(summary: FunctionSummary, source: Source, state: State) -> str:
    if state not in ("wrong", "waiting"):
        if state != "unwritten":
            return ""
        if leftover := source.left_over_raise(summary.name):
            location = (
                f"on line {leftover.line} still stands {'below' if leftover.is_below else 'above'} "
                "code of yours"
            )
            return f"{STUB_ENDS} {location}: take that line out once the rest is written"
        methods = source.unwritten_methods(summary.name)
        verb = "are" if len(methods) > 1 else "is"
        return f"its {' and '.join(methods)} {verb} not written yet" if methods else ""
    explanation = _no_module(summary, source) or in_another_order(
        source, summary.name, summary.arguments
    )
    if "device" in summary.evidence:
        explanation = explanation or without_device(source, summary.name)
    explanation = explanation or refuses_nothing(source, summary.name)
    return joined(
        sanitize(summary.evidence, 2 * LIMIT), explanation
    )  # the message of an exception may take one LIMIT


def _no_module(summary: FunctionSummary, source: Source) -> str:
    """Return a sentence if the name stands for something else than the exercise asks for, or "".

    A function that makes a module is accepted in place of a class, so this speaks only of a
    function that makes none. An exercise that asks for such a function, and not for a class, names
    it in small letters, as functions are named.
    """
    makes_none = summary.raised is not None and "not a torch.nn.Module" in summary.raised.message
    is_function = isinstance(source.definitions.get(summary.name), ast.FunctionDef)
    if makes_none and is_function and summary.name.islower():
        return "What it returns is no module"
    return (
        wrong_definition_type(source, summary.name, summary.is_class)
        if makes_none or not summary.is_class
        else ""
    )


def wrong_definition_type(source: Source, name: str, is_class: bool) -> str:
    """Return a sentence if the name stands for no class, or for no plain function, or "".

    Args:
        source: The attempt's text.
        name: The name.
        is_class: Whether the exercise asks for a class, and not for a function.
    """
    match source.definitions.get(name):
        case ast.FunctionDef() | ast.AsyncFunctionDef() as last if is_class:
            return f"It is a function, written on line {last.lineno}, and a class is asked for"
        case ast.ClassDef() as last if not is_class:
            return f"It is a class, written on line {last.lineno}, and a function is asked for"
        case ast.AsyncFunctionDef() as last if not is_class:
            return (
                f"It is an `async def`, written on line {last.lineno}, so that a call gives a "
                "coroutine: take `async` away"
            )
        case ast.FunctionDef() as last if yields := _yields_in(last):
            return (
                f"A `yield` makes it a generator, written on line {min(yields)}: return the answer"
            )
    return ""


def _yields_in(function: ast.FunctionDef) -> list[int]:
    pending, lines = list[ast.AST](function.body), []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            lines.append(node.lineno)
        if not isinstance(node, (*DEFINITIONS, ast.Lambda, ast.GeneratorExp)):
            pending += ast.iter_child_nodes(node)
    return lines


def in_another_order(source: Source, name: str, expected_names: Sequence[str]) -> str:
    """Return a sentence if a function takes its arguments in another order, or "".

    Args:
        source: The attempt's text.
        name: The function.
        expected_names: The names of the arguments in the expected order.
    """
    function = source.definitions.get(name)
    arguments = (
        [*function.args.posonlyargs, *function.args.args]
        if isinstance(function, ast.FunctionDef)
        else []
    )
    actual_names = [argument.arg for argument in arguments]
    if actual_names == list(expected_names) or sorted(actual_names) != sorted(expected_names):
        return ""
    return (
        f"It is written as {name}({', '.join(actual_names)}), and called as"
        f" {name}({', '.join(expected_names)})"
    )


def returned_in_another_order(source: Source, name: str, form: Form | None) -> str:
    """Return a sentence if a `return` gives a pair in the other order; "" otherwise.

    Args:
        source: The attempt's text.
        name: A function, or a class whose forward returns the pair.
        form: The form that course.yaml asks for, such as (y, cache): a tensor and an opaque part.
    """
    part_kinds = [part_form.kind for part_form in form.parts] if form and form.names else []
    if form is None or part_kinds != ["tensor", "opaque"]:
        return ""
    nodes = [*ast.walk(source.definition(name))]
    collections = {form.names[1]}
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


def without_device(source: Source, name: str) -> str:
    """Return a sentence if a function gets a device and makes a tensor without it, or ""."""
    function = source.definitions.get(name)
    arguments = function.args if isinstance(function, ast.FunctionDef) else None
    names = [a.arg for a in (*arguments.args, *arguments.kwonlyargs)] if arguments else []
    if function is None or "device" not in names:
        return ""
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(ast.Name("torch"), made), _, keywords) if (
                made in MAKES_A_TENSOR
            ):
                if "device" not in [keyword.arg for keyword in keywords]:
                    return f"torch.{made}, written on line {node.lineno}, is given no device"
    return ""


def refuses_nothing(source: Source, name: str) -> str:
    """Return a sentence if a refusal of a function or class has no effect; "" otherwise.

    An assert of a pair in brackets is always true. An exception may be made and not raised.
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
