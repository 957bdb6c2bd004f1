"""Small faults: right attempts, each with one edit, of which the line is known."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from ...box.level import Box
from ...course import Course, Exercise
from ...judge.grade_submission import Judge, Settings
from ...lines.candidates import candidates
from ...lines.code_parts import Edit
from ...lines.find_lines import Bounds
from ...result import ProvedLine
from ...submission import AttemptSource

SECRET = b"verify"  # used in place of the course's secret, so that a claim gives the same result on every machine
FAULTS = 5  # for each exercise
PATIENT = Bounds(seconds=60.0)  # by the count alone, so that a slow machine finds as much as a fast one
ANOTHER_SEED = 1
_LOST = ("timeout", "crashed", "skipped", "missing")  # how no check of a fault may end
_SAMPLED = 4000  # the most edits that are looked at for an exercise's faults

Told = Literal["there", "elsewhere", "wrong", "nothing"]


@dataclass(frozen=True)
class Fault:
    """A right attempt with one edit, with which it fails a check. undone: whether one edit that is tried undoes it."""

    attempt: str
    edit: Edit
    undone: bool

    @property
    def text(self) -> str:
        """The text with the fault."""
        return self.edit.after

    @property
    def label(self) -> str:
        """The place of the edit, and what it does."""
        return f"{self.attempt}, line {self.edit.line} ({self.edit.kind}): {self.edit.described}"


class FaultBench:
    """Makes faults, and asks for their lines."""

    def __init__(self, course: Course, box: Box, exercises: Sequence[Exercise], bounds: Bounds = PATIENT) -> None:
        ids = tuple(e.id for e in exercises)
        self._judge = Judge(course, box, Settings(SECRET, exercises=ids, diagnoses=False, lines=False))
        self._searching = Judge(course, box, Settings(SECRET, exercises=ids, diagnoses=False, bounds=bounds))
        self.told, self.undone = lru_cache(self._told), lru_cache(self._undone)  # which several claims ask

    def faults(self, exercise: Exercise) -> Iterator[Fault]:
        """Faults in an order that is always the same: every kind of edit as often as it can be, in attempts drawn at random."""
        drawn = random.Random(exercise.id)
        paths = [exercise.solution, *exercise.right_attempts()]
        texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
        by_kind: dict[str, dict[str, list[Edit]]] = {name: {} for name in texts}
        for name, text in texts.items():
            for edit in candidates(text, ()):
                by_kind[name].setdefault(edit.kind, []).append(edit)
        tried: set[str] = set()
        for _ in range(_SAMPLED):
            name = drawn.choice(sorted(by_kind))
            if not by_kind[name]:
                continue
            edit = drawn.choice(by_kind[name][drawn.choice(sorted(by_kind[name]))])
            if edit.after not in tried and self._fails(exercise, edit.after):
                undone = any(e.after == texts[name] for e in candidates(edit.after, ()))
                yield Fault(name, edit, undone)
            tried.add(edit.after)

    def _undone(self, exercise: Exercise) -> list[Fault]:
        """Return some faults that one edit undoes."""
        return list(islice((fault for fault in self.faults(exercise) if fault.undone), FAULTS))

    def _told(self, exercise: Exercise, fault: Fault) -> Told:
        """Return what is told of a fault: its line, another where an edit mends it as well, one that is wrong, or nothing."""
        lines = self.lines(exercise, fault.text)
        if not lines:
            return "nothing"
        if not all(self._mends(exercise, fault.text, line) for line in lines):
            return "wrong"
        return "there" if fault.edit.line in {line.line for line in lines} else "elsewhere"

    def lines(self, exercise: Exercise, text: str) -> tuple[ProvedLine, ...]:
        """Return what a search finds."""
        return self._searching.grade_attempt("fault", exercise, _source(exercise, text)).lines

    def _mends(self, exercise: Exercise, text: str, line: ProvedLine) -> bool:
        """Return whether the edit that is told makes every check pass on inputs that the search has not seen."""
        edits = [e for e in candidates(text, ()) if (e.line, e.described) == (line.line, line.edit)]
        results = [
            self._judge.grade_attempt("mended", exercise, _source(exercise, e.after), ANOTHER_SEED) for e in edits
        ]
        return any(result.is_done for result in results)

    def _fails(self, exercise: Exercise, text: str) -> bool:
        """Return whether it is imported, and fails a check by what it answers."""
        result = self._judge.grade_attempt("fault", exercise, _source(exercise, text))
        ends = {check.outcome for check in result.checks}
        evidence = {check.evidence for check in result.checks}
        imported = not (ends == {"error"} and len(evidence) == 1)
        return imported and not result.is_done and not ends & set(_LOST)


def _source(exercise: Exercise, text: str) -> AttemptSource:
    return AttemptSource(f"{exercise.stem}.py", text)
