"""Read the file of one exercise as text, or return one sentence with the reason why not.

The file must be a regular file of limited size. The code cells of a notebook are joined into one
Python source, without IPython's own syntax. Nothing is executed.

A download can hold the work of a whole class, and any file in it may be hostile. So each person
has a budget of bytes, files and seconds (`IntakeLimits`), and the archive of one student cannot
keep the files of the others from being read.
"""

from __future__ import annotations

import ast
import codecs
import json
import os
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .source import (
    CODE_LIMIT,
    CellNotRun,
    Source,
    Unreadable,
    decode_text,
    with_fields,
    with_newlines,
)

if TYPE_CHECKING:
    from ..course import Exercise

CELL_LIMIT = 2000  # cells of one notebook
METADATA_KEY = "manyheads"  # marks the cells that a release adds to those of the lesson
PACKAGE, _IN_JUPYTER = "manyheads", "get_ipython"
_OTHER_LANGUAGE = re.compile(
    r"\s*%%(bash|cmd|file|html|javascript|js|latex|markdown|perl|ruby|script|sh|svg|sx|system|"
    r"writefile)(?!\S)"
)
_NOT_CODE = {
    "markdown": "Markdown",
    "raw": "Raw",
}  # types of cells, and their names in Jupyter's menu
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]", re.MULTILINE)
# A line of IPython's syntax: indent, target of an assignment, and lines after a backslash.
_MAGIC = re.compile(
    (
        r"^([ \t]*)(?:([A-Za-z_]\w*[ \t]*=[ \t]*)?(?:%{1,2}[A-Za-z_]|!(?!=))(?:.*\\\n)*.*|\?.*|"
        r"[\w.*\[\]]+\?{1,2}[ \t]*$)"
    ),
    re.MULTILINE,
)
# A string, whether it ends or not; a comment; a backslash at the end of a line; any other text up
# to the next quote, bracket or newline.
_PIECE = re.compile(
    r"""\"{3}(?:\\?.)*?(?:\"{3}|\Z)|'{3}(?:\\?.)*?(?:'{3}|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?"""
    r"""|\#[^\n]*|\\\n|[^"'#\\()\[\]{}\n]+|.""",
    re.DOTALL,
)
# Windows has only O_BINARY. Without it, a Ctrl-Z character would end the file.
_READ_ONLY = sum(
    getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
LINE_LIMIT = 5_000  # lines; ten times as many as in the longest attempt that we have seen
# A notebook also holds pictures and outputs. `read_notebook` limits its code.
NOTEBOOK_TIMES = 8
HEAD = 100  # bytes of a file that is too large; they may show another type of file
MIB = 1024 * 1024
TOO_LARGE, TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
TOO_SLOW = "it takes longer than is read here"
ENTRIES_PER_MEMBER = 8  # a virtual environment has up to 30,000 files, and none counts as a member
BOTH = "Both {} and {} were worked on: the .py counts."
EARLIER = "Graded from {}: this exercise is called {} now."
WHOLE = "Graded from {}, which holds the whole assignment."
_TEXTS = re.compile(r'"{3}.*?"{3}|\'{3}.*?\'{3}', re.DOTALL)
# Patterns of files that are no Python, each with the end of the sentence about such a file.
_NO_PYTHON = {
    r"\A\s*(?i:<!doctype|<!--|<\?xml|<html|<head|<body)": (
        "is a web page, saved in place of the file: download the file itself (GitHub: "
        "Download raw file)."
    ),
    r"\A\s*\{\\rtf": (
        "is a document with fonts and sizes (RTF), as TextEdit or a word processor saves it: "
        "save it as plain text (TextEdit: Format, Make Plain Text), under the same name."
    ),
    r"\Aversion https://git-lfs\.": (
        "is a pointer of Git LFS, not the file itself: run git lfs pull, and hand in what "
        "that brings."
    ),
    r"^<{7} ": (
        "still holds two versions that git could not merge (line {line}): keep one of them, "
        "and delete the lines that begin with <<<<<<<, ======= and >>>>>>>."
    ),
}
_NO_SCRIPT = {
    r'\A\s*\{\s*"(?:cells|metadata|nbformat\w*)"\s*:': "is a notebook: rename it to {stem}.ipynb.",
    r"^[ \t]*```": (
        "has a code fence on line {line}, which is Markdown: keep the code alone, without the "
        "lines of ``` and the words around."
    ),
}
_NO_NOTEBOOK = {
    r"\A(?!\s*[\[{]).*?^(?:import|from|def|class)[ \t]": "is a script: rename it to {stem}.py."
}


class NotebookError(Unreadable):
    """The notebook cannot be read. The message is a sentence for the student."""


def without_magics(source: Source) -> Source:
    """Return the source with each line of IPython's syntax (a magic, a `!` or a `?`) replaced.

    `files = !ls` becomes `files = None`, and any other such line `pass`. Line numbers do not
    change. Lines within a string or within brackets stay. If the text is valid Python, the source
    is returned unchanged.
    """
    whole_text = source.text
    if not _MAGIC.search(whole_text) or source.tree:
        return source
    pieces = list[str]()
    at = 0
    depth = 0
    begins = True
    while at < len(whole_text):
        magic = _MAGIC.match(whole_text, at) if begins and not depth else None
        piece = magic or _PIECE.match(whole_text, at)
        assert piece is not None  # _PIECE matches any character
        at = piece.end()
        text = piece[0]
        if magic is not None:
            text = f"{magic[1]}{f'{magic[2]}None' if magic[2] else 'pass'}" + "\n" * text.count(
                "\n"
            )
        else:
            depth = max(0, depth + (text in "([{") - (text in ")]}"))
        begins = text == "\n"
        pieces.append(text)
    return with_fields(source, text="".join(pieces))


def without_engine(source: Source) -> Source:
    """Return the source without the top-level statements that need the engine or Jupyter.

    Such statements run the visible checks. They are still in the code if a notebook was converted
    to a script or lost its metadata. Their lines become blank, so line numbers do not change. If
    other code is on these lines, it stays beside a `pass`. If Python cannot parse the text, the
    source is returned unchanged.
    """
    if PACKAGE not in source.text and _IN_JUPYTER not in source.text:
        return source
    lines = source.text.split("\n")
    for statement in filter(_needs_engine, source.tree):
        start = statement.lineno - 1
        end = statement.end_lineno or statement.lineno
        # Columns count bytes.
        code_before = lines[start].encode()[: statement.col_offset].decode()
        code_behind = lines[end - 1].encode()[statement.end_col_offset :].decode()
        is_alone = not code_before.strip() and not code_behind.strip(" \t;")
        lines[start:end] = [""] * (end - start)
        lines[start] = "" if is_alone else f"{code_before}pass{code_behind}"
    return with_fields(source, text="\n".join(lines))


def _needs_engine(statement: ast.stmt) -> bool:
    """Return whether the statement imports the engine, or calls visible checks or Jupyter's shell.

    A `try` needs the engine if a statement directly in its body does.
    """
    match statement:
        case ast.Try(body=body):
            return any(map(_needs_engine, body))
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] == PACKAGE for alias in names)
        case ast.ImportFrom(module=module):
            return (module or "").split(".")[0] == PACKAGE
        case ast.Expr():
            calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
            return any(
                isinstance(f, ast.Name) and f.id in ("check_notebook", _IN_JUPYTER) for f in calls
            )
    return False


