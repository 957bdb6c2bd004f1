"""The version of Python that judges attempts, and syntax that is newer than this version.

A release writes the version down, and `course check` warns a student with a newer one. A text has
newer syntax only if this Python cannot read it, and can read it after a rewriting into older
syntax. For example, `def f[T](x): …` becomes `def f(x): …`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from .source import CODE_LIMIT, Source

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"  # reads and runs attempts here
# lists the released files, so that the next release recognises them
MANIFEST = ".github/released.json"
KEY = "python"  # in the manifest: the version, such as "3.11"


def judges_python(root: Path) -> str:
    """Return the version of Python in the manifest of a class repository, such as "3.11".

    Return "" if the manifest is missing or damaged, or has no valid version.
    """
    try:
        version = json.loads((root / MANIFEST).read_text(encoding="utf-8"))[KEY]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and re.fullmatch(r"3\.\d{1,3}", version) else ""


def note_on_newer_python(root: Path) -> str:
    """Return a sentence that warns the student, if this Python is newer than the judge's.

    Otherwise, or if the judge's version is unknown, return "".
    """
    version = judges_python(root)
    if not version or tuple(map(int, version.split("."))) >= sys.version_info[:2]:
        return ""
    return (
        f"note: attempts are judged with Python {version}, and this is {PYTHON}: what is "
        "newer is not valid there"
    )


class NewerSyntax(NamedTuple):
    """Syntax that a later version of Python introduced.

    Attributes:
        since: that version, such as "3.12".
        subject: the name of the syntax, as the subject of a sentence.
        instead: the advice what to write in its place.
        rewritten: returns a text without the syntax. It takes a text and no Source, because the
            rewritings of several features follow one another before Python reads the result.
    """

    since: str
    subject: str
    instead: str
    rewritten: Callable[[str], str]


_PARAMETERS = re.compile(
    r"^([ \t]*(?:(?:async[ \t]+)?def|class|type)[ \t]+\w+)[ \t]*\[([^\[\]\n]{1,200})\]",
    re.MULTILINE,
)
_TYPE_ALIAS = re.compile(
    r"^([ \t]*)type[ \t]+(?=\w+[ \t]*(?:\[[^\[\]\n]{1,200}\][ \t]*)?=(?!=))", re.MULTILINE
)
_EXCEPT = re.compile(
    r"^([ \t]*except\*?[ \t]+)([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+,?)[ \t]*:", re.MULTILINE
)
_T_STRING = re.compile(r"(?<!\w)(?:[tT]([rR]?)|([rR])[tT])(?=[\"'])")
_LAZY = re.compile(r"^([ \t]*)lazy[ \t]+(?=(?:import|from)\b)", re.MULTILINE)
_UNPACKED = re.compile(r"([\[({][ \t\n]*)\*{1,2}(?=[\w.]+[ \t\n]+(?:async[ \t]+)?for\b)")
# A field between braces of an f-string: code without braces, strings, and a format that may have
# nested fields. No text matches in two ways, and every repetition has a limit, because a student
# may have written the text to keep the judge busy.
_TEXT = r"\"(?:\\.|[^\"\\\n]){0,200}\"|'(?:\\.|[^'\\\n]){0,200}'"
_FIELD = (
    rf"\{{(?!\{{)(?:[^{{}}\"'#\\]|#[^\n]{{0,200}}\n|{_TEXT}|\{{[^{{}}\"'#\\]{{0,100}}\}}){{1,"
    rf"400}}\}}"
)
_INSIDE = re.compile(rf"(?P<text>[rRbBfFuU]{{0,2}}(?:{_TEXT}))|#[^\n]{{0,200}}\n|\n")


def _f_string(quote: str) -> re.Pattern[str]:
    letter = r"[^{}\\\n]" if len(quote) == 1 else r"[^{}\\]"
    piece = rf"(?!{quote})(?:{letter}|\\.|\{{\{{|\}}\}}|{_FIELD})"
    return re.compile(
        rf"(?<!\w)(?:[fF][rR]?|[rR][fF]){quote}(?:{piece}){{0,1000}}{quote}", re.DOTALL
    )


_F_STRINGS = [_f_string(quote) for quote in ('"""', "'''", '"', "'")]
_FIELDS = re.compile(rf"\{{\{{|{_FIELD}", re.DOTALL)


def _without_parameters(text: str) -> str:
    """Return a text without type parameters: `def f[T](x)` becomes `def f(x)`.

    To tell them from other brackets, a text in brackets is removed only if it would also be valid
    as the parameters of a function.
    """

    def plain_header(match: re.Match[str]) -> str:
        return match[1] if Source("", f"def _({match[2]}): pass").tree else match[0]

    return _PARAMETERS.sub(plain_header, text)


def _with_plain_fields(text: str) -> str:
    """Return a text with a name in place of each string within the braces of f-strings."""

    def plain_field(match: re.Match[str]) -> str:
        return _INSIDE.sub(lambda inner: "_" if inner["text"] else " ", match[0])

    for pattern in _F_STRINGS:
        text = pattern.sub(lambda match: _FIELDS.sub(plain_field, match[0]), text)
    return text


KINDS = (
    NewerSyntax(
        "3.12", "Parameters in square brackets behind a name", "leave them out", _without_parameters
    ),
    NewerSyntax(
        "3.12",
        "The statement `type`",
        "leave out the word",
        lambda text: _TYPE_ALIAS.sub(r"\1", text),
    ),
    NewerSyntax(
        "3.14",
        "`except` with several exceptions and no brackets",
        "put brackets around them",
        lambda text: _EXCEPT.sub(r"\1(\2):", text),
    ),
    NewerSyntax(
        "3.14", "A t-string", "write an f-string", lambda text: _T_STRING.sub(r"f\1\2", text)
    ),
    NewerSyntax(
        "3.12",
        "An f-string with its own quotes, a backslash or a comment between its braces",
        "work that out on a line before, or use the other quotes",
        _with_plain_fields,
    ),
    NewerSyntax(
        "3.15", "`lazy` before an import", "leave it out", lambda text: _LAZY.sub(r"\1", text)
    ),
    NewerSyntax(
        "3.15",
        "A star in front of a comprehension",
        "write a second `for`",
        lambda text: _UNPACKED.sub(r"\1", text),
    ),
)


def newer_syntax(source: Source) -> tuple[NewerSyntax, ...]:
    """Return each newer syntax that keeps this Python from reading a text.

    Return () if this Python can read the text, if the text has more than CODE_LIMIT characters, or
    if it has other errors, too.
    """
    if len(source.text) > CODE_LIMIT or source.tree:
        return ()
    if not _without_newer_syntax(source, KINDS).tree:
        return ()
    return tuple(feature for feature in KINDS if _is_needed(feature, source))


def _is_needed(feature: NewerSyntax, source: Source) -> bool:
    """Return whether Python still cannot read a text after all other features are rewritten."""
    other_features = [k for k in KINDS if k is not feature]
    return not _without_newer_syntax(source, other_features).tree


def note_on_newer_syntax(source: Source) -> str:
    """Return a sentence for each newer syntax in a text, with the advice what to write instead.

    Return "" if `newer_syntax` finds none.
    """
    return " ".join(
        f"{feature.subject} came with Python {feature.since}, and attempts are run with {PYTHON}"
        f" here: {feature.instead}."
        for feature in newer_syntax(source)
    )


def _without_newer_syntax(source: Source, features: Sequence[NewerSyntax]) -> Source:
    text = source.text
    for feature in features:
        text = feature.rewritten(text)
    return Source("", text)
