"""How the command `course` is called here, so that what a message tells to run can be copied."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from shlex import quote
from shutil import which

from rich.text import Text

COMMANDS = (
    *("status", "check", "hint", "trace", "plot", "ask", "train", "bench", "lsp"),
    *("collect", "grade", "overrides", "report", "export", "feedback"),
    *("init", "new", "release", "verify", "doctor", "ci"),
)
_CALL = re.compile(rf"(?<![\w./\\-])course(?= (?:{'|'.join(COMMANDS)})\b)")

# What is to be done by hand, and the command after it.
_BY_HAND = re.compile(
    r"(?!course |\S*/course |git )(.+?),? then:? ((?:course|\S*/course|git|make|pip|%\w+)(?: .*)?)", re.DOTALL
)


@lru_cache(maxsize=1)
def command() -> str:
    """Return `course` where the shell finds this one, else its path as seen from here, else a call of this Python."""
    own = Path(sys.executable).with_name("course.exe" if os.name == "nt" else "course")
    known = which("course")
    if known and (not own.exists() or Path(known).resolve() == own.resolve()):
        return "course"
    found = f"{own}" if own.exists() else f"{sys.executable} -m manyheads"
    here = f"{Path.cwd()}{os.sep}"
    return quote(found.removeprefix(here)) if own.exists() else found


def as_called(text: str) -> str:
    """Return the text with the command as it is called here."""
    return _CALL.sub(lambda _: command(), text)


def next_alone(text: str) -> str:
    """Return the text with its last "Next:" on a line of its own, and the command alone; what comes before is a sentence above.

    Example: "Next: fill it, then: course check" becomes "Fill it." and, on the next line, "Next: course check".
    """
    before, found, following = text.rpartition("Next: ")
    if not found:
        return text
    by_hand = _BY_HAND.fullmatch(following)
    first = f"{by_hand[1][:1].upper()}{by_hand[1][1:]}." if by_hand else ""
    lines = (before.rstrip(), first, f"Next: {by_hand[2] if by_hand else following}")
    return "\n".join(line for line in lines if line)


def text_as_called(text: Text) -> Text:
    """Return the text with the command as it is called here, and its styles."""
    name = command()
    for found in reversed(list(_CALL.finditer(text.plain)) if name != "course" else []):
        text = text[: found.start()] + Text(name) + text[found.end() :]
    return text
