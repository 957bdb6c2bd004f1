"""`course check`: an attempt's answers on public inputs, held against recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ..box.connection import AttemptEnded, End
from ..box.worker.answers import Reply
from ..checks.asserts import assert_matches
from ..checks.explain import kind_of
from ..checks.implementation import Answer, AttemptRaised, CheckFailed
from ..checks.local import LocalRecordingRunner
from ..checks.marks import Layer
from ..checks.sanitize import sanitize
from ..judge.attempt import AttemptRunner
from ..result import CheckResult, Diagnosed, ExerciseResult, Outcome
from .describe_exception import describe_exception
from .file import Fingerprints, PublicCheck, Words
from .fingerprint import Facet, ReplyFingerprint, fingerprint_beside
from .metamorphic import broken_relation, setting_of

# Once values are known to be wrong, checks of hygiene do not hold them against the attempt again.
_VALUES: tuple[Facet, ...] = ("outputs", "gradients")


@dataclass(frozen=True)
class _Seen:
    """An attempt's reply to one recorded call."""

    reply: Reply
    trace: ReplyFingerprint


def check_attempt(fingerprints: Fingerprints, attempt: AttemptRunner | LocalRecordingRunner) -> ExerciseResult:
    """The result of an attempt's visible checks, with the misconceptions that its answers show."""
    content = fingerprints.content
    seen: dict[int, _Seen] = {}
    checks: list[CheckResult] = []
    values_fail = False
    for check in sorted(content.checks, key=lambda c: c.layer):
        facets = (
            tuple(f for f in check.facets if f not in _VALUES)
            if values_fail and check.layer == Layer.HYGIENE
            else check.facets
        )
        checks.append(_check(fingerprints, check, facets, attempt, seen))
        values_fail |= checks[-1].outcome != "passed" and check.layer < Layer.HYGIENE
    results = tuple(sorted(checks, key=lambda c: c.outcome == "passed"))
    passed = all(r.outcome == "passed" for r in results)
    return ExerciseResult(
        id=content.exercise,
        score=sum(r.score for r in results),
        max_score=sum(r.max_score for r in results),
        checks=results,
        diagnosis=() if passed else tuple(_diagnosis(fingerprints, seen)),
    )


def unloadable(fingerprints: Fingerprints, outcome: Outcome, sentence: str, misconception: str = "") -> ExerciseResult:
    """The result of an attempt that cannot be imported."""
    checks = tuple(_result(check, outcome, sentence) for check in fingerprints.content.checks)
    named = (_named(fingerprints, misconception),) if misconception else ()
    return ExerciseResult(
        id=fingerprints.content.exercise,
        score=0,
        max_score=sum(c.max_score for c in checks),
        checks=checks,
        diagnosis=named,
    )


def _check(
    fingerprints: Fingerprints,
    check: PublicCheck,
    facets: tuple[Facet, ...],
    attempt: AttemptRunner | LocalRecordingRunner,
    seen: dict[int, _Seen],
) -> CheckResult:
    """One visible check, held to these facets."""
    attempt.check = check.id
    try:
        for index in check.calls:
            reply = attempt.execute(fingerprints.calls[index])
            seen[index] = _Seen(
                reply, fingerprint_beside(fingerprints.content.right(index), fingerprints.calls[index], reply)
            )
        if check.layer == Layer.CAUSALITY:
            facets = _without_numbers(fingerprints, check, facets, seen)
        for index in check.calls:
            _compare(fingerprints, check, facets, index, seen[index])
    except AttemptEnded as ended:
        return _result(check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended))
    except AttemptRaised as error:
        return _result(check, "error", describe_exception(error.raised))
    except CheckFailed as error:
        return _result(check, "failed", str(error))
    return _result(check, "passed", "")


def _without_numbers(
    fingerprints: Fingerprints, check: PublicCheck, facets: tuple[Facet, ...], seen: dict[int, _Seen]
) -> tuple[Facet, ...]:
    """What is left to compare where edits reach what they should. Raises CheckFailed where they do not."""
    by_setting: dict[str, list[int]] = {}
    for index in check.calls:
        by_setting.setdefault(setting_of(fingerprints.calls[index]), []).append(index)
    said = [
        broken_relation([fingerprints.expected[i] for i in calls], [_only_output(seen[i].reply) for i in calls])
        for calls in by_setting.values()
    ]
    for sentence in filter(None, said):
        raise CheckFailed(sentence)
    return facets if None in said else tuple(facet for facet in facets if facet != "outputs")


def _only_output(reply: Reply) -> Tensor | None:
    return reply.outputs[0].tensor if len(reply.outputs) == 1 else None


def _compare(
    fingerprints: Fingerprints, check: PublicCheck, facets: tuple[Facet, ...], index: int, seen: _Seen
) -> None:
    """Raise CheckFailed, with evidence, where the reply is not the recorded one."""
    right = fingerprints.content.right(index)
    if right.raised == "refused" and seen.reply.raised is None:
        raise CheckFailed(
            "this should be refused, and is accepted in silence: raise a ValueError that names the numbers"
        )
    if seen.trace.agrees(right, facets) or (right.raised is None and _suffices(check.layer, seen.reply, right)):
        return
    if seen.reply.raised is not None:
        raise AttemptRaised(seen.reply.raised)
    expected = fingerprints.expected[index]
    if expected is not None and "outputs" in facets:
        assert_matches(Answer(fingerprints.calls[index], seen.reply), expected)
    raise CheckFailed(_difference(seen.trace, right, check))


