"""What recorded calls show of each function that an exercise asks for: whether it is right, wrong, not written, or waits for another.

In which of them each misconception was found is said here, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

from ..box.worker.answers import Raised
from ..box.worker.messages import Build
from ..checks.explain import explain, is_left_open, is_shape_fault, is_undefined, kind_of, says_unwritten
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.sanitize import LIMIT, sanitize
from ..checks.transcript import Exchange, target_of
from ..course.shapes import Signature
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..diagnosis.observe import Observed
from ..diagnosis.proofs import proven_by_answer
from ..diagnosis.recording import PublicCheck, Recording, differs
from ..diagnosis.row import Row
from ..result import CheckResult, Diagnosed, FunctionResult, State
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, left_over_raise, unwritten_methods, unwritten_names
from .axes import Axes, Signatures, axes_of, said_of
from .cures import cure, in_another_order, joined, of_another_kind, refuses_nothing

STUB_ENDS = "the stub's raise"  # what is said of one that is left over begins so
Describe = Callable[[Raised, str], str]
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


def describe_exception(raised: Raised, due: str = "", *, is_shown: bool = True) -> str:
    """Return one sentence, with the exception's message where it is shown: to its student alone, where nothing is hidden.

    due: a sentence about what is due in its place.
    """
    says_nothing = says_unwritten(raised) or raised.type == "SystemExit"  # whose message is a number, or None
    own = sanitize(raised.message) if is_shown and not says_nothing else ""
    return joined(explain(raised), own and f"Python says: {own}".removesuffix("."), due)


def evidence_of(error: CheckFailed, describe: Describe = describe_exception) -> tuple[str, Raised | None]:
    """Return what a student reads of a check that failed, and the exception, if there was one."""
    if isinstance(error, AttemptRaised):
        return describe(error.raised, error.due), error.raised
    return str(error), None


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; of a class none."""
    return tuple(each.name for s in signatures[:1] if s.build is None for each in s.call)


@dataclass(frozen=True)
class Functions:
    """What is known of each function; the checks and the misconceptions, each with the function that it belongs to."""

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING


@dataclass(frozen=True)
class _Failure:
    """Why a function fails a check: what was seen, in which calls, the exception, if there was one, and what it means."""

    check: PublicCheck
    seen: str
    raised: Raised | None = None
    calls: tuple[int, ...] = ()
    means: str = ""
    besides: bool = False  # the check is about an edit, which does move what it should
    mends: str = ""  # what usually cures the exception


def functions_of(
    recording: Recording,
    seen: Mapping[int, Observed],
    checks: Sequence[CheckResult],
    diagnosis: Diagnosis,
    source: str,
    in_single: Set[int],
    signatures: Signatures,
    describe: Describe,
) -> Functions:
    """Return what is known of each function. A check stops at the first that fails it, but all of its calls were made.

    in_single: the calls that were asked in float32 because the attempt cannot do float64 somewhere: their dtype says nothing.
    signatures: of each function, where they are known. describe: says what an exception is.
    """
    names = dict.fromkeys(map(target_of, recording.calls))  # in the order of their definitions
    failures = {
        name: [replace(each, mends=cure(source, each.raised)) if each.raised else each for each in found]
        for name, found in ((name, _failures(recording, seen, checks, name, describe)) for name in names)
    }
    shown = _Shown(recording, seen, in_single)
    # A misconception may show itself in a function that passes what is visible, and break those that use it.
    first = {next((name for name in names if shown.is_seen(each.id, name)), "") for each in diagnosis.named}
    bad = [name for name in names if failures[name] or name in first]
    found = [replace(seen_in(n, seen.values()), arguments=arguments_due(signatures.get(n, ()))) for n in names]
    # Checks ask more of some functions, which is put only where all before it passes.
    told, stopped = {check.id for check in checks}, next(iter(bad), "")
    asks = (ask for check in recording.visible if check.id not in told for ask in check.asks)
    later = {target_of(recording.calls[group[-1]]) for ask in asks for group in ask.calls}
    found = [replace(e, is_wrong=e.name in bad, stopped_at=stopped if e.name in later else "") for e in found]
    placed = _placed(diagnosis, found, source, shown)
    found = [_told(each, failures[each.name], placed, shown, signatures) for each in found]
    functions = function_results(found, source, {part.function for part in placed.every})
    wrong = [function.name for function in functions if function.state == "wrong"]
    return Functions(functions, tuple(_with_cause(check, wrong, failures) for check in checks), placed)


