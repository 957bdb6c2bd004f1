"""nbgrader's own commands, prepared for this course: what must stand ready before each of them looks for files.

nbgrader has a hook for each submission but none before it lists them, so `start` is
wrapped: then the formgrader's buttons do as the commands do. Assignments that are not
this course's go nbgrader's own way.
"""

from __future__ import annotations

import fcntl
import logging
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from sqlalchemy.exc import SAWarning

from ..authoring.files import groups
from ..authoring.release_exercises import write_release
from ..authoring.stub_notebook import stub_notebook
from ..course import Assignment, Course
from ..errors import CourseFault
from ..judge.process_ties import usable
from ..judge.run_checks import Catalogue
from ..whole import write_whole
from .nbgrader_exchange import prepare_exchange, wrap
from .nbgrader_names import SOURCE, assignment_named
from .nbgrader_staging import init_notebooks, staged

# nbgrader's source folder: what `course release` makes, with notebooks that have their solutions.

_OURS = re.compile(r"[0-9]{2}_\w+\.(py|ipynb)|(fingerprints|trained|figures)/[0-9]{2}_[^/]+")


def build_source(course: Course, assignment: Assignment, log: logging.Logger) -> Path:
    """Bring exercises/<assignment>/ up to date, and write source/<assignment>/ from it; its path.

    nbgrader copies companion files as they are, so they stand here as released: stripped. Other assignments' folders, and
    what an instructor put beside ours, stay. log: is told how many steps there are to record, and each that is done.
    Raises what `course release` raises.
    """
    folder, released = course.root / SOURCE / assignment.id, assignment.exercises_folder
    write_whole(folder / ".gitignore", b"*\n")  # solutions/ is where this comes from
    catalogue = Catalogue(course)
    made = write_release(course, catalogue, assignment.exercises, usable(), shown=lambda steps: _logged(log, steps))
    files = {folder / path.relative_to(released): path.read_bytes() for path in made.files}
    for exercise in assignment.exercises:
        source = exercise.solution.read_text(encoding="utf-8")
        whole = stub_notebook(source, exercise.id, groups(catalogue, exercise))
        files[folder / exercise.notebook.relative_to(released)] = whole.encode()
    for path, content in files.items():
        write_whole(path, content)
    for path in folder.rglob("*"):
        if path not in files and _OURS.fullmatch(path.relative_to(folder).as_posix()):  # of an exercise that is gone
            path.unlink()
    return folder


@contextmanager
def kept_release(assignment: Assignment) -> Iterator[None]:
    """Put exercises/<assignment>/ back as it was where nbgrader fails: it deletes the folder before it writes another."""
    released = assignment.exercises_folder
    with TemporaryDirectory(prefix="released-", dir=released.parents[1] / ".course") as kept:
        copy = Path(kept) / released.name
        if released.exists():
            shutil.copytree(released, copy)
        try:
            yield
        except BaseException:
            if copy.exists():
                shutil.rmtree(released, ignore_errors=True)
                shutil.move(copy, released)
            raise


@contextmanager
def _logged(log: logging.Logger, steps: int) -> Iterator[Callable[[], None]]:
    """Say in nbgrader's log how far the recording is, which may take minutes."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        log.info(f"recorded {done} of {steps} steps")

    if steps:
        log.info(f"recording what changed in solutions/ and grader/: {steps} steps")
    yield one_more


LATE = "nbgrader.preprocessors.AssignLatePenalties"
PREPROCESSORS = [  # student code runs in the box and nowhere else: no kernel is started for it
    "manyheads.platforms.nbgrader_autograde.BoxGrade",
    "nbgrader.preprocessors.LimitOutput",
    "manyheads.platforms.nbgrader_autograde.SaveScores",
    "manyheads.platforms.nbgrader_autograde.SaveComments",
    LATE,
    "manyheads.platforms.nbgrader_autograde.EnterDecisions",
    "nbgrader.preprocessors.CheckCellMetadata",
]
FEEDBACK_PREPROCESSORS = [
    "nbgrader.preprocessors.GetGrades",
    "manyheads.platforms.nbgrader_feedback.BothComments",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

Around = Callable[[Course, Assignment, Any], AbstractContextManager[object]]


def prepare(course: Course) -> None:
    """Make nbgrader's converters work on this course's assignments. Calling it twice is as calling it once."""
    for assignment in course.assignments:  # formgrader lists what has a folder here, and its button then fills it
        with suppress(OSError):
            (course.root / SOURCE / assignment.id).mkdir(parents=True, exist_ok=True)
    around: dict[Any, Around] = {GenerateAssignment: _source, Autograde: _submitted, GenerateFeedback: _feedback}
    for converter, prepared in around.items():
        wrap(converter, "start", partial(_start, course, prepared))
        converter.init_notebooks = init_notebooks
    prepare_exchange()


def _start(course: Course, around: Around, original: Callable[[Any], None], converter: Any) -> None:
    """Start nbgrader's command; on this course's assignments, with all that it needs around it."""
    try:
        assignment = assignment_named(course, converter.coursedir.assignment_id)
        with nullcontext() if assignment is None else around(course, assignment, converter):
            original(converter)
    except CourseFault as fault:
        converter.log.error(str(fault))
        raise NbGraderException(str(fault)) from None


@contextmanager
def _source(course: Course, assignment: Assignment, converter: Any) -> Iterator[None]:
    with alone(course):
        build_source(course, assignment, converter.log)
        with kept_release(assignment):
            yield


@contextmanager
def _submitted(course: Course, assignment: Assignment, converter: Any) -> Iterator[None]:
    from .nbgrader_autograde import deciding, grading

    directory, log = converter.coursedir, converter.log
    handed_in = Path(directory.root) / directory.submitted_directory
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


def _feedback(course: Course, assignment: Assignment, converter: Any) -> AbstractContextManager[None]:
    return _set(converter, "preprocessors", FEEDBACK_PREPROCESSORS)


def preprocessors(assignment: Assignment) -> list[str]:
    """Return those of `nbgrader autograde`.

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
    """Give a trait another value for a while."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)
