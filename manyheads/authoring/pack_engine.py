"""Pack the engine as a wheel, and as a zip for Gradescope with the course.

The engine is packed from the installation in use, an editable checkout or a wheel, with the same
bytes every time. The wheel's format:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import hashlib
import io
import shlex
import zipfile
from collections.abc import Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from ..course import Assignment, Course, CourseError
from ..course.model import FOLDER, course_secret
from ..files import told_where, write_whole
from .templates import HERE, as_they_are, filled

NAME = "manyheads"
ENGINE = Path(__file__).parents[1]
HASH_FILE = "engine.sha256"  # one line, as sha256sum writes it
TOOLS, PROGRAMS = "tools/", ("setup.sh", "run_autograder")  # of the zip
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip file can hold
_ABOUT = ("METADATA", "entry_points.txt", "licenses/LICENSE")
_WHEEL = b"Wheel-Version: 1.0\nGenerator: manyheads\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def engine_wheel(*, templates: bool = False) -> dict[str, bytes]:
    """Return the wheel and the file with its hash, by their file names.

    Args:
        templates: Include the templates of `course init`, `course new` and `course release --out`.
            Students do not need them, and they contain a whole course with its solutions.

    Raises:
        CourseError: The engine is not installed.
    """
    distribution = next(
        (
            candidate
            for candidate in metadata.distributions(name=NAME)
            if candidate.read_text("METADATA")
        ),
        None,
    )
    if distribution is None:
        next_step = "pip install -e . in its repository, or pip install its wheel"
        raise CourseError(f"{NAME} is not installed here. Next: {next_step}")
    dist_info = f"{NAME}-{distribution.version}.dist-info"
    paths = [
        path
        for path in sorted(ENGINE.rglob("*"))
        if templates or HERE not in path.parents or path.parent == HERE
    ]
    engine_files = (
        p
        for p in paths
        if p.is_file() and "__pycache__" not in p.parts and p.suffix not in (".pyc", ".partial")
    )
    files = {
        f"{NAME}/{path.relative_to(ENGINE).as_posix()}": path.read_bytes() for path in engine_files
    }
    files |= {
        f"{dist_info}/{name}": text.encode()
        for name in _ABOUT
        if (text := distribution.read_text(name)) is not None
    }
    files[f"{dist_info}/WHEEL"] = _WHEEL
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(content).digest())
        for name, content in files.items()
    }
    record = [
        f"{name},sha256={digest.rstrip(b'=').decode()},{len(files[name])}"
        for name, digest in digests.items()
    ]
    files[f"{dist_info}/RECORD"] = "\n".join([*record, f"{dist_info}/RECORD,,", ""]).encode()
    name = f"{NAME}-{distribution.version}-py3-none-any.whl"
    content = zipped(files)
    return {name: content, HASH_FILE: f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()}


def zipped(files: Mapping[str, bytes], programs: Collection[str] = ()) -> bytes:
    """Pack these files as one archive, the same bytes every time.

    Args:
        files: The contents by name.
        programs: The names of the files that are executable.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def autograder_of(
    course: Course, assignment: Assignment, torch_index: str = ""
) -> dict[str, bytes]:
    """Return every file of Gradescope's zip, by its path. Raises CourseError.

    The zip holds the solutions and the course's secret, but nothing about the class: no results, no
    decisions, no names.

    Args:
        course: The course.
        assignment: The assignment that the zip grades.
        torch_index: The package index from which torch is installed.
    """
    words = {"assignment": shlex.quote(assignment.id), "torch_index": torch_index}
    shared = {
        name: text
        for name, text in as_they_are("shared")
        if name.startswith(TOOLS) or name == "constraints.txt"
    }
    of_course = {
        f"course/{path.relative_to(course.root).as_posix()}": path.read_bytes()
        for path in _needed(course)
    }
    secret = {f"course/{FOLDER}/secret": course_secret(course.root)}
    return {**dict(filled("gradescope", words)), **shared, **engine_wheel(), **of_course, **secret}


def write_autograder(files: dict[str, bytes], out: Path) -> None:
    """Write the zip so that only its owner can read it. Raises CourseFault."""
    with told_where(out, "name another file"):
        write_whole(out, zipped(files, PROGRAMS))
        out.chmod(0o600)


def _needed(course: Course) -> Iterator[Path]:
    """Yield the files for grading, and the sources of the fault dictionaries.

    Notebooks and the figures of lessons are not needed.
    """
    yield from (course.root / "course.yaml", course.texts)
    for exercise in course.exercises:
        needed = (exercise.script, exercise.fingerprints, *exercise.recorded_from())
        yield from (path for path in needed if path.exists())
    for folder, name in (
        ("checks", "__init__.py"),
        ("checks", "conftest.py"),
        ("misconceptions", "__init__.py"),
    ):
        yield from (course.root / "grader" / folder).glob(name)
