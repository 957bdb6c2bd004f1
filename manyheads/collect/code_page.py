"""In which code page the names of a zip archive are written, where the archive does not say: all of its names in one.

Old Windows writes the code page of its country, and says nothing of it. Bytes are tried in each of them, and what looks most like
names counts: letters that are frequent in it, in words of one script. Only a folder's name depends on it where no name contains "\\".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

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
    """The code page that most likely wrote these names, none of which is UTF-8."""
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
    """A character of two bytes; beside an ASCII letter it is hardly one."""
    if any(each.isascii() and each.isalpha() for each in (before, after)):
        return -3
    code, (first, last) = int.from_bytes(letter.encode(page), "big"), _FREQUENT[page]
    return 2 if first <= code <= last and letter.isalpha() else -1


def _of_letter(letter: str, before: str, after: str) -> float:
    if letter.casefold() in _CYRILLIC:
        others = [each for each in (before, after) if each.isalpha()]
        return 1 if others and all(each.casefold() in _CYRILLIC for each in others) else -1
    if not letter.isalpha() or "LATIN" not in unicodedata.name(letter, ""):
        return -3
    if letter.isupper() and before.islower():
        return -2
    return 1 if letter in _WEST else 0.9 if letter in _CENTRE else -1
