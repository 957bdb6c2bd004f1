"""Run pytest on the claims about a course, and say of each claim what became of its cases.

A claim is a test function: its docstring says what is claimed, its mark `claim` what to do where it
is broken, and its parameters are the cases. Processes of pytest-xdist run them (`plugin.py`). Here
their reports become a line for each claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ...course import Course, Exercise
from ...diagnosis import load_bank
from ...errors import CourseFault
from ...judge.run_checks import Catalogue, points_fault

HERE = Path(__file__).parent
# in the order of their trial
CLAIMS = [f"test_{name}.py" for name in ("files", "bank", "answers", "attempts")]
SHOWN = 10  # how many failures of a claim are listed
Shown = Callable[["Line"], object]
NOTHING = "nothing to ask"
LOST = "a process of course verify ended before it was done. Next: course verify"
_OPTIONS = (
    f"-c /dev/null --rootdir={HERE} --confcutdir={HERE} --import-mode=importlib --noconftest "
    f"--assert=plain --disable-plugin-autoload -p xdist -p {__package__}.plugin -p no:terminal -p "
    "no:cacheprovider -p no:faulthandler -p no:unraisableexception -p no:threadexception -p "
    "no:warnings -p no:logging -p no:doctest --dist=loadscope --no-loadscope-reorder "
    "--max-worker-restart=0"
).split()


@dataclass
class Line:
    """What becomes of the cases of a claim.

    about: the exercise, or what all exercises have. next: what to do where the claim is
    broken. share: of the cases, how many must hold. failures: the cause of each that does
    not. reason: why nothing was asked, where nothing was.
    """

    subject: str
    says: str
    next: str
    share: float
    total: int = 0
    failures: list[str] = field(default_factory=list)
    reason: str = NOTHING

    @property
    def passed_cases(self) -> int:
        """How many cases hold."""
        return self.total - len(self.failures)

    @property
    def is_satisfied(self) -> bool | None:
        """Whether enough cases hold: all, or their share.

        None: nothing was asked, or so little that its share is no case.
        """
        is_asked = self.total and (not self.failures or self.share * self.total >= 1)
        return self.passed_cases >= self.share * self.total if is_asked else None

    @property
    def figures(self) -> str:
        """How many cases hold, and where not all do and not all must, how many must; why nothing
        was asked.
        """
        counts = f"{self.passed_cases} of {self.total}" if self.total else self.reason
        return (
            counts
            if self.share == 1 or not self.failures
            else f"{counts}, at least {self.share:.0%} asked"
        )

    @property
    def lines(self) -> list[str]:
        """What is wrong, and what to do; empty unless the claim is broken."""
        if self.is_satisfied is not False:
            return []
        unlisted = len(self.failures) - SHOWN
        return [
            *self.failures[:SHOWN],
            *([f"and {unlisted} more"] if unlisted > 0 else []),
            f"Next: {self.next}",
        ]


def verify_course(
    course: Course,
    exercises: Sequence[Exercise],
    show_line: Shown,
    *,
    seeds: int = 5,
    pairs: int = 40,
    jobs: int = 1,
) -> list[Line]:
    """Return what becomes of every claim about these exercises, and show each once it is tried.

    Raises CourseFault.

    Where points do not add up, nothing is graded, so no claim about answers is tried.

    seeds: how often a right or wrong attempt is judged. pairs: of mutants, for each exercise; 0:
        all.
    """
    catalogue = Catalogue(course)
    faults = [points_fault(exercise, catalogue.checks(exercise)) for exercise in exercises]
    for exercise in exercises:
        load_bank(exercise)  # who cannot be read is told before any process starts
    claims = (
        ["test_files.py::test_check_names", "test_files.py::test_points"] if any(faults) else CLAIMS
    )
    options = [f"--course={course.root}", *(f"--exercise={exercise.id}" for exercise in exercises)]
    options += [f"--seeds={seeds}", f"--pairs={pairs or None}", f"--numprocesses={jobs}"]
    return run_claims([*options, *(str(HERE / claim) for claim in claims)], show_line)


def run_claims(arguments: Sequence[str], show_line: Shown) -> list[Line]:
    """Return what becomes of the claims that these arguments of pytest name. Raises CourseFault."""
    board = Board(show_line)
    status = pytest.main([*_OPTIONS, *arguments], plugins=[board])
    if board.fault:
        raise CourseFault(board.fault)
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return list(board.lines.values())


class Board:
    """A plugin of the process that pytest's workers report to: it fills a line for each claim."""

    def __init__(self, show_line: Shown) -> None:
        self._shown = show_line
        self.lines: dict[object, Line] = {}
        self.fault = ""  # what keeps the course from being tried

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note why cases could not be collected."""
        if report.failed:
            self.pytest_internalerror(report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> bool:
        """Note a fault of pytest's, or of a plugin, which need not be printed then."""
        self.fault = self.fault or str(excrepr).strip().splitlines()[-1]
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case.

        What keeps a course from being tried ends all, as does a process that has died.
        """
        properties: dict[str, Any] = dict(report.user_properties)
        message = str(report.longrepr)
        if "line" not in properties or "fault" in properties:
            self.fault = message if "fault" in properties else LOST
            pytest.exit(self.fault)
        line = self.lines.setdefault(tuple(properties["line"]), Line(*properties["line"]))
        if report.skipped:
            line.reason = message
        elif report.failed or report.when == "call":
            line.total += properties.get("cases", 1)
        if report.failed:
            line.failures += (
                message.splitlines() if "cases" in properties else [message.partition("\n")[0]]
            )
        if report.when == "teardown" and properties["is_last"]:
            self._shown(line)
