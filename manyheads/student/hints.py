"""Choose the next hint, and report a student's progress in the course.

Each hint is one step closer to the answer, and each mistake has steps of its own. The progress is
that of one exercise and of the course, with the next exercise to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from ..course import Course, Exercise
from ..course.model import FOLDER
from ..result import Diagnosed, ExerciseResult, FunctionResult
from ..submission.source import UNTOUCHED
from .own_attempt import from_here

if TYPE_CHECKING:  # check and status show hints and do not load torch
    from ..diagnosis.bank import AllWords
    from .own_attempt import Own

# in FOLDER: by exercise, how many hints to each mistake of a function were shown
NOTE = "hints.json"
_ENDED = ("timeout", "crashed")  # no check could examine the attempt
_RAISED = re.compile(r"^raised [\w ]+ on ((?:cell \d+, )?line \d+)")
_OF_SHAPES = re.compile(r"\b(shapes?|sizes?|axis|axes|reshape|\.view|dimensions?)\b")


@dataclass(frozen=True)
class Hint:
    """title: the misconception or the failing check.

    sentence: with its number before it. next: the command that helps next.
    """

    title: str
    sentence: str
    next: str


def next_hint(attempt: Own, result: ExerciseResult) -> Hint:
    """Return the next hint for this attempt, which counts as shown from now on."""
    id_, root = attempt.exercise.id, attempt.course.root
    if result.is_done:
        note_shown(result, root)
        return Hint("", f"{id_} needs no hint: every check passes.", "course status")
    ladder, title, steps = _steps(attempt.recording.words, result, attempt.exercise.hint)
    last, forgets = len(steps), ""
    try:
        step = next_step(root, id_, ladder, last)
    except OSError as error:
        step = 1
        forgets = (
            f"\nThe step is not remembered: {root / FOLDER / NOTE} cannot be written "
            f"({error.strerror})."
        )
    number, prefix = (
        min(step, last),
        "That was the last hint. Here it is again.\n" if step > last else "",
    )
    traces = step > last or (step == last and "course trace" in steps[-1])
    command = "trace" if traces else "check" if step == last else "hint"
    return Hint(
        title,
        f"{prefix}Hint {number} of {last}: {steps[number - 1]}{forgets}",
        f"course {command} {id_}",
    )


def note_shown(result: ExerciseResult, root: Path) -> None:
    """Record which hints a check has shown: the first one to the first misconception, if none was
    shown before.

    After a ✓ the exercise's record is deleted: whoever breaks the attempt again begins with the
    first hint.
    """
    noted = _noted(root)
    if result.is_done:
        if noted.pop(result.id, None) is not None:
            with suppress(OSError):  # then a later hint may count as shown
                _write_note(root, noted)
        return
    for mistake in _as_in_the_file(result):
        if mistake.hint and mistake.id != UNTOUCHED:
            ladder = _ladder(mistake, result)
            if not noted.get(result.id, {}).get(ladder):
                with suppress(OSError):  # then it is shown again
                    next_step(root, result.id, ladder, 1)
            return


def _ladder(mistake: Diagnosed, result: ExerciseResult) -> str:
    """Return the key under which shown hints are counted: what was shown is one text about one
    function.

    A misconception has other texts where it shows itself in another way, so its id is not enough.
    """
    return f"{mistake.function}: {mistake.id} {_row(mistake, result).get('title', '')}".rstrip()


def _steps(words: AllWords, result: ExerciseResult, start: str) -> tuple[str, str, Sequence[str]]:
    """Return what the mistake is known by, its title and its steps: of a misconception, of what has
    no name, or of a start.

    words: of the misconceptions. start: the exercise's own hint.
    """
    begun = next((f for f in result.functions if f.state == "unwritten" and f.evidence), None)
    to_begin = words[UNTOUCHED].hints
    gone = next((f for f in result.functions if f.state == "undefined"), None)
    if (
        result.functions
        and len(result.unwritten) == len(result.functions)
        and not begun
        and not gone
    ):
        return UNTOUCHED, "Nothing is written here yet.", (start or to_begin[0], *to_begin[1:])
    wrong_function = next(
        (function for function in result.functions if function.state == "wrong"), None
    )
    failed_check = next(
        (
            c
            for c in result.checks
            if c.outcome != "passed" and (not wrong_function or c.function == wrong_function.name)
        ),
        None,
    )
    misconceptions = [
        diagnosed
        for diagnosed in _as_in_the_file(result)
        if diagnosed.id in words and diagnosed.id != UNTOUCHED
    ]
    named = next(
        (diagnosed for diagnosed in misconceptions if not gone or diagnosed.function != gone.name),
        None,
    )
    # No mistake that has a name lets a function run on for ever.
    if failed_check and failed_check.outcome in _ENDED and (wrong_function or not named):
        key = f"{failed_check.function}: {failed_check.outcome}"
        return key, failed_check.evidence, steps_to(failed_check.outcome)
    if named:
        prefix = f"{named.function}: " if len(result.functions) > 1 else ""
        steps = _row(named, result).get("hints") or words[named.id].hints
        return _ladder(named, result), f"{prefix}{which_of(named, result).title}", steps
    if wrong_function or (failed_check and not result.unwritten):
        # which refute why that was chosen
        if wrong_function and not (
            failed_check and result.lines and failed_check.title != wrong_function.check
        ):
            return _unexplained(
                result, wrong_function, wrong_function.check, wrong_function.evidence
            )
        return _unexplained(
            result,
            wrong_function,
            *((failed_check.title, failed_check.evidence) if failed_check else ("", "")),
        )
    if begun:
        from ..judge.function_states import STUB_ENDS

        stub = begun.evidence.startswith(STUB_ENDS)
        key = f"{begun.name}: {begun.evidence}"
        return key, key, steps_to("stub_ends") if stub else to_begin
    if gone and "Python cannot read" in gone.evidence:
        key = f"{gone.name}: {gone.evidence}"
        return key, key, _texts()["kinds"]["load_error"][0]["hints"]
    if gone:
        suggestion = f"; is {gone.near} meant?" if gone.near else "."
        steps = tuple(step.format(name=gone.name) for step in steps_to("undefined"))
        return (
            f"undefined {gone.name}",
            f"{gone.name}: the file has no such name{suggestion}",
            steps,
        )
    name = next(
        (function.name for function in result.functions if function.state == "unwritten"),
        result.unwritten[0],
    )
    return f"{UNTOUCHED} {name}", f"{name} is not written yet.", to_begin


def _unexplained(
    result: ExerciseResult, function: FunctionResult | None, check: str, evidence: str
) -> tuple[str, str, Sequence[str]]:
    """Return the steps to a mistake that has no name.

    Another exception is another mistake, wherever it stands.
    """
    raised = evidence.startswith("raised ")
    symptom = "raised" if _RAISED.search(evidence) else "raised_nowhere"
    symptom = (
        symptom
        if raised and not _OF_SHAPES.search(evidence.partition(" Python says")[0])
        else "unexplained"
    )
    name = function.name if function and len(result.functions) > 1 else ""
    steps = tuple(
        step.format(exercise=result.id, where=_where(result, evidence))
        for step in steps_to(symptom)
    )
    key = f"{check}: {re.sub(r'[0-9]+', '', evidence)}" if raised else check
    title = f"{name}: it {evidence}" if name else f"It {evidence}"
    return (
        f"{name}: {key}",
        title if raised else f"{name or 'It'} does not do this yet: {check}",
        steps,
    )


def _where(result: ExerciseResult, evidence: str) -> str:
    """Return a sentence about the line to look at: one that is proved, or that raised; else how to
    find it.
    """
    if result.lines:
        return f"Look at {result.lines[0].place}: one small change there makes every check pass. "
    if raised := _RAISED.search(evidence):
        return f"Python stopped on {raised[1]}. Look at what goes into it. "
    return (
        f"course trace {result.id} shows what each line makes. Find the first line that "
        "surprises you. "
    )


def _as_in_the_file(result: ExerciseResult) -> list[Diagnosed]:
    """Return the misconceptions in the order in which `course check` shows them: of the whole file,
    then function by function.
    """
    names = [function.name for function in result.functions]
    return sorted(
        result.diagnosis,
        key=lambda named: names.index(named.function) if named.function in names else -1,
    )


def next_step(root: Path, exercise: str, ladder: str, steps: int) -> int:
    """Return the number of the step to show, which is noted; one more than there are where all were
    shown.

    The steps to one mistake use up none of another's. Raises OSError if the note cannot be written.
    """
    noted = _noted(root)
    counts = noted.setdefault(exercise, {})
    step = min(counts.get(ladder, 0), steps) + 1
    counts[ladder] = min(step, steps)
    _write_note(root, noted)
    return step


def _write_note(root: Path, noted: dict[str, dict[str, int]]) -> None:
    (root / FOLDER).mkdir(mode=0o700, exist_ok=True)
    (root / FOLDER / NOTE).write_text(json.dumps(noted), encoding="utf-8")


def _noted(root: Path) -> dict[str, dict[str, int]]:
    try:
        noted = json.loads((root / FOLDER / NOTE).read_text(encoding="utf-8"))
        return {
            e: {a: s for a, s in counts.items() if isinstance(s, int)}
            for e, counts in noted.items()
        }
    except (OSError, ValueError, AttributeError):
        return {}


def which_of(named: Diagnosed, result: ExerciseResult) -> Diagnosed:
    """Return a misconception in the words of its kind, where what was seen in its function says
    more than its title.
    """
    row = _row(named, result)
    return (
        named.model_copy(update={"title": row["title"], "hint": row["hints"][0]}) if row else named
    )


def _row(named: Diagnosed, result: ExerciseResult) -> Any:
    function_evidence = [
        f.evidence
        for f in result.functions
        if named.function and named.function in (f.name, f.waits_for)
    ]
    evidence = " ".join(function_evidence or [check.evidence for check in result.checks])
    return next(
        (row for row in _texts()["kinds"].get(named.id, ()) if re.search(row["seen"], evidence)), {}
    )


def steps_to(symptom: str) -> tuple[str, ...]:
    """Return the steps of a hint to what has no name."""
    return tuple(_texts()["steps"][symptom])


@cache
def _texts() -> Any:
    path = Path(__file__).with_name("hints.yaml")
    return yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


ALL_DONE = "All done."


class Rung(NamedTuple):
    """Where a student stands with one exercise. asked: id and title of each visible check.

    result: None where nothing was checked. is_missing: whether there is no file.
    """

    exercise: Exercise
    check_titles: Sequence[tuple[str, str]]
    result: ExerciseResult | None = None
    is_missing: bool = False

    @property
    def state(self) -> str:
        """How far it is."""
        if self.result:
            return "done" if self.result.is_done else "in progress"
        return "missing" if self.is_missing else "untouched"

    @property
    def score(self) -> float:
        """The points that are seen here."""
        return (self.result and self.result.score) or 0.0

    @property
    def checklist(self) -> list[tuple[str, bool]]:
        """The title of each visible check, and whether the attempt passes it."""
        passed = (
            {check.id for check in self.result.checks if check.outcome == "passed"}
            if self.result
            else set()
        )
        return [(title, id_ in passed) for id_, title in self.check_titles]


def welcome(course: Course) -> list[str]:
    """For a student who has begun nothing."""
    count, first_script = len(course.exercises), from_here(course.exercises[0].script)
    exercises = "one exercise" if count == 1 else f"{count} exercises, one file each"
    return [
        (
            f"Welcome to {course.title}: {exercises}. Nothing is begun yet, so there is nothing "
            "to check."
        ),
        (
            f"Open {first_script} (or the notebook beside it), read the lesson, and fill what says"
            " YOUR CODE HERE."
        ),
        (
            "Next: check it as soon as one function is written, then: course check "
            f"{course.exercises[0].id}"
        ),
    ]


def after_done(exercise: Exercise) -> list[str]:
    """For an exercise of which every check passes."""
    lines = [f"Why it works: {exercise.why}"] if exercise.why else []
    finished = exercise.root / "model-solutions" / exercise.assignment.id / exercise.solution.name
    if finished.exists():
        lines.append(f"A finished module, to read beside yours: {from_here(finished)}")
    if exercise.train is not None:
        lines.append(f"It can learn to write now: course train {exercise.id}")
    lines.append(f"Five questions on your own code: course ask {exercise.id}")
    return lines


def next_exercise(
    course: Course, completed: Collection[Exercise], after: Exercise
) -> Exercise | None:
    """Return the first exercise after this one that is not done, else the first at all; None where
    all are done.
    """
    exercises = course.exercises
    position = exercises.index(after) + 1
    return next(
        (
            exercise
            for exercise in (*exercises[position:], *exercises[:position])
            if exercise not in completed
        ),
        None,
    )


def going_on(course: Course, completed: Collection[Exercise], after: Exercise) -> str:
    """Return the sentence about the exercise that comes next, with the command that checks it."""
    upcoming = next_exercise(course, completed, after)
    if upcoming is None:
        return ALL_DONE
    where = f"go on with {upcoming.title}, in {from_here(upcoming.script)}"
    return f"Next: {where}, then: course check {upcoming.id}"
