"""From what the machine found to what counts: the one place where dates and decisions change a result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..result import Adjustment, CheckResult, ExerciseResult, HandedIn, Result, Rule, total_of, with_total
from .dates import shown_moment
from .decisions import Decision, Decisions

DIGITS = 6  # of a score that a rule computes
BY_HAND = "overrides.yaml"
SHARE = "its share of the total"


def final(result: Result, decisions: Decisions) -> Result:
    """Return the result as it counts. What is not decided about stays as it is, to the same object."""
    about = decisions.about(result.student, result.assignment)
    if not about and result.assignment not in decisions.dates:
        return result
    dated = _dated(result, decisions, about)
    exercises = tuple(
        _exercise(other, [d for d in about if other.id in d.exercises], dated.late) for other in result.exercises
    )
    counting = [other for other in exercises if not other.excused]
    said = [*dated.said, *_of_all(about, exercises, result.score)]
    if dated.late is not None and not any(map(_is_total, about)):
        said.append(_taken(counting, dated.late))
    whole = with_total(result, exercises)
    changed = {"score": _total(counting), "handed_in": dated.handed_in, "adjustments": tuple(said)}
    return whole.model_copy(update=changed)


def _taken(counting: Sequence[ExerciseResult], late: tuple[float, str]) -> Adjustment:
    """Return what all exercises have lost together."""
    after = _total(counting)
    lost = sum(each.before - each.after for other in counting for each in other.adjustments if each.rule == "late")
    words = late[1] if lost else late[1].partition(":")[0]  # nothing was there to take
    return _adjustment("late", words, _plus(after, lost), after)


def of_the_absent(results: Sequence[Result], decisions: Decisions, names: Sequence[str]) -> list[Result]:
    """Return a result for each of these, who handed in nothing, about whom a score, extra credit or an excuse is decided."""
    like = {result.assignment: result for result in results}
    decided = ("score", "extra_credit", "excused")
    return [
        _untimed(final(_nothing(result, name), decisions))
        for assignment, result in like.items()
        for name in names
        if any(row.kind in decided and row.student for row in decisions.about(name, assignment))
    ]


def _untimed(result: Result) -> Result:
    """Without the words that nobody knows when it was handed in: nothing was."""
    said = tuple(adjustment for adjustment in result.adjustments if adjustment.rule != "unknown time")
    return result.model_copy(update={"adjustments": said})


def _of_all(
    about: Sequence[Decision], exercises: Sequence[ExerciseResult], before: float | None
) -> Iterator[Adjustment]:
    """Yield what is decided of the assignment as a whole: its total, that it is excused, or a comment."""
    for row in about:
        if _is_total(row):
            yield _adjustment(*_words_of(row), before, row.row.override.score)
        if not row.row.override.exercise and row.kind == "excused":
            yield _adjustment(*_words_of(row), _total(exercises), 0)
        elif not row.row.override.exercise and row.kind == "comment":
            yield _adjustment(*_words_of(row))


def _is_total(decision: Decision) -> bool:
    return decision.kind == "score" and not decision.row.override.exercise


@dataclass(frozen=True)
class _Dated:
    """When it was handed in, whether that is late, and what is to be said of it."""

    handed_in: HandedIn | None
    late: tuple[float, str] | None
    said: tuple[Adjustment, ...]


def _dated(result: Result, decisions: Decisions, about: Sequence[Decision]) -> _Dated:
    handed_in, said, dates = result.handed_in, [], decisions.dates.get(result.assignment)
    extension = None
    for row in about:
        if row.time is not None:
            shown = shown_moment(row.time, decisions.zone)
            if row.kind == "handed_in":
                handed_in = HandedIn(source=BY_HAND, time=row.time)
                said.append(_adjustment("handed in", _by(f"handed in {shown}", row)))
            else:
                extension = row.time
                said.append(_adjustment("extension", _by(f"extension until {shown}", row)))
    if dates is None:
        return _Dated(handed_in, None, tuple(said))
    if handed_in is not None and handed_in.time is not None:
        return _Dated(handed_in, dates.late(handed_in.time, extension), tuple(said))
    if handed_in is not None and not handed_in.late:  # in time, as the platform says
        return _Dated(handed_in, None, tuple(said))
    if handed_in is not None and extension is None:
        words = f"{handed_in.source} says late, and not by how much: nothing is taken off"
    else:
        words = "handed in at an unknown time: not counted as late"
    return _Dated(handed_in, None, (*said, _adjustment("unknown time", words)))


def _exercise(result: ExerciseResult, about: Sequence[Decision], late: tuple[float, str] | None) -> ExerciseResult:
    """Return an exercise as it counts: its checks, a score by hand or else what lateness takes, extra credit, an excuse.

    One that is not graded has no points to take from or to add to, unless a human gives it some.
    """
    checks, said = list(result.checks), []
    score = result.score if result.is_graded else _score_before(result, about)
    for each in sorted(about, key=lambda each: each.kind != "waived"):  # a score by hand is the last word
        if each.kind == "waived" and not result.is_attempted:
            continue
        if each.kind in ("waived", "score") and _names_one_of(checks, each):
            before = score
            score = _plus(score, _set_checks(checks, each))
            if each.kind == "score" or score != before:  # whoever has the points needs no word of a waiver
                said.append(_adjustment(*_words_of(each, checks), before, score))
    set_by_hand = [row for row in about if row.kind == "score" and not row.row.override.check]
    for each in sorted(set_by_hand, key=lambda each: not each.row.override.exercise):  # a total is the last word
        before, score = score, _by_hand(each, result)
        told: tuple[Rule, str] = _words_of(each) if each.row.override.exercise else ("score", SHARE)
        said.append(_adjustment(*told, before, score))
    if late is not None and not set_by_hand:  # who sets a score means that score
        before, score = score, _plus(score, -(score or 0.0) * late[0])
        said.append(_adjustment("late", late[1], before, score))
    for each in about:
        if each.kind == "extra_credit":
            before, score = score, _plus(score, each.row.override.extra_credit or 0)
            said.append(_adjustment(*_words_of(each), before, score))
    comments = [row for row in about if row.kind == "comment" and row.row.override.exercise]
    said += [_adjustment(*_words_of(comment, checks), score, score) for comment in comments]
    excuses = [row for row in about if row.kind == "excused"]
    said += [_adjustment(*_words_of(excuse), score, 0) for excuse in excuses]
    changed = {"checks": tuple(checks), "score": score, "adjustments": tuple(said), "excused": bool(excuses)}
    return result.model_copy(update=changed) if said or score != result.score else result


def _by_hand(decision: Decision, result: ExerciseResult) -> float:
    """Return the score that is set by hand; of a total the exercise's part, by its points."""
    score = decision.row.override.score or 0.0
    return score if decision.row.override.exercise else score * result.max_score / decision.most


