"""Read folders, zip and tar archives, file by file, within the limits of one person.

Nothing is unpacked to disk, and no claim that an archive makes is trusted. A tar is read from its
beginning to its end, one block of 512 bytes at a time, because Python's tarfile follows the claims
of a header before it returns a member. Every header counts towards the limits.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import shlex
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ..files import CourseFault, KeptContents
from . import ENDINGS, Unreadable, is_archive, printable_name, read_bytes
from .find_submitted_files import is_noise
from .read import MIB, TOO_LARGE, TOO_MANY, Closed, IntakeLimits, archive_error

BLOCK = tarfile.BLOCKSIZE
# bytes of all headers about one member; without it, 200,000 names in 424 KB used 15 GB
LONGEST_HEADER = 64 * 1024
LATEST = 2.0**33  # seconds since 1970: in the year 2242
_LONG_NAME, _LONG_LINK = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
_OF_NEXT = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)  # pax: about the next member
_OF_ALL = tarfile.XGLTYPE  # pax: about all members; git archive writes the commit in it
_ABOUT = (_LONG_NAME, _LONG_LINK, *_OF_NEXT, _OF_ALL)
# Offsets of a byte that is set if another block follows: in the header of a sparse file, and in
# each block behind it.
_OLD_GOES_ON, _NEXT_GOES_ON = 482, 504
_DIGITS = 20  # the longest number in a pax header
_TEXT = {"encoding": "utf-8", "errors": "surrogateescape"}
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ"


@dataclass(frozen=True)
class TarMember:
    """A member of a tar.

    Attributes:
        size: bytes of the content, as the headers claim.
        modified: seconds since 1970; 0 if unknown.
        refused: the reason why the content is not read; "" for a regular file.
    """

    name: str
    size: int
    modified: float = 0.0
    refused: str = ""
    is_folder: bool = False


@dataclass
class _About:
    """The values that extra headers give the next member, and the length of these headers.

    A value that no header gives is "" or None.
    """

    name: str = ""
    size: int | None = None
    modified: float | None = None
    is_sparse: bool = False
    header_bytes: int = 0


@dataclass
class WatchedFile:
    """A compressed file that checks the time limit at each read.

    The check is needed because a compressed stream may unpack to nothing for minutes.
    """

    file: IO[bytes]
    budget: IntakeLimits

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises Closed if a limit of the budget is exceeded."""
        self.budget.take()
        return self.file.read(size)


def decompress(file: IO[bytes], budget: IntakeLimits) -> IO[bytes]:
    """Return a tar as a file to read from its beginning.

    If the file is in gzip, bzip2 or xz, each read decompresses, and raises Closed if the time is
    over. Otherwise return `file` itself.
    """
    file.seek(0)
    start = file.read(len(_XZ))
    file.seek(0)
    packed = cast(Any, WatchedFile(file, budget))
    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=packed, mode="rb"))
    if start.startswith(_BZIP2):
        packed.write = None  # bz2 and lzma require both methods, or take it for a path
        return cast(IO[bytes], bz2.BZ2File(packed))
    if start.startswith(_XZ):
        packed.write = None
        return cast(IO[bytes], lzma.LZMAFile(packed))
    return file


