"""What recorded calls show of each function that an exercise asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..checks.explain import is_undefined, kind_of
from ..checks.implementation import AttemptRaised, CheckFailed
from ..checks.recording import target_of
from ..judge.functions import Seen, function_results, written_and_wrong
from ..judge.located import Shows, located, with_titles
from ..result import CheckResult, Diagnosed, FunctionResult
from .aspects import Compared, compare
from .describe_exception import describe_exception
from .diagnosis import differs
from .file import Fingerprints

Functions = tuple[FunctionResult, ...]


def functions_of(
    fingerprints: Fingerprints,
    seen: Mapping[int, Compared],
    checks: Sequence[CheckResult],
    diagnosis: Sequence[Diagnosed],
    source: str,
) -> tuple[Functions, tuple[Diagnosed, ...]]:
    """What is known of each function, and the misconceptions with the function in which each was found.

    A visible check stops at the first function that fails it. Its recorded calls were all made, so that the others are known.
    """
    names = dict.fromkeys(map(target_of, fingerprints.calls))  # in the order of their definitions
    failed = {name: _failure(fingerprints, seen, checks, name) for name in names}
    ways = [_answers(fingerprints, seen, alike=alike) for alike in (True, False)]
    found = [_seen(name, seen, failed[name]) for name in names]
    # A misconception may show itself in a function that passes what is visible, and break those that use it.
    shown = {name for name in names for each in diagnosis if ways[0](each.id, name)}
    found = [replace(each, is_wrong=each.is_wrong or each.name in shown) for each in found]
    wrong = written_and_wrong(found, source)
    words = fingerprints.content.words
    placed = with_titles(
        located(diagnosis, wrong, _proven(seen), ways),
        {id_: each.title for id_, each in words.items()},
    )
    return function_results(found, source, {each.function for each in placed}), placed


def _seen(name: str, seen: Mapping[int, Compared], failure: tuple[str, str] | None) -> Seen:
    raised = [e.reply.raised for e in seen.values() if target_of(e.call) == name]
    return Seen(
        name,
        is_asked=bool(raised),
        is_undefined=any(r and is_undefined(r) and r.message.startswith(f"{name} ") for r in raised),
        is_empty=bool(raised) and all(r and r.type == "NotImplementedError" for r in raised),
        is_wrong=failure is not None,
        check=failure[0] if failure else "",
        evidence=failure[1] if failure else "",
    )


def _failure(
    fingerprints: Fingerprints, seen: Mapping[int, Compared], checks: Sequence[CheckResult], name: str
) -> tuple[str, str] | None:
    """The title of the first check that the function fails, and what was seen; None where it fails none."""
    told = {check.id: check for check in checks}
    for check in sorted(fingerprints.content.visible, key=lambda c: c.layer):
        result = told[check.id]
        if result.function == name and result.outcome != "passed":
            return check.title, result.evidence
        for ask in check.asks:
            for group in ask.calls:
                calls = [seen[index] for index in group if index in seen]
                if len(calls) < len(group) or target_of(calls[0].call) != name:
                    continue
                try:
                    compare(ask.aspect, calls)
                except AttemptRaised as error:
                    return check.title, describe_exception(error.raised)
                except CheckFailed as error:
                    return check.title, str(error)
    return None


def _proven(seen: Mapping[int, Compared]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in seen.values():
        kind = kind_of(each.reply.raised) if each.reply.raised and each.right.raised is None else None
        if kind and kind.misconception:
            found.setdefault(kind.misconception, target_of(each.call))
    return found


def _answers(fingerprints: Fingerprints, seen: Mapping[int, Compared], *, alike: bool) -> Shows:
    """Whether a recorded mutant answers a function's wrong calls as the attempt did (`alike`), or wrongly at all."""
    content = fingerprints.content
    asked = {index for check in content.checks for index in check.calls}
    wrong = {i: e for i, e in seen.items() if i in asked and differs(fingerprints, i, e.found)}

    def shows(id_: str, function: str) -> bool:
        own = {i: e for i, e in wrong.items() if target_of(e.call) == function}
        for index, each in own.items():
            known = [content.answer(mutant, index) for mutant in content.mutants if mutant.id == id_]
            wrong_ones = [a for a in known if a is not None and not a.agrees(content.right(index), ("outputs",))]
            if any(not alike or answer.agrees(each.found, ("outputs",)) for answer in wrong_ones):
                return True
        return False

    return shows