def _score_before(result: ExerciseResult, about: Sequence[Decision]) -> float | None:
    """Return the points that an exercise has which is not graded, without the checks that could not be run.

    None unless each of these is waived, or set by hand.
    """
    given = {id_ for row in about if row.kind in ("waived", "score") for id_ in row.row.override.check}
    not_run = {check.id for check in result.checks if check.outcome == "skipped" and check.max_score}
    return sum(check.score for check in result.checks) if not_run <= given else None


def _names_one_of(checks: Sequence[CheckResult], decision: Decision) -> bool:
    return any(check.id in decision.row.override.check for check in checks)


def _set_checks(checks: list[CheckResult], decision: Decision) -> float:
    """Give the checks that the decision names their points. Returns by how much their sum has grown."""
    named = set(decision.row.override.check)
    most = sum(check.max_score for check in checks if check.id in named)
    share = 1.0 if decision.kind == "waived" or not most else min(1.0, (decision.row.override.score or 0) / most)
    grown = 0.0
    for i, check in enumerate(checks):
        if check.id in named:
            checks[i] = check.model_copy(update={"score": share * check.max_score})
            grown += checks[i].score - check.score
    return grown


def _words_of(decision: Decision, checks: Sequence[CheckResult] = ()) -> tuple[Rule, str]:
    """Return the rule, and its words: score set to 4 by Dr. X: the drawing is right."""
    override = decision.row.override
    of = "; ".join(check.title for check in checks if check.id in override.check)
    prefix = f"{of}: " if of else ""
    match decision.kind:
        case "waived":
            return "waived", _by(f"{prefix}check waived for everybody", decision)
        case "score":
            what = "total" if _is_total(decision) else "score"
            return "score", _by(f"{prefix}{what} set to {override.score:g}", decision)
        case "extra_credit":
            return "extra credit", _by(f"extra credit of {override.extra_credit:g}", decision)
        case "excused":
            return "excused", _by("excused: counts for nothing", decision)
    return "comment", prefix + (f"{override.by}: {override.comment}" if override.by else override.comment)


def _by(said: str, decision: Decision) -> str:
    override = decision.row.override
    return "".join(
        [said, f" by {override.by}" if override.by else "", f": {override.comment}" if override.comment else ""]
    )


def _adjustment(rule: Rule, words: str, before: float | None = 0.0, after: float | None = 0.0) -> Adjustment:
    """Make an adjustment. Where there were no points, or are none, its words stand alone."""
    points = (0.0, 0.0) if before is None or after is None else (before, after)
    return Adjustment(rule=rule, words=" ".join(words.split()), before=points[0], after=points[1])


def _nothing(like: Result, student: str) -> Result:
    """Return the result of somebody who handed in nothing, with the exercises that this one has."""
    return like.model_copy(
        update={
            "student": student,
            "score": 0.0,
            "max_score": like.possible,
            "exercises": tuple(_missing(exercise) for exercise in like.exercises),
            "handed_in": None,
            "adjustments": (),
        }
    )


def _missing(like: ExerciseResult) -> ExerciseResult:
    checks = tuple(
        CheckResult(id=check.id, title=check.title, outcome="missing", score=0, max_score=check.max_score)
        for check in like.checks
    )
    return ExerciseResult(id=like.id, score=0, max_score=like.max_score, checks=checks, note="Nothing was handed in.")


def _total(exercises: Sequence[ExerciseResult]) -> float | None:
    return _plus(total_of(exercise.score for exercise in exercises), 0.0)


def _plus(score: float | None, more: float) -> float | None:
    """Return the sum, rounded and at least 0; None where there is no score."""
    return None if score is None else round(max(0.0, score + more), DIGITS)