@dataclass
class TarStream:
    """A tar that is read once. Its headers and the time count towards the budget."""

    file: IO[bytes]
    budget: IntakeLimits
    # bytes of the current member that have not been read
    _remaining: int = field(default=0, init=False)
    _block: bytes = field(default=b"", init=False)  # the last header

    def members(self) -> Iterator[TarMember]:
        """Yield each member. Its content can be read until the next member is asked for.

        Raises:
            Closed: a limit of the budget is exceeded, or headers are too long.
            tarfile.TarError: the file is damaged, or ends within a member.
        """
        is_first = True
        attributes = _About()
        while header := self._next_header(must_exist=is_first or attributes.header_bytes > 0):
            is_first = False
            if header.type in _ABOUT:
                self._read_about(header, attributes)
                continue
            member = _member(header, attributes)
            attributes = _About()
            if header.type == tarfile.GNUTYPE_SPARSE:
                self._pass_over_old_map()
            has_content = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
            self._remaining = member.size if has_content else 0
            padding = -self._remaining % BLOCK
            yield member
            self._pass_over(self._remaining)
            self.file.read(padding)  # the last one may be missing

    def content(self, max_bytes: int) -> bytes:
        """Return the next bytes of the current member, `max_bytes` or as many as remain.

        Raises:
            tarfile.TarError: the file ends before that.
        """
        content = self._read_exactly(min(self._remaining, max_bytes))
        self._remaining -= len(content)
        return content

    def _next_header(self, *, must_exist: bool) -> tarfile.TarInfo | None:
        """Return the next header, or None at the end, and count it as an entry.

        A block of zeros is the end. An invalid header is the end, too, as in Python's tarfile.

        Args:
            must_exist: whether an invalid header is an error instead: at the beginning of the file,
                or after a header about the next member.

        Raises:
            Closed: a limit of the budget is exceeded.
            tarfile.ReadError: the header must exist, and is invalid.
        """
        self.budget.take(entries=1)
        block = self.file.read(BLOCK)
        try:
            if block == bytes(BLOCK):
                return None
            header = tarfile.TarInfo.frombuf(block, **_TEXT)
            if header.size < 0:
                raise tarfile.HeaderError("a negative size")
        except tarfile.HeaderError as error:
            if must_exist:
                raise tarfile.ReadError(str(error)) from None
            return None
        self._block = block
        return header

    def _read_about(self, header: tarfile.TarInfo, attributes: _About) -> None:
        """Read the values of an extra header, and keep those about the next member in `attributes`.

        The values of a pax header about all members are read and ignored.

        Raises:
            Closed: the headers before a member are longer than any member needs.
            tarfile.ReadError: the header is damaged.
        """
        attributes.header_bytes += BLOCK + header.size
        if attributes.header_bytes > LONGEST_HEADER:
            raise archive_error("its headers are longer than any that are needed")
        data = self._read_exactly(header.size)
        self._read_exactly(-header.size % BLOCK)
        if header.type == _LONG_NAME:
            attributes.name = data.partition(b"\0")[0].decode(**_TEXT)
        if header.type not in _OF_NEXT:
            return
        for keyword, value in _pax_records(data):
            if keyword == "path":
                attributes.name = value
            elif keyword == "size":
                attributes.size = _number(value)
            elif keyword == "mtime":
                attributes.modified = _seconds(value)
            elif keyword.startswith("GNU.sparse."):
                attributes.is_sparse = True

    def _pass_over_old_map(self) -> None:
        """Skip the blocks behind a header of GNU's old sparse format.

        Each block counts as a header.
        """
        goes_on = self._block[_OLD_GOES_ON]
        while goes_on:
            self.budget.take(entries=1)
            goes_on = self._read_exactly(BLOCK)[_NEXT_GOES_ON]

    def _pass_over(self, size: int) -> None:
        while size > 0:
            self.budget.take()
            size -= len(self._read_exactly(min(size, MIB)))

    def _read_exactly(self, size: int) -> bytes:
        data = self.file.read(size) if size else b""
        if len(data) < size:
            raise tarfile.ReadError("unexpected end of data")
        return data


def _member(header: tarfile.TarInfo, attributes: _About) -> TarMember:
    """Return the member of a header. The values of extra headers replace those of the header.

    A time before 1970 or after `LATEST` becomes 0. Anything but a regular file is refused.
    """
    size = header.size if attributes.size is None else attributes.size
    modified = float(header.mtime) if attributes.modified is None else attributes.modified
    refused = ""
    if header.issym() or header.islnk():
        refused = "is a link"
    elif not header.isreg() or header.type == tarfile.GNUTYPE_SPARSE or attributes.is_sparse:
        refused = "is no regular file"
    is_time = 0 <= modified < LATEST
    return TarMember(
        attributes.name or header.name, size, modified if is_time else 0.0, refused, header.isdir()
    )


