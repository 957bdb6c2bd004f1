"""Choose the next hint, and report a student's progress in the course.

Each hint is one step closer to the answer, and each mistake has its own steps. The module also
reports the progress in each exercise and in the course, and chooses the next exercise.
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
from .check_and_keep_result import from_here

if TYPE_CHECKING:  # check and status show hints and do not load torch
    from ..diagnosis.bank import AllWords
    from .check_and_keep_result import OwnAttempt

# a file in FOLDER: for each exercise, the number of hints shown for each mistake of a function
NOTE = "hints.json"
_ENDED = ("timeout", "crashed")  # the process ended without a reply
_RAISED = re.compile(r"^raised [\w ]+ on ((?:cell \d+, )?line \d+)")
_OF_SHAPES = re.compile(r"\b(shapes?|sizes?|axis|axes|reshape|\.view|dimensions?)\b")


@dataclass(frozen=True)
class Hint:
    """A hint, and the command to run next.

    Attributes:
        title: A line about the mistake, or "" if every check passes.
        sentence: The hint, after its number.
        next: The command to run next, for example "course hint reshape_dance".
    """

    title: str
    sentence: str
    next: str


def next_hint(attempt: OwnAttempt, result: ExerciseResult) -> Hint:
    """Return the next hint for this attempt, and record it as shown in the course's folder.

    If all hints were shown before, the last one is returned again. If the record cannot be written,
    the first hint is returned, and its text says why. If every check passes, the record of the
    exercise is deleted.

    Raises:
        CourseError: The fault dictionary cannot be read.
    """
    id_, root = attempt.exercise.id, attempt.course.root
    if result.is_done:
        note_shown(result, root)
        return Hint("", f"{id_} needs no hint: every check passes.", "course status")
    key, title, steps = _mistake_to_explain(
        attempt.fault_dictionary.words, result, attempt.exercise.hint
    )
    count, warning = len(steps), ""
    try:
        step = next_step(root, id_, key, count)
    except OSError as error:
        step = 1
        warning = (
            f"\nThe step is not remembered: {root / FOLDER / NOTE} cannot be written "
            f"({error.strerror})."
        )
    prefix, command = "", "hint"
    if step > count:
        prefix, command = "That was the last hint. Here it is again.\n", "trace"
        step = count
    elif step == count:
        command = "trace" if "course trace" in steps[-1] else "check"
    sentence = f"{prefix}Hint {step} of {count}: {steps[step - 1]}{warning}"
    return Hint(title, sentence, f"course {command} {id_}")


def note_shown(result: ExerciseResult, root: Path) -> None:
    """Record which hints a check has shown, in the course's folder `root`.

    A check shows the first hint to the first misconception that has one. This hint is recorded,
    unless a hint to the same misconception was recorded before. If the attempt is done, the
    exercise's record is deleted, so that a student who breaks it again begins with the first hint.
    If the record cannot be written, nothing is raised.
    """
    noted = _read_notes(root)
    if result.is_done:
        if noted.pop(result.id, None) is not None:
            with suppress(OSError):  # an undeleted record only skips hints
                _write_note(root, noted)
        return
    for mistake in _as_in_the_file(result):
        if mistake.hint and mistake.id != UNTOUCHED:
            key = _key_of(mistake, result)
            if not noted.get(result.id, {}).get(key):
                with suppress(OSError):  # without the record, `course hint` shows the hint again
                    next_step(root, result.id, key, 1)
            return


def _key_of(mistake: Diagnosed, result: ExerciseResult) -> str:
    """Return the key under which the shown hints to a misconception are counted.

    Each misconception of each function has a key for each of its texts. The id alone is not enough,
    because a misconception has other texts if other evidence shows it.
    """
    title = _texts_for_evidence(mistake, result).get("title", "")
    return f"{mistake.function}: {mistake.id} {title}".rstrip()


class _Mistake(NamedTuple):
    """A mistake that hints explain.

    Attributes:
        key: The key under which its shown hints are counted.
        title: A line about it.
        hints: Its hints, each one step closer to the answer.
    """

    key: str
    title: str
    hints: Sequence[str]


def _mistake_to_explain(words: AllWords, result: ExerciseResult, start: str) -> _Mistake:
    """Return the mistake to work on next.

    It is the first of these that applies:

    1. nothing is written yet: no function is begun, and none is undefined
    2. a check that timed out or crashed, if a function is wrong or there is no misconception
    3. a misconception, except one of the first undefined function
    4. a wrong function or a failed check without a misconception; in a file with unwritten
       functions, only a wrong function
    5. an unwritten function with evidence, for example that it still ends in the stub's exception
    6. an undefined function
    7. the first function that is not written

    Args:
        words: The texts of each misconception.
        result: The result of the exercise. A check does not pass.
        start: The exercise's own hint for the start, or "" to use the bank's.
    """
    first_by_state = {function.state: function for function in reversed(result.functions)}
    undefined, wrong_function = first_by_state.get("undefined"), first_by_state.get("wrong")
    to_begin = words[UNTOUCHED].hints
    states = {function.state for function in result.functions}
    is_begun = any(f.evidence for f in result.functions if f.state == "unwritten")
    if states and states <= {"unwritten", "unrun"} and not is_begun:
        to_begin = (start or to_begin[0], *to_begin[1:])
        return _Mistake(UNTOUCHED, "Nothing is written here yet.", to_begin)
    failed = [check for check in result.checks if check.outcome != "passed"]
    if wrong_function:
        failed = [check for check in failed if check.function == wrong_function.name]
    misconceptions = [
        misconception
        for misconception in _as_in_the_file(result)
        if misconception.id in words and misconception.id != UNTOUCHED
    ]
    if undefined:
        misconceptions = [m for m in misconceptions if m.function != undefined.name]
    # No misconception of the bank makes a function run for ever.
    if failed and failed[0].outcome in _ENDED and (wrong_function or not misconceptions):
        key = f"{failed[0].function}: {failed[0].outcome}"
        return _Mistake(key, failed[0].evidence, _hints_to(failed[0].outcome))
    if misconceptions:
        misconception = misconceptions[0]
        prefix = f"{misconception.function}: " if len(result.functions) > 1 else ""
        texts = _texts_for_evidence(misconception, result)
        hints = texts.get("hints") or words[misconception.id].hints
        title = f"{prefix}{which_of(misconception, result).title}"
        return _Mistake(_key_of(misconception, result), title, hints)
    # A proved line refutes the choice of the function's own check.
    is_refuted = (
        failed and result.lines and wrong_function and failed[0].title != wrong_function.check
    )
    if wrong_function and not is_refuted:
        check, evidence = wrong_function.check, wrong_function.evidence
        return _unexplained_mistake(result, wrong_function, check, evidence)
    if failed and (wrong_function or not result.unwritten_functions):
        return _unexplained_mistake(result, wrong_function, failed[0].title, failed[0].evidence)
    return _unwritten_function(result, to_begin)


def _unwritten_function(result: ExerciseResult, to_begin: Sequence[str]) -> _Mistake:
    """Return the function to write next, as cases 5 to 7 of `_mistake_to_explain`.

    Args:
        result: The result of an exercise with a function that is not written.
        to_begin: The bank's hints to an untouched exercise.
    """
    first_by_state = {function.state: function for function in reversed(result.functions)}
    for function in result.functions:
        if function.state == "unwritten" and function.evidence:
            from ..judge.attribute_public_replies import STUBS_RAISE

            key = f"{function.name}: {function.evidence}"
            ends_in_stub = function.evidence.startswith(STUBS_RAISE)
            return _Mistake(key, key, _hints_to("stub_ends") if ends_in_stub else to_begin)
    undefined = first_by_state.get("undefined")
    if undefined and "Python cannot read" in undefined.evidence:
        key = f"{undefined.name}: {undefined.evidence}"
        return _Mistake(key, key, _texts()["kinds"]["load_error"][0]["hints"])
    if undefined:
        suggestion = f"; is {undefined.near} meant?" if undefined.near else "."
        title = f"{undefined.name}: the file has no such name{suggestion}"
        hints = [hint.format(name=undefined.name) for hint in _hints_to("undefined")]
        return _Mistake(f"undefined {undefined.name}", title, hints)
    unwritten = first_by_state.get("unwritten")
    name = unwritten.name if unwritten else result.unwritten_functions[0]
    return _Mistake(f"{UNTOUCHED} {name}", f"{name} is not written yet.", to_begin)


def _unexplained_mistake(
    result: ExerciseResult, function: FunctionResult | None, check: str, evidence: str
) -> _Mistake:
    """Return a mistake that no misconception explains.

    Exceptions with different messages are different mistakes, and have different keys. Numbers do
    not count: the same exception on another line has the same key.

    Args:
        result: The result of the exercise.
        function: The wrong function, or None if it is not known.
        check: The title of the failed check.
        evidence: The reason why the check failed.
    """
    name = function.name if function and len(result.functions) > 1 else ""
    key, title = check, f"{name or 'It'} does not do this yet: {check}"
    symptom = "unexplained"
    if evidence.startswith("raised "):
        key = f"{check}: {re.sub(r'[0-9]+', '', evidence)}"
        title = f"{name}: it {evidence}" if name else f"It {evidence}"
        if not _OF_SHAPES.search(evidence.partition(" Python says")[0]):
            symptom = "raised" if _RAISED.search(evidence) else "raised_nowhere"
    location = _location(result, evidence)
    hints = [hint.format(exercise=result.id, where=location) for hint in _hints_to(symptom)]
    return _Mistake(f"{name}: {key}", title, hints)


def _location(result: ExerciseResult, evidence: str) -> str:
    """Return a text about the line to look at, which ends in a space.

    The line is the first proved one; without a proved line, it is the line of an exception. If no
    line is known, the text says how to find one.
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
    """Return the misconceptions in the order in which `course check` shows them.

    Those of the whole file come first, then those of each function.
    """
    names = [function.name for function in result.functions]
    return sorted(
        result.diagnosis,
        key=lambda diagnosed: (
            names.index(diagnosed.function) if diagnosed.function in names else -1
        ),
    )