class _Shown:
    """How misconceptions show themselves in functions: by the answers of their mutants, and by what proves itself."""

    def __init__(self, recording: Recording, seen: Mapping[int, Observed], in_single: Set[int]) -> None:
        self.seen = seen
        due = {i: replace(e, found=replace(e.found, dtype=e.right.dtype)) for i, e in seen.items() if i in in_single}
        compared = {i: e for i, e in {**seen, **due}.items() if i in recording.facets}  # else mutants are not compared
        self._row = Row(recording, compared, compared, {*compared})
        self._wrong: dict[str, list[int]] = {}
        self._right: dict[str, list[int]] = {}
        for i, each in compared.items():
            calls = self._wrong if differs(recording, i, each.found) else self._right
            calls.setdefault(target_of(each.call), []).append(i)
        self.proven: dict[str, set[str]] = {}  # by the misconception, the functions that were called
        for i in seen:
            for id_ in self.proven_by(i):
                self.proven.setdefault(id_, set()).add(target_of(seen[i].call))

    def proven_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that an exception or an answer proves by itself."""
        seen = self.seen[call]
        kind = kind_of(seen.reply.raised) if seen.reply.raised and seen.right.raised is None else None
        answer = proven_by_answer(self._row.recording, call, seen)
        yield from filter(None, (kind.misconception if kind else "", answer))

    def is_seen(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of the function's wrong calls as the attempt did."""
        return any(self._is_alike(m, i) for m in self._mutants(id_) for i in self._wrong.get(function, ()))

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether it is proved there, or one mutant answers every call of the function as the attempt did."""
        wrong, right = self._wrong.get(function, ()), self._right.get(function, ())
        return function in self.proven.get(id_, ()) or any(
            bool(wrong) and all(self._is_alike(m, i) for i in wrong) and all(self._row.silent(m, i) for i in right)
            for m in self._mutants(id_)
        )

    def can_show(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of them wrongly: of two faults in one function neither answers as both do."""
        return any(not self._row.silent(m, i) for m in self._mutants(id_) for i in self._wrong.get(function, ()))

    def answer_alike(self, id_: str, other: str, functions: Container[str]) -> bool:
        """Return whether mutants of both that answer a wrong call as the attempt did answer each call of these functions alike."""
        known, wrong = self._row.recording, self._row.wrong
        calls = [i for i, call in enumerate(known.calls) if target_of(call) in functions]
        alike = ([m for m in self._mutants(of) if any(self._is_alike(m, i) for i in wrong)] for of in (id_, other))
        first, second = ({tuple(known.mutants[m].answers[i] for i in calls) for m in own} for own in alike)
        return not calls or not first.isdisjoint(second)

    def is_shown(self, id_: str, failure: _Failure) -> bool:
        """Return whether a misconception alone would be seen so, as far as is known."""
        is_proven = id_ == failure.means or any(id_ in self.proven_by(i) for i in failure.calls)
        calls = [i for i in failure.calls if i in self._row.asked]
        return is_proven or any(self._is_alike(m, i) for m in self._mutants(id_) for i in calls)

    def _mutants(self, id_: str) -> list[int]:
        return [m for m, mutant in enumerate(self._row.recording.mutants) if mutant.id == id_]

    def _is_alike(self, mutant: int, call: int) -> bool:
        return not self._row.silent(mutant, call) and self._row.explains(mutant, call)


def _placed(diagnosis: Diagnosis, functions: Sequence[Seen], source: str, shown: _Shown) -> Diagnosis:
    """Return the diagnosis, each misconception with its functions and the titles of its alternatives; none that may follow."""
    empty = unwritten_names(source)
    wrong = [each.name for each in functions if each.is_wrong and not each.is_undefined and each.name not in empty]
    own = [name for name in wrong if len(wrong) == 1 or not {*wrong} & uses(source, name)]  # it follows from no other
    words = shown._row.recording.words

    def located(found: tuple[Diagnosed, ...]) -> tuple[Diagnosed, ...]:
        places = [_place(each.id, wrong, shown) for each in found]
        unnamed = [name for name in wrong if name not in places]
        told = []
        for each, place in zip(found, places, strict=True):
            others = (n for n in unnamed if each.id != UNTOUCHED and (n in own or each.id == INTERFACE))
            also_in = tuple(n for n in others if shown.is_also_in(each.id, n))
            alike = [a for a in each.alternatives if a in words and shown.answer_alike(each.id, a, empty)]
            titles = tuple(words[a].title for a in alike)
            told.append(each.model_copy(update={"function": place, "also_in": also_in, "alternative_titles": titles}))
        return tuple(told)

    placed = diagnosis.changed(located)
    left = {*wrong}.difference(*((each.function, *each.also_in) for each in placed.every))

    def may_follow(each: Diagnosed) -> bool:  # from another function that is wrong and has no name
        return each.id not in shown.proven and bool(each.function) and not left.isdisjoint(uses(source, each.function))

    return placed.changed(lambda found: tuple(each for each in found if not may_follow(each)))


