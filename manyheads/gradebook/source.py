"""nbgrader's source folder, built from solutions/: notebooks with their solutions, and beside them what students get.

Recording fingerprints is what takes long (a minute and more for eight exercises), so
they are kept under a name that says all that they are made from.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from ..authoring.files import groups
from ..authoring.notebook import full_notebook
from ..authoring.steps import Workshop
from ..authoring.stub import stub_of
from ..course import Assignment, Course, Exercise
from ..course.model import FIGURES
from ..judge.catalogue import Catalogue
from ..whole import write_whole
from .names import SOURCE

KEPT = Path(".course") / "fingerprints"
_OURS = re.compile(r"[0-9]{2}_\w+\.(py|ipynb)|(fingerprints|curves|heads|figures)/[0-9]{2}_[^/]+")


def build_source(course: Course, assignment: Assignment) -> Path:
    """Write source/<assignment>/; its path. Raises what `course release` raises.

    nbgrader copies companion files as they are, so they stand here as released: stripped. Other assignments' folders, and
    what an instructor put beside ours, stay.
    """
    folder = course.root / SOURCE / assignment.id
    write_whole(folder / ".gitignore", b"*\n")  # solutions/ is where this comes from
    catalogue = Catalogue(course)
    written = {path for exercise in assignment.exercises for path in _build(folder, course, catalogue, exercise)}
    for path in folder.rglob("*"):
        if path not in written and _OURS.fullmatch(path.relative_to(folder).as_posix()):  # of an exercise that is gone
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


def _build(folder: Path, course: Course, catalogue: Catalogue, exercise: Exercise) -> list[Path]:
    """Write an exercise's files; their paths."""
    stub, stem = stub_of(exercise), exercise.stem
    source = exercise.solution.read_text(encoding="utf-8")
    kept = kept_fingerprints(course, exercise)
    if not kept.exists():
        workshop = Workshop(course, catalogue)
        write_whole(kept, workshop.fingerprints(exercise, workshop.ask_all(exercise)))
    files = {
        folder / f"{stem}.py": stub.encode(),
        folder / f"{stem}.ipynb": full_notebook(source, exercise.id, groups(catalogue, exercise)).encode(),
        folder / "fingerprints" / f"{stem}.safetensors": kept.read_bytes(),
    }
    files |= {folder / FIGURES / path.name: path.read_bytes() for path in exercise.figure_sources}
    for recorded in (exercise.curve, exercise.heads):
        if recorded.exists():  # as `course release` left it: nbgrader empties exercises/ before it writes
            files[folder / recorded.parent.name / recorded.name] = recorded.read_bytes()
    for path, content in files.items():
        write_whole(path, content)
    return list(files)
