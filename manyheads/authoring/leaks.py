"""Find anything hidden in released files: a hidden line, a whole hidden file, the secret.

Files of every kind are searched: see `file_contents` for what can be read, `hidden_lines` for what counts.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..course import Course
from ..course.secret import FOLDER
from .bank_page import page_path
from .file_contents import Part, UnreadableError, parts
from .hidden_lines import HiddenLines, hidden_lines

INSTRUCTORS = ("solutions/", "grader/", "docs/misconceptions.md", f"{FOLDER}/")


@dataclass(frozen=True)
class Hidden:
    """What may not be released: lines, whole files by their digests, and the secret, if there is one."""

    lines: HiddenLines
    files: Mapping[str, str]
    secret: bytes | None

    def sentence(self, name: str, content: bytes) -> str | None:
        """One sentence if this file reveals something hidden, by its name or its content; else None."""
        if name.startswith(INSTRUCTORS):
            return f"{name} is the instructor's alone"
        if self.secret is not None and self.secret in content:
            return f"{name} holds the course's secret"
        try:
            found = (self._sentence_of(part) for part in parts(name, content))
            return next(filter(None, found), None)
        except UnreadableError as error:
            return str(error)

    def _sentence_of(self, part: Part) -> str | None:
        if self.secret is not None and self.secret in part.content:
            return f"{part.name} holds the course's secret"
        if path := self.files.get(_digest(part.content)):
            return f"{part.name} is a copy of {path}"
        for text in (part.text, *part.inner):
            if line := self.lines.first_in(text):
                where = f"{part.name}:{self._number(text)}" if text is part.text else part.name
                return f"{where} holds a hidden line: {line.text!r} of {line.path}"
        return None

    def _number(self, text: str) -> int:
        """The number of the line, from 1, on which the first hidden line ends."""
        lines = text.split("\n")
        return 1 + bisect_left(
            range(1, len(lines)), True, key=lambda count: self.lines.first_in("\n".join(lines[:count])) is not None
        )


def hidden_of(course: Course) -> Hidden:
    """What a release of this course may not contain."""
    path = course.root / FOLDER / "secret"
    secret = path.read_bytes().strip() if path.exists() else None
    return Hidden(hidden_lines(course), dict(_hidden_files(course)), secret)


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """A sentence for every released file that contains something hidden."""
    hidden = hidden_of(course)
    return tuple(s for name, content in files.items() if (s := hidden.sentence(name, content)) is not None)


def _hidden_files(course: Course) -> Iterator[tuple[str, str]]:
    """Every hidden file by its digest, because texts, tables and records have no lines of code to compare."""
    for path in (page_path(course), *sorted((course.root / "grader").rglob("*"))):
        if path.is_file() and (content := path.read_bytes()).strip():
            yield _digest(content), str(path.relative_to(course.root))


def _digest(content: bytes) -> str:
    """A digest that ignores blanks and line ends."""
    return hashlib.sha256(b"".join(content.split())).hexdigest()
