"""The state of each function that an exercise asks for: right, wrong, not written, or waiting for
another that it uses.

What calls have shown is given; what follows from it is read from the text, which is never run.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from ..box.worker.answers import Raised
from ..checks.explain import is_left_open, kind_of, missing_name, says_unwritten
from ..checks.sanitize import LIMIT, joined, sanitize
from ..result import FunctionResult, State
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.unwritten import (
    definitions_of,
    left_over_raise,
    unwritten_methods,
    unwritten_names,
)

STUB_ENDS = "the stub's raise"  # what is said of one that is left over begins so
FINE = ("right", "unseen", "so_far")
MAKES_A_TENSOR = frozenset(
    "arange empty eye full linspace ones rand randn tensor tril_indices triu_indices zeros".split()
)


@dataclass(frozen=True)
class Seen:
    """What was seen of one function.

    check, evidence, raised: of the first check that failed there.
    """

    name: str
    is_asked: bool = False
    is_undefined: bool = False
    is_empty: bool = False  # it was called, and nothing is written there
    is_wrong: bool = False
    stopped_at: str = ""  # another function, at which a check stopped that asks this one more
    check: str = ""
    evidence: str = ""
    raised: Raised | None = None
    is_class: bool = False  # it is asked for as one
    # of a function, as the exercise names them, where that is known
    arguments: tuple[str, ...] = ()


def states_of(
    seen: Sequence[Seen], source: str, explained: Collection[str]
) -> tuple[FunctionResult, ...]:
    """Return the results, in the order of `seen`, which is that of the file.

    source: "" where it is not at hand. explained: the functions in which a misconception was found:
    what they do does not follow from others alone.
    """
    # else the text need not be read
    in_question = any(function.is_wrong or not function.is_asked for function in seen)
    unwritten = unwritten_names(source) if in_question else frozenset[str]()
    unwritten |= {
        e.name
        for e in seen
        if e.is_wrong and is_left_open(e.raised) and left_over_raise(source, e.name)
    }
    definitions = (
        [part for part in statements_of(source) if isinstance(part, DEFINITIONS)]
        if in_question
        else []
    )
    functions: dict[str, FunctionResult] = {}
    for each in seen:
        used = uses(source, each.name) if in_question else frozenset[str]()
        raised_in = (part.name for part in definitions if _holds(part, _line_of(each)))
        needed = {*used, missing_name(each.raised), *raised_in}
        others = [n for n in functions if n in needed and functions[n].state not in FINE]
        is_explained = each.name in explained
        is_waiting = bool(others) and not is_explained and not _stopped_before(each, source, others)
        state = _state(each, unwritten, is_waiting, is_explained)
        functions[each.name] = FunctionResult(
            name=each.name,
            state=state,
            waits_for={"waiting": next(iter(others), ""), "so_far": each.stopped_at}.get(state, ""),
            check=each.check if state in ("wrong", "waiting") else "",
            evidence=_evidence(each, source, state),
            near=_near(each.name, source, [s.name for s in seen]) if state == "undefined" else "",
        )
    return tuple(functions.values())


def _state(seen: Seen, unwritten: Collection[str], is_waiting: bool, is_explained: bool) -> State:
    if seen.is_undefined:
        return "undefined"
    if seen.name in unwritten:
        return "unwritten"
    if seen.is_wrong:
        is_empty = seen.is_empty or (says_unwritten(seen.raised) and not is_explained)
        return "waiting" if is_waiting else "unwritten" if is_empty else "wrong"
    return "unseen" if not seen.is_asked else "so_far" if seen.stopped_at else "right"


@lru_cache(maxsize=2)  # several look at each text, one after the other
def named_in(source: str) -> Mapping[str, frozenset[str]]:
    """For each function and class at the top of the file, those there that it names itself."""
    definitions = definitions_of(source)
    if len(definitions) == 1:  # which names no other, however long it is
        return dict.fromkeys(definitions, frozenset())
    return {
        name: frozenset(
            {n.id for n in ast.walk(each) if isinstance(n, ast.Name)} & definitions.keys()
        )
        for name, each in definitions.items()
    }


def uses(source: str, *names: str) -> frozenset[str]:
    """Return the other functions and classes of the file that one of these names, or that those
    name in turn.
    """
    named = named_in(source)
    found, left = set[str](), [*named.keys() & set(names)]
    while left:
        new = named[left.pop()] - found
        found |= new
        left += new
    return frozenset(found.difference(names))


def _stopped_before(seen: Seen, source: str, others: Sequence[str]) -> bool:
    """Return whether a function raised on a line of its own, before it came to use any of these:
    then that does not follow from them.
    """
    if seen.raised and (kind := kind_of(seen.raised)) and kind.at_call:
        return True
    line, own = _line_of(seen), definitions_of(source).get(seen.name)
    if not isinstance(own, ast.FunctionDef) or missing_name(seen.raised) or not _holds(own, line):
        return False
    nodes = [node for statement in own.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.For | ast.While) and _holds(node, line) for node in nodes):
        return False  # it may have used them the time before
    before = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (before | uses(source, *before)).isdisjoint(others)


def _line_of(seen: Seen) -> int:
    return (seen.raised and seen.raised.line) or 0


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _near(name: str, source: str, asked: Sequence[str]) -> str:
    others = [each for each in named_in(source) if each not in asked]
    same = [other for other in others if other.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, others, 1)), "")


def _evidence(seen: Seen, source: str, state: State) -> str:
    if state not in ("wrong", "waiting"):
        if state != "unwritten":
            return ""
        if left := left_over_raise(source, seen.name):
            where = (
                f"on line {left.line} still stands {'below' if left.is_below else 'above'} "
                "code of yours"
            )
            return f"{STUB_ENDS} {where}: take that line out once the rest is written"
        methods = unwritten_methods(source, seen.name)
        return (
            f"its {' and '.join(methods)} {'are' if len(methods) > 1 else 'is'} not written yet"
            if methods
            else ""
        )
    said = _no_module(seen, source) or in_another_order(source, seen.name, seen.arguments)
    if "device" in seen.evidence:
        said = said or without_device(source, seen.name)
    said = said or refuses_nothing(source, seen.name)
    return joined(sanitize(seen.evidence, 2 * LIMIT), said)  # of which a message may take one


def _no_module(seen: Seen, source: str) -> str:
    """Return a sentence where what has the name is, or gives, something else than is asked for;
    else "".

    A function that makes a module will do for a class, so a function is told to be one only if it
    makes none. An exercise that asks for such a function, and not for a class, names it as
    functions are named: in small letters.
    """
    makes_none = seen.raised is not None and "not a torch.nn.Module" in seen.raised.message
    is_function = isinstance(definitions_of(source).get(seen.name), ast.FunctionDef)
    if makes_none and is_function and seen.name.islower():
        return "What it returns is no module"
    return (
        of_another_kind(source, seen.name, seen.is_class) if makes_none or not seen.is_class else ""
    )


def of_another_kind(source: str, name: str, is_class: bool) -> str:
    """Return a sentence where what has the name is no plain function, or no class, where one is
    asked for; else "".

    is_class: whether a class is asked for.
    """
    match definitions_of(source).get(name):
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
    left, lines = list[ast.AST](function.body), []
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            lines.append(node.lineno)
        if not isinstance(node, (*DEFINITIONS, ast.Lambda, ast.GeneratorExp)):
            left += ast.iter_child_nodes(node)
    return lines


def in_another_order(source: str, name: str, due: Sequence[str]) -> str:
    """Return a sentence where a function takes the arguments that are due in another order; else
    "".
    """
    function = definitions_of(source).get(name)
    arguments = (
        [*function.args.posonlyargs, *function.args.args]
        if isinstance(function, ast.FunctionDef)
        else []
    )
    own = [argument.arg for argument in arguments]
    if own == list(due) or sorted(own) != sorted(due):
        return ""
    return f"It is written as {name}({', '.join(own)}), and called as {name}({', '.join(due)})"


def without_device(source: str, name: str) -> str:
    """Return a sentence where a function that is given a device makes a tensor without it; else
    "".
    """
    function = definitions_of(source).get(name)
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


def refuses_nothing(source: str, name: str) -> str:
    """Return a sentence where an assert of a function or class holds a pair in brackets, which is
    always true; else "".
    """
    for node in ast.walk(definitions_of(source).get(name, ast.Pass())):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            return (
                f"The assert on line {node.lineno} refuses nothing: condition and message in "
                "one pair of brackets are always true"
            )
    return ""
