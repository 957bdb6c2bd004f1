"""nbgrader's source folder, built from solutions/: notebooks with their solutions, and beside them what students get.

Recording fingerprints is what takes long (a minute and more for eight exercises), so
they are kept under a name that says all that they are made from.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from importlib import metadata
from pathlib import Path

from ..authoring.fingerprints import record
from ..authoring.notebook import full_notebook
from ..authoring.release import groups, stub_of
from ..course import Course, Exercise
from ..judge.catalogue import Catalogue
from .names import SOURCE

KEPT = Path(".course") / "fingerprints"


def build_source(course: Course) -> Path:
    """Write .course/source/<assignment>/ anew; its path. Raises what `course release` raises.

    nbgrader copies companion files as they are, so they stand here as released: stripped.
    """
    root = course.root / SOURCE
    shutil.rmtree(root, ignore_errors=True)
    catalogue = Catalogue(course)
    for exercise in course.exercises:
        _build(root / exercise.assignment.id, course, catalogue, exercise)
    return root


def kept_fingerprints(course: Course, exercise: Exercise) -> Path:
    """Where the fingerprints of an exercise as it is now are kept, or will be."""
    hidden, engine = course.root / "grader", Path(__file__).parents[1]
    made_from = [course.root / "course.yaml", exercise.solution]
    for folder in (hidden / "checks", hidden / "misconceptions"):
        made_from += [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    made_from += engine.rglob("*.py")
    digest = hashlib.sha256(f"{platform.python_version()} {metadata.version('torch')}".encode())
    for path in sorted(made_from):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return course.root / KEPT / f"{exercise.assignment.id}-{exercise.id}-{digest.hexdigest()[:32]}.safetensors"


def _build(folder: Path, course: Course, catalogue: Catalogue, exercise: Exercise) -> None:
    stub, stem = stub_of(course, exercise), exercise.stem
    source = exercise.solution.read_text(encoding="utf-8")
    kept = kept_fingerprints(course, exercise)
    if not kept.exists():
        _write(kept, record(catalogue, exercise, stub))
    _write(folder / f"{stem}.py", stub.encode())
    _write(folder / f"{stem}.ipynb", full_notebook(source, exercise.id, groups(catalogue, exercise)).encode())
    _write(folder / "fingerprints" / f"{stem}.safetensors", kept.read_bytes())
    for recorded in (exercise.curve, exercise.heads):
        if recorded.exists():  # as `course release` left it: nbgrader empties exercises/ before it writes
            _write(folder / recorded.parent.name / recorded.name, recorded.read_bytes())


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
