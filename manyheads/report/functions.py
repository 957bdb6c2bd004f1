"""What is said of each function of an attempt. Every renderer shows these words, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..result import CheckResult, Diagnosed, ExerciseResult, FunctionResult, ProvedLine
from ..submission.unwritten import UNTOUCHED

RIGHT, WRONG, LATER = "✓", "✗", "·"
_ENDED = {"timeout", "crashed"}  # the process, and not by an answer
_STOPPED = {*_ENDED, "missing", "skipped"}  # nothing can be traced where all checks end so
_WHOLE = {*_STOPPED, "error"}  # the same for a whole file
_NOT_THERE = {
    "unwritten": "which is not written yet",
    "undefined": "which the file does not define",
    "unrun": "whose cell has not run",
}


@dataclass(frozen=True)
class FunctionReport:
    """One function or class; a class is one function here. The name is "" where it is about the whole file.

    says: what stands beside the name: "not written yet", or what the student did, and on which line.
    check, evidence: what was seen: the title of the first check that failed here, and what it saw.
    own_check: what the file's own visible check said.
    also: what is proved here besides, and does not explain what was seen.
    hint: the one hint, "" where no misconception fits. next: the command that shows more, where there is no hint.
    failed: the checks that failed here, the first of them the one above if it is among them.
    """

    name: str
    mark: str
    says: str = ""
    check: str = ""
    evidence: str = ""
    own_check: str = ""
    also: str = ""
    hint: str = ""
    next: str = ""
    failed: tuple[CheckResult, ...] = ()

    @property
    def head(self) -> str:
        """attention_scores: You did not scale (line 88)."""
        return ": ".join(filter(None, (self.name, self.says)))

    @property
    def first(self) -> tuple[CheckResult, ...]:
        """The check whose evidence is shown, if it failed here."""
        return tuple(check for check in self.failed[:1] if check.title == self.check)

    @property
    def rest(self) -> tuple[CheckResult, ...]:
        """The other checks that failed here."""
        return self.failed[len(self.first) :]

    @property
    def rest_waits(self) -> str:
        """One line for the others, where they could only end as the first did; "" where each has its own line."""
        seen = {check.evidence for check in self.failed}
        ended = all(c.outcome in _STOPPED or (c.outcome in _WHOLE and len(seen) == 1) for c in self.rest)
        return f"and {len(self.rest)} other checks, which wait for that" if ended and len(self.rest) > 1 else ""


def function_reports(result: ExerciseResult) -> Iterator[FunctionReport]:
    """Every function, in the order of the file; what is about the whole file comes first."""
    failed = [check for check in result.checks if check.outcome != "passed"]
    names = {each.name for each in result.functions}
    about_all = [d for d in result.diagnosis if d.function not in names and d.id != UNTOUCHED]
    if not result.functions or about_all:
        own = [check for check in failed if check.function not in names]
        if failed and (own or about_all or not result.functions):
            yield _of_the_file(result, own, about_all)
    wrong = next((each.name for each in result.functions if each.state == "wrong"), "")
    for each in result.functions:
        lines = result.lines if each.name == wrong else ()
        yield _of_a_function(result, each, [c for c in failed if c.function == each.name], lines)


def waiting_checks(result: ExerciseResult) -> tuple[CheckResult, ...]:
    """The failed checks that wait for a function that is not written, or for another one that is wrong."""
    states = {each.name: each.state for each in result.functions}
    failed = (check for check in result.checks if check.outcome != "passed")
    return tuple(c for c in failed if result.functions and states.get(c.function, "unseen") != "wrong" and states)


def where_wrong(lines: Sequence[ProvedLine]) -> str:
    """The lines that are proved to be wrong: "line 23, or line 31"."""
    return ", or ".join(proved.place for proved in lines)


def titles_of(named: Sequence[Diagnosed]) -> str:
    """The titles, each with those of the misconceptions that give the same numbers. None is said twice."""
    said = {each.title for each in named}
    return " ".join(
        " Or: ".join([each.title, *(title for title in each.alternative_titles if title not in said)]) for each in named
    )


def _of_a_function(
    result: ExerciseResult, each: FunctionResult, failed: Sequence[CheckResult], lines: Sequence[ProvedLine]
) -> FunctionReport:
    if each.state != "wrong":
        mark, says = _unless_wrong(each, {f.name: f.state for f in result.functions})
        return FunctionReport(each.name, mark, says, own_check=each.own_check)
    named = [d for d in result.diagnosis if each.name in (d.function, *d.also_in)]
    seen = each if each.check else next((f for f in result.functions if f.waits_for == each.name), each)
    return _wrong(each.name, result, named, lines, (seen.check, seen.evidence), failed, each.own_check)


def _unless_wrong(each: FunctionResult, states: dict[str, str]) -> tuple[str, str]:
    match each.state:
        case "unwritten":
            return LATER, each.evidence or "not written yet"
        case "undefined":
            near = f"; is {each.near} meant?" if each.near else ". Was it renamed, or deleted?"
            near += " Capital letters count." if each.near.lower() == each.name.lower() else ""
            stands = each.evidence.removeprefix(each.name)
            return WRONG, f"it{stands}" if stands else f"the file has no such name{near}"
        case "unrun":
            return LATER, "its cell has not run yet"
        case "unseen":
            return LATER, "nothing has asked it yet"
        case "so_far":
            ready = "is written" if states.get(each.waits_for) in _NOT_THERE else "is right"
            return LATER, f"right so far; more is asked of it when {each.waits_for} {ready}"
        case "waiting" if states.get(each.waits_for) in _NOT_THERE:
            return LATER, f"waits for {each.waits_for}, {_NOT_THERE[states[each.waits_for]]}"
        case "waiting":
            return LATER, f"waits for {each.waits_for}, which it uses"
    return RIGHT, ""


def _of_the_file(result: ExerciseResult, failed: Sequence[CheckResult], named: Sequence[Diagnosed]) -> FunctionReport:
    first = failed[0] if failed else None
    seen = (first.title, first.evidence) if first else ("", "")
    return _wrong("", result, named, () if result.functions else result.lines, seen, failed)


def _wrong(
    name: str,
    result: ExerciseResult,
    named: Sequence[Diagnosed],
    lines: Sequence[ProvedLine],
    seen: tuple[str, str],
    failed: Sequence[CheckResult],
    own_check: str = "",
) -> FunctionReport:
    """What is wrong: what the student did and where, what was seen, and one hint that belongs to it or none."""
    place = where_wrong(lines)
    besides = [d for d in result.also if name in (d.function, "")]
    if name and any(check.title == seen[0] and check.outcome in _ENDED for check in failed):
        named, besides = [], [*named, *besides]  # no mistake that has a name lets a function run on for ever
    did = titles_of(named) or ("not right yet" if name else "Not right yet" if place else "")
    says = f"{did.removesuffix('.')} ({place})." if place else did
    hint = next((each.hint for each in named if each.hint), "")
    also = f"Also: {titles_of(besides)} That alone does not explain the rest." if besides else ""
    ended = {check.outcome for check in failed} <= (_STOPPED if name else _WHOLE)
    following = "" if named or ended else f"course trace {result.id}"
    ordered = sorted(failed, key=lambda check: check.title != seen[0])
    return FunctionReport(name, WRONG, says, *seen, own_check, also, hint, following, tuple(ordered))
