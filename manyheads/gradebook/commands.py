"""nbgrader's own commands, prepared for this course: what must stand ready before each of them looks for files.

nbgrader has a hook for each submission but none before it lists them, so `start` is
wrapped: then the formgrader's buttons do as the commands do. Assignments that are not
this course's go nbgrader's own way.
"""

from __future__ import annotations

import fcntl
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from sqlalchemy.exc import SAWarning

from ..course import Assignment, Course
from ..errors import CourseFault
from .exchange import prepare_exchange
from .listing import init_notebooks
from .names import SOURCE, assignment_named

_ORIGINAL = "_before_manyheads"
LATE = "nbgrader.preprocessors.AssignLatePenalties"
PREPROCESSORS = [  # student code runs in the box and nowhere else: no kernel is started for it
    "manyheads.gradebook.autograde.BoxGrade",
    "nbgrader.preprocessors.LimitOutput",
    "manyheads.gradebook.autograde.SaveScores",
    "manyheads.gradebook.autograde.SaveComments",
    LATE,
    "manyheads.gradebook.autograde.EnterDecisions",
    "nbgrader.preprocessors.CheckCellMetadata",
]
FEEDBACK_PREPROCESSORS = [
    "nbgrader.preprocessors.GetGrades",
    "manyheads.gradebook.feedback.BothComments",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

Around = Callable[[Any], AbstractContextManager[object]]


def prepare(course: Course) -> None:
    """Make nbgrader's converters work on this course's assignments. Calling it twice is as calling it once."""

    @contextmanager
    def source(converter: Any) -> Iterator[None]:
        assignment = assignment_named(course, converter.coursedir.assignment_id)
        if assignment is None:
            yield
            return
        from .source import build_source, kept_release

        with alone(course):
            build_source(course, assignment, converter.log)
            with kept_release(assignment):
                yield

    @contextmanager
    def submitted(converter: Any) -> Iterator[None]:
        directory = converter.coursedir
        assignment = assignment_named(course, directory.assignment_id)
        if assignment is None:
            yield
            return
        from .autograde import grading
        from .decide import deciding
        from .staging import staged

        real = directory.submitted_directory
        handed_in = Path(directory.root) / real
        log = converter.log
        with ExitStack() as stack:
            stack.enter_context(alone(course))
            folder = stack.enter_context(staged(course, handed_in, assignment, directory.student_id, log))
            decide = stack.enter_context(deciding(course, handed_in, assignment, directory.db_url, log))
            running = stack.enter_context(grading(course, handed_in, decide))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", SAWarning)  # nbgrader builds rows before it adds them
            stack.enter_context(_set(directory, "submitted_directory", str(folder.relative_to(course.root))))
            stack.enter_context(_set(converter, "autograde_preprocessors", preprocessors(assignment)))
            yield
            for fault in dict.fromkeys(running.faults):
                log.error(f"a fault of the grader's own: {fault}. Next: course verify")
            running.demand_all()

    @contextmanager
    def feedback(converter: Any) -> Iterator[None]:
        if assignment_named(course, converter.coursedir.assignment_id) is None:
            yield
            return
        with _set(converter, "preprocessors", FEEDBACK_PREPROCESSORS):
            yield

    for assignment in course.assignments:  # formgrader lists what has a folder here, and its button then fills it
        with suppress(OSError):
            (course.root / SOURCE / assignment.id).mkdir(parents=True, exist_ok=True)
    _wrap(GenerateAssignment, source)
    _wrap(Autograde, submitted)
    _wrap(GenerateFeedback, feedback)
    for converter in (GenerateAssignment, Autograde, GenerateFeedback):
        converter.init_notebooks = init_notebooks
    prepare_exchange()


def preprocessors(assignment: Assignment) -> list[str]:
    """Those of `nbgrader autograde`.

    Where course.yaml gives the due date, its policy is the one penalty: nbgrader's plugin is not asked.
    """
    return [each for each in PREPROCESSORS if each != LATE or assignment.row.due is None]


@contextmanager
def alone(course: Course) -> Iterator[None]:
    """No other command at work on this course's submissions or source. Raises CourseFault where one is, at once.

    nbgrader's gradebook takes one writer, and each command reads folders that another one may be about to write.
    """
    path = course.root / ".course" / "nbgrader.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseFault(
                "another nbgrader command is at work on this course, and nothing was changed. "
                "Next: the same command again, once that one has ended"
            ) from None
        yield


@contextmanager
def _set(holder: Any, name: str, value: object) -> Iterator[None]:
    """A trait with another value, for a while."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


def _wrap(converter: Any, around: Around) -> None:
    original = getattr(converter.start, _ORIGINAL, converter.start)

    @wraps(original)
    def start(self: Any) -> None:
        try:
            with around(self):
                original(self)
        except CourseFault as fault:
            self.log.error(str(fault))
            raise NbGraderException(str(fault)) from None

    setattr(start, _ORIGINAL, original)
    converter.start = start
