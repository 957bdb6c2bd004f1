"""Find anything hidden in released files: a hidden line, a whole hidden file, the secret."""

from __future__ import annotations

import ast
import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ..course import Course
from ..course.secret import FOLDER
from .file_contents import Part, UnreadableError, parts
from .packages import engine_files
from .stub import solution_parts, strip

# Find lines of code in a text of any kind. They are compared token by token.
#
# Blanks, line breaks, comments and the kind of quotes make no difference.

TOKEN = re.compile(r"\w+|[^\w\s\\]|\n")  # without the backslash, which JSON puts before quotes
SIGNS = " #>*-"  # the first characters of a comment, a quotation, a list item
BETWEEN = re.compile(r'[`";#]')


def normalised(text: str) -> str:
    """Return the tokens, separated by blanks. Line breaks and `#` are tokens too."""
    return " ".join(TOKEN.findall(text.replace("'", '"')))


def as_code(line: str) -> str:
    """Return a line in normal form, without its comment."""
    return normalised(line.split("#")[0])


def length(form: str) -> int:
    """Return the number of characters without blanks."""
    return len(form.replace(" ", ""))


Ways = list[tuple[set[tuple[str, ...]], str]]  # to read a text: by three tokens in a row, and as a whole


def ways_of(normal: str) -> Ways:
    """Return how a text in normal form is read to find phrases in its comments, in its code, also across lines."""
    texts = [normal.replace("#", ""), *([re.sub(r"#[^\n]*", "", normal)] if "#" in normal else [])]
    tokens = [text.split() for text in texts]
    return [(set(zip(t, t[1:], t[2:], strict=False)), f" {' '.join(t)} ") for t in tokens]


