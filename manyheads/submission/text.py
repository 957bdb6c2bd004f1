"""A student's text as Python reads it, its encoding, line ends and lines; and as it may be shown."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from contextlib import suppress

# Encodings that a coding line may name: tables of letters. Others are slow (punycode), or hide what stands there (unicode_escape).
_TABLES = re.compile(r"iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gbk|gb2312|gb18030|big5\w*|shift_jis\w*|euc_\w+|tis-620")


def with_newlines(text: str) -> str:
    """The text with the line ends of Unix in place of those of Windows and of old Macs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them: `splitlines` also ends one at a form feed, or at U+2028 in a comment."""
    return text.removesuffix("\n").split("\n")


def printable(text: str) -> str:
    """The text with a blank for each character that is not seen: it could move a terminal's cursor, or turn a line around."""
    return "".join(c if c.isprintable() else " " for c in text)


def decoded(data: bytes) -> str:
    """What a coding line in it says, where that fits; else UTF-8, with or without a byte order mark.

    Raises UnicodeDecodeError, of UTF-8.
    """
    if encoding := _declared(data):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("utf-8-sig")


def _declared(data: bytes) -> str | None:
    """The encoding that a coding line names, None where there is none that is read."""
    try:
        name = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name
    except (SyntaxError, LookupError):
        return None
    return name if _TABLES.fullmatch(name) else None
