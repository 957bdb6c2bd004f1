"""Make the students' class repository and the zip for Gradescope, and pack the engine for both.

`bundle` makes the files of a class repository, `try_out` tries them out, and `hand_over` writes
them. Nothing is written if a file contains something hidden, or would replace a user's work.
`autograder_of` makes the files of Gradescope's zip. The engine is packed as a wheel from the
installation in use, an editable checkout or a wheel, with the same bytes every time. The wheel's
format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from shlex import quote

import yaml

from ..checks.runner import LocalRecordingRunner, namespace_of
from ..course import Assignment, Course, CourseError, Exercise
from ..course.model import FOLDER, course_secret
from ..diagnosis.recording_file import read
from ..files import CourseFault, digest_of, os_error_as_fault, write_whole, zip_files
from ..judge.run_hidden_checks import Catalogue
from ..report.report_content import points
from ..student.check_attempt import check_attempt
from ..submission import size_limit
from ..submission.newer_python import KEY, MANIFEST, PYTHON
from .make_stub import finished_modules, leaks
from .release_exercises import write_changed
from .templates import HERE, as_they_are, filled_templates

OWNER = re.compile(r"@[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)?")
# the course's own questions and answers, which the class repository's README shows
QUESTIONS = "grader/questions.md"
WORKFLOW = ".github/workflows/grade.yml"  # grades pull requests in the class repository
PAGE = re.compile(r"\]\(\.\./\.\./(docs/[\w-]+\.md)\)")  # a lesson's link to a page of the course
TRIAL = b"a release's trial"  # used in place of the course secret
SECONDS = 600.0  # for one attempt, and for all attempts together


def bundle(course: Course, exercises: Iterable[Path], owner: str) -> dict[str, bytes]:
    """Return the contents of the class repository's files by their paths. Nothing is written.

    These are the files in exercises/, course.yaml, licences, linked pages, finished modules, the
    engine, files made from templates, and the manifest with the digest of each other file.

    Args:
        course: The course.
        exercises: The paths of the files that `write_release` returned.
        owner: The login or team that the repository's CODEOWNERS names, with an @.

    Raises:
        CourseError: The owner is no login or team, or the engine is not installed.
    """
    if not OWNER.fullmatch(owner):
        problem = f"{owner!r} is not a login or team"
        raise CourseError(
            f"{problem}. Next: course release --out DIR --owner @ada, or @school/team"
        )
    own_files = [course.root / "course.yaml", *course.root.glob("LICENSE")]
    paths = [*exercises, *linked_pages(course), *own_files]
    files = {str(path.relative_to(course.root)): path.read_bytes() for path in paths}
    files |= {name: text.encode() for name, text in finished_modules(course).items()}
    wheel = engine_wheel()
    files |= wheel
    files |= as_they_are("shared")
    files[WORKFLOW] = judged_with(PYTHON, files[WORKFLOW])
    words = _words(course, owner, min(wheel.keys() - {HASH_FILE}))
    files |= filled_templates("class", words)
    files = dict(sorted(files.items()))
    manifest = json.dumps({"owner": owner, KEY: PYTHON, "files": digests(files)}, indent=1)
    return {**files, MANIFEST: f"{manifest}\n".encode()}


def judged_with(python: str, workflow: bytes) -> bytes:
    """Return the text of a workflow with this version of Python.

    The manifest names the same version to students.
    """
    return re.sub(rb'(python-version: )"[^"]*"', rf'\1"{python}"'.encode(), workflow)


def linked_pages(course: Course) -> set[Path]:
    """Return the paths of the pages of docs/ to which lessons link, if the pages exist.

    The class repository has these pages, too.
    """
    lessons = [exercise.solution.read_text(encoding="utf-8") for exercise in course.exercises]
    pages = {course.root / name for lesson in lessons for name in PAGE.findall(lesson)}
    return {page for page in pages if page.is_file()}


def _words(course: Course, owner: str, wheel: str) -> dict[str, str]:
    """Return the words that the templates of the class repository need."""
    first_exercise, questions = course.exercises[0], course.root / QUESTIONS
    attempts = [
        file.relative_to(course.root) for e in course.exercises for file in (e.script, e.notebook)
    ]
    rows = [
        (e.script.relative_to(course.root), e.title, points(e.points)) for e in course.exercises
    ]
    return {
        "owner": owner,
        "wheel": wheel,
        "own_questions": questions.read_text(encoding="utf-8") if questions.exists() else "",
        "title": course.title,
        "limit": str(course.limits.source_kib),
        "notebook_limit": str(size_limit(".ipynb", course.limits.source_kib)),
        "first": first_exercise.id,
        "first_file": str(first_exercise.script.relative_to(course.root)),
        "first_notebook": str(first_exercise.notebook.relative_to(course.root)),
        "first_folder": str(first_exercise.assignment.exercises_folder.relative_to(course.root)),
        "call_seconds": f"{course.limits.seconds_per_call:g}",
        "attempt_seconds": f"{course.limits.seconds_per_attempt:g}",
        "name": _name_of(course, first_exercise),
        "commands": _command_lines(course, _name_of(course, first_exercise)),
        "attempts": "\n".join(f"/{file}" for file in attempts),
        "exercises": "\n".join(f"| `{file}` | {title} | {worth} |" for file, title, worth in rows),
    }


def _name_of(course: Course, exercise: Exercise) -> str:
    """Return the shortest name that a command accepts for an exercise.

    It is the exercise's number, or its id if another assignment also has that number.
    """
    is_unique = sum(peer.number == exercise.number for peer in course.exercises) == 1
    return f"{exercise.number:02d}" if is_unique else exercise.id


def _command_lines(course: Course, exercise_name: str) -> str:
    """Return the rows of the README's table of commands.

    `course train` and `course bench` are left out if the course has no module to train.
    """
    lines = {
        "status": "the ladder: done, in progress, untouched, what is next",
        "check --watch": "check again at every save",
        f"hint {exercise_name}": "a question, then a pointer, then nearly the answer",
        f"trace {exercise_name}": (
            "your own lines: what each does to shapes, and where every number goes"
        ),
        f"plot {exercise_name}": "expected, yours and the difference, as a picture",
    }
    if able := [exercise for exercise in course.exercises if exercise.train is not None]:
        lines[f"train {_name_of(course, able[0])}"] = (
            "your own attention learns to write, in a minute"
        )
        lines["bench --quick"] = (
            "attention by hand against SDPA on your machine, beside the lesson's figures"
        )
    lines["--help"] = "all of them"
    return "".join(f"| `course {command}` | {says} |\n" for command, says in lines.items())


def try_out(
    course: Course,
    catalogue: Catalogue,
    files: Mapping[str, bytes],
    jobs: int = 1,
    *,
    is_handed_over: bool = False,
) -> None:
    """Raise CourseError if a stub scores points, or a solution fails `course check`.

    The files are written to a temporary folder. The stubs are judged in this process by the hidden
    and the visible checks. Then the solutions replace the stubs, and the packed engine checks them
    in other processes.

    Args:
        course: The course.
        catalogue: Its checks and references.
        files: The files of the class repository.
        jobs: The number of processes that run `course check`.
        is_handed_over: Whether exactly these files, to the byte, were tried and handed over before.
            Then only the stubs are tried again, because hidden checks may have changed.
    """
    with tempfile.TemporaryDirectory(prefix="course-release-") as temp_dir:
        folder, engine = Path(temp_dir).resolve() / "class", Path(temp_dir).resolve() / "engine"
        for name, content in files.items():
            write_whole(folder / name, content)
        pairs = list(zip(course.exercises, Course(folder, course.file).exercises, strict=True))
        for exercise, released in pairs:
            _try_stub(exercise, released, catalogue)
        if is_handed_over:
            return
        for exercise, released in pairs:
            shutil.copy(exercise.solution, released.script)
        # The limits are long, so that no release fails because the machine is busy.
        patient = {"seconds_per_call": SECONDS / 5, "seconds_per_attempt": SECONDS}
        file = course.file.model_copy(update={"limits": course.limits.model_copy(update=patient)})
        (folder / "course.yaml").write_text(
            yaml.safe_dump(file.model_dump(mode="json")), encoding="utf-8"
        )
        wheel_bytes = next(content for name, content in files.items() if name.endswith(".whl"))
        with zipfile.ZipFile(io.BytesIO(wheel_bytes)) as wheel:
            wheel.extractall(engine)
        ids = [exercise.id for exercise in course.exercises]
        shares = [ids[job::jobs] for job in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:  # each thread waits for a process
            list(pool.map(lambda ids: _try_engine(folder, engine, ids), filter(None, shares)))


def standalone_command(folder: Path, *arguments: str) -> list[str]:
    """Return the command line that runs `course` with the engine in this folder.

    The installed engine takes no part: without the module `site`, an editable installation cannot
    provide modules that the folder lacks.

    Args:
        folder: The folder that contains the package `manyheads`.
        arguments: The arguments of `course`.
    """
    sites = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    code = (
        f"import runpy, sys; sys.path[:0] = [{str(folder)!r}]; sys.path += {sites!r}; "
        "runpy.run_module('manyheads', run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-S", "-c", code, *arguments]


def _try_stub(exercise: Exercise, released: Exercise, catalogue: Catalogue) -> None:
    """Raise CourseError if the stub of an exercise scores points or passes a visible check.

    Args:
        exercise: The exercise in the course.
        released: The same exercise in the class repository, with its stub.
        catalogue: The checks and references.
    """
    stub = LocalRecordingRunner(namespace_of(released.script))
    reference = catalogue.reference(exercise)
    score = sum(o.score for o in catalogue.run(exercise, stub, reference, TRIAL, exercise.id))
    result = check_attempt(read(released.fingerprints), stub)
    passed = [check.id for check in result.checks if check.outcome == "passed"]
    if score or passed:
        problem = (
            f"its stub scores {score:g}"
            if score
            else f"its stub passes the visible checks {', '.join(passed)}"
        )
        raise CourseError(
            f"{exercise.id} cannot be released: {problem}. Next: course verify {exercise.id}"
        )


def _try_engine(folder: Path, engine: Path, ids: Sequence[str]) -> None:
    """Raise CourseError if `course check` of these exercises fails in the class repository.

    Solutions replace the stubs there, so all checks must pass within SECONDS.

    Args:
        folder: The folder of the class repository.
        engine: The folder of the unpacked engine.
        ids: The ids of the exercises.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = standalone_command(engine, "check", *ids)
    try:
        completed = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise CourseError(
            "the solutions do not pass `course check` as they are released in "
            f"{SECONDS:g} seconds. Next: course verify {' '.join(ids)}"
        ) from None
    if completed.returncode:
        lines = (completed.stdout + completed.stderr).splitlines()
        messages = [line for line in lines if line.startswith(("✗", "course:"))]
        messages = messages or completed.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise CourseError(
            f"not every solution passes `course check` as it is released: {messages[0]}. Next:"
            " course verify"
        )


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of every file but the manifest, which holds the digests."""
    return {name: digest_of(content) for name, content in files.items() if name != MANIFEST}


@dataclass(frozen=True)
class Earlier:
    """An earlier release to the same folder, read from its manifest.

    Attributes:
        files: The digest of every file, by its path. Empty if there was no release.
        owner: The owner of the repository, or None if there was no release.
    """

    files: Mapping[str, str]
    owner: str | None = None


def earlier_release(folder: Path) -> Earlier:
    """Return the last release to this folder, from its manifest.

    If the folder does not exist, or contains at most a git repository, there was no release.

    Raises:
        CourseFault: The path is not a folder, the folder contains other files without a manifest,
            or the manifest cannot be read.
    """
    if not folder.exists():
        return Earlier({})
    if not folder.is_dir() or folder.is_symlink():
        raise CourseFault(
            f"{folder} is not a folder. Next: course release --out with a new folder's name"
        )
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return Earlier(
            {str(k): str(v) for k, v in manifest["files"].items()}, str(manifest["owner"])
        )
    except FileNotFoundError:
        if {path.name for path in folder.iterdir()} <= {".git"}:
            return Earlier({})
        problem = f"{folder} holds other things than an earlier release: nothing is written"
        raise CourseFault(
            f"{problem}. Next: course release --out with a new folder's name"
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        next_step = f"git -C {quote(str(folder))} checkout {MANIFEST}"
        raise CourseFault(
            f"{folder / MANIFEST} cannot be read: nothing is written. Next: {next_step}"
        ) from None


def hand_over(course: Course, folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write these files, and remove those that only an earlier release wrote.

    Args:
        course: The course. The files must not contain its solutions or its secret.
        folder: The folder of the class repository.
        files: The contents by path, with the manifest.

    Returns:
        The paths that changed, without the manifest.

    Raises:
        CourseFault: `earlier_release` raises it, a file contains something hidden, a path is a
            link, or a file in the folder has changed since it was released, and may be a person's
            work. Nothing is changed then.
    """
    earlier = earlier_release(folder)
    for sentence in leaks(course, files):
        next_step = f"take it out, then course release --out {quote(str(folder))}"
        raise CourseFault(f"{sentence}: nothing is written. Next: {next_step}")
    for name in sorted({*files, *earlier.files}):
        _demand_unchanged(folder, name, earlier.files.get(name), files.get(name))
    return _write(folder, files, earlier)


