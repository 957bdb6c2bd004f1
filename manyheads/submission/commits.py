"""When a clone's files were last committed. A clone may be a student's own: git reads nothing of it but objects.

A repository's configuration can name programs for git to start. git works here in an empty repository of ours, and is told to
look for objects in the clone. The time is what the student's git wrote: it can be set at will, as docs/decisions.md says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from . import Unreadable, read_text

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REF = re.compile(r"refs/heads/(?!.*\.\.)[\w./@+-]+")
SECONDS = 20  # for one clone, however many folders it has: of a thousand with a long history each takes as long
_taken: dict[Path, float] = defaultdict(float)  # seconds that git has taken, by the clone


def commit_time(download: Path, path: tuple[str, ...]) -> str:
    """Return the time, in ISO 8601, of the last commit of this file's folder; "" where no clone in the download says."""
    folders = [download.joinpath(*path[:i]) for i in range(len(path))]
    clone = next(
        (folder for folder in reversed(folders) if (folder / ".git").is_dir() and not folder.is_symlink()), None
    )
    if clone is None or (clone / ".git").is_symlink():
        return ""
    return _last_commit(clone, "/".join(path[len(clone.relative_to(download).parts) : -1]) or ".")


@cache
def _last_commit(clone: Path, folder: str) -> str:
    commit, git, left = _head(clone / ".git"), shutil.which("git"), SECONDS - _taken[clone]
    if not commit or git is None or left <= 0:
        return ""
    started, theirs = time.monotonic(), clone / ".git"
    with TemporaryDirectory() as own:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": own,
            "GIT_DIR": own,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        _run([git, "init", "--quiet", "--bare", "--template="], environment)
        if (shallow := theirs / "shallow").is_file():  # of a clone without its whole history: where that ends
            environment["GIT_SHALLOW_FILE"] = str(shallow.resolve())
        environment["GIT_OBJECT_DIRECTORY"] = str((theirs / "objects").resolve())
        command = [git, "log", "-1", "--format=%cI", "--end-of-options", commit, "--", folder]
        found = _run(command, environment, left)
    _taken[clone] += time.monotonic() - started
    return found


def _run(command: list[str], environment: dict[str, str], seconds: float = SECONDS) -> str:
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _head(git: Path) -> str:
    """Return the commit that is checked out; "" where that cannot be read."""
    said = _text(git / "HEAD").strip()
    name = said.removeprefix("ref: ")
    if name == said:
        return said if _COMMIT.fullmatch(said) else ""
    if not _REF.fullmatch(name):
        return ""
    own = _text(git / name).strip()
    if _COMMIT.fullmatch(own):
        return own
    packed = (line.split(" ") for line in _text(git / "packed-refs").splitlines())
    return next((line[0] for line in packed if line[1:] == [name] and _COMMIT.fullmatch(line[0])), "")


def _text(path: Path) -> str:
    try:
        return read_text(path, 1024)
    except Unreadable:
        return ""