def _place(id_: str, wrong: Sequence[str], shown: _Shown) -> str:
    places = shown.proven.get(id_, set())
    if id_ == UNTOUCHED:
        return ""
    seen = [name for name in wrong if name in places or shown.is_seen(id_, name)]
    # Of those that are proved some may be a name that the file does not have.
    can = () if seen or places else (name for name in wrong if shown.can_show(id_, name))
    return next(iter([*seen, *sorted(places), *can, *wrong]), "")


def _told(
    function: Seen, failures: Sequence[_Failure], diagnosis: Diagnosis, shown: _Shown, signatures: Signatures
) -> Seen:
    """Return the same with what is told of it, which is read between its first misconception's name and its hint.

    That is what ended the process; else what shows its first misconception; else what shows none of the others; else the first.
    It says which word the call was given, and where shapes do not fit, which sizes of it the exception's numbers are.
    """
    if not failures:
        return function
    named = [each.id for each in diagnosis.named if function.name in (each.function, *each.also_in)]

    def place(failure: _Failure) -> tuple[int, int, bool]:
        ids = [id_ for id_ in named if shown.is_shown(id_, failure)]
        return 1 if not ids else 2 * (named[0] not in ids), failure.check.layer, failure.besides

    failure = min(failures, key=place) if failures[0].calls else failures[0]
    raised, said = failure.raised, ""
    stopped = [shown.seen[i] for i in failure.calls if raised and shown.seen[i].reply.raised]
    at = next(iter(stopped), None)
    if raised and at and (is_shape_fault(raised) or "is invalid for input of size" in raised.message):
        own = (each for each in shown.seen.values() if target_of(each.call) == function.name)
        alike = [(each, r.message) for each in (at, *own) if (r := each.reply.raised) and r.line == raised.line]
        known = [(_axes_of(each, signatures.get(function.name, ()), signatures), message) for each, message in alike]
        said = said_of([(axes, message) for axes, message in known if axes]) if known[0][0] else ""
    given = () if at is None else (*getattr(at.call.subject, "args", ()), *at.call.args)
    which = next((f'That was for "{word}".' for word in given if isinstance(word, str)), "")  # of several that it makes
    evidence = joined(failure.seen, which, said and f"{said}.", failure.mends)
    return replace(function, check=failure.check.title, evidence=evidence, raised=raised)


def _axes_of(seen: Observed, listed: Sequence[Signature], signatures: Signatures) -> Axes | None:
    returned = next((tensor.shape for tensor in seen.expected if tensor is not None), ())
    return next(filter(None, (axes_of(each, seen.call, returned, signatures) for each in listed)), None)


def _failures(
    recording: Recording, seen: Mapping[int, Observed], checks: Sequence[CheckResult], name: str, describe: Describe
) -> Iterator[_Failure]:
    told = {check.id: check for check in checks}
    for check in sorted((c for c in recording.visible if c.id in told), key=lambda c: c.layer):
        result = told[check.id]
        own = [each for each in groups_of(check, seen) if target_of(seen[each[1][-1]].call) == name]
        # That a method is not written yet is no news: what is wrong beside it goes before it.
        own.sort(key=lambda each: any(says_unwritten(seen[i].reply.raised) for i in each[1]))
        if result.function == name and result.outcome in ("timeout", "crashed"):
            yield _Failure(check, result.evidence)
        elif broken := first_broken(own, seen):
            besides = broken.ask.aspect == "values" and any(ask.aspect == "moves" for ask in check.asks)
            yield _Failure(check, *evidence_of(broken.error, describe), broken.calls, broken.ask.means, besides)


def _with_cause(check: CheckResult, wrong: Sequence[str], failures: Mapping[str, Sequence[_Failure]]) -> CheckResult:
    """Return the check with the first function that is wrong and fails it, in place of one that only waits for it."""
    if check.outcome not in ("failed", "error"):
        return check
    found = ((name, each) for name in wrong for each in failures[name] if each.check.id == check.id)
    for name, failure in found:
        if check.function not in wrong or (name == check.function and failure.raised):
            return check.model_copy(update={"function": name, "evidence": joined(failure.seen, failure.mends)})
    return check


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
