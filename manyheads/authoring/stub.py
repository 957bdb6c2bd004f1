"""The student's starting point, made from the solution."""

from __future__ import annotations

from ..course import CourseError, Exercise
from .strip import strip


def stub_of(exercise: Exercise) -> str:
    """The student's starting point. Raises SourceError, CourseError."""
    path = exercise.solution
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(
            f"{path} is missing, which course.yaml requires. Next: write it, or mend course.yaml"
        ) from None
    return strip(source, str(path.relative_to(exercise.root)))
