"""nbgrader's own commands, prepared for this course: what must stand ready before each of them looks for files.

nbgrader has a hook for each submission but none before it lists them, so `start` is
wrapped: then the formgrader's buttons do as the commands do.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from sqlalchemy.exc import SAWarning

from ..course import Course
from ..errors import CourseFault
from .names import STAGED

_ORIGINAL = "_before_manyheads"

Around = Callable[[Any], AbstractContextManager[object]]


def prepare(course: Course) -> None:
    """Make `nbgrader generate_assignment` and `nbgrader autograde` work on this course. Twice is as once."""

    @contextmanager
    def source(_: Any) -> Iterator[None]:
        from .source import build_source

        build_source(course)
        yield

    @contextmanager
    def submitted(converter: Any) -> Iterator[None]:
        from .autograde import grading
        from .staging import stage

        directory = converter.coursedir
        real = directory.submitted_directory
        handed_in = Path(directory.root) / real
        stage(course, handed_in, directory.assignment_id, directory.student_id, converter.log)
        try:
            with grading(course, handed_in) as running, warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)  # nbgrader builds rows before it adds them
                directory.submitted_directory = str(STAGED)
                yield
                for fault in running.judge.faults:
                    converter.log.error(f"a fault of the grader's own: {fault}. Next: course verify")
        finally:
            directory.submitted_directory = real
            shutil.rmtree(course.root / STAGED, ignore_errors=True)

    _wrap(GenerateAssignment, source)
    _wrap(Autograde, submitted)


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