def _demand_unchanged(folder: Path, name: str, released: str | None, new: bytes | None) -> None:
    """Raise CourseFault if the file has changed since its release.

    Also raise it if the file, or a folder above it, is a link. A file that is absent or already has
    its new content has not changed, and neither has the manifest.

    Args:
        folder: The folder of the class repository.
        name: The path of the file in it.
        released: The digest of the file in the earlier release, or None if it had no such file.
        new: The new content, or None if the file is to be removed.
    """
    path = folder / name
    for parent in (path, *(folder / ancestor for ancestor in Path(name).parents)):
        if parent.is_symlink():
            next_step = f"rm {quote(str(parent))}"
            raise CourseFault(f"{parent} is a link: nothing is written. Next: {next_step}")
    if not path.exists() or name == MANIFEST:
        return
    content = path.read_bytes() if path.is_file() else None
    if content is not None and (content == new or _is_as_released(content, released)):
        return
    problem = (
        f"{path} has changed since it was released: nothing is written, because it may be "
        "somebody's work"
    )
    raise CourseFault(
        f"{problem}. Next: mv {quote(str(path))} elsewhere, then course release --out "
        f"{quote(str(folder))}"
    )


def _is_as_released(content: bytes, digest: str | None) -> bool:
    """Return whether this content has the digest, perhaps after CRLF is replaced by LF.

    On Windows git may write CRLF in place of LF.
    """
    return digest in (digest_of(content), digest_of(content.replace(b"\r\n", b"\n")))