class Phrases:
    """Lines in normal form, of three tokens or more, that are found anywhere in a text."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, ...], list[str]] = {}
        for form in forms:
            self._by_start.setdefault(tuple(form.split(" ")[:3]), []).append(form)

    def within(self, ways: Ways) -> set[str]:
        """Return the phrases in a text."""
        lines = set[str]()
        for starts, whole in ways:
            for start, forms in self._by_start.items():
                if start in starts:
                    lines.update(form for form in forms if f" {form} " in whole)
        return lines


def _forms(line: str) -> tuple[str, str]:
    """Return the code of a line, and its code without a leading sign such as `>`."""
    return line.split("#")[0].strip(), line.lstrip(SIGNS).split("#")[0].strip()


def _pieces(line: str) -> Iterator[str]:
    """Yield the separate parts of a line: in quotes, in a comment, after a semicolon, after the first colon."""
    for piece in (*BETWEEN.split(line), *BETWEEN.split(line.partition(" : ")[2])):
        yield piece.strip(SIGNS)


# The lines that may not be released, and where in a text each counts. By default a line counts anywhere.
#
# Common lines count only as a whole line. These occur within a line of the engine, or in a lesson without being part
# of a solution.
#
# Short lines are taken from solutions only, and only if nobody else writes them. They count as a whole line or as a
# separate part of one. Shorter lines, such as `else:`, are not compared, because every course has them.

SHORT, MIDDLE, LONG = 10, 16, 40  # the least characters without blanks of each class; a long line is never common
WIDESPREAD = 3  # a short line in this many right attempts is one that everybody writes
NOTHING = ("import ", "from ", "def ", "class ", "super ( ) . __init__", '" " "', "with torch . no_grad")
NOTHING_IN_A_BANK = ("return {", "@ ")


@dataclass(frozen=True)
class HiddenLine:
    """A hidden line as it is written, and its file."""

    text: str
    path: str
    of_solution: bool


@dataclass(frozen=True)
class HiddenLines:
    """The hidden lines of a course. origin: each line by its normal form.

    anywhere, alone, apart: those that count anywhere, as a whole line, or as a separate part of a line.
    """

    origin: Mapping[str, HiddenLine]
    anywhere: Phrases
    alone: frozenset[str]
    apart: frozenset[str]

    def first_in(self, text: str) -> HiddenLine | None:
        """Return the first hidden line that counts in this text; None if there is none."""
        found = self.within(text)
        return self.origin[min(found)] if found else None

    def within(self, text: str) -> set[str]:
        """Return the hidden lines that count in this text, in normal form."""
        normal = normalised(text)
        lines = normal.split("\n")
        whole = {form for line in lines for form in _forms(line)}
        pieces = {piece for line in lines for piece in _pieces(line)}
        return self.anywhere.within(ways_of(normal)) | (self.alone & whole) | (self.apart & (whole | pieces))


def hidden_lines(course: Course) -> HiddenLines:
    """Return every line of a solution part, a check or a mutant, except those that reveal nothing."""
    stubs = [strip(e.solution.read_text(encoding="utf-8"), e.solution.name) for e in course.exercises]
    lines = dict(_of_bank(course, stubs)) | dict(_of_solutions(course))
    common = _common(lines, stubs)
    short = {form for form in lines if length(form) < MIDDLE}
    longer = lines.keys() - short
    apart = frozenset(short - common - _widespread(course))
    return HiddenLines(lines, Phrases(longer - common), frozenset(longer), apart)


def _of_solutions(course: Course) -> Iterator[tuple[str, HiddenLine]]:
    for path in (exercise.solution for exercise in course.exercises):
        for text in solution_parts(path.read_text(encoding="utf-8")):
            form = as_code(text)
            if length(form) >= SHORT and not form.startswith(NOTHING):
                yield form, HiddenLine(text, str(path.relative_to(course.root)), of_solution=True)


def _of_bank(course: Course, stubs: list[str]) -> Iterator[tuple[str, HiddenLine]]:
    """Yield the lines of checks, mutants, right and wrong attempts."""
    signatures = [signature for stub in stubs for signature in _signatures(stub)]
    for path in sorted((course.root / "grader").rglob("*.py")):
        for text in path.read_text(encoding="utf-8").splitlines():
            form = as_code(text)
            if length(form) < MIDDLE or _is_harmless(form) or any(f" {form} " in s for s in signatures):
                continue
            yield form, HiddenLine(text.strip(), str(path.relative_to(course.root)), of_solution=False)


def _signatures(stub: str) -> Iterator[str]:
    """Yield every function signature in normal form, from `def` to the colon."""
    lines = stub.splitlines()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            forms = (as_code(line) for line in lines[node.lineno - 1 : node.body[0].lineno - 1])
            yield f" {' '.join(forms)} "


def _is_harmless(form: str) -> bool:
    """Return whether the line is an import, a signature, prose or the like, which reveal nothing."""
    if form.startswith((*NOTHING, *NOTHING_IN_A_BANK)) or re.fullmatch(r"raise \w+ \(", form):
        return True
    return not re.search(r"[=(\[]", form)


def _common(lines: Mapping[str, HiddenLine], stubs: list[str]) -> set[str]:
    phrases = Phrases(form for form in lines if length(form) < LONG)
    of_lessons = {form for stub in stubs for form in phrases.within(ways_of(normalised(stub)))}
    given_away = {form for form in of_lessons if lines[form].of_solution and length(form) >= MIDDLE}
    return of_lessons - given_away | phrases.within(_engine())


@cache
def _engine() -> Ways:
    """Return the text of the released engine."""
    contents = (content for _, content in engine_files(templates=False))
    return ways_of("\n".join(normalised(content.decode("utf-8", "replace")) for content in contents))


def _widespread(course: Course) -> set[str]:
    """Return the lines that several right attempts contain independently."""
    counted: Counter[str] = Counter()
    for path in (course.root / "grader" / "right").rglob("*.py"):
        counted.update({as_code(line) for line in path.read_text(encoding="utf-8").splitlines()})
    return {form for form, count in counted.items() if count >= WIDESPREAD}


# Files of every kind are searched: see `file_contents` for what can be read, and `hidden_lines` above for what counts.

INSTRUCTORS = ("solutions/", "grader/", f"{FOLDER}/")


@dataclass(frozen=True)
class Hidden:
    """What may not be released: lines, whole files by their digests, and the secret, if there is one."""

    lines: HiddenLines
    files: Mapping[str, str]
    secret: bytes | None

    def sentence(self, name: str, content: bytes) -> str | None:
        """Return one sentence if this file reveals something hidden, by its name or its content; else None."""
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
        """Return the number of the line, from 1, on which the first hidden line ends."""
        lines = text.split("\n")
        return 1 + bisect_left(
            range(1, len(lines)), True, key=lambda count: self.lines.first_in("\n".join(lines[:count])) is not None
        )


def hidden_of(course: Course) -> Hidden:
    """Return what a release of this course may not contain."""
    path = course.root / FOLDER / "secret"
    secret = path.read_bytes().strip() if path.exists() else None
    return Hidden(hidden_lines(course), dict(_hidden_files(course)), secret)


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence for every released file that contains something hidden."""
    hidden = hidden_of(course)
    return tuple(s for name, content in files.items() if (s := hidden.sentence(name, content)) is not None)


def _hidden_files(course: Course) -> Iterator[tuple[str, str]]:
    """Yield every hidden file by its digest, because texts, tables and records have no lines of code to compare."""
    for path in sorted((course.root / "grader").rglob("*")):
        if path.is_file() and (content := path.read_bytes()).strip():
            yield _digest(content), str(path.relative_to(course.root))


def _digest(content: bytes) -> str:
    """Return a digest that ignores blanks and line ends."""
    return hashlib.sha256(b"".join(content.split())).hexdigest()
