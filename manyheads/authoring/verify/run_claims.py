"""Run pytest on the claims about a course, and report the outcome of each claim.

Processes of pytest-xdist run the cases. The module `plugin` is loaded in each process, and supplies
the cases. `Board` collects the outcomes in this process, as one `Line` for each claim about a
subject.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ...course import Course, Exercise
from ...diagnosis import load_bank
from ...diagnosis.recording_file import current
from ...files import CourseFault
from ...judge.collect_checks import no_personal_options, points_fault
from ...judge.run_hidden_checks import Catalogue
from .plugin import NOTHING
from .remembered_passes import ClaimGroup, claim_groups

HERE = Path(__file__).parent
# in the order in which they run
CLAIMS = [f"test_{name}.py" for name in ("files", "bank", "attempts")]
SHOWN = 10  # how many failures of a claim are listed
ShowLine = Callable[["Line"], object]
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
    """The outcome of a claim about one subject.

    Attributes:
        subject: The id of the exercise, or a subject that all exercises share, such as "points".
        says: The claim, as a sentence.
        next_step: The advice if the claim is broken.
        share: The share of cases that must hold.
        total: The number of cases that ran.
        failures: A sentence about each case that does not hold.
        reason: The reason why a case was skipped, to show if no case ran.
    """

    subject: str
    says: str
    next_step: str
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
        """Whether enough cases hold.

        None if no case ran, or if so few ran, with a failure, that the share is less than one case.
        """
        is_decided = self.total and (not self.failures or self.share * self.total >= 1)
        return self.passed_cases >= self.share * self.total if is_decided else None

    @property
    def figures(self) -> str:
        """The counts, for example "40 of 41, at least 80% asked", or why no case ran."""
        counts = f"{self.passed_cases} of {self.total}" if self.total else self.reason
        if self.share == 1 or not self.failures:
            return counts
        return f"{counts}, at least {self.share:.0%} asked"

    @property
    def lines(self) -> list[str]:
        """The failures and the next step if the claim is broken, otherwise no lines."""
        if self.is_satisfied is not False:
            return []
        unlisted = len(self.failures) - SHOWN
        rest = [f"and {unlisted} more"] if unlisted > 0 else []
        return [*self.failures[:SHOWN], *rest, f"Next: {self.next_step}"]


def verify_course(
    course: Course,
    exercises: Sequence[Exercise],
    show_line: ShowLine,
    *,
    seeds: int = 5,
    pairs: int = 40,
    jobs: int = 1,
    only_changed: bool = False,
) -> list[Line]:
    """Run the claims about these exercises in new processes, and return their outcomes.

    Claims that pass are remembered. A failure, or an error, forgets them.

    If points do not add up, nothing can be graded. So only the claims about points are tried then.

    Args:
        course: The course.
        exercises: The exercises to verify.
        show_line: Receives the outcome of a claim after its last case.
        seeds: The number of times that a right or wrong attempt is judged.
        pairs: The largest number of pairs of mutants that are tried for each exercise, or 0 for
            all. It also limits other claims that draw their cases.
        jobs: The number of processes.
        only_changed: Whether to skip claims that passed, if nothing has changed since. A line
            says so.

    Raises:
        CourseFault: The course cannot be verified, for example because a bank cannot be loaded.
    """
    groups = claim_groups(course, exercises, seeds, pairs)
    skipped = [group for group in groups if only_changed and group.passed_at()]
    lines = [_skipped_line(group) for group in skipped]
    for line in lines:
        show_line(line)
    groups = [group for group in groups if group not in skipped]
    if not groups:
        return lines
    for group in groups:
        group.forget()
    options = [f"--course={course.root}", *(f"--exercise={exercise.id}" for exercise in exercises)]
    options += [f"--seeds={seeds}", f"--pairs={pairs or None}", f"--numprocesses={jobs}"]
    options += [f"--unchanged={group.exercise.id}" for group in skipped if group.exercise]
    claims = _claims_to_run(course, exercises, groups)
    lines += run_claims([*options, *(str(HERE / claim) for claim in claims)], show_line)
    for group in groups:
        if _has_passed(group, lines):
            group.remember()
    return lines


def _claims_to_run(
    course: Course, exercises: Sequence[Exercise], groups: Sequence[ClaimGroup]
) -> list[str]:
    """Return the claims that run, as pytest's arguments. Raises CourseFault for a faulty bank.

    Args:
        course: The course.
        exercises: The exercises to verify.
        groups: The groups of claims that are not skipped.
    """
    catalogue = Catalogue(course)
    faults = [points_fault(exercise, catalogue.checks(exercise)) for exercise in exercises]
    for group in groups:
        if group.exercise:
            load_bank(group.exercise)  # an unreadable bank is reported before any process starts
    if any(faults):
        return ["test_files.py::test_check_names", "test_files.py::test_points"]
    about_files, *about_answers = CLAIMS
    claims = [about_files] if not groups[0].exercise else []
    return [*claims, *about_answers] if groups[-1].exercise else claims


def _skipped_line(group: ClaimGroup) -> Line:
    """Return the line about claims that are not tried again."""
    subject, says = "files", "claims about files and lessons"
    if group.exercise:
        subject, says = group.exercise.id, "claims about its mutants and attempts"
    reason = f"unchanged since they passed on {group.passed_at()}"
    return Line(subject, says, "", 1.0, reason=reason)


def _has_passed(group: ClaimGroup, lines: Sequence[Line]) -> bool:
    """Return whether all claims of a group were tried and hold.

    The claims about files only pass if every claim holds. With a stale fault dictionary, the claims
    about mutants are not tried.
    """
    if group.exercise:
        lines = [line for line in lines if line.subject == group.exercise.id]
        if not lines or current(group.exercise) is None:
            return False
    return all(line.is_satisfied is not False for line in lines)


def run_claims(arguments: Sequence[str], show_line: ShowLine) -> list[Line]:
    """Run pytest with these arguments, and return the outcomes of the claims that they name.

    Args:
        arguments: Options of `plugin`, and the tests to run.
        show_line: Receives the outcome of a claim after its last case.

    Raises:
        CourseFault: The course has a fault, a process ended, or pytest could not run.
        KeyboardInterrupt: The run was interrupted.
    """
    board = Board(show_line)
    with no_personal_options():
        status = pytest.main([*_OPTIONS, *arguments], plugins=[board])
    if board.fault:
        raise CourseFault(board.fault)
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise CourseFault(f"pytest could not run the claims: {status!s}. Next: course verify")
    return list(board.lines.values())


class Board:
    """Collect the outcomes of claims.

    It is a plugin of the process to which pytest's workers report.
    """

    def __init__(self, show_line: ShowLine) -> None:
        self._shown = show_line
        self.lines: dict[object, Line] = {}
        self.fault = ""  # the reason why the course cannot be verified

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note as fault the reason why cases could not be collected."""
        if report.failed:
            self.pytest_internalerror(report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> bool:
        """Note the last line of a fault of pytest or of a plugin, unless a fault is noted already.

        The returned True keeps pytest from printing it.
        """
        self.fault = self.fault or str(excrepr).strip().splitlines()[-1]
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case, and show its claim's line after the last case.

        A fault of the course ends the run, as does a process that has died.
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
