"""Choose the next hint: one step closer to the answer each time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..diagnosis.recording import Content
from ..judge.function_states import STUB_ENDS
from ..result import Diagnosed, ExerciseResult, Outcome
from ..submission.unwritten import UNTOUCHED

Steps = tuple[str, ...]
_ENDED: dict[Outcome, Steps] = {  # for attempts that no check could examine
    "timeout": (
        "Which loop has no end? What should bring it nearer to one, each time round?",
        "Print in the loop what its condition tests, and run the file by itself.",
    ),
    "crashed": (
        "The whole process ended, not only a function. What in your file may end Python, or fill the memory?",
        "Run the file by itself: python says where. Look for exit, abort, and shapes far too large.",
    ),
}
_STUB_ENDS: Steps = ("On which line does Python stop when you run the file, and what of yours stands below that line?",)
_UNEXPLAINED: Steps = (  # true of every mistake: a hint about another one would lead astray
    "course trace {exercise} shows what each line makes. Which is the first line that surprises you?",
    "Take the smallest input that you can work out by hand, and print what each line makes of it.",
)


@dataclass(frozen=True)
class Hint:
    """A hint. `title`: the misconception or the failing check. `last`: whether there is no further step."""

    title: str
    sentence: str
    last: bool


def next_hint(content: Content, result: ExerciseResult, start: str, note: Path, *, again: bool = False) -> Hint:
    """Return the next hint for an attempt that is not done.

    start: the exercise's own hint, for an attempt of which nothing is written. note: the file that records which steps were shown.
    """
    about, title, steps = _steps(content, result, start)
    last, forgets = len(steps), ""
    try:
        given = next_step(note, content.exercise, about, last, again=again)
    except OSError as error:
        given, forgets = 1, f"\nThe step is not remembered: {note} cannot be written ({error.strerror})."
    return Hint(title, f"Hint {given} of {last}: {steps[given - 1]}{forgets}", given == last)


def _steps(content: Content, result: ExerciseResult, start: str) -> tuple[str, str, Steps]:
    """Return the id, the title and the steps: of the first misconception, of the first that is wrong without one, or of a start."""
    begun = next(
        (function for function in result.functions if function.state == "unwritten" and function.evidence), None
    )
    if result.functions and len(result.unwritten) == len(result.functions) and not begun:
        return "start", "Nothing is written here yet.", (start,)
    wrong = next((function for function in result.functions if function.state == "wrong"), None)
    first = next((c for c in result.checks if c.outcome != "passed" and (not wrong or c.function == wrong.name)), None)
    if wrong and first and first.outcome in _ENDED:  # no mistake that has a name lets a function run on for ever
        return first.outcome, first.evidence, _ENDED[first.outcome]
    for named in _as_in_the_file(result):
        words = content.words.get(named.id)
        if words and named.id != UNTOUCHED:
            return named.id, f"{f'{named.function}: ' if len(result.functions) > 1 else ''}{named.title}", words.hints
    if first and first.outcome in _ENDED:
        return first.outcome, first.evidence, _ENDED[first.outcome]
    if wrong or (first and not result.unwritten):
        title = wrong.check if wrong else first.title if first else ""
        about = f"{wrong.name}: " if wrong and len(result.functions) > 1 else ""
        return (
            title,
            f"This does not hold yet: {about}{title}",
            tuple(step.format(exercise=result.id) for step in _UNEXPLAINED),
        )
    if begun:
        return (
            begun.evidence,
            f"{begun.name}: {begun.evidence}",
            _STUB_ENDS if begun.evidence.startswith(STUB_ENDS) else (start,),
        )
    name = next((function.name for function in result.functions if function.state == "unwritten"), result.unwritten[0])
    return UNTOUCHED, f"{name} is not written yet.", content.words[UNTOUCHED].hints


def _as_in_the_file(result: ExerciseResult) -> list[Diagnosed]:
    """Return the misconceptions in the order in which `course check` shows them: of the whole file, then function by function."""
    names = [function.name for function in result.functions]
    return sorted(result.diagnosis, key=lambda named: names.index(named.function) if named.function in names else -1)


def next_step(path: Path, exercise: str, about: str, steps: int, *, again: bool = False) -> int:
    """Return the number of the step to show, which is recorded in this file. Another mistake starts with its own first step.

    Raises OSError if the file cannot be written.
    """
    try:
        noted = dict(json.loads(path.read_text(encoding="utf-8")))
        before = noted.get(exercise, {})
        seen = int(before["step"]) if before.get("about") == about and not again else 0
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        noted, seen = {}, 0  # no record yet, or a damaged one: start with the first step
    step = min(seen + 1, steps)
    noted[exercise] = {"about": about, "step": step}
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(noted), encoding="utf-8")
    return step