def _write(folder: Path, files: Mapping[str, bytes], earlier: Earlier) -> list[str]:
    """Write the files, remove old files and folders that become empty, and return what changed.

    The manifest is written last, so that an interrupted release can be repeated. It is not among
    the returned paths.
    """
    contents = {name: content for name, content in files.items() if name != MANIFEST}
    changed = [name for name, content in contents.items() if write_changed(folder / name, content)]
    removed = [
        name for name in sorted(earlier.files.keys() - contents.keys()) if (folder / name).exists()
    ]
    for name in removed:
        (folder / name).unlink()
        for parent in Path(name).parents[:-1]:
            if any((folder / parent).iterdir()):
                break
            (folder / parent).rmdir()
    write_changed(folder / MANIFEST, files[MANIFEST])
    return [*changed, *removed]


NAME = "manyheads"
ENGINE = Path(__file__).parents[1]
HASH_FILE = "engine.sha256"  # one line, as sha256sum writes it
TOOLS, PROGRAMS = "tools/", ("setup.sh", "run_autograder")  # of the zip
_ABOUT = ("METADATA", "entry_points.txt", "licenses/LICENSE")
_WHEEL = b"Wheel-Version: 1.0\nGenerator: manyheads\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def engine_wheel(*, templates: bool = False) -> dict[str, bytes]:
    """Return the contents of the wheel and of the file with its hash, by their file names.

    Args:
        templates: Include the templates of `course init`, `course new` and `course release --out`.
            Students do not need them, and they contain a whole course with its solutions.

    Raises:
        CourseError: The engine is not installed.
    """
    for distribution in metadata.distributions(name=NAME):
        if distribution.read_text("METADATA"):
            break
    else:
        next_step = "pip install -e . in its repository, or pip install its wheel"
        raise CourseError(f"{NAME} is not installed here. Next: {next_step}")
    files = {
        f"{NAME}/{path.relative_to(ENGINE).as_posix()}": path.read_bytes()
        for path in sorted(ENGINE.rglob("*"))
        if _is_packed(path, templates=templates)
    }
    dist_info = f"{NAME}-{distribution.version}.dist-info"
    for name in _ABOUT:
        text = distribution.read_text(name)
        if text is not None:
            files[f"{dist_info}/{name}"] = text.encode()
    files[f"{dist_info}/WHEEL"] = _WHEEL
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(content)}\n"
    record_name = f"{dist_info}/RECORD"
    files[record_name] = f"{record}{record_name},,\n".encode()
    wheel_name, wheel = f"{NAME}-{distribution.version}-py3-none-any.whl", zip_files(files)
    return {wheel_name: wheel, HASH_FILE: f"{digest_of(wheel)}  {wheel_name}\n".encode()}