def _suffices(layer: int, reply: Reply, right: ReplyFingerprint) -> bool:
    """Whether a check of a low layer asks for no more than this: a shape, or finite numbers."""
    if reply.raised is not None or len(reply.outputs) != len(right.outputs):
        return False
    shapes = all(mine.shape == want.shape for mine, want in zip(reply.outputs, right.outputs, strict=True))
    if layer == Layer.FINITE:
        return shapes and all(o.tensor is None or bool(o.tensor.isfinite().all()) for o in reply.outputs)
    return layer == Layer.SHAPE and shapes


def _difference(mine: ReplyFingerprint, right: ReplyFingerprint, check: PublicCheck) -> str:
    """What differs, where it is not the values."""
    if "dtype" in check.facets and mine.dtype != right.dtype:
        return f"the output should be {right.dtype[0]}; yours is {mine.dtype[0]}"
    if "parameters" in check.facets and mine.parameters != right.parameters:
        extra, lacking = (
            mine.parameters.keys() - right.parameters.keys(),
            right.parameters.keys() - mine.parameters.keys(),
        )
        if extra or lacking:
            return f"parameters too many: {sorted(extra) or 'none'}; parameters missing: {sorted(lacking) or 'none'}"
        return "the parameters have other shapes than asked for"
    if "mutated" in check.facets and mine.mutated != right.mutated:
        return "an argument was changed in place: the caller still needs it, so compute a new tensor"
    if "gradients" in check.facets and mine.gradients != right.gradients:
        cut = [name for name, g in mine.gradients.items() if g is None and right.gradients.get(name) is not None]
        return f"no gradient reaches {', '.join(cut)}" if cut else "the gradients differ from the expected ones"
    if "fused" in check.facets and mine.fused != right.fused:
        return "the fused function is used where the math should be written out, or the other way round"
    return "the module is not left as it was found"


def _diagnosis(fingerprints: Fingerprints, seen: dict[int, _Seen]) -> list[Diagnosed]:
    """Exceptions that speak for themselves, then the mutants that answer as the attempt does."""
    names = []
    for index, each in seen.items():
        kind = kind_of(each.reply.raised) if each.reply.raised else None
        if kind and kind.misconception and fingerprints.content.right(index).raised is None:
            names.append(kind.misconception)
    unexplained = {i: each for i, each in seen.items() if _differs(fingerprints, i, each)}
    found = []
    for id_, alternatives in _cover(fingerprints, unexplained):
        if id_ not in names:
            found.append(_named(fingerprints, id_, alternatives))
    return [*(_named(fingerprints, name) for name in dict.fromkeys(names)), *found]


def _cover(fingerprints: Fingerprints, unexplained: dict[int, _Seen]) -> list[tuple[str, tuple[str, ...]]]:
    """Mutants that together explain every call on which the attempt differs, the one that explains most first."""
    explains = {
        m: frozenset(i for i in unexplained if _matches(fingerprints, m, i, unexplained[i]))
        for m in range(len(fingerprints.content.mutants))
        if _is_silent_elsewhere(fingerprints, m, unexplained)
    }
    left, found = set(unexplained), []
    while left:
        best = max(explains, key=lambda m: len(explains[m] & left), default=None)
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        mutants = fingerprints.content.mutants
        same = [mutants[m].id for m in explains if explains[m] == explains[best] and mutants[m].id != mutants[best].id]
        found.append((mutants[best].id, tuple(dict.fromkeys(same))))
        left -= explains[best]
    return found


def _is_silent_elsewhere(fingerprints: Fingerprints, mutant: int, unexplained: dict[int, _Seen]) -> bool:
    """Whether the mutant answers as the attempt or as the reference does, on every call that a check asks."""
    content = fingerprints.content
    for index in sorted({call for check in content.checks for call in check.calls}):
        trace = content.answer(content.mutants[mutant], index)
        if trace is None or trace.agrees(content.right(index), _facets_of(fingerprints, index)):
            continue
        if index not in unexplained or not _matches(fingerprints, mutant, index, unexplained[index]):
            return False
    return True


def _matches(fingerprints: Fingerprints, mutant: int, index: int, seen: _Seen) -> bool:
    content = fingerprints.content
    trace = content.answer(content.mutants[mutant], index)
    return trace is None or trace.agrees(seen.trace, _facets_of(fingerprints, index))


def _differs(fingerprints: Fingerprints, index: int, seen: _Seen) -> bool:
    return not seen.trace.agrees(fingerprints.content.right(index), _facets_of(fingerprints, index))


def _facets_of(fingerprints: Fingerprints, index: int) -> tuple[Facet, ...]:
    return next(check.facets for check in fingerprints.content.checks if index in check.calls)


def _named(fingerprints: Fingerprints, id_: str, alternatives: Sequence[str] = ()) -> Diagnosed:
    words = fingerprints.content.words.get(id_, Words(title=id_.replace("_", " "), explanation="", hints=("", "", "")))
    return Diagnosed(id=id_, title=words.title, hint=words.hints[0], alternatives=tuple(alternatives))


def _result(check: PublicCheck, outcome: Outcome, evidence: str) -> CheckResult:
    passed = outcome == "passed"
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        score=check.points if passed else 0.0,
        max_score=check.points,
        evidence=sanitize(evidence),
        hint="" if passed else check.hint,
    )
