"""The name of the command `course` here, so that a command in a message can be copied."""

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
    *("status", "check", "hint", "trace", "plot", "ask", "train", "gpt2", "bench", "lsp"),
    *("collect", "grade", "overrides", "report", "export", "feedback"),
    *("init", "new", "release", "verify", "doctor", "ci"),
)
NOTEBOOK = "%course"  # in a cell, where the shell's command would have to begin with !
CALLED_AS = "COURSE_CALLED_AS"  # an environment variable: set by a program that shows our output
_CALL = re.compile(rf"(?<![\w./\\%-])course(?= (?:{'|'.join(COMMANDS)})\b)")
_OF_THE_SHELL = r"(?:git|mkdir|chmod|rm|pip|make check|\S+ -m)"
_COMMAND = rf"!?(?:\S*\bcourse|%\w+|{_OF_THE_SHELL})(?: .*)?"
_NEXT_IN_SHELL = re.compile(rf"(?<=Next: )(?={_OF_THE_SHELL}\b)|(?<=then: )(?={_OF_THE_SHELL}\b)")
# a step that is done by hand, and the command after it
_BY_HAND = re.compile(rf"(?!{_COMMAND})(.+?),? then:? ({_COMMAND})", re.DOTALL)


def command() -> str:
    """Return the name by which a reader of the output can call the command.

    If a program shows the output, the environment variable COURSE_CALLED_AS has the name, such as
    the magic `%course` in a notebook. Otherwise the name is a command of the shell.
    """
    return os.environ.get(CALLED_AS) or _in_a_shell()


@lru_cache(maxsize=1)
def _in_a_shell() -> str:
    """Return `course` if the shell finds this installation under that name.

    Otherwise return the path of its script, relative to the working folder if it is below it. If
    there is no script, return a call of this Python.
    """
    script = Path(sys.executable).with_name("course.exe" if os.name == "nt" else "course")
    on_path = which("course")
    if on_path and (not script.exists() or Path(on_path).resolve() == script.resolve()):
        return "course"
    working_folder = f"{Path.cwd()}{os.sep}"
    return (
        quote(f"{script}".removeprefix(working_folder))
        if script.exists()
        else f"{sys.executable} -m manyheads"
    )


def as_called(text: str, name: str = "") -> str:
    """Return the text with `course` replaced by the name of the command here, or by this name.

    In a notebook, a shell command after "Next:" or "then:" gets a ! in front.
    """
    name = name or command()
    text = _CALL.sub(lambda _: name, text)
    return _NEXT_IN_SHELL.sub("!", text) if name == NOTEBOOK else text


def next_alone(text: str) -> str:
    """Return the text with the command after its last "Next:" on a separate line.

    A step that is done by hand before the command becomes a sentence above it. Example: "Next: fill
    it, then: course check" becomes "Fill it." and, on the next line, "Next: course check". If no
    command follows "Next:", the text is returned unchanged.
    """
    head, marker, next_step = text.rpartition("Next: ")
    by_hand = _BY_HAND.fullmatch(next_step)
    if not marker or not (by_hand or re.fullmatch(_COMMAND, next_step, re.DOTALL)):
        return text
    manual_step = f"{by_hand[1][:1].upper()}{by_hand[1][1:]}." if by_hand else ""
    lines = (head.rstrip(), manual_step, f"Next: {by_hand[2] if by_hand else next_step}")
    return "\n".join(line for line in lines if line)


def text_as_called(text: Text, name: str = "") -> Text:
    """Return the text with `course` replaced by the name of the command here, or by this name.

    The styles of the text stay.
    """
    name = name or command()
    if name == "course":
        return text
    for match in reversed(list(_CALL.finditer(text.plain))):
        text = text[: match.start()] + Text(name) + text[match.end() :]
    return text