def _pax_records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keyword and the value of each line of a pax header, such as "18 path=some/name".

    A NUL at the beginning of a line ends the header.

    Raises:
        tarfile.ReadError: a line has another form.
    """
    start = 0
    while start < len(data) and data[start] != 0:
        length, blank, _ = data[start : start + _DIGITS].partition(b" ")
        end = start + _number(length.decode("latin-1"))
        keyword, _, value = data[start + len(length) + 1 : end].partition(b"=")
        if not blank or not value.endswith(b"\n") or end > len(data):
            raise tarfile.ReadError("a damaged pax header")
        yield keyword.decode(**_TEXT), value[:-1].decode(**_TEXT)
        start = end


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise tarfile.ReadError("no number in a pax header")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


PERSONS = 25  # a download may be as large as the archives of this many persons
METADATA = "submission_metadata.yml"  # Gradescope's list of the students of each folder
LONGEST = 255  # characters of a name; no usual file system allows more
DEEPEST = 40  # folders within folders; far more than any hand-in that was not made to do harm
_ASK = "Next: ask for the file itself"
_NOISE = f"holds nothing but what editors and systems leave. {_ASK}"
# Browsers and mail programs append an ending to files of unknown types, and platforms append a
# number before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Member:
    """A file in a download.

    Attributes:
        path: the folders and the name of the file, from the top of the download.
        modified: seconds since 1970; 0 if unknown.
        start: opens the file, or None if the content is not needed or cannot be read.
        closed: the reason why the file cannot be read, and the next step; "" if it can.
        refused: the reason why the file is not taken, and the next step; "" if it is.
    """

    path: tuple[str, ...]
    modified: float = 0.0
    start: Callable[[], IO[bytes]] | None = field(default=None, compare=False)
    closed: str = ""
    refused: str = ""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass
class Reader:
    """Reads downloads.

    Attributes:
        limits: the limits for one person.
        contents: keeps the contents of files in tars, which can be read only once.
        files: closes all open files at the end.
    """

    limits: IntakeLimits
    contents: KeptContents
    files: ExitStack = field(default_factory=ExitStack)

    def list_files(self, download: Path) -> list[Member]:
        """Return the files of a download, which is a folder, an archive or a single file.

        An archive that cannot be opened is returned as a closed member with the archive's name.

        Raises:
            CourseFault: the download does not exist or cannot be read.
        """
        name = download.name
        try:
            if download.is_dir():
                return list(self._folder(download))
            if not is_archive(name):
                return list(self._file(download, (name,)))
            file = self.files.enter_context(download.open("rb"))
            return self._members(file, (), self.limits.for_persons(PERSONS), is_download=True)
        except Closed as reason:
            return [Member((name,), closed=str(reason))]
        except FileNotFoundError:
            raise CourseFault(
                f"{download} does not exist. Next: course collect DOWNLOAD --out submitted"
            ) from None
        except OSError as error:
            raise CourseFault(
                f"{download} cannot be read ({error.strerror}). Next: download it again"
            ) from None

    def open_member(self, member: Member, budget: IntakeLimits) -> list[tuple[Member, bytes]]:
        """Return the file with its content, or for an archive all files in it, at any depth.

        A file or an inner archive that cannot be read is returned as closed, without content. If an
        archive exceeds the limits, only `member` itself is returned, as closed.

        Args:
            member: the file or archive that a person handed in.
            budget: the remaining limits of that person. All that is read is subtracted.
        """
        if not is_archive(member.name):
            return [self._plain(member, budget)]
        contents = list[tuple[Member, bytes]]()
        pending = [member]
        while pending:
            current = pending.pop()
            try:
                content = content_of(current, self._max_bytes(current.name))
                if current is not member:
                    budget.take(len(content))
                if is_archive(current.name) and current.start:
                    pending += self._members(io.BytesIO(content), current.path, budget)
                else:
                    contents.append((current, content))
            except Closed as reason:
                if budget.exceeded_limit:
                    return [(replace(member, closed=str(reason)), b"")]
                contents.append((replace(current, closed=str(reason)), b""))
        return contents

    def _plain(self, member: Member, budget: IntakeLimits) -> tuple[Member, bytes]:
        try:
            content = content_of(member, self._max_bytes(member.name))
        except Closed as reason:
            return replace(member, closed=str(reason)), b""
        budget.size -= len(content)
        if member.start is not None:
            budget.members -= 1
        if budget.is_used_up:
            return replace(member, closed=self.too_much), b""
        return member, content

    @property
    def too_much(self) -> str:
        """The reason why a file is not read if a person's files exceed the limits."""
        limits = f"{self.limits.members:,} files and {self.limits.size // MIB} MiB"
        return f"is not read: of one person's files, {limits} are read. {_ASK}"

    def _max_bytes(self, name: str) -> int:
        return self.limits.size if is_archive(name) else self.limits.attempt

    def _folder(self, folder: Path) -> Iterator[Member]:
        """Yield each file below a folder, without noise.

        A folder at the top that holds nothing but noise is yielded as refused, and a folder that
        cannot be entered as a closed file without a name. Raises OSError if `folder` itself cannot
        be listed.
        """
        pending: list[tuple[str, ...]] = [()]
        while pending:
            path = pending.pop()
            subfolder = folder.joinpath(*path)
            try:
                children = sorted(subfolder.iterdir())
                entries = [(child, child.lstat()) for child in children if not is_noise(child.name)]
            except OSError:  # it cannot be listed, or not be entered
                if not path:
                    raise
                yield Member((*path, ""), closed=_without_rights(subfolder))
                continue
            if children and len(path) == 1 and not entries:
                yield Member(path, refused=_NOISE)
            pending += [
                (*path, child.name) for child, status in entries if stat.S_ISDIR(status.st_mode)
            ]
            for child, status in entries:
                if not stat.S_ISDIR(status.st_mode):
                    yield from self._file(child, (*path, child.name))

    def _file(self, file: Path, path: tuple[str, ...]) -> Iterator[Member]:
        """Yield a file, or refuse it for its path, as a link, or as no regular file."""
        status = file.lstat()
        split_path = _split_path("/".join(path))
        if why := split_path.problem or _mode_problem(status.st_mode):
            yield Member(
                path, refused=f"{why}. Next: put the file itself there, under another name"
            )
        else:
            yield Member(
                split_path.segments,
                status.st_mtime,
                partial(self._open, file) if is_wanted(file.name) else None,
            )

    def _open(self, file: Path) -> IO[bytes]:
        try:
            return io.BytesIO(read_bytes(file, self._max_bytes(file.name) // 1024))
        except Unreadable as error:
            problem = f"is not read: {str(error).rstrip('.')}. {_ASK}"
            raise Closed(problem if os.access(file, os.R_OK) else _without_rights(file)) from None

    def _members(
        self,
        file: IO[bytes],
        prefix: tuple[str, ...],
        budget: IntakeLimits,
        *,
        is_download: bool = False,
    ) -> list[Member]:
        """Return the files of an archive, with refused ones, and without noise.

        If several have the same path, the last one counts, and each repetition is also returned as
        refused. A folder at the top that holds nothing but noise is returned as refused.

        Args:
            file: the archive.
            prefix: the path of the archive itself, put before the paths of its files.
            budget: the limits; every entry counts.
            is_download: whether the archive may hold the work of a whole class. Then one person's
                large files do not end the reading for the others.

        Raises:
            Closed: the archive cannot be read, exceeds the limits, or has no file that is taken.
        """
        members = dict[tuple[str, ...], Member]()
        refused = list[Member]()
        around = set[tuple[str, ...]]()  # folders with noise
        is_zip = zipfile.is_zipfile(file)
        for member in (
            _zip(file, budget) if is_zip else self._tar(file, budget, is_download=is_download)
        ):
            raw_name = member.name
            names = raw_name.replace("\\", "/").split("/")
            if any(map(is_noise, names)):
                top = prefix if is_noise(names[0]) else (*prefix, names[0])
                # all noise in one folder counts as one file; the clock is checked for each
                budget.take(members=0 if top in around else 1)
                around.add(top)
                continue
            budget.take(members=1)
            split_path = _split_path(raw_name)
            inner = (*prefix, *split_path.segments)
            ask = f", and is not taken. {_ASK}"
            if split_path.problem:
                short = raw_name
                if len(raw_name) > LONGEST:
                    short = f"{raw_name[: LONGEST // 2]}…{raw_name[-LONGEST // 4 :]}"
                refused.append(Member((*prefix, short), refused=split_path.problem + ask))
                continue
            if inner in members:
                again = f"stands in the archive once more, and the last one counts. {_ASK}"
                refused.append(Member(inner, refused=again))
            start = member.start if is_wanted(inner[-1]) and not member.closed else None
            members[inner] = replace(
                member, path=inner, start=start, closed=member.closed and member.closed + ask
            )
        noise_folders = around - {prefix, *(path[: len(prefix) + 1] for path in members)}
        if not members:
            why = (
                f"a file in it {refused[0].refused.partition(',')[0]}"
                if refused
                else "there are no files in it"
            )
            raise archive_error(why)
        return [
            *members.values(),
            *refused,
            *(Member(path, refused=_NOISE) for path in sorted(noise_folders)),
        ]

    def _tar(self, file: IO[bytes], budget: IntakeLimits, *, is_download: bool) -> Iterator[Member]:
        """Yield the files of a tar. Contents that are needed later are kept on disk.

        In a person's archive, all bytes count towards the limits. In a download, only the bytes
        that are kept count, and a file that exceeds the limit is closed alone, because it must not
        end the reading for all students.

        Raises:
            Closed: the tar is damaged, or a limit is exceeded.
            CourseFault: the disk is full.
        """
        remaining = budget.size
        try:
            stream = TarStream(decompress(file, budget), budget)
            for entry in stream.members():
                if entry.is_folder:
                    continue
                max_bytes = self._max_bytes(entry.name)
                is_kept = not entry.refused and is_wanted(entry.name.rpartition("/")[2])
                bytes_read = min(entry.size, max_bytes + 1) if is_kept else 0
                cost = bytes_read if is_download else entry.size
                start = None
                closed = entry.refused
                if cost > remaining:
                    if not is_download:
                        raise archive_error(TOO_LARGE)
                    closed = "comes after more than is read of one archive"
                else:
                    remaining -= cost
                    if is_kept:
                        digest = self.contents.keep(stream.content(bytes_read))
                        start = partial(self.contents.open, digest)
                yield Member((entry.name,), entry.modified, start, closed)
        except (Closed, CourseFault):
            raise
        # the library's parsers of hostile bytes may raise anything, MemoryError among it
        except Exception:
            raise archive_error("it is damaged, or neither zip nor tar") from None


def own_name(name: str) -> str:
    """Return the name without the ending that a browser or a platform appended.

    For example, return 04_x.py for 04_x.py.txt and for 04_x.py-1.json. Other names are returned
    unchanged.
    """
    match = _WRAPPED.fullmatch(name)
    return match[1] if match else name


def is_wanted(name: str) -> bool:
    """Return whether the content of a file of this name is needed.

    It is needed for an archive, a script, a notebook, or Gradescope's list.
    """
    return is_archive(name) or own_name(name).lower().endswith(ENDINGS) or name == METADATA


class _SplitPath(NamedTuple):
    """The segments of a path, and the reason why the path is refused, or ""."""

    segments: tuple[str, ...]
    problem: str


def _split_path(name: str) -> _SplitPath:
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    segments = tuple(segment for segment in text.split("/") if segment not in ("", "."))
    rules = {
        "has an absolute path": text.startswith("/") or (text[1:2] == ":" and text[0].isalpha()),
        "has a path that leads out of the archive": ".." in segments,
        "has a path that is too long or empty": (
            not 0 < len(segments) <= DEEPEST or max(map(len, segments)) > LONGEST
        ),
        "has a name that cannot be shown": not all(map(str.isprintable, segments)),
    }
    return _SplitPath(segments, next((why for why, holds in rules.items() if holds), ""))


def content_of(member: Member, max_bytes: int) -> bytes:
    """Return the whole content of a file, read piece by piece; b"" if it cannot be opened.

    Raises:
        Closed: the content has more than `max_bytes` bytes, or is damaged.
    """
    content = bytearray()
    try:
        with member.start() if member.start else io.BytesIO() as file:
            while piece := file.read(min(MIB, max_bytes + 1 - len(content))):
                content += piece
                if len(content) > max_bytes:
                    raise Closed(
                        f"is larger than {max_bytes // 1024:,} KiB, and is not taken. {_ASK}"
                    )
    except (Closed, CourseFault):
        raise
    # the library's parsers of hostile bytes may raise anything, MemoryError among it
    except Exception:
        raise Closed(f"is damaged, and is not taken. {_ASK}") from None
    return bytes(content)


def _without_rights(path: Path) -> str:
    changes = f"chmod -R u+rwX {shlex.quote(printable_name(str(path)))} changes that"
    return f"is not read: Permission denied; {changes}. Next: the same command again"


_ENTRY = 400  # bytes of an entry in a zip's list of members, with a long name
_ENTRY_MARK = b"PK\1\2"  # the first bytes of each entry in that list
# fields of zipfile's end record: the length of the list, and the offset of the record itself
_LIST_SIZE, _LIST_END = 5, 9
# bytes between the list and that record, in a zip of more than 4 GiB or 65,535 members
_BEHIND_LIST = 76
_UTF8, _ENCRYPTED = 0x800, 0x1


def _zip(file: IO[bytes], budget: IntakeLimits) -> Iterator[Member]:
    """Yield the files of a zip, each with a function that opens it.

    A file that is a link, encrypted, or compressed in an unknown way has the reason in `closed`.

    Raises:
        Closed: the zip is damaged, or has more entries than the limits allow.
    """
    try:
        _refuse_long_list(file, budget.entries)
        archive = zipfile.ZipFile(file)
    except Closed:
        raise
    # the library's parser of hostile bytes may raise anything, MemoryError among it
    except Exception:
        raise archive_error("it is damaged, or no zip at all") from None
    for info in archive.infolist():
        budget.take(entries=1)
        name = info.orig_filename
        modified = 0.0
        mode = info.external_attr >> 16
        if info.filename.endswith("/"):  # is_dir() fails on an empty name
            continue
        # macOS writes UTF-8 without saying so, and zipfile takes that for cp437
        with suppress(UnicodeError):
            name = name if info.flag_bits & _UTF8 else name.encode("cp437").decode("utf-8")
        with suppress(ValueError, OverflowError):
            modified = datetime(*info.date_time, tzinfo=UTC).timestamp()
        is_known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        # a zip made on Windows has no type of file in its mode
        closed = _mode_problem(mode) if stat.S_IFMT(mode) else ""
        if not closed and info.flag_bits & _ENCRYPTED:
            closed = "is encrypted"
        elif not closed and not is_known:
            closed = "is compressed in a way that is not read here"
        yield Member((name,), modified, partial(archive.open, info), closed)


def _refuse_long_list(file: IO[bytes], max_members: int) -> None:
    """Raise Closed if a zip lists more than `max_members` members, or has a list as long as that.

    The check comes first because zipfile reads the whole list and makes an object for each member.
    """
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not end:
        return
    size = end[_LIST_SIZE] + _BEHIND_LIST
    if size > max(max_members * _ENTRY, MIB):
        raise archive_error(TOO_MANY)
    file.seek(max(0, end[_LIST_END] - size))
    if file.read(size).count(_ENTRY_MARK) > max_members:
        raise archive_error(TOO_MANY)


def _mode_problem(mode: int) -> str:
    """Return a clause about a mode that belongs to no regular file; "" for a regular file."""
    problems = {stat.S_IFREG: "", stat.S_IFLNK: "is a link"}
    return problems.get(stat.S_IFMT(mode), "is no regular file")
