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
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from . import Unreadable, read_text

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REF = re.compile(r"ref: (refs/heads/(?!.*\.\.)[\w./@+-]+)")
SECONDS = 20  # for one clone, however many folders it has: of a thousand with a long history each takes as long
_taken: dict[Path, float] = defaultdict(float)  # seconds that git has taken, by the clone


def commit_time(download: Path, path: tuple[str, ...]) -> str:
    """Return the time, in ISO 8601, of the last commit of this file's folder; "" where no clone in the download says."""
    for i in reversed(range(len(path))):
        clone = download.joinpath(*path[:i])
        if (clone / ".git").is_dir() and not clone.is_symlink():
            return "" if (clone / ".git").is_symlink() else _last_commit(clone, "/".join(path[i:-1]) or ".")
    return ""


@cache
def _last_commit(clone: Path, folder: str) -> str:
    commit, git, left = _head(clone / ".git"), shutil.which("git"), SECONDS - _taken[clone]
    if not commit or git is None or left <= 0:
        return ""
    started, theirs, found = time.monotonic(), (clone / ".git").resolve(), ""
    with TemporaryDirectory() as own:
        for name in ("objects", "refs"):
            Path(own, name).mkdir()
        Path(own, "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        variables = {"DIR": own, "CONFIG_GLOBAL": os.devnull, "OBJECT_DIRECTORY": str(theirs / "objects")}
        variables |= dict.fromkeys(("CONFIG_NOSYSTEM", "NO_LAZY_FETCH", "NO_REPLACE_OBJECTS"), "1")
        if (theirs / "shallow").is_file():  # of a clone without its whole history: where that ends
            variables["SHALLOW_FILE"] = str(theirs / "shallow")
        environment = {f"GIT_{name}": value for name, value in variables.items()} | {"HOME": own}
        environment["PATH"] = os.environ.get("PATH", os.defpath)
        command = [git, "log", "-1", "--format=%cI", "--end-of-options", commit, "--", folder]
        with suppress(OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=left, check=False)
            found = done.stdout.strip() if done.returncode == 0 else ""
    _taken[clone] += time.monotonic() - started
    return found


def _head(git: Path) -> str:
    """Return the commit that is checked out; "" where that cannot be read."""
    said = _text(git / "HEAD")
    if ref := _REF.fullmatch(said):
        packed = (line.partition(" ") for line in _text(git / "packed-refs").splitlines())
        said = _text(git / ref[1]) or next((commit for commit, _, name in packed if name == ref[1]), "")
    return said if _COMMIT.fullmatch(said) else ""


def _text(path: Path) -> str:
    with suppress(Unreadable):
        return read_text(path, 1024).strip()
    return ""
