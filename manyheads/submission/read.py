"""Read the file of one exercise: a regular file of bounded size, as text, with its lines as the student sees them."""

from __future__ import annotations

import ast
import codecs
import hashlib
import os
import re
import stat
from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..result import ExerciseResult, ProvedLine
from .notebook import Aside, NotebookError, NotebookSource, read_notebook, without_engine
from .source_text import code_digest, decoded, with_newlines
from .unwritten import statements_of

# What git leaves in a file whose two versions it could not merge.

_MARKERS = ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> ")


def conflict_line(text: str) -> int | None:
    """Return the line at which the first conflict begins, from 1 on; None if there is none."""
    text, at, first = f"\n{text}", -1, None
    for marker in _MARKERS:
        at = text.find(marker, at + 1)
        if at < 0:
            return None
        first = at if first is None else first
    return text.count("\n", 0, first) + 1


# Read the file of one exercise: a regular file of bounded size, as text, or one sentence that says why not.

if TYPE_CHECKING:
    from ..box.worker.messages import Load
    from ..course import Exercise

# Windows has only O_BINARY, without which a Ctrl-Z character would end the file.
_READ_ONLY = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
LINE_LIMIT = 5_000  # ten times the longest attempt that we have seen
NOTEBOOK_TIMES = 8  # a notebook holds pictures and outputs, too; how much code it may have is limited where it is read
BOTH = "Both {} and {} were worked on: the .py counts."
EARLIER = "Graded from {}: this exercise is called {} now."
WHOLE = "Graded from {}, which holds the whole assignment."


@dataclass(frozen=True)
class AttemptSource:
    """What a student handed in for one exercise.

    problem: one sentence that says why the file cannot be an attempt; then `source` is empty.
    missing: whether there is no file.
    note: what the student should know about which file was read.
    cells: of a notebook, the line at which each cell begins.
    skipped: the numbers of the parts of it that ended the process that ran them, and are left out since.
    aside: of a notebook, the cells that would define something if they were code.
    """

    name: str
    source: str = ""
    problem: str = ""
    missing: bool = False
    note: str = ""
    cells: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    aside: tuple[Aside, ...] = ()

    def load(self) -> Load:
        """Return the message that has a box load it."""
        from ..box.worker.messages import Load  # which imports torch

        return Load(self.source, self.name, self.cells, self.skipped)

    @property
    def digest(self) -> str:
        """A hash of everything that the verdict depends on: attempts with the same digest are the same."""
        parts = (self.name, self.source, self.problem, str(self.missing), *map(str, self.cells), *map(str, self.aside))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Unreadable(Exception):
    """The file cannot be an attempt. The text is the sentence for the student."""


def read_attempt(folder: Path, stem: str, untouched: str | None, limit_kib: int) -> AttemptSource:
    """Read the attempt `stem` in a submission's folder.

    If there are both a .py and a notebook, the .py counts unless its code is the stub's. If both were worked on,
    the note says which one counts. `untouched` is the stub's code_digest, None if it is not known.
    """
    script, notebook = folder / f"{stem}.py", folder / f"{stem}.ipynb"
    has_script, has_notebook = _is_there(script), _is_there(notebook)
    if has_script and has_notebook:
        read_script = read_file(script, limit_kib)
        read_notebook = read_file(notebook, limit_kib)
        if not _is_worked_on(read_script, untouched):
            return read_notebook
        both = _is_worked_on(read_notebook, untouched)
        return replace(read_script, note=BOTH.format(script.name, notebook.name) if both else "")
    if has_script or has_notebook:
        return read_file(script if has_script else notebook, limit_kib)
    return AttemptSource(script.name, missing=True)


def read_exercise(folder: Path, exercise: Exercise, untouched: str | None, limit_kib: int) -> AttemptSource:
    """Read the attempt at an exercise: its own file, one with an earlier name, or the file of the whole assignment.

    The file of all exercises is called as the assignment is: multi_head_attention.ipynb, or .py. An exercise's own file counts
    where it is worked on; the note says where it does not. Of names that two exercises ask for, the last definition is both's.
    """
    own = read_attempt(folder, exercise.stem, untouched, limit_kib)
    for stem in exercise.stems[1:] if own.missing else ():
        earlier = read_attempt(folder, stem, None, limit_kib)
        if not earlier.missing:
            return replace(earlier, note=f"{EARLIER.format(earlier.name, exercise.stem)} {earlier.note}".strip())
    if not own.missing and _is_worked_on(own, untouched):
        return own
    whole = read_attempt(folder, exercise.assignment.id, None, limit_kib)
    if whole.missing or not (whole.problem or defined_in(whole.source) & asked_of(exercise)):
        return own
    return replace(whole, note=f"{WHOLE.format(whole.name)} {whole.note}".strip())


def defined_in(source: str) -> frozenset[str]:
    """Return the names of the functions and classes at the top level of a text; none where Python cannot parse it."""
    definitions = (
        statement for statement in statements_of(source) if isinstance(statement, ast.FunctionDef | ast.ClassDef)
    )
    return frozenset(definition.name for definition in definitions)


def asked_of(exercise: Exercise) -> frozenset[str]:
    """Return the functions and classes of an exercise: those of its stub, or of course.yaml where there is none."""
    try:
        return defined_in(exercise.script.read_text(encoding="utf-8")) or frozenset(exercise.shapes)
    except (OSError, UnicodeDecodeError):
        return frozenset(exercise.shapes)


def _is_worked_on(attempt: AttemptSource, untouched: str | None) -> bool:
    return bool(attempt.problem) or code_digest(attempt.source) != untouched


