"""What no platform names: folders of students, however deep, as people lay them out, an archive that is one student's, Gradescope's list; and when a clone was committed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

import yaml

from ..course import Course
from ..course.dates import read_moment
from . import ENDINGS, Unreadable, is_archive, read_text
from .archives import METADATA, MIB, Closed, Member, content_of, own_name
from .find import plain, shown
from .platforms import FOLDERS, ROWS, Download, HandIn, Person, Understood, unwrapped
from .which_exercise import Exercises

ALONE = " alone in "  # in a person's key, before the archive that holds one folder only
_GRADESCOPE = "Gradescope"
_LIST, _DEEPEST = 16 * MIB, 50  # bytes of a list; brackets within brackets
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is faster, and not everywhere
_NO_NAME = (
    "says of no student whose it is. Next: mkdir STUDENT && mv {} STUDENT/ where it lies, then: course collect STUDENT"
)
_NO_FOLDER = "is in no student's folder. Next: put it into one, then the same command again"


def understood(download: Download, course: Course) -> Understood:
    """Return what is made of a download. Each way to read takes what is its own from what those before it have left."""
    done, left = Understood(), [*download.members]
    ways = (
        (FOLDERS, _one_students),
        (_GRADESCOPE, _of_gradescope),
        *((r.platform, r.read) for r in ROWS),
        (FOLDERS, _in_folders),
    )
    for platform, read in ways:
        before, left = len(left), read(download, left, course, done) if left else []
        if len(left) < before and platform not in done.platforms:
            done.platforms.append(platform)
    return done


def _one_students(download: Download, members: Sequence[Member], course: Course, done: Understood) -> list[Member]:
    """Take in all of a download that is one student's, whatever it holds: its own name says so, or a folder with all of it."""
    names = map(unwrapped, (download.name, *members[0].path[: download.parting]))
    known = next((name for name in names if download.is_of_one or download.is_known(name)), None)
    if known is None:
        return [*members]
    done.handed_in += [HandIn(person_called(known), member, member.name) for member in members]
    return []


def person_called(name: str, alone_in: str = "") -> Person:
    """Return the person of a folder or an archive that people named: it may be any id of the roster, or a name."""
    return Person(FOLDERS, f"{name}{ALONE}{alone_in}" if alone_in else name, name, name, logins=(name,))


def _in_folders(download: Download, members: Sequence[Member], course: Course, done: Understood) -> list[Member]:
    """Take in files that stand at the same depth below their students' folders; a loose one is nobody's."""
    depth, own = depth_of(download.members, course), unwrapped(download.name)
    names = {folders[depth] for folders in map(_folders, download.members) if 0 <= depth < len(folders)}
    whole = depth < 0 and len(members) == len(download.members)  # the download is one student's
    # The one folder of an archive is all that says whose it is.
    is_alone = own != download.name and plain(own) not in all_ids(course) and len(names) == 1
    others = {member.path[:-1] for member in {*download.members} - {*members}}
    for member in members:
        folders = _folders(member)
        if member.path == (download.name,) and not (member.closed and is_archive(download.name)):
            done.others.append((member.path, _NO_NAME.format(quote(shown(member.name)))))
        elif folders not in others and (whole or 0 <= depth < len(folders)):
            person = person_called(own if whole else unwrapped(folders[depth]), download.name * is_alone)
            done.handed_in.append(HandIn(person, member, member.name))
        else:
            done.others.append((member.path, _NO_FOLDER))
    return []


