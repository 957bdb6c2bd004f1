"""Read a zip archive, member by member, and find the code page of its names."""

from __future__ import annotations

import calendar
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import BinaryIO

from .found_files import BadArchive, BadMember, Limits, Member, read_at_most, safe_path

# In which code page the names of a zip archive are written, where the archive does not say: all of its names in one.
#
# Old Windows writes the code page of its country, and says nothing of it. Bytes are tried in each of them, and what
# looks most like names counts: letters that are frequent in it, in words of one script. Only a folder's name depends
# on it where no name contains "\".

DEFAULT = "cp437"  # as the format says
WESTERN = (DEFAULT, "cp850", "cp1252")
_PAGES = (*WESTERN, "cp852", "cp866", "gbk", "cp949", "big5", "cp932", "cp1251", "cp1250")  # of equals the first counts

_WEST = frozenset("äöüßéèêëáàâãåçñíîïóòôõøúùûæÄÖÜÉÈÁÀÂÃÅÇÑÍÎÓÔÕØÚÆ")
_CENTRE = frozenset("ąćęłńóśźżčďěňřšťůžáéíýőűăâîČĎŁŃŘŚŠŤŻŹŽÝŐŰ")
_CYRILLIC = frozenset("абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ")
# The first and the last pair of bytes of what each standard calls its frequent characters.
_FREQUENT = {"gbk": (0xB0A1, 0xD7F9), "big5": (0xA440, 0xC67E), "cp949": (0xB0A1, 0xC8FE), "cp932": (0x829F, 0x9872)}
_SURNAMES = {
    "gbk": frozenset("王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石"),
    "big5": frozenset("王李張劉陳楊黃趙吳周徐孫馬朱胡郭何林羅高鄭梁謝宋唐許韓馮鄧曹彭曾蕭田董袁潘于蔣蔡余杜葉程蘇魏呂丁任沈姚盧姜崔鐘譚陸汪范金石"),
    "cp949": frozenset("김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진나지엄채원천방공현함변염"),
}  # fmt: skip


def code_page_of(names: Sequence[bytes]) -> str:
    """Return the code page that most likely wrote these names, none of which is UTF-8."""
    scores = {page: _score(decoded, page) for page in _PAGES if (decoded := _decoded(names, page)) is not None}
    best = max(scores, key=lambda page: scores[page], default=DEFAULT)
    return best if scores.get(best, 0) > 0 else DEFAULT


def _decoded(names: Iterable[bytes], page: str) -> list[str] | None:
    try:
        return [name.decode(page) for name in names]
    except UnicodeDecodeError:
        return None


def _score(names: Iterable[str], page: str) -> float:
    """Points for each byte that is no ASCII, of each folder's and file's name once."""
    parts = {part for name in names for part in name.replace("\\", "/").split("/")}
    return sum(_of_name(part, page) for part in parts)


def _of_name(name: str, page: str) -> float:
    points = 3.0 * (name[:1] in _SURNAMES.get(page, ()))
    for i, letter in enumerate(name):
        if letter.isascii():
            continue
        before, after = name[i - 1 : i] if i else "", name[i + 1 : i + 2]
        if page in _FREQUENT:
            points += _of_wide(letter, before, after, page)
        else:
            points += _of_letter(letter, before, after)
    return points


def _of_wide(letter: str, before: str, after: str, page: str) -> float:
    """Return a character of two bytes; beside an ASCII letter it is hardly one."""
    if any(side.isascii() and side.isalpha() for side in (before, after)):
        return -3
    code, (first, last) = int.from_bytes(letter.encode(page), "big"), _FREQUENT[page]
    return 2 if first <= code <= last and letter.isalpha() else -1


def _of_letter(letter: str, before: str, after: str) -> float:
    if letter.casefold() in _CYRILLIC:
        others = [side for side in (before, after) if side.isalpha()]
        return 1 if others and all(other.casefold() in _CYRILLIC for other in others) else -1
    if not letter.isalpha() or "LATIN" not in unicodedata.name(letter, ""):
        return -3
    if letter.isupper() and before.islower():
        return -2
    return 1 if letter in _WEST else 0.9 if letter in _CENTRE else -1


# Read a zip archive, member by member.

_END, _END64, _SEE_END64 = b"PK\5\6", b"PK\6\6", 0xFFFFFFFF
_UTF8, _ENCRYPTED = 0x800, 0x1
_UNICODE_PATH = 0x7075  # an extra field
_LOOKED_AT = 1_000  # names, to find out their code page
_UNIX = 3  # the system whose file modes the upper half of external_attr holds
_ENTRY = 400  # bytes of a member in the directory, with a long name
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


