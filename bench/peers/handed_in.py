"""A class handed in to a grader, to be graded as often as one likes: every run begins with a fresh copy."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ..graders import Grader
from ..places import environment
from .checks import CHECKS, RIGHT, WRONG, WRONG_EARNS
from .cost import Cost, NotMeasured, Running

FULL = float(len(CHECKS))


class HandedIn:
    """Attempts at the six functions. Every run is held to the scores that they must get."""

    def __init__(self, grader: Grader, place: Path, attempts: Mapping[str, tuple[str, float]]) -> None:
        """`attempts`: the text and the score to expect, by student. `place` is a folder that is not there yet."""
        self.grader, self.size = grader, len(attempts)
        self.folder = place / "handed_in"
        self._place, self._expected = place, {student: score for student, (_, score) in attempts.items()}
        grader.prepare(self.folder)
        for student, (text, _) in attempts.items():
            grader.hand_in(self.folder, student, {"attempt.py": text})

    def start(self) -> Running:
        """Begin to grade a fresh copy."""
        run = self._place / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.folder, run)
        return Running(self.grader.command(run), run, environment(self._place, self.grader.programs))

    def finish(self, running: Running) -> Cost:
        """What a submission costs. Raises NotMeasured where the command fails or a score is wrong."""
        cost = running.wait().each(self.size)
        scores = self.grader.scores(self._place / "run", self._expected)
        wrong = {student: scores[student] for student, score in self._expected.items() if scores[student] != score}
        if wrong:
            raise NotMeasured(f"{self.grader.name} gives other scores than {FULL:g}: {wrong}")
        return cost

    def run(self) -> Cost:
        """Grade all, once."""
        return self.finish(self.start())


def right_ones(count: int) -> dict[str, tuple[str, float]]:
    """So many right attempts, no two the same text."""
    return {name: (_signed(RIGHT, name), FULL) for name in (f"s{i:04d}" for i in range(count))}


def control() -> dict[str, tuple[str, float]]:
    """A right attempt and a wrong one: a grader that tells them apart as expected can be measured."""
    return {"right": (_signed(RIGHT, "right"), FULL), "wrong": (_signed(WRONG, "wrong"), float(WRONG_EARNS))}


def _signed(text: str, name: str) -> str:
    return f'{text}\n\nHANDED_IN_BY = "{name}"\n'
