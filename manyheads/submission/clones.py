"""Read clones of students' repositories, and when their files were last committed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ..course import Course
from . import ENDINGS, Unreadable, read_text
from .platforms import ARCHIVE, Contents, Download, HandedIn, Person, in_common, matched
from .read_download import Found

# Clones of students' repositories: <assignment>-<username>/, as GitHub Classroom names them, mostly with exercises/ in
# them.
#
# `gh classroom clone student-repos` puts them into <assignment>-submissions/ (github/gh-classroom): then that says
# what stands before the user's name. Else it is what all the repositories have in common. The assignment's name there
# need not be one of the course's. GitHub's zip of a repository has its branch behind its name, and so has the folder
# in it.

_ALL = "-submissions"
_BRANCH = "(?:-main|-master)?"
# Paths begin with the download's name. In what a repository is called, or its zip, `who` is the repository.
_BELOW_EXERCISES = (
    rf"(?:[^/]+/)*?(?P<zip>(?P<who>[^/]+?){_BRANCH}){ARCHIVE}/(?P<folder>(?P=zip))/exercises/(?:{{ids}})/.*",
    rf"(?:[^/]+/)*?(?P<who>[^/]+?)(?:{_BRANCH}{ARCHIVE})?/exercises/(?:{{ids}})/.*",
)
_BELOW_ALL = (rf"(?:[^/]+/)*?(?P<all>[^/]+){_ALL}/(?P<who>(?P=all)-[^/]+?)(?:{_BRANCH}{ARCHIVE})?/.*",)


def clones(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return what stands below exercises/<assignment>/ of each repository, and nothing else of it.

    Of those that Classroom put into one folder, and that have no exercises/, every script and notebook.
    """
    ids = {assignment.id for assignment in course.assignments}
    below = [expression.format(ids="|".join(map(re.escape, ids))) for expression in _BELOW_EXERCISES]
    found: list[tuple[str, Found]] = []
    repositories: set[tuple[str, ...]] = set()
    for expressions in (below, _BELOW_ALL):
        left = [file for file in files if not _is_of(file, repositories)]
        for file in left:
            if match := matched(expressions, (download.name, *file.path), download.parting + 1):
                end = match.end("folder" if "folder" in match.groupdict() else "who")
                repositories.add(file.path[: match.string.count("/", 0, end)])
                if file.closed or file.name.lower().endswith(ENDINGS):
                    found.append((match["who"], file))
    prefix = _prefix([repository for repository, _ in found], ids, _names_of_all(download))
    handed_in = [HandedIn(_person(name, prefix), file, file.name) for name, file in found]
    return Contents(handed_in, nobodys=[file for file in files if _is_of(file, repositories)])


def _names_of_all(download: Download) -> list[str]:
    """Return what may stand before the user's name: what a folder of all repositories says."""
    shared = download.files[0].path[: download.parting] if download.files else ()
    return [f"{name.removesuffix(_ALL)}-" for name in (download.name, *shared) if name.endswith(_ALL)]


def _is_of(file: Found, repositories: set[tuple[str, ...]]) -> bool:
    """Return whether the file is in one of these repositories: what the class repository itself holds is nobody's."""
    return any(file.path[:i] in repositories for i in range(len(file.path)))


def _prefix(repositories: Sequence[str], ids: set[str], before: Sequence[str]) -> str:
    """Return what stands before the user's name: what the folder of all says, an assignment's id, or what all have in common; else nothing."""
    slugs = [slug for id_ in sorted(ids, key=len, reverse=True) for slug in (f"{id_}-", f"{id_.replace('_', '-')}-")]
    for slug in (*before, *slugs):
        if all(name.lower().startswith(slug.lower()) and len(name) > len(slug) for name in repositories):
            return slug
    return in_common(repositories, "-")


def _person(repository: str, prefix: str) -> Person:
    user = repository[len(prefix) :]
    return Person(user, ids=(("github", user),))


# When a clone's files were last committed. A clone may be a student's own: git reads nothing of it but objects.
#
# A repository's configuration can name programs for git to start. git works here in an empty repository of ours, and
# is told to look for objects in the clone. The time is what the student's git wrote: it can be set at will, as
# docs/decisions.md says.

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