def next_step(root: Path, exercise: str, key: str, steps: int) -> int:
    """Return the number of the step to show next, from 1, and record the step as shown.

    If all steps were shown before, the number is one above the last. A record that cannot be read
    counts as empty, and is overwritten.

    Args:
        root: The course's folder.
        exercise: The id of the exercise.
        key: The key of the mistake. Each mistake has its own count.
        steps: The number of steps of the mistake.

    Raises:
        OSError: The record cannot be written.
    """
    noted = _read_notes(root)
    counts = noted.setdefault(exercise, {})
    step = min(counts.get(key, 0), steps) + 1
    counts[key] = min(step, steps)
    _write_note(root, noted)
    return step


def _write_note(root: Path, noted: dict[str, dict[str, int]]) -> None:
    (root / FOLDER).mkdir(mode=0o700, exist_ok=True)
    (root / FOLDER / NOTE).write_text(json.dumps(noted), encoding="utf-8")


def _read_notes(root: Path) -> dict[str, dict[str, int]]:
    """Return how many hints were shown, by exercise and key; {} if the record cannot be read."""
    try:
        noted = json.loads((root / FOLDER / NOTE).read_text(encoding="utf-8"))
        counts_by_exercise: dict[str, dict[str, int]] = {}
        for exercise, counts in noted.items():
            counts_by_exercise[exercise] = {
                key: step for key, step in counts.items() if isinstance(step, int)
            }
        return counts_by_exercise
    except (OSError, ValueError, AttributeError):
        return {}