def zip_members(
    file: BinaryIO, limits: Limits, most: int, pages: Counter[str]
) -> Iterator[Member | tuple[str, BadMember]]:
    """Yield the files of the archive, or the name of one that is refused with the reason. Raises BadArchive.

    most: how many members it may list. pages: counts the code page that names are read in, where the archive does not say it.
    """
    if _directory_size(file) > most * _ENTRY:
        raise BadArchive("it has more files than are read here")  # before memory is taken for each of them
    try:
        archive = zipfile.ZipFile(file)
    except _FAULTS:
        raise BadArchive("it is damaged, or no zip at all") from None
    with archive:
        page = _page(archive, pages)
        last = {info.filename: info for info in archive.infolist()}
        for info in archive.infolist():
            if info.filename.endswith("/"):  # is_dir() fails on an empty name
                continue
            name = _name(info, page)
            try:
                if last[info.filename] is not info:
                    raise BadMember("stands in the archive once more, and the last one counts")
                _refuse(info)
                path = safe_path(name, limits)
            except BadMember as reason:
                yield name, reason
            else:
                yield Member(path, _modified(info), partial(_read, archive, info))


def _refuse(info: zipfile.ZipInfo) -> None:
    """Raise BadMember for what is no plain file that can be read."""
    if "\0" in info.orig_filename:
        raise BadMember("has a name that cannot be shown")
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        raise BadMember("is a link" if stat.S_ISLNK(mode) else "is no regular file")
    if info.flag_bits & _ENCRYPTED:
        raise BadMember("is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadMember("is compressed in a way that is not read here")


def _page(archive: zipfile.ZipFile, pages: Counter[str]) -> str:
    """Return the code page of the names that say nothing of it. pages: where it is counted, if there are any."""
    raw = (
        name for info in archive.infolist() if (name := _raw(info)) is not None and _decoded([name], "utf-8") is None
    )
    some = list(islice(raw, _LOOKED_AT))
    if not some:
        return DEFAULT
    page = code_page_of(some)
    pages[page] += 1
    return page


def _raw(info: zipfile.ZipInfo) -> bytes | None:
    """Return the bytes of a name, where the archive does not say how it is written."""
    if info.flag_bits & _UTF8 or _unicode_path(info) is not None:
        return None
    try:
        return info.orig_filename.encode("cp437")  # as zipfile has read them
    except UnicodeEncodeError:
        return None


def _name(info: zipfile.ZipInfo, page: str) -> str:
    """Return the member's name, as the archive says, else in this code page."""
    if (path := _unicode_path(info)) is not None:
        return path
    raw = _raw(info)
    if raw is None:
        return info.orig_filename
    for each in ("utf-8", page):  # macOS writes UTF-8, and some of the names may be that
        with suppress(UnicodeDecodeError):
            return raw.decode(each)
    return info.orig_filename


def _unicode_path(info: zipfile.ZipInfo) -> str | None:
    """Return the name in UTF-8 that Info-ZIP, WinZip and others add, with a checksum of the name that it stands for."""
    extra, at = info.extra, 0
    while not info.flag_bits & _UTF8 and at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        body = extra[at + 4 : at + 4 + size]
        if kind == _UNICODE_PATH and len(body) == size > 5 and body[0] == 1:
            try:
                known = struct.unpack_from("<L", body, 1)[0] == zlib.crc32(info.orig_filename.encode("cp437"))
                return body[5:].decode("utf-8") if known else None
            except (UnicodeDecodeError, UnicodeEncodeError):
                return None
        at += 4 + size
    return None


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    try:
        with archive.open(info) as file:
            return read_at_most(file, most)  # type: ignore[arg-type]  # IO[bytes] is what is needed
    except _FAULTS:
        raise BadMember("is damaged") from None


def _modified(info: zipfile.ZipInfo) -> float:
    try:
        return float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0


def _directory_size(file: BinaryIO) -> int:
    """Return the size of the directory that the archive claims; where it claims several, the largest."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 66_000))
    tail = file.read()
    file.seek(0)
    claims, at = [0], tail.find(_END)
    while at >= 0:
        if len(tail) >= at + 16 and (claim := struct.unpack_from("<L", tail, at + 12)[0]) < _SEE_END64:
            claims.append(claim)
        if at >= 76 and tail.startswith(_END64, at - 76):
            claims.append(struct.unpack_from("<Q", tail, at - 36)[0])
        at = tail.find(_END, at + 1)
    return min(max(claims), end)
