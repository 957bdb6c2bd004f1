"""Say of each function that an exercise asks for whether it is right, wrong, not written, or waits for another."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from ..box.worker.answers import Raised
from ..box.worker.messages import Build
from ..checks.explain import is_left_open, is_undefined, kind_of, says_unwritten
from ..checks.sanitize import LIMIT, sanitize
from ..checks.transcript import Exchange, target_of
from ..diagnosis.observe import Observed
from ..result import FunctionResult, State
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.unwritten import left_over_raise, unwritten_methods, unwritten_names
from .advice import in_another_order, of_another_kind, refuses_nothing
from .cures import joined

STUB_ENDS = "the stub's raise"  # what is said of one that is left over begins so
FINE = ("right", "unseen", "so_far")


@lru_cache(maxsize=2)  # several look at each text, one after the other
def named_in(source: str) -> Mapping[str, frozenset[str]]:
    """For each function and class at the top of the file, those there that it names itself."""
    definitions = {part.name: part for part in statements_of(source) if isinstance(part, DEFINITIONS)}
    if len(definitions) == 1:  # which names no other, however long it is
        return dict.fromkeys(definitions, frozenset())
    return {
        name: frozenset({n.id for n in ast.walk(each) if isinstance(n, ast.Name)} & definitions.keys())
        for name, each in definitions.items()
    }


def uses(source: str, *names: str) -> frozenset[str]:
    """Return the other functions and classes of the file that one of these names, or that those name in turn."""
    named = named_in(source)
    found, left = set[str](), [*named.keys() & set(names)]
    while left:
        new = named[left.pop()] - found
        found |= new
        left += new
    return frozenset(found.difference(names))


@dataclass(frozen=True)
class Seen:
    """What was seen of one function. check, evidence, raised: of the first check that failed there."""

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
    arguments: tuple[str, ...] = ()  # of a function, as the exercise names them, where that is known


def function_results(seen: Sequence[Seen], source: str, explained: Collection[str]) -> tuple[FunctionResult, ...]:
    """Return the results, in the order of `seen`, which is that of the file.

    source: "" where it is not at hand. explained: the functions in which a misconception was found: what they do does not
    follow from others alone.
    """
    in_question = any(function.is_wrong or not function.is_asked for function in seen)  # else the text need not be read
    unwritten = unwritten_names(source) if in_question else frozenset[str]()
    unwritten |= {e.name for e in seen if e.is_wrong and is_left_open(e.raised) and left_over_raise(source, e.name)}
    functions: dict[str, FunctionResult] = {}
    for each in seen:
        used = uses(source, each.name) if in_question else frozenset[str]()
        needed = {*used, _undefined_name(each), _raised_in(each, source)}
        others = [n for n in functions if n in needed and functions[n].state not in FINE]
        waits_for, is_explained = next(iter(others), ""), each.name in explained
        is_waiting = bool(others) and not is_explained and not _stopped_before(each, source, others)
        state = _state(each, unwritten, is_waiting, is_explained)
        functions[each.name] = FunctionResult(
            name=each.name,
            state=state,
            waits_for={"waiting": waits_for, "so_far": each.stopped_at}.get(state, ""),
            check=each.check if state in ("wrong", "waiting") else "",
            evidence=_evidence(each, source, state),
            near=_near(each.name, source, [s.name for s in seen]) if state == "undefined" else "",
        )
    return tuple(functions.values())


def _stopped_before(seen: Seen, source: str, others: Sequence[str]) -> bool:
    """Return whether a function raised on a line of its own, before it came to use any of these: then that does not follow from them."""
    if seen.raised and (kind := kind_of(seen.raised)) and kind.at_call:
        return True
    line = (seen.raised and seen.raised.line) or 0
    named = [s for s in statements_of(source) if isinstance(s, ast.FunctionDef) and s.name == seen.name]
    if not named or _undefined_name(seen) or not named[-1].lineno <= line <= (named[-1].end_lineno or 0):
        return False
    nodes = [node for statement in named[-1].body for node in ast.walk(statement)]
    if any(isinstance(n, ast.For | ast.While) and n.lineno <= line <= (n.end_lineno or 0) for n in nodes):
        return False  # it may have used them the time before
    before = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (before | uses(source, *before)).isdisjoint(others)


def _evidence(seen: Seen, source: str, state: State) -> str:
    if state not in ("wrong", "waiting"):
        return _of_the_stub(seen.name, source) if state == "unwritten" else ""
    # A function that makes a module will do for a class.
    makes_none = seen.raised is not None and "not a torch.nn.Module" in seen.raised.message
    said = of_another_kind(source, seen.name, seen.is_class) if makes_none or not seen.is_class else ""
    said = said or in_another_order(source, seen.name, seen.arguments) or refuses_nothing(source, seen.name)
    evidence = sanitize(seen.evidence, 2 * LIMIT)  # of which a message may take one
    return joined(evidence, said)


def _of_the_stub(name: str, source: str) -> str:
    if left := left_over_raise(source, name):
        where = f"on line {left.line} still stands {'below' if left.is_below else 'above'} code of yours"
        return f"{STUB_ENDS} {where}: take that line out once the rest is written"
    methods = unwritten_methods(source, name)
    return f"its {' and '.join(methods)} {'are' if len(methods) > 1 else 'is'} not written yet" if methods else ""


def _undefined_name(seen: Seen) -> str:
    found = seen.raised and re.fullmatch(r"name '(\w+)' is not defined", seen.raised.message)
    return found[1] if found else ""


def _raised_in(seen: Seen, source: str) -> str:
    line = (seen.raised and seen.raised.line) or 0
    parts = (part for part in statements_of(source) if isinstance(part, DEFINITIONS))
    return next((part.name for part in parts if part.lineno <= line <= (part.end_lineno or 0)), "")


def _near(name: str, source: str, asked: Sequence[str]) -> str:
    others = [each for each in named_in(source) if each not in asked]
    same = [other for other in others if other.lower() == name.lower()]
    return next(iter(same), "") or next(iter(get_close_matches(name, others, 1)), "")


def _state(seen: Seen, unwritten: Collection[str], is_waiting: bool, is_explained: bool) -> State:
    if seen.is_undefined:
        return "undefined"
    if seen.name in unwritten:
        return "unwritten"
    if seen.is_wrong:
        is_empty = seen.is_empty or (says_unwritten(seen.raised) and not is_explained)
        return "waiting" if is_waiting else "unwritten" if is_empty else "wrong"
    return "unseen" if not seen.is_asked else "so_far" if seen.stopped_at else "right"


def seen_in(name: str, asked: Iterable[Exchange | Observed]) -> Seen:
    """Return what all that was asked shows of a function."""
    own = [each for each in asked if target_of(each.call) == name]
    raised = [each.reply.raised for each in own]
    return Seen(
        name,
        is_class=any(isinstance(each.call.subject, Build) for each in own),
        is_asked=bool(own),
        # What a call is given may be lacking, too.
        is_undefined=any(r and is_undefined(r) and r.message.startswith(f"{name} ") for r in raised),
        is_empty=bool(own) and all(map(says_unwritten, raised)),
    )