def which_of(misconception: Diagnosed, result: ExerciseResult) -> Diagnosed:
    """Return a misconception with the title and hint that fit the evidence of its function.

    If hints.yaml has no texts for this evidence, return the misconception unchanged.
    """
    texts = _texts_for_evidence(misconception, result)
    if not texts:
        return misconception
    return misconception.model_copy(update={"title": texts["title"], "hint": texts["hints"][0]})


def _texts_for_evidence(misconception: Diagnosed, result: ExerciseResult) -> Any:
    """Return the texts in hints.yaml that fit this misconception and its evidence, or {}.

    The evidence is the sentences of the misconception's function and of functions that wait for
    this function. Without such sentences, those of all checks count.
    """
    function_evidence = [
        f.evidence
        for f in result.functions
        if misconception.function and misconception.function in (f.name, f.waits_for)
    ]
    evidence = " ".join(function_evidence or [check.evidence for check in result.checks])
    rows = _texts()["kinds"].get(misconception.id, ())
    return next((row for row in rows if re.search(row["seen"], evidence)), {})


def _hints_to(symptom: str) -> Any:
    """Return the hints to a symptom that no misconception explains. Raises KeyError.

    Args:
        symptom: A key in the section `steps` of hints.yaml.
    """
    return _texts()["steps"][symptom]


@cache
def _texts() -> Any:
    path = Path(__file__).with_name("hints.yaml")
    return yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


ALL_DONE = "All done."


class Rung(NamedTuple):
    """A student's progress in one exercise.

    Attributes:
        exercise: The exercise.
        check_titles: Id and title of each visible check.
        result: The result of the last check, or None if nothing was checked.
        is_missing: Whether there is no file to check.
    """

    exercise: Exercise
    check_titles: Sequence[tuple[str, str]]
    result: ExerciseResult | None = None
    is_missing: bool = False

    @property
    def state(self) -> str:
        """The state: "done" or "in progress" with a result; "missing" or "untouched" without."""
        if self.result:
            return "done" if self.result.is_done else "in progress"
        return "missing" if self.is_missing else "untouched"

    @property
    def score(self) -> float:
        """The points that the visible checks give, 0 without a result."""
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
    """Return the text for a student before the first exercise is begun."""
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
    """Return the lines that are shown below an exercise once all its checks pass.

    They are the reason why the code works, a finished module to read, and further commands.
    """
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
    """Return the first exercise after this one that is not done.

    After the last exercise of the course comes the first one. Return None if all are done.

    Args:
        course: The course.
        completed: The exercises that are done.
        after: The exercise that counts last.
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
    """Return a sentence about the next exercise, with the command that checks it.

    If all exercises are done, return ALL_DONE. The arguments are those of `next_exercise`.
    """
    upcoming = next_exercise(course, completed, after)
    if upcoming is None:
        return ALL_DONE
    step = f"go on with {upcoming.title}, in {from_here(upcoming.script)}"
    return f"Next: {step}, then: course check {upcoming.id}"
