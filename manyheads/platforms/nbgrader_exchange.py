"""nbgrader's exchange: every account of the machine may write there, so what lies in it is untrusted data.

`nbgrader collect` runs as the account that can read the solutions and the hidden checks. By itself it follows links,
which would hand these in as a student's own, believes whose folder it is by the name alone, and stops for everybody at
what one student left there. These functions take the place of its methods, for every assignment of the course folder.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeCollect, ExchangeError, ExchangeReleaseFeedback

from ..course.dates import read_moment
from ..submission import Unreadable, read_text
from ..submission.find import is_student
from .nbgrader_names import SECRET, TIMESTAMP
from .nbgrader_staging import folders_named

Record = dict[str, Any]

MOST_FILES, DEEPEST = 1000, 8  # of one submission
_NOBODY = ""  # whose submission it is where the folder's name is none of `nbgrader submit`
_OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ORIGINAL = "_before_manyheads"


def prepare_exchange() -> None:
    """Make nbgrader's commands safe in an exchange. Calling it twice is as calling it once."""
    wrap(ExchangeCollect, "_path_to_record", _record)
    wrap(ExchangeCollect, "_sort_by_timestamp", _newest_of_their_own)
    wrap(ExchangeCollect, "init_src", _found)
    wrap(ExchangeCollect, "do_copy", _copy)
    wrap(CourseDirectory, "get_existing_timestamp", _time_in)
    wrap(ExchangeReleaseFeedback, "copy_files", _release)


def _record(original: Callable[..., Record], collect: Any, path: str) -> Record:
    """Whose submission a folder is, and of when, by its name."""
    with suppress(ExchangeError, ValueError, OverflowError, OSError):
        record = original(collect, path)
        if stat.S_ISDIR(os.lstat(path).st_mode) and is_student(record["username"]):
            return record
    collect.log.warning("%a in the exchange is not what nbgrader submit writes, and is not collected", Path(path).name)
    return {"username": _NOBODY, "filename": Path(path).name, "timestamp": datetime.min}


def _newest_of_their_own(original: Callable[..., list[Record]], collect: Any, records: list[Record]) -> list[Record]:
    """Return the newest first. A folder of another account is not looked at where the student has handed in one, too.

    Where accounts are not told apart, as on some hubs in containers, none is the student's own, and all are looked at.
    """
    own = [record for record in records if _owner(Path(collect.inbound_path, record["filename"])) == record["username"]]
    if own and collect.check_owner:
        for each in records:
            if each not in own:
                collect.log.warning("%a is not %s's own, and is not collected", each["filename"], each["username"])
    return original(collect, own if own and collect.check_owner else records)


def _owner(folder: Path) -> str:
    try:
        return pwd.getpwuid(folder.lstat().st_uid).pw_name
    except (OSError, KeyError):
        return ""


def _found(original: Callable[..., None], collect: Any) -> None:
    original(collect)
    collect.src_records = [record for record in collect.src_records if record["username"] != _NOBODY]


def _copy(original: Callable[..., None], collect: Any, src: str, dest: str, log: object = None) -> None:
    """Copy the regular files alone, whatever the student does to them meanwhile; from there nbgrader goes on as ever."""
    with TemporaryDirectory() as folder:
        for name in copy_regular_files(Path(src), Path(folder), 1000 * collect.coursedir.max_dir_size):
            collect.log.warning("%a of %a is a link, no file, or too large, and is left out", name, Path(src).name)
        if said := agree_on_time(Path(src).name, Path(folder)):
            collect.log.warning("%a: %s", Path(src).name, said)
        Path(folder).chmod(0o755)
        original(collect, folder, dest, log)


def agree_on_time(name: str, folder: Path) -> str:
    """Let a submission's own file on its time say what its name in the exchange does; return why, where it said another.

    `nbgrader submit` writes both. The file is the student's own for as long as it lies in the exchange.
    """
    _, _, time, *_ = [*name.split("+"), "", "", ""]
    try:
        own = read_text(folder / TIMESTAMP, 1)
    except Unreadable:
        own = ""
    if (when := read_moment(time, "UTC")) is None or when == read_moment(own, "UTC"):
        return ""
    if (folder / TIMESTAMP).is_dir():  # made by the student, and copied with the rest
        shutil.rmtree(folder / TIMESTAMP)
    (folder / TIMESTAMP).write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC")
    return f"{TIMESTAMP} does not say the time in the exchange's name, which counts"


def copy_regular_files(source: Path, target: Path, most: int) -> list[str]:
    """Copy regular files, at most this many bytes together, and follow no link. Returns the names of what is left out."""
    left_out: list[str] = []
    files = 0

    def unreadable(error: OSError) -> None:
        left_out.append(str(error.filename))

    for folder, folders, names, opened in os.fwalk(source, onerror=unreadable):
        inside = Path(folder).relative_to(source)
        (target / inside).mkdir(exist_ok=True)
        if len(inside.parts) == DEEPEST:
            left_out += [str(inside / name) for name in folders]
            folders.clear()
        links = [name for name in folders if stat.S_ISLNK(os.lstat(name, dir_fd=opened).st_mode)]
        for name in (*names, *links):
            files += 1
            content = _regular(name, opened, most) if files <= MOST_FILES else None
            if content is None:
                left_out.append(str(inside / name))
            else:
                (target / inside / name).write_bytes(content)
                most -= len(content)
    return left_out


def _regular(name: str, folder: int, most: int) -> bytes | None:
    """Return the content of a regular file of an opened folder; None where it is none, or longer than this."""
    try:
        descriptor = os.open(name, _OPENED, dir_fd=folder)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    return content if len(content) <= most else None


def _time_in(original: Callable[..., datetime | None], directory: Any, folder: str) -> datetime | None:
    """Return when what was collected before was handed in; None where its file says no time."""
    try:
        return original(directory, folder)
    except Exception:  # a student wrote the file: nbgrader stumbles over it in several ways
        return None


def _release(original: Callable[..., None], release: Any) -> None:
    """Release the feedback of each student whose pages have a name that the student can find them by."""
    pattern = release.src_path
    for folder in folders_named(pattern, release.coursedir.student_id or "*"):
        try:
            named = all(read_text(Path(folder, name), 1).strip() for name in (TIMESTAMP, SECRET))
        except Unreadable:
            named = False
        if not named:
            release.log.warning("%s has no %s and %s that can be read, and is not released", folder, TIMESTAMP, SECRET)
            continue
        release.src_path = glob.escape(folder)
        original(release)
    release.src_path = pattern


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Let this function take a method's place, with the method as its first argument."""
    found = getattr(owner, name)
    original = getattr(found, _ORIGINAL, found)

    @wraps(original)
    def method(self: Any, *arguments: Any) -> Any:
        return around(original, self, *arguments)

    setattr(method, _ORIGINAL, original)
    setattr(owner, name, method)