def read_notebook(notebook_json: str) -> Source:
    """Return the code cells of a notebook as one Source, in their order, with a blank line between.

    The cell of the visible checks is left out, and a cell in another language is left blank. Each
    cell is changed by `without_magics` and `without_engine`, so it keeps its number of lines. The
    Source has no name. Its `cells` has the first line of each cell that is not blank.

    Raises:
        NotebookError: the text is no notebook, or it has more than CODE_LIMIT characters of code or
            more than CELL_LIMIT cells.
    """
    try:
        cells = json.loads(notebook_json)["cells"]
        code = [
            cell for cell in cells if cell["cell_type"] == "code" and not _is_visible_check(cell)
        ]
        cell_texts = [_text_of(cell) for cell in code]
        not_run = tuple(filter(None, map(_not_run, cells)))
        # encode() also fails on a lone surrogate, which JSON can contain
        if b"\0" in "".join(cell_texts).encode():
            raise ValueError("not text")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotebookError(
            "This is not a notebook that can be read: save it again from Jupyter."
        ) from None
    if sum(map(len, cell_texts)) > CODE_LIMIT:
        raise NotebookError(
            f"This notebook has more than {CODE_LIMIT:,} characters of code: take out what is not "
            "yours."
        )
    if len(cells) > CELL_LIMIT:
        raise NotebookError(f"This notebook has {len(cells)} cells; at most {CELL_LIMIT} are read.")
    cell_codes = list[str]()
    starts = list[int]()
    line = 1
    for cell_text in cell_texts:
        cell_code = _cell_as_python(Source("", cell_text)).text
        if cell_code.strip():
            starts.append(line)
        cell_codes.append(cell_code)
        line += cell_code.count("\n") + 2
    return Source("", "\n\n".join(cell_codes) + "\n", cells=tuple(starts), not_run=not_run)


