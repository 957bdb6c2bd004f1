"""Prepare what `nbgrader autograde` reads in place of submitted/: for every student and exercise one sound notebook."""

from __future__ import annotations

import glob
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import parse_utc

from ..course import Assignment, Course, Exercise
from ..errors import CourseFault
from ..submission import Submission, Unreadable, code_digest, find_submissions, largest, read_attempt, read_text
from .nbgrader_autograde import StudentCell, cells_of_notebook, cells_of_script, rebuild
from .nbgrader_names import SECRET, TIMESTAMP
from .nbgrader_writer import NotebookCells, notebook_cells

# nbgrader sees notebooks only, copies whatever lies beside them, and drops a student's whole submission over one file
# that is not JSON. Here every exercise has a notebook: the student's own, one that shows the student's script, or the
# untouched one with a sentence that says why. Submitted files are never written to.

_PREFIX = "submitted-"


@contextmanager
def staged(
    course: Course, submitted: Path, assignment: Assignment, student: str, log: logging.Logger
) -> Iterator[Path]:
    """Make a folder of this process's own with the submissions of the students whom this pattern names. Raises CourseFault.

    Nothing is graded where one of them cannot be laid out: nbgrader gives 0 points for a notebook that it does not find.
    """
    parent = course.root / ".course"
    for left in parent.glob(f"{_PREFIX}*"):  # by a command that was killed
        shutil.rmtree(left, ignore_errors=True)
    submissions, others = find_submissions(course, submitted)
    for other in others:
        if "/" not in other.path:
            log.warning(str(other))  # a whole folder is left out
        elif f"/{assignment.id}/" in f"{other.path}/":
            log.info(str(other))  # nbgrader copies such files, and complains of none
    with TemporaryDirectory(prefix=_PREFIX, dir=parent) as folder:
        Path(folder).chmod(0o755)
        try:
            for submission in submissions:
                named = student in ("*", submission.student) or fnmatchcase(submission.student, student)
                if submission.assignment.id == assignment.id and named:
                    _stage_one(course, submission, Path(folder), log)
        except OSError as error:
            raise CourseFault(
                f"submissions could not be laid out ({error}), and nothing was graded. Next: mend that, then the same "
                "command again"
            ) from None
        yield Path(folder)


def _stage_one(course: Course, submission: Submission, folder: Path, log: logging.Logger) -> None:
    target = folder / submission.student / submission.assignment.id
    target.mkdir(parents=True)
    for exercise in submission.assignment.exercises:
        _stage_exercise(course, submission, exercise, target)
    again = f"nbgrader autograde {submission.assignment.id} --student {submission.student} --force"
    untimed = f"contains no valid time, so {submission.student} is not late. Next: mend it, then {again}"
    _stage_own(submission, TIMESTAMP, target, log, untimed)
    hidden = f"cannot be read, so {submission.student} cannot fetch feedback. Next: nbgrader collect again"
    _stage_own(submission, SECRET, target, log, hidden)


def _stage_exercise(course: Course, submission: Submission, exercise: Exercise, target: Path) -> None:
    limit = course.limits.source_kib
    known = notebook_cells(exercise)
    stem = exercise.stem
    untouched = code_digest(exercise.script.read_text(encoding="utf-8")) if exercise.script.exists() else None
    source = read_attempt(submission.folder, stem, untouched, limit)
    if source.missing:
        notebook = rebuild(_released(known), known, f"{source.name} was not handed in.")
    elif source.problem:
        notebook = rebuild(_released(known), known, source.problem)
    elif source.name.endswith(".ipynb"):
        notebook = rebuild(
            cells_of_notebook(read_text(submission.folder / source.name, largest(source.name, limit))), known
        )
    else:
        notebook = rebuild(cells_of_script(source.source, known), known, source.note)
        (target / source.name).write_text(source.source, encoding="utf-8")
    (target / f"{stem}.ipynb").write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def _stage_own(submission: Submission, name: str, target: Path, log: logging.Logger, problem: str) -> None:
    """Write a file of nbgrader's own, or say what is wrong with it.

    By TIMESTAMP nbgrader works out late penalties: one that says no time would stop the student's grading. By SECRET, which
    `nbgrader submit` made, `nbgrader release_feedback` names a student's pages.
    """
    path = submission.folder / name
    if not os.path.exists(path):  # also in a folder that may not be entered
        return
    try:
        text = read_text(path, 1)
        if name == TIMESTAMP:
            parse_utc(text.strip())
    except (Unreadable, ValueError, OverflowError):
        log.warning(f"{path} {problem}")
        return
    (target / name).write_text(text, encoding="utf-8")


def _released(known: NotebookCells) -> list[StudentCell]:
    return [StudentCell(cell.source, grade_id=cell.grade_id) for cell in known.cells]


# Which notebooks an nbgrader command takes: as nbgrader lists them, but for folders whose names hold *, ? or [.
#
# nbgrader reads the folder's name as a pattern, matches nothing, and leaves such a student out.


def init_notebooks(converter: Any) -> None:
    """In place of nbgrader's BaseConverter.init_notebooks. Raises NbGraderException where nothing matches."""
    directory = converter.coursedir
    converter.assignments, converter.notebooks = {}, []
    exact = converter._format_source(directory.assignment_id, directory.student_id)
    for folder in folders_named(exact, directory.student_id):
        found = glob.glob(os.path.join(glob.escape(folder), directory.notebook_id + ".ipynb"))
        if found:
            converter.assignments[folder] = found
        else:
            converter.log.warning("No notebooks were matched by '%s'", folder)
    if not converter.assignments:
        message = f"No notebooks were matched by '{exact}'"
        converter.log.error(message)
        raise NbGraderException(message)


def folders_named(exact: str, student: str) -> list[str]:
    """Return the folders that a path with this student in it names: that of one student, or all that it matches as a pattern.

    "*" is everybody, although a student's folder may have that name, too.
    """
    return [exact] if student != "*" and os.path.isdir(exact) else sorted(glob.glob(exact))
