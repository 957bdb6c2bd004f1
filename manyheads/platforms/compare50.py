"""Find pairs of attempts that look alike, with CS50's compare50, which is run as a program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from ..box.interpreter import PATIENCE, end
from ..course import Course, CourseError, Exercise
from ..errors import CourseFault, restore
from ..submission import Submission, code_digest, read_exercise
from ..submission.left_over import shown
from ..whole import write_whole

# Run compare50, CS50's tool for comparing code. It is run as a program, because it needs other packages than nbgrader.
#
# It reads text, ranks pairs, and writes pages that show two attempts side by side and need no network.

NAME = "compare50"
OWN = Path(".cache", NAME)  # an environment of its own, beside course.yaml
SECONDS, MEMORY_GIB = 600, 4  # for one exercise: a class of 300 takes seconds
PAGES = ("index.html", "match_*.html")
_UNSAFE = re.compile(r"[^\w .@+-]")
NOWHERE = "http://127.0.0.1:9"  # compare50 asks PyPI for a newer version on every run; this address refuses


def find_compare50(root: Path) -> list[str]:
    """Return the command: from the PATH, or from the course's OWN folder. Raises CourseFault if it is not installed."""
    program = shutil.which(NAME) or shutil.which(NAME, path=str(root / OWN / "bin"))
    if program is None:
        venv = shlex.quote(str(root / OWN))
        by_hand = f"python3 -m venv {venv} && {venv}/bin/pip install {NAME}"
        raise CourseFault(
            f"{NAME} is not installed. Next: pipx install {NAME} (without pipx: {by_hand}), then the same again"
        )
    # Its script uses the python3 on the PATH, which is the wrong one if compare50 has its own environment.
    python = Path(program).resolve().with_name("python3")
    return [str(python), "-m", NAME] if python.exists() else [program]


def compare(command: list[str], attempts: Mapping[str, str], given: str, stem: str, out: Path, pairs: int) -> bool:
    """Write the pages of the most similar pairs into `out`. Returns whether there are any.

    given: the code that all students were given, which does not count. Raises CourseFault if compare50 fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        students = [f"submitted/{label}" for label in labels(attempts)]
        for place, text in (dict(zip(students, attempts.values(), strict=True)) | {"given": given}).items():
            write_whole(folder / place / f"{stem}.py", text.encode())
        options = ["-d", f"given/{stem}.py", "-n", str(pairs), "-o", "pages"]
        # Students come first, because an option with several values would consume them.
        status = _run([*command, *students, *options], folder)
        if status is None:
            raise CourseFault(
                f"{NAME} was stopped on {stem}, after {SECONDS} s or at {MEMORY_GIB} GiB: attempts that say the same over and over do "
                f"that. Next: look at those of {' and '.join(map(shown, most_repetitive(attempts)))}, and take them out"
            )
        if status != 0:
            raise CourseFault(f"{NAME} failed with status {status} on {stem}. Next: {NAME} --version")
        return _move(folder / "pages", out)


def _run(command: list[str], folder: Path) -> int | None:
    """Its exit status; None where it was stopped, with all that it had started.

    Pairs of equal tokens, of which two lists of a thousand names have a million, cost it time and memory without a bound.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return _ended(process)
    finally:
        with suppress(ProcessLookupError):
            end(process, PATIENCE)


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    until = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < until and _memory_gib(process.pid) < MEMORY_GIB:
        time.sleep(0.05)
    return process.returncode


def _memory_gib(pid: int) -> float:
    """Return what a process holds; 0 where the system does not tell, as without /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, IndexError):
        return 0.0


def most_repetitive(attempts: Mapping[str, str]) -> list[str]:
    """Return the two students whose attempts say the same most often, whatever names they give to it."""

    def times(student: str) -> float:
        text = re.sub(r"\w+", "a", attempts[student]).encode()
        return len(text) / len(zlib.compress(text))

    return sorted(attempts, key=times, reverse=True)[:2]


def labels(students: Iterable[str]) -> list[str]:
    """Return a unique name for each student that is safe in a path, in a pattern, and in the tool's pages, which show it as HTML."""
    made: list[str] = []
    for student in students:
        label = plain = _UNSAFE.sub("_", student).lstrip("-.") or "_"
        number = 1
        while label in made:
            number += 1
            label = f"{plain}~{number}"
        made.append(label)
    return made


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    # A fixed hash seed, as in its own script, makes runs reproducible.
    return {**kept, "PYTHONHASHSEED": "50", "HTTPS_PROXY": NOWHERE, "https_proxy": NOWHERE}


def _move(pages: Path, out: Path) -> bool:
    """Replace the pages of an earlier run by the new ones, and change no other file."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (path for pattern in PAGES for path in out.glob(pattern)):
        old.unlink()
    new = sorted(pages.glob("*.html"))
    for path in new:
        shutil.move(path, out / path.name)
    return bool(new)


# The attempts of a class at one exercise, as text: scripts and notebooks alike.


def attempts_of(course: Course, exercise: Exercise, submissions: Iterable[Submission]) -> dict[str, str]:
    """Student → source, without missing and unreadable attempts and untouched stubs."""
    untouched = code_digest(stub_text(exercise))
    attempts = {}
    for submission in submissions:
        if submission.assignment == exercise.assignment:
            attempt = read_exercise(submission.folder, exercise, untouched, course.limits.source_kib)
            if not attempt.missing and not attempt.problem and code_digest(attempt.source) != untouched:
                attempts[submission.student] = attempt.source
    return attempts


def stub_text(exercise: Exercise) -> str:
    """Return the text of the stub, which all attempts have in common. Raises CourseError if it is missing."""
    path = exercise.script
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(f"{path} is missing. {restore(path)}") from None