def _is_packed(path: Path, *, templates: bool) -> bool:
    """Return whether the wheel contains this path of the engine's folder."""
    if not path.is_file() or "__pycache__" in path.parts or path.suffix in (".pyc", ".partial"):
        return False
    return templates or HERE not in path.parents or path.parent == HERE


def autograder_of(
    course: Course, assignment: Assignment, torch_index: str = ""
) -> dict[str, bytes]:
    """Return the contents of the files in Gradescope's zip, by their paths.

    The zip holds the solutions and the course's secret, which is created if there is none. It holds
    nothing about the class: no results, no decisions, no names.

    Args:
        course: The course.
        assignment: The assignment that the zip grades.
        torch_index: The package index from which torch is installed, or "" for the usual one.

    Raises:
        CourseError: The engine is not installed, or the secret cannot be created or is readable by
            other users.
    """
    words = {"assignment": quote(assignment.id), "torch_index": torch_index}
    files = dict(filled_templates("gradescope", words))
    for name, text in as_they_are("shared"):
        if name.startswith(TOOLS) or name == "constraints.txt":
            files[name] = text
    files |= engine_wheel()
    for path in _files_for_grading(course):
        files[f"course/{path.relative_to(course.root).as_posix()}"] = path.read_bytes()
    files[f"course/{FOLDER}/secret"] = course_secret(course.root)
    return files


def write_autograder(files: dict[str, bytes], out: Path) -> None:
    """Write the zip of Gradescope's files, readable only by its owner.

    Raises CourseFault if the file cannot be written.
    """
    with os_error_as_fault(out, "name another file"):
        write_whole(out, zip_files(files, PROGRAMS))
        out.chmod(0o600)


def _files_for_grading(course: Course) -> Iterator[Path]:
    """Yield the paths of the files for grading, and of the sources of the fault dictionaries.

    Notebooks and the figures of lessons are not needed. Missing files are left out, except for
    course.yaml and the texts.
    """
    yield from (course.root / "course.yaml", course.texts)
    for exercise in course.exercises:
        needed = (exercise.script, exercise.fingerprints, *exercise.recorded_from())
        yield from (path for path in needed if path.exists())
    for name in ("checks/__init__.py", "checks/conftest.py", "misconceptions/__init__.py"):
        yield from (course.root / "grader").glob(name)