def _is_there(path: Path) -> bool:
    """Return whether something of this name is there. A file that may not be read is told by whoever finds submissions."""
    return os.path.lexists(path) and not (os.path.isfile(path) and not os.access(path, os.R_OK))


def largest(name: str, limit_kib: int) -> int:
    """Return how large, in KiB, the file of an attempt with this name may be."""
    return limit_kib * NOTEBOOK_TIMES if name.endswith(".ipynb") else limit_kib


def read_file(path: Path, limit_kib: int) -> AttemptSource:
    """Read the attempt in this file, a .py or a notebook."""
    try:
        text = read_text(path, largest(path.name, limit_kib))
        if path.suffix == ".ipynb":
            notebook = _read_notebook(path, text)
            _refuse_many_lines(path, notebook.source)
            return AttemptSource(path.name, notebook.source, cells=notebook.cells, aside=notebook.aside)
        _refuse_many_lines(path, text)
        if conflict_line(text) is not None and not statements_of(text):  # most texts need not be parsed here
            _refuse_conflict(path, text)
    except (Unreadable, NotebookError) as error:
        return AttemptSource(path.name, problem=str(error))
    return AttemptSource(path.name, without_engine(text))


def _read_notebook(path: Path, text: str) -> NotebookSource:
    """Raise NotebookError, Unreadable."""
    try:
        return read_notebook(text)
    except NotebookError:
        _refuse_conflict(path, text)
        raise


def _refuse_conflict(path: Path, text: str) -> None:
    """Say what is wrong with a file that cannot be parsed, if git could not merge it. Raises Unreadable."""
    if (line := conflict_line(text)) is not None:
        raise Unreadable(
            f"{path.name} still holds two versions that git could not merge (line {line}): keep one of them, and delete "
            f"the lines that begin with <<<<<<<, ======= and >>>>>>>."
        )


def _refuse_many_lines(path: Path, source: str) -> None:
    """Raise Unreadable."""
    if (lines := source.count("\n") + 1) > LINE_LIMIT:
        raise Unreadable(
            f"{path.name} has {lines:,} lines, and at most {LINE_LIMIT:,} are read: feedback tells the line of a mistake, "
            f"which in a longer file could carry out what is hidden. Take out what is not part of the exercise."
        )


def read_bytes(path: Path, limit_kib: int) -> bytes:
    """Return the content of a regular file. It is opened once, so that what is read is what was checked. Raises Unreadable."""
    try:
        descriptor = os.open(path, _READ_ONLY)
    except OSError:
        raise Unreadable(f"{path.name} is not a file that can be read: hand in the file itself, not a link.") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Unreadable(f"{path.name} is not a regular file.")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_nlink > 1:
            raise Unreadable(f"{path.name} is a hard link: hand in the file itself.")
        data = file.read(limit_kib * 1024 + 1)
    if len(data) > limit_kib * 1024:
        raise Unreadable(too_large(path.name, limit_kib))
    return data


def too_large(name: str, limit_kib: int) -> str:
    """Return the sentence for the student. limit_kib: of this file."""
    clear = " Clear its outputs (Edit, Clear Outputs of All Cells), and save it." if name.endswith(".ipynb") else ""
    return f"{name} is larger than {limit_kib} KiB.{clear}"


def read_text(path: Path, limit_kib: int) -> str:
    """Return the text of a regular file. Raises Unreadable."""
    data = read_bytes(path, limit_kib)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable(f"{path.name} is UTF-16 text, which Python does not read: save it as UTF-8.")
    if b"\0" in data:
        raise Unreadable(f"{path.name} contains NUL bytes: it is not text.")
    try:
        return with_newlines(decoded(data))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(f"{path.name} is not UTF-8 text (line {line}): save it as UTF-8.") from None


# The lines of a submission as its student sees them: of a file, or of a notebook's code cells.

_NAMED = re.compile(
    r"\b((?:raised [A-Z]\w+|raised an exception of its own|in the loop|written|the stub's raise) on|come back from) line ([1-9]\d{0,6})\b"
)
_PLACED = re.compile(rf"{_NAMED.pattern}(?: of code cell ([1-9]\d{{0,6}})\b)?")


def proved_line(source: AttemptSource, line: int, edit: str = "") -> ProvedLine:
    """Return a line of the attempt's text; of a notebook, with its place in its cell. Cells are counted from 1, code cells alone."""
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first + 1, edit=edit)


def in_cells(text: str, source: AttemptSource) -> str:
    """Return a sentence that names a line of a notebook with its cell, for no student sees the cells joined; of a file, as it is."""
    if not source.cells:
        return text
    return _NAMED.sub(lambda found: f"{found[1]} {proved_line(source, int(found[2])).place}", text)


def named_line(text: str, source: AttemptSource) -> int:
    """Return the line of the attempt's text that a sentence names, whether with its cell or without; 0 where it names none."""
    found = _PLACED.search(text)
    if found is None or int(found[3] or 0) > len(source.cells):
        return 0
    return int(found[2]) + (source.cells[int(found[3]) - 1] - 1 if found[3] else 0)


def told_in_cells(result: ExerciseResult, source: AttemptSource) -> ExerciseResult:
    """Return the result, all of whose sentences do so."""
    checks = tuple(c.model_copy(update={"evidence": in_cells(c.evidence, source)}) for c in result.checks)
    functions = tuple(f.model_copy(update={"evidence": in_cells(f.evidence, source)}) for f in result.functions)
    note = in_cells(result.note, source)
    return (
        result.model_copy(update={"checks": checks, "functions": functions, "note": note}) if source.cells else result
    )