def _text_of(cell: Mapping[str, Any]) -> Any:
    """Return the source of a cell, which is one text or a list of lines, as one text.

    Line ends become those of Unix. A value of another type is returned unchanged.
    """
    source = cell["source"]
    text = "".join(map(str, source)) if isinstance(source, list) else source
    return with_newlines(text) if isinstance(text, str) else text


def _not_run(cell: Mapping[str, Any]) -> CellNotRun | None:
    """Return the text of a cell and why Jupyter does not run it as Python.

    Return None if the cell has no definition, or if Jupyter runs it as Python.
    """
    cell_type = cell["cell_type"]
    text = _text_of({"source": "", **cell})  # only code cells must have a source
    if not isinstance(text, str) or not _DEFINITION.search(text):
        return None
    if cell_type in _NOT_CODE:
        why = f"stands in a {_NOT_CODE[cell_type]} cell: make it a code cell."
        return CellNotRun(Source("", text), why)
    if cell_type == "code" and (magic := _OTHER_LANGUAGE.match(text)):
        why = (
            f"stands in a cell that begins with %%{magic[1]}, which does not run it: take "
            "that line out."
        )
        return CellNotRun(Source("", text[magic.end() :].partition("\n")[2]), why)
    return None


def _cell_as_python(cell: Source) -> Source:
    """Return the code of a cell as Python, with the same number of lines.

    A cell in another language becomes blank. If the cell is not valid Python, the indent of its
    first line is removed from all lines, as IPython does for pasted code. Then `without_magics` and
    `without_engine` change the code.
    """
    lines = cell.text.split("\n")
    if _OTHER_LANGUAGE.match(cell.text):
        return Source("", "\n" * (len(lines) - 1))
    first_line = next((line for line in lines if line.strip()), "")
    indent = first_line[: len(first_line) - len(first_line.lstrip())]
    if indent and not cell.tree:
        cell = Source("", "\n".join(line.removeprefix(indent) for line in lines))
    return without_engine(without_magics(cell))


def _is_visible_check(cell: Mapping[str, Any]) -> bool:
    """Return whether this is the cell that calls the visible checks.

    It is not part of the attempt, because the box has no engine.
    """
    metadata = cell.get("metadata")
    ours = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    return isinstance(ours, dict) and ours.get("visible") is True


def read_attempt(folder: Path, stem: str, untouched: str | None, limit_kib: int) -> Source:
    """Return the attempt `stem` in a submission's folder, from STEM.py or STEM.ipynb.

    If only one of the two files was worked on, it counts. If both were, the .py counts, and the
    note says so. If neither was, the notebook counts. A regular file that this process may not read
    is ignored. If no file is left, the Source is `missing`.

    Args:
        folder: the folder of the submission.
        stem: the name of the file without its ending.
        untouched: the `code_digest` of the stub. A file was worked on if its digest differs, or if
            it has a problem. None if the stub is unknown: then each file was worked on.
        limit_kib: the limit for a script in KiB.
    """
    paths = [folder / f"{stem}{ending}" for ending in (".py", ".ipynb")]
    existing = filter(os.path.lexists, paths)
    readable = [path for path in existing if os.access(path, os.R_OK) or not os.path.isfile(path)]
    attempts = [read_file(path, limit_kib) for path in readable]
    worked_on = [attempt for attempt in attempts if _is_worked_on(attempt, untouched)]
    if len(worked_on) == len(paths):
        return with_fields(worked_on[0], note=BOTH.format(*(path.name for path in paths)))
    return (worked_on or attempts[::-1] or [Source(paths[0].name, missing=True)])[0]


