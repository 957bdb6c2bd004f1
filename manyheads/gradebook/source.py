"""nbgrader's source folder: what `course release` makes, with notebooks that have their solutions."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..authoring.files import groups
from ..authoring.notebook import full_notebook
from ..authoring.release import Effort, write_release
from ..batch.cpus import usable
from ..course import Assignment, Course
from ..judge.catalogue import Catalogue
from ..whole import write_whole
from .names import SOURCE

_OURS = re.compile(r"[0-9]{2}_\w+\.(py|ipynb)|(fingerprints|curves|heads|figures)/[0-9]{2}_[^/]+")


def build_source(course: Course, assignment: Assignment, log: logging.Logger) -> Path:
    """Bring exercises/<assignment>/ up to date, and write source/<assignment>/ from it; its path.

    nbgrader copies companion files as they are, so they stand here as released: stripped. Other assignments' folders, and
    what an instructor put beside ours, stay. log: is told how many steps there are to record, and each that is done.
    Raises what `course release` raises.
    """
    folder, released = course.root / SOURCE / assignment.id, assignment.exercises_folder
    write_whole(folder / ".gitignore", b"*\n")  # solutions/ is where this comes from
    catalogue = Catalogue(course)
    made = write_release(course, catalogue, assignment.exercises, Effort(usable()), lambda steps: _logged(log, steps))
    files = {folder / path.relative_to(released): path.read_bytes() for path in made.files}
    for exercise in assignment.exercises:
        source = exercise.solution.read_text(encoding="utf-8")
        whole = full_notebook(source, exercise.id, groups(catalogue, exercise))
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
