"""Choose the next hint: one step closer to the answer each time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..public.file import Content
from ..result import ExerciseResult, Outcome

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


@dataclass(frozen=True)
class Hint:
    """A hint. `title`: the misconception or the failing check. `last`: whether there is no further step."""

    title: str
    sentence: str
    last: bool


def next_hint(content: Content, result: ExerciseResult, fallback: str, note: Path, *, again: bool = False) -> Hint:
    """The next hint for an attempt that fails a check.

    fallback: the exercise's own hint. note: the file that records which steps were shown.
    """
    about, title, steps = _steps(content, result, fallback)
    given = next_step(note, content.exercise, about, len(steps), again=again)
    return Hint(title, f"Hint {given} of {len(steps)}: {steps[given - 1]}", given == len(steps))


def _steps(content: Content, result: ExerciseResult, fallback: str) -> tuple[str, str, Steps]:
    """The id, the title and the steps: of the misconception, or of the first failing check."""
    for named in result.diagnosis:
        words = content.words.get(named.id)
        if words:
            return named.id, named.title, words.hints
    first = next(check for check in result.checks if check.outcome != "passed")
    if first.outcome in _ENDED:
        return first.outcome, first.evidence, _ENDED[first.outcome]
    steps = tuple(dict.fromkeys(step for step in (first.hint, fallback) if step))
    return first.id, f"Not yet so: {first.title}", steps


def next_step(path: Path, exercise: str, about: str, steps: int, *, again: bool = False) -> int:
    """The number of the step to show, which is recorded in this file. Another mistake starts with its own first step."""
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
