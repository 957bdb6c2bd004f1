"""The folder of a run's results: it is one run's alone, and its results state one seed."""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import CourseFault
from ..result import result_path
from ..submission import Submission
from ..submission import left_over as not_graded
from .record_results import CHANGED, CHANGING, JOURNAL

LOCK = ".lock"
SEEDS = 1_000_000  # easily typed; nobody can compute a run's inputs from it without the course's secret


@contextmanager
def alone_in(folder: Path, submissions: Sequence[Submission]) -> Iterator[None]:
    """Hold a folder of results for one run, whose results go to regular files there, until the process ends in any way.

    Where there are no such locks, as on Windows, nothing is held. Raises CourseFault where another run holds it, or a link or a
    folder stands where a file is to be written.
    """
    _refuse_links(folder, submissions)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        if not _is_held(file.fileno(), folder / LOCK):
            file.seek(0)
            said = f"another course grade (process {file.read(20).strip() or 'unknown'}) is writing to {folder}"
            raise CourseFault(f"{said}. Next: wait for its end, or give --out another folder")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file, and nobody a folder with results
                (folder / LOCK).unlink()
                folder.rmdir()


def _is_held(descriptor: int, path: Path) -> bool:
    """Return whether this process holds the file now, and it is the one that others find there."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


def _refuse_links(folder: Path, submissions: Sequence[Submission]) -> None:
    own = (LOCK, JOURNAL, not_graded.NAME, CHANGED, CHANGING)
    results = [result_path(folder, submission.student, submission.assignment.id) for submission in submissions]
    for path in [*(folder / name for name in own), *results]:
        within = path.parent if path.parent != folder else path
        if link := next((each for each in (within, path) if each.is_symlink()), None):
            raise CourseFault(f"{link} is a link, and nothing is written through it. Next: remove it")
        wrong = f"{path} is a folder, where a file" if path.is_dir() else ""
        if within != path and within.exists() and not within.is_dir():
            wrong = f"{within} is a file, where a folder"
        if wrong:
            raise CourseFault(f"{wrong} is to be written. Next: move it elsewhere, or give --out another folder")


def seed_of_run(folder: Path, assignments: Iterable[str], given: int | None, *, in_part: bool) -> int:
    """Return the seed that is given; else that of the results in the folder, which the run goes on with; else a new one.

    in_part: whether what they hold of some exercises stays: then it is their seed, because a result states one. Raises
    CourseFault where they have another one than is given, or several.
    """
    seeds = Counter[int]()
    for path in (path for assignment in assignments for path in sorted(folder.glob(f"*/{assignment}.json"))):
        try:
            seeds[int(json.loads(path.read_bytes())["seed"])] += 1
        except (OSError, ValueError, TypeError, LookupError):  # it is no result
            continue
    before = seeds.most_common(1)[0][0] if seeds else None
    if in_part and before is not None and set(seeds) != {before if given is None else given}:
        raise CourseFault(
            f"what {folder} holds of the other exercises has the seed {', '.join(map(str, sorted(seeds)))}, and a result "
            "states one seed. Next: the same command without --seed and --exercise, or with another --out"
        )
    if given is not None:
        return given
    return secrets.randbelow(SEEDS) if before is None else before