def read_exercise(
    folder: Path, exercise: Exercise, untouched: str | None, limit_kib: int
) -> Source:
    """Return the attempt at an exercise.

    The first of these files counts:

    1. The exercise's own file, if the student has worked on it.
    2. A file with an earlier name of the exercise, if there is no own file.
    3. The file of the whole assignment, which has the assignment's name, such as
       multi_head_attention.ipynb, if it defines something that the exercise asks for, or cannot be
       read. If two exercises ask for the same name, its last definition counts for both.
    4. The exercise's own file. If it does not exist, the Source is `missing`.

    In the cases 2 and 3 the note names the file. For the arguments, see `read_attempt`.
    """
    attempt = read_attempt(folder, exercise.stem, untouched, limit_kib)
    if not attempt.missing and _is_worked_on(attempt, untouched):
        return attempt
    earlier = exercise.stems[1:] if attempt.missing else ()
    for stem, note in (*((stem, EARLIER) for stem in earlier), (exercise.assignment.id, WHOLE)):
        fallback = read_attempt(folder, stem, untouched, limit_kib)
        is_of = note == EARLIER or fallback.problem or defined_in(fallback) & asked_of(exercise)
        if is_of and not fallback.missing:
            why = note.format(fallback.name, exercise.stem)
            return with_fields(fallback, note=f"{why} {fallback.note}".strip())
    return attempt


def defined_in(source: Source) -> frozenset[str]:
    """Return the names of functions and classes at the top level of a text.

    Return an empty set if Python cannot parse the text.
    """
    return frozenset(
        statement.name
        for statement in source.statements
        if isinstance(statement, ast.FunctionDef | ast.ClassDef)
    )


def asked_of(exercise: Exercise) -> frozenset[str]:
    """Return the names of the functions and classes that the student has to write.

    The names are those in the stub. If it has none or cannot be read, they come from `shapes` in
    course.yaml.
    """
    try:
        stub = Source("", exercise.script.read_text(encoding="utf-8"))
        return defined_in(stub) or frozenset(exercise.shapes)
    except (OSError, UnicodeDecodeError):
        return frozenset(exercise.shapes)


def _is_worked_on(attempt: Source, untouched: str | None) -> bool:
    return bool(attempt.problem) or attempt.code_digest != untouched


def size_limit(name: str, limit_kib: int) -> int:
    """Return the limit in KiB for a file of this name: `limit_kib`, or more for a notebook."""
    return limit_kib * NOTEBOOK_TIMES if name.endswith(".ipynb") else limit_kib


def too_large(name: str, limit_kib: int) -> str:
    """Return the sentence for the student about a file that is larger than `limit_kib`.

    For a notebook, a second sentence says how to clear its outputs.
    """
    clear = (
        " Clear its outputs (Edit, Clear Outputs of All Cells), and save it."
        if name.endswith(".ipynb")
        else ""
    )
    return f"{name} is larger than {limit_kib} KiB.{clear}"


def read_file(path: Path, limit_kib: int) -> Source:
    """Return the attempt in this file, a .py or a notebook.

    If the file cannot be an attempt, for example because it is missing, too large or a web page,
    the Source has no text, and its `problem` is a sentence for the student.

    Args:
        path: the file.
        limit_kib: the limit for a script in KiB; a notebook may be larger (`size_limit`).
    """
    try:
        attempt = Source(path.name, read_text(path, size_limit(path.name, limit_kib)))
        _refuse_other_files(path, attempt)
        if path.suffix == ".ipynb":
            attempt = replace(read_notebook(attempt.text), name=path.name)
        else:
            attempt = without_engine(without_magics(attempt))
        if (lines := attempt.text.count("\n") + 1) > LINE_LIMIT:
            raise Unreadable(
                f"{path.name} has {lines:,} lines, and at most {LINE_LIMIT:,} are read: feedback "
                "tells the line of a mistake, which in a longer file could carry out what is "
                "hidden. Take out what is not part of the exercise."
            )
        return attempt
    except Unreadable as error:
        return Source(path.name, problem=str(error))


def _refuse_other_files(path: Path, content: Source) -> None:
    """Raise Unreadable if the file is of another type, such as a web page, or is not merged."""
    code = _TEXTS.sub(lambda match: "\n" * match[0].count("\n"), content.text)
    for pattern, sentence in (
        _NO_PYTHON | (_NO_NOTEBOOK if path.suffix == ".ipynb" else _NO_SCRIPT)
    ).items():
        mark = re.search(pattern, code, re.MULTILINE | re.DOTALL)
        # Most texts have no mark, and need not be parsed. To Python, a notebook's JSON is one
        # expression.
        if mark and (
            path.suffix == ".ipynb"
            or all(isinstance(statement, ast.Expr) for statement in content.tree)
        ):
            line = code.count("\n", 0, mark.end()) + 1
            raise Unreadable(f"{path.name} {sentence.format(stem=path.stem, line=line)}")


