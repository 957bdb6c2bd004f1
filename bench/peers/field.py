"""Who takes part: each with its class handed in, and with proof that it tells a right attempt from a wrong one."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path

from ..graders import Grader, ManyHeads, Nbgrader, Otter, PlainPytest
from ..venvs import pinned, python_of
from .checks import NAME
from .forms import ASSERT_CLOSE, assignment
from .handed_in import HandedIn, control, right_ones
from .small_course import ASSIGNMENT, lay_out_released

PEERS = ("nbgrader autograde", "otter run", "plain pytest, allclose", "plain pytest, assert_close")


class Field:
    """Builds environments and folders on demand, and keeps what it has built."""

    def __init__(self, cache: Path, place: Path) -> None:
        """`cache` holds virtual environments and outlives the run; `place` holds the rest."""
        self._cache, self._place = cache, place
        self._proved = set[str]()

    def peer(self, name: str, size: int) -> HandedIn:
        """One of PEERS with a class of that size."""
        return self._ready(self._peer(name), size, "class")

    def ours(self, size: int, jobs: int | None = None) -> HandedIn:
        """`course grade` with a class of that size."""
        course = self._place / "course"
        if not course.exists():
            lay_out_released(course)
        grader = ManyHeads(partial(_copy, course), ASSIGNMENT, NAME, jobs)
        return self._ready(grader, size, f"{jobs}_{size}")

    def _peer(self, name: str) -> Grader:
        if name.startswith("nbgrader"):
            return Nbgrader(self._cache, assignment())
        if name.startswith("otter"):
            return Otter(self._cache, assignment())
        python = python_of(self._cache, "pytest", pinned("pytest"), pinned("numpy"))
        return PlainPytest(assignment(ASSERT_CLOSE) if "assert_close" in name else assignment(), python, name)

    def _ready(self, grader: Grader, size: int, folder: str) -> HandedIn:
        """The control is graded once, which also fills the disk's cache. Raises NotMeasured."""
        place = self._place / re.sub(r"\W+", "_", grader.name)
        if grader.name not in self._proved:
            HandedIn(grader, place / "control", control()).run()
            self._proved.add(grader.name)
        return HandedIn(grader, place / folder, right_ones(size))


def _copy(course: Path, target: Path) -> None:
    shutil.copytree(course, target)
