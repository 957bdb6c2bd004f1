"""What nbgrader calls things here. Imports nothing heavy: every nbgrader command reads it, `nbgrader list` too."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from ..course import Assignment, Course, CourseError

COURSE_ID = "manyheads"  # the course in nbgrader's database
SOURCE = Path("source")  # nbgrader's own name: formgrader links to this folder, and other assignments stand there too

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"  # what `nbgrader submit` adds to a submission


def companions(assignment: Assignment) -> list[str]:
    """Return the files beside the notebooks in SOURCE, which nobody's submission is to be overwritten with."""
    stems = [exercise.stem for exercise in assignment.exercises]
    recorded = [f"{kind}/{stem}.safetensors" for stem in stems for kind in ("fingerprints", "trained")]
    return [f"{stem}.py" for stem in stems] + recorded


def assignment_named(course: Course, pattern: str) -> Assignment | None:
    """Return the assignment of this course that an nbgrader command is about; None where it is another, which is nbgrader's own.

    Raises CourseError for a pattern that matches an assignment of the course: nbgrader then takes several at once.
    """
    for assignment in course.assignments:
        if assignment.id == pattern:
            return assignment
        if fnmatchcase(assignment.id, pattern):
            raise CourseError(f"{pattern} may name several assignments. Next: the same command with {assignment.id}")
    return None