def read_bytes(path: Path, limit_kib: int) -> bytes:
    """Return the content of a regular file.

    The file is opened once, so the content comes from the file that was checked.

    Raises:
        Unreadable: the file cannot be opened, is a symbolic or a hard link, is no regular file, or
            is larger than `limit_kib`. The sentence about a large file names its type if its first
            HEAD bytes show that it is no attempt.
    """
    try:
        descriptor = os.open(path, _READ_ONLY)
    except OSError:
        raise Unreadable(
            f"{path.name} is not a file that can be read: hand in the file itself, not a link."
        ) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Unreadable(f"{path.name} is not a regular file.")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_nlink > 1:
            raise Unreadable(f"{path.name} is a hard link: hand in the file itself.")
        data = file.read(limit_kib * 1024 + 1)
    if len(data) > limit_kib * 1024:
        _refuse_other_files(path, Source("", data[:HEAD].decode("utf-8-sig", "replace")))
        raise Unreadable(too_large(path.name, limit_kib))
    return data


def read_text(path: Path, limit_kib: int) -> str:
    """Return the text of a regular file, with line ends of Unix.

    Raises:
        Unreadable: `read_bytes` refuses the file, or it is UTF-16, contains NUL bytes, or cannot be
            decoded (`decode_text`).
    """
    data = read_bytes(path, limit_kib)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable(
            f"{path.name} is UTF-16 text, which Python does not read: save it as UTF-8."
        )
    if b"\0" in data:
        raise Unreadable(f"{path.name} contains NUL bytes: it is not text.")
    try:
        return with_newlines(decode_text(data))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            f"{path.name} is not UTF-8 text (line {line}): save it as UTF-8."
        ) from None


class Closed(Exception):
    """A file or an archive that is not read, or not taken.

    The message continues a sentence that begins with the path. The message gives the reason and the
    next step.
    """


def archive_error(why: str) -> Closed:
    """Return the error for an archive that is not opened. `why` is a clause with the reason."""
    return Closed(
        f"is not opened: {why}. Next: unpack it by hand, look at it, then course collect that "
        "folder"
    )


@dataclass
class IntakeLimits:
    """How much may still be read of one person, or of a download.

    Attributes:
        attempt: bytes of one file.
        size: bytes of all files.
        members: number of files, without noise such as a virtual environment.
        seconds: time for all archives of one person.
        code: number of characters to parse. The default takes 5 s at most. Without the limit, 640
            files in a student's zip of 60 KB took 6 minutes.
        until: the end of `seconds` on the monotonic clock.
        entries: number of entries in archives: files, folders, noise, and headers about headers.
            0 stands for `ENTRIES_PER_MEMBER` times the members.
    """

    attempt: int = 16 * MIB
    size: int = 128 * MIB
    members: int = 5_000
    seconds: float = 30
    code: int = 1_500_000
    until: float = float("inf")
    entries: int = 0

    def __post_init__(self) -> None:
        """Fill in the number of entries."""
        self.entries = self.entries or ENTRIES_PER_MEMBER * self.members

    def for_persons(self, persons: int = 1) -> IntakeLimits:
        """Return a copy with `size`, `members`, `entries` and `seconds` for this many persons.

        The time starts now. `attempt` and `code` stay as they are.
        """
        return replace(
            self,
            size=self.size * persons,
            members=self.members * persons,
            entries=self.entries * persons,
            until=time.monotonic() + self.seconds * persons,
        )

    @property
    def is_used_up(self) -> bool:
        """Whether more bytes or more files were counted than are allowed."""
        return self.size < 0 or self.members < 0

    @property
    def exceeded_limit(self) -> str:
        """A clause about the first exceeded limit of an archive; "" if none is exceeded.

        The order is: bytes, files and entries, time.
        """
        if self.size < 0:
            return TOO_LARGE
        if self.members < 0 or self.entries < 0:
            return TOO_MANY
        return TOO_SLOW if time.monotonic() > self.until else ""

    def take(self, size: int = 0, members: int = 0, entries: int = 0) -> None:
        """Subtract bytes, files and entries of an archive from these limits, and check the clock.

        Raises:
            Closed: a limit is exceeded now.
        """
        self.size -= size
        self.members -= members
        self.entries -= entries
        if self.exceeded_limit:
            raise archive_error(self.exceeded_limit)
