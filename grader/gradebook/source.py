"""nbgrader's source folder, built from solutions/: notebooks with their solutions, and beside them what students get."""

from __future__ import annotations

from pathlib import Path

from ..authoring.notebook import full_notebook
from ..authoring.release import groups, released_files
from ..course import Course
from ..judge.catalogue import Catalogue

FOLDER = Path(".course") / "source"


def build_source(course: Course) -> Path:
    """Write .course/source/<assignment>/ anew; its path. Raises what `course release` raises.

    nbgrader copies companion files as they are, so they stand here as released: stripped.
    """
    root = course.root / FOLDER
    with Catalogue(course) as catalogue:
        for file in released_files(course, catalogue):
            if file.path.suffix != ".ipynb":
                _write(root / file.path.relative_to(course.root / "exercises"), file.content)
        for assignment in course.assignments:
            for exercise in assignment.exercises:
                source = course.solution(assignment, exercise).read_text(encoding="utf-8")
                notebook = full_notebook(source, exercise.id, groups(catalogue, exercise))
                _write(root / assignment.id / f"{assignment.stem(exercise)}.ipynb", notebook.encode())
    return root


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
