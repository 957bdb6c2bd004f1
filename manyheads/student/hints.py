"""Choose the next hint: one step closer to the answer each time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..diagnosis.recording import Recording
from ..judge.function_states import STUB_ENDS
from ..result import Diagnosed, ExerciseResult, FunctionResult, Outcome
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
_RAISED = re.compile(r"^raised [\w ]+ on ((?:cell \d+, )?line \d+)")
_STUB_ENDS: Steps = ("On which line does Python stop when you run the file, and what of yours stands below that line?",)
_UNEXPLAINED: Steps = (  # true of every mistake: a hint about another one would lead astray
    "{where}Which shape, and which numbers, did you mean to have there?",
    "Take the smallest input that you can work out by hand, and compare it with what course trace {exercise} --values shows.",
)


@dataclass(frozen=True)
class Hint:
    """A hint.

    title: the misconception or the failing check. sentence: the hint, with its number before it.
    last: whether there is no further step. shows_more: whether a trace does.
    """

    title: str
    sentence: str
    last: bool
    shows_more: bool = False

    @property
    def following(self) -> str:
        """The command that helps next."""
        return "trace" if self.shows_more else "check" if self.last else "hint"


def next_hint(recording: Recording, result: ExerciseResult, start: str, note: Path, *, again: bool = False) -> Hint:
    """Return the next hint for an attempt that is not done.

    start: the exercise's own hint, for an attempt of which nothing is written. note: the file that records which steps were shown.
    """
    about, title, steps = _steps(recording, result, start)
    last, forgets, repeats = len(steps), "", False
    try:
        step = next_step(note, recording.exercise, about, last, again=again)
        given, repeats = min(step, last), step > last
    except OSError as error:
        given, forgets = 1, f"\nThe step is not remembered: {note} cannot be written ({error.strerror})."
    before = "That was the last hint. Here it is again.\n" if repeats else ""
    return Hint(
        title,
        f"{before}Hint {given} of {last}: {steps[given - 1]}{forgets}",
        given == last,
        repeats or (given == last and "course trace" in steps[-1]),
    )


def note_first(result: ExerciseResult, note: Path) -> None:
    """Record that the first hint to the first misconception was shown with the check, if none to it was before."""
    named = next((each for each in _as_in_the_file(result) if each.hint and each.id != UNTOUCHED), None)
    if named is None or _before(_noted(note), result.id, named.id):
        return
    with suppress(OSError):  # then it is shown again
        next_step(note, result.id, named.id, 1)


def level_of(result: ExerciseResult, named: Sequence[Diagnosed], note: Path) -> int:
    """Return how many hints to one of these misconceptions were shown."""
    noted = _noted(note)
    return max((_before(noted, result.id, each.id) for each in named), default=0)


def _steps(recording: Recording, result: ExerciseResult, start: str) -> tuple[str, str, Steps]:
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
        words = recording.words.get(named.id)
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
            tuple(step.format(exercise=result.id, where=_where(result, wrong)) for step in _UNEXPLAINED),
        )
    if begun:
        return (
            begun.evidence,
            f"{begun.name}: {begun.evidence}",
            _STUB_ENDS if begun.evidence.startswith(STUB_ENDS) else (start,),
        )
    name = next((function.name for function in result.functions if function.state == "unwritten"), result.unwritten[0])
    return UNTOUCHED, f"{name} is not written yet.", recording.words[UNTOUCHED].hints


def _where(result: ExerciseResult, wrong: FunctionResult | None) -> str:
    """Return a sentence about the line to look at: one that is proved, or that raised; else how to find it."""
    if wrong and (raised := _RAISED.search(wrong.evidence)):
        return f"Python stopped on {raised[1]}. Look at what goes into it. "
    if result.lines:
        return f"Look at {result.lines[0].place}: one small change there makes every check pass. "
    return f"course trace {result.id} shows what each line makes. Find the first line that surprises you. "


def _as_in_the_file(result: ExerciseResult) -> list[Diagnosed]:
    """Return the misconceptions in the order in which `course check` shows them: of the whole file, then function by function."""
    names = [function.name for function in result.functions]
    return sorted(result.diagnosis, key=lambda named: names.index(named.function) if named.function in names else -1)


def next_step(path: Path, exercise: str, about: str, steps: int, *, again: bool = False) -> int:
    """Return the number of the step to show, which is recorded in this file; one more than there are where all were shown.

    Another mistake starts with its own first step.

    Raises OSError if the file cannot be written.
    """
    noted = _noted(path)
    seen = 0 if again else _before(noted, exercise, about)
    step = min(seen, steps) + 1
    noted[exercise] = {"about": about, "step": min(step, steps)}
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(noted), encoding="utf-8")
    return step


def _noted(path: Path) -> dict[str, object]:
    """Return what is recorded, by exercise; nothing where there is no record yet, or a damaged one."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _before(noted: Mapping[str, object], exercise: str, about: str) -> int:
    """Return how many hints to this mistake were shown."""
    match noted.get(exercise):
        case {"about": str(known), "step": int(step)} if known == about:
            return step
    return 0