def depth_of(members: Sequence[Member], course: Course) -> int:
    """Return at which depth students' folders stand; -1 if the download is itself a student's.

    Where folders differ, they are students': ada and bela in class/hw1/ada, class/hw1/bela. Only if no student stands beside another,
    an assignment's folder or an attempt says that the folder above it is the student's; so does a folder for each exercise.
    An attempt whose name says more than its exercise's does not: it may be another student's than what stands in a folder beside it.
    """
    ids, known, depth = {plain(a.id) for a in course.assignments}, Exercises(course), 0
    while True:
        folders = {path[depth] for path in map(_folders, members) if depth < len(path)}
        names = set(map(plain, folders))
        loose = [
            name for m in members if len(m.path) == depth + 1 and (name := own_name(m.name)).lower().endswith(ENDINGS)
        ]
        if ids & names or (names and names <= all_ids(course)):
            # <assignment>/<student>/…
            is_transposed = depth == 0 and all(len(m.path) + is_archive(m.name) > 2 for m in members)
            return 1 if is_transposed else depth - 1
        if len(folders) > 1:
            return depth
        if loose or not folders:
            says_more = any(known.named(name) and not known.is_plain(name) for name in loose)
            return depth if folders and says_more else depth - 1
        depth += 1


def _folders(member: Member) -> tuple[str, ...]:
    """Return the folders that a file lies in; an archive stands for what is in it."""
    return member.path if is_archive(member.name) else member.path[:-1]


def all_ids(course: Course) -> set[str]:
    """Return what a folder of an exercise or of an assignment may be called, without what people spell differently."""
    return {plain(name) for each in course.exercises for name in (each.id, each.stem, each.assignment.id)}


# Gradescope's "Export Submissions" gives submission_<number>/ folders, and a list on whose they are, with Ruby's keys:
# submission_987654 → :submitters → a list of :name, :sid, :email; :created_at. It is read as nodes, so that no tag makes an object.


def _of_gradescope(download: Download, members: Sequence[Member], course: Course, done: Understood) -> list[Member]:
    """Take in files by the list, if it stands above all of them: one in a student's folder is the student's."""
    lists = [member for member in members if member.name == METADATA and len(member.path) - 1 <= download.parting]
    root = _read_list(lists[0]) if lists else None
    for member in members if lists else ():
        entry = _value(root, member.path[len(lists[0].path) - 1])
        submitters, created = _value(entry, ":submitters"), _text(_value(entry, ":created_at"))
        persons = list[Person]()
        for each in submitters.value if isinstance(submitters, yaml.SequenceNode) else ():
            name, sid, email = (_text(_value(each, key)) for key in (":name", ":sid", ":email"))
            folder = sid or email or name
            persons.append(Person(_GRADESCOPE, folder, folder, name, (("sis_id", sid), ("email", email))))
        in_order = read_moment(created, "UTC")
        order, when = in_order.timestamp() if in_order else 0.0, read_moment(created)
        done.handed_in += [HandIn(person, member, member.name, order, when) for person in persons if person.folder]
        if member is not lists[0] and not any(person.folder for person in persons):
            said = f"is of no submission that {METADATA} lists. Next: look whose it is, or export the submissions again"
            done.others.append((member.path, said))
    return [] if lists else [*members]


def _read_list(member: Member) -> yaml.Node | None:
    """Return the list as nodes; None where it is no YAML, or nested too deeply to be read safely."""
    try:
        text, depth = content_of(member, _LIST).decode("utf-8"), 0
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                return None
        return yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, Closed, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if isinstance(name, yaml.ScalarNode) and name.value == key), None)


def _text(node: yaml.Node | None) -> str:
    value = node.value if isinstance(node, yaml.ScalarNode) else ""
    return "" if value in ("null", "~") else str(value).strip()


# A clone may be a student's own, and its configuration can name programs for git to start. So git works in an empty repository of
# ours, and is told to look for objects in the clone. The time is what the student's git wrote: it can be set at will.
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
    said = _text_of(git / "HEAD")
    if ref := _REF.fullmatch(said):
        packed = (line.partition(" ") for line in _text_of(git / "packed-refs").splitlines())
        said = _text_of(git / ref[1]) or next((commit for commit, _, name in packed if name == ref[1]), "")
    return said if _COMMIT.fullmatch(said) else ""


def _text_of(path: Path) -> str:
    with suppress(Unreadable):
        return read_text(path, 1024).strip()
    return ""
