"""What nbgrader calls things here. Imports nothing heavy: every nbgrader command reads it, `nbgrader list` too."""

from __future__ import annotations

from pathlib import Path

from ..course import Assignment

COURSE_ID = "manyheads"  # the course in nbgrader's database
SOURCE = Path(".course") / "source"  # nbgrader's source folder, built from solutions/
STAGED = Path(".course") / "submitted"  # what `nbgrader autograde` reads in place of submitted/


def companions(assignment: Assignment) -> list[str]:
    """The files beside the notebooks in SOURCE, which no student's submission is to be overwritten with."""
    stems = [exercise.stem for exercise in assignment.exercises]
    return [f"{stem}.py" for stem in stems] + [f"fingerprints/{stem}.safetensors" for stem in stems]
