"""Read a student's text as Python does: its encoding, line ends, lines, digest and syntax tree."""

from __future__ import annotations

import ast
import codecs
import hashlib
import io
import re
import tokenize
from contextlib import suppress

# Encodings that a coding line may name: tables of letters. Others are slow (punycode), or hide what stands there (unicode_escape).
_TABLES = re.compile(r"iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gbk|gb2312|gb18030|big5\w*|shift_jis\w*|euc_\w+|tis-620")


def with_newlines(text: str) -> str:
    """Return the text with the line ends of Unix in place of those of Windows and of old Macs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """Return the lines as Python counts them: `splitlines` also ends one at a form feed, or at U+2028 in a comment."""
    return text.removesuffix("\n").split("\n")


def printable(text: str) -> str:
    """Return the text with a blank for each character that is not seen: it could move a terminal's cursor, or turn a line around."""
    return "".join(c if c.isprintable() else " " for c in text)


def decoded(data: bytes) -> str:
    """Return what a coding line in it says, where that fits; else UTF-8, with or without a byte order mark.

    Raises UnicodeDecodeError, of UTF-8.
    """
    if encoding := _declared(data):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("utf-8-sig")


def _declared(data: bytes) -> str | None:
    """Return the encoding that a coding line names, None where there is none that is read."""
    try:
        name = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name
    except (SyntaxError, LookupError):
        return None
    return name if _TABLES.fullmatch(name) else None


# What of a file counts when two are held against each other: its code.


def code_digest(source: str) -> str:
    """Return a hash of the code without comments and blank lines. A script and its notebook have the same."""
    lines = (line.rstrip() for line in source.splitlines())
    code = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    return hashlib.sha256(code.encode()).hexdigest()


# Python's own parser, without a fault of Python 3.11.

TRIES = 3


def parsed(source: str) -> ast.Module:
    """Return the module's tree. Raises what `ast.parse` raises.

    Before 3.11.8, two threads that parse at once (one may be writing a traceback) can end either with a SystemError:
    https://github.com/python/cpython/issues/106905. Asked again, it answers.
    """
    for _ in range(TRIES - 1):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)
