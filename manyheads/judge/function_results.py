"""What recorded calls show of each function that an exercise asks for, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..box.worker.answers import Raised
from ..box.worker.messages import Build
from ..checks.explain import describe_exception, is_shape_fault, is_undefined, says_unwritten
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.sanitize import joined
from ..checks.transcript import target_of
from ..course.shapes import Signature
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..diagnosis.observe import Observed
from ..diagnosis.recording import PublicCheck
from ..result import CheckResult, Diagnosed, FunctionResult, ProvedLine
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .axes import Axes, Signatures, axes_of, said_of
from .cures import cure
from .function_states import Seen, states_of
from .public_answers import Answers, placed


def evidence_of(error: CheckFailed, *, is_shown: bool = True) -> tuple[str, Raised | None]:
    """Return what a student reads of a check that failed, and the exception, if there was one, whose message may be shown."""
    if isinstance(error, AttemptRaised):
        return describe_exception(error.raised, error.due, is_shown=is_shown), error.raised
    return str(error), None


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; of a class none."""
    return tuple(each.name for s in signatures[:1] if s.build is None for each in s.call)


@dataclass(frozen=True)
class Findings:
    """What is known of each function; the checks and the misconceptions, each with its function; the lines that are wrong."""

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING
    lines: tuple[ProvedLine, ...] = ()


@dataclass(frozen=True)
class _Failure:
    """Why a function fails a check: what was seen, in which calls, the exception, if there was one, and what it means."""

    check: PublicCheck
    seen: str
    raised: Raised | None = None
    mends: str = ""  # what usually cures the exception
    calls: tuple[int, ...] = ()
    means: str = ""
    besides: bool = False  # the check is about an edit, which does move what it should


def functions_of(answers: Answers, checks: Sequence[CheckResult], diagnosis: Diagnosis) -> Findings:
    """Return what is known of each function. A check stops at the first that fails it, but all of its calls were made."""
    recording, source = answers.recording, answers.source
    names = dict.fromkeys(map(target_of, recording.calls))  # in the order of their definitions
    failures = {name: [*_failures(answers, checks, name)] for name in names}
    # A misconception may show itself in a function that passes what is visible, and break those that use it.
    first = {
        next((name for name in names if answers.is_seen(each.id, answers.wrong[name])), "") for each in diagnosis.named
    }
    bad = [name for name in names if failures[name] or name in first]
    # Checks ask more of some functions, which is put only where all before it passes.
    told = {check.id for check in checks}
    asks = (ask for check in recording.visible if check.id not in told for ask in check.asks)
    later = {target_of(recording.calls[group[-1]]) for ask in asks for group in ask.calls}
    found = [_seen(answers, name, name in bad, bad[0] if bad and name in later else "") for name in names]
    empty = unwritten_names(source)
    wrong = [each.name for each in found if each.is_wrong and not each.is_undefined and each.name not in empty]
    diagnosis = placed(diagnosis, wrong, answers)
    found = [_told(each, failures[each.name], diagnosis, answers) for each in found]
    functions = states_of(found, source, {part.function for part in diagnosis.every})
    wrong = [function.name for function in functions if function.state == "wrong"]
    return Findings(functions, tuple(_with_cause(check, wrong, failures) for check in checks), diagnosis)


def _seen(answers: Answers, name: str, is_wrong: bool, stopped_at: str) -> Seen:
    own = answers.of(name)
    raised = [each.reply.raised for each in own]
    return Seen(
        name,
        is_asked=bool(own),
        # What a call is given may be lacking, too.
        is_undefined=any(r and is_undefined(r) and r.message.startswith(f"{name} ") for r in raised),
        is_empty=bool(own) and all(map(says_unwritten, raised)),
        is_wrong=is_wrong,
        stopped_at=stopped_at,
        is_class=any(isinstance(each.call.subject, Build) for each in own),
        arguments=arguments_due(answers.signatures.get(name, ())),
    )


def _failures(answers: Answers, checks: Sequence[CheckResult], name: str) -> Iterator[_Failure]:
    told, seen = {check.id: check for check in checks}, answers.seen
    for check in sorted((c for c in answers.recording.visible if c.id in told), key=lambda c: c.layer):
        result = told[check.id]
        own = [each for each in groups_of(check, seen) if target_of(seen[each[1][-1]].call) == name]
        # That a method is not written yet is no news: what is wrong beside it goes before it.
        own.sort(key=lambda each: any(says_unwritten(seen[i].reply.raised) for i in each[1]))
        if result.function == name and result.outcome in ("timeout", "crashed"):
            yield _Failure(check, result.evidence)
        elif broken := first_broken(own, seen):
            said, raised = evidence_of(broken.error, is_shown=not answers.is_graded)
            besides = broken.ask.aspect == "values" and any(ask.aspect == "moves" for ask in check.asks)
            mends = cure(answers.source, raised) if raised else ""
            yield _Failure(check, said, raised, mends, broken.calls, broken.ask.means, besides)


def _told(function: Seen, failures: Sequence[_Failure], diagnosis: Diagnosis, answers: Answers) -> Seen:
    """Return the same with what is told of it, which is read between its first misconception's name and its hint.

    That is what ended the process; else what shows its first misconception; else what shows none of the others; else the first.
    It says which word the call was given, and where shapes do not fit, which sizes of it the exception's numbers are.
    """
    if not failures:
        return function
    named = [each.id for each in diagnosis.named if function.name in (each.function, *each.also_in)]

    def shows(id_: str, failure: _Failure) -> bool:  # whether it alone would be seen so, as far as is known
        is_proven = id_ == failure.means or any(id_ in answers.proven_by(i) for i in failure.calls)
        return is_proven or answers.is_seen(id_, failure.calls)

    def place(failure: _Failure) -> tuple[int, int, bool]:
        ids = [id_ for id_ in named if shows(id_, failure)]
        return 1 if not ids else 2 * (named[0] not in ids), failure.check.layer, failure.besides

    failure = min(failures, key=place) if failures[0].calls else failures[0]
    raised, which, sizes = failure.raised, "", ""
    at = next((answers.seen[i] for i in failure.calls if raised and answers.seen[i].reply.raised), None)
    if raised and at:
        given = (*getattr(at.call.subject, "args", ()), *at.call.args)
        which = next((f'That was for "{word}".' for word in given if isinstance(word, str)), "")  # of several it makes
        if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
            sizes = _sizes_in(raised, [at, *answers.of(function.name)], answers.signatures)
    evidence = joined(failure.seen, which, sizes, failure.mends)
    return replace(function, check=failure.check.title, evidence=evidence, raised=raised)


def _sizes_in(raised: Raised, calls: Sequence[Observed], signatures: Signatures) -> str:
    """Say which sizes of the first call the numbers of its exception are; others that raised there have to agree."""
    alike = [(each, r.message) for each in calls if (r := each.reply.raised) and r.line == raised.line]
    known = [(_axes_of(each, signatures), message) for each, message in alike]
    said = said_of([(axes, message) for axes, message in known if axes]) if known[0][0] else ""
    return said and f"{said}."


def _axes_of(seen: Observed, signatures: Signatures) -> Axes | None:
    returned = next((tensor.shape for tensor in seen.expected if tensor is not None), ())
    listed = signatures.get(target_of(seen.call), ())
    return next(filter(None, (axes_of(each, seen.call, returned, signatures) for each in listed)), None)


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
