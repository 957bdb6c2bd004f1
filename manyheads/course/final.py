"""From what the machine found to what counts: the one place where dates and decisions change a result. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..result import Adjustment, CheckResult, ExerciseResult, Result, Rule, total_of, with_total
from .dates import shown_moment
from .decisions import Decision, Decisions, Late

DIGITS = 6  # of a score that a rule computes
SHARE = "its share of the total"
UNKNOWN_TIME = "handed in at an unknown time: not counted as late"
EXCUSED = "excused: counts for nothing"


def final(result: Result, decisions: Decisions) -> Result:
    """Return the result as it counts. What is not decided about stays as it is, to the same object."""
    about, dates = decisions.about(result.student, result.assignment), decisions.dates.get(result.assignment)
    if not about and dates is None:
        return result
    own = {row.override.kind: row for row in about if not row.override.exercise}  # what is decided of all of it
    said, late, handed_in = list[Adjustment](), None, result.handed_in
    due = own["due"].due if "due" in own else None
    if due is not None:
        said.append(_adjustment("due", _by(f"extension until {shown_moment(due, decisions.zone)}", own["due"])))
    if dates is not None and handed_in is not None and handed_in.time is not None:
        late = dates.late(handed_in.time, due)
    elif dates is not None and (handed_in is None or handed_in.late):
        words = handed_in and f"{handed_in.source} says late, and not by how much: nothing is taken off"
        said.append(_adjustment("unknown time", words or UNKNOWN_TIME))
    exercises = [_exercise(each, [row for row in about if each.id in row.exercises], late) for each in result.exercises]
    whole = with_total(result, exercises)
    total = _plus(whole.score)
    if "score" in own:
        by_hand = own["score"].override.score or 0.0
        said.append(_adjustment("score", _by(f"total set to {by_hand:g}", own["score"]), result.score, by_hand))
    if "excused" in own:
        every = _plus(total_of(exercise.score for exercise in exercises))
        said.append(_adjustment("excused", _by(EXCUSED, own["excused"]), every, 0))
    if late is not None and "score" not in own:
        taken = [each for other in exercises if not other.excused for each in other.adjustments if each.rule == "late"]
        lost = sum(each.before - each.after for each in taken)
        said.append(_adjustment("late", late.words + (late.costs if lost else ""), _plus(total, lost), total))
    return whole.model_copy(update={"score": total, "adjustments": tuple(said)})


def of_the_absent(like: Result, decisions: Decisions, names: Sequence[str]) -> list[Result]:
    """Return a result for each of these, who handed in nothing, about whom a score or an excuse is decided.

    like: somebody else's result for the same assignment, with the same exercises.
    """
    exercises = []
    for each in like.exercises:
        checks = [check.model_dump(include={"id", "title", "max_score"}) for check in each.checks]
        missing = tuple(CheckResult(**check, outcome="missing", score=0) for check in checks)
        note = "Nothing was handed in."
        exercises.append(ExerciseResult(id=each.id, score=0, max_score=each.max_score, checks=missing, note=note))
    nothing = with_total(like.model_copy(update={"handed_in": None, "adjustments": ()}), exercises)
    absent = []
    for name in names:
        if any(row.override.kind != "due" for row in decisions.about(name, like.assignment)):
            counted = final(nothing.model_copy(update={"student": name}), decisions)
            said = tuple(each for each in counted.adjustments if each.rule != "unknown time")
            absent.append(counted.model_copy(update={"adjustments": said}))
    return absent


def _exercise(result: ExerciseResult, about: Sequence[Decision], late: Late | None) -> ExerciseResult:
    """Return an exercise as it counts: a score by hand or else what being late costs, and an excuse.

    One that is not graded has no points to take from, unless a human gives it some.
    """
    said, score = list[Adjustment](), result.score
    by_hand = [row for row in about if row.override.kind == "score"]
    for row in sorted(by_hand, key=lambda row: not row.override.exercise):  # a total is the last word
        before, score, words = score, row.override.score or 0.0, SHARE
        if row.override.exercise:
            words = _by(f"score set to {score:g}", row)
        else:
            score *= result.max_score / row.most
        said.append(_adjustment("score", words, before, score))
    if late is not None and not by_hand:  # who sets a score means that score
        before, score = score, _plus(score, -(score or 0.0) * late.share)
        said.append(_adjustment("late", late.words + late.costs, before, score))
    excuses = [row for row in about if row.override.kind == "excused"]
    said += [_adjustment("excused", _by(EXCUSED, row), score, 0) for row in excuses]
    changed = {"score": score, "adjustments": tuple(said), "excused": bool(excuses)}
    return result.model_copy(update=changed) if said else result


def _by(said: str, decision: Decision) -> str:
    """Return the words with who decided, and why: score set to 4 by Dr. X: a right idea."""
    by, why = decision.override.by, decision.override.comment
    return said + (f" by {by}" if by else "") + (f": {why}" if why else "")


def _adjustment(rule: Rule, words: str, before: float | None = 0.0, after: float | None = 0.0) -> Adjustment:
    """Make an adjustment. Where there were no points, or are none, its words stand alone."""
    points = (0.0, 0.0) if before is None or after is None else (before, after)
    return Adjustment(rule=rule, words=" ".join(words.split()), before=points[0], after=points[1])


def _plus(score: float | None, more: float = 0.0) -> float | None:
    """Return the sum, rounded and at least 0; None where there is no score."""
    return None if score is None else round(max(0.0, score + more), DIGITS)
