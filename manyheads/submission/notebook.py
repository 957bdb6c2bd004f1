"""Join a notebook's code cells into one Python source, without what IPython takes for its own. Nothing is executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from .source_text import lines_of, parsed, with_newlines

# A notebook's cell as Python: what IPython takes for its own becomes blank, which keeps line numbers.

_OTHER_LANGUAGES = frozenset(
    "bash cmd file html javascript js latex markdown perl ruby script sh svg sx system writefile".split()
)
_MAGIC = re.compile(r"\s*(%{1,2}[A-Za-z_]|!(?!=)|\?)")  # `%` followed by a blank or a number is arithmetic
_CELL_MAGIC = re.compile(r"\s*%%(\w+)(?!\S)")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[A-Za-z_]\w*\s*=\s*)[!%].*$")
_ONE_BY_ONE = 20  # magics of a cell: each takes Python a look at the cell
_LOOKED_AT = 200_000  # characters, in all such looks at one notebook: 2,000 cells of many magics took 9 s


def without_magics(source: str, size: int = 0) -> str:
    """Return the cell as Python. A cell that parses is not changed: a line of it may start with the operator `%`.

    size: of all cells of its notebook together, if there are others.
    """
    if _stumbles_at(source) is None:
        return source
    lines = _flush_left(lines_of(source))
    if other_language(source):
        return "\n" * (len(lines) - 1)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        lines[first] = ""
    return "\n".join(_one_by_one(lines, _LOOKED_AT // max(size, len(source), 1)) or _every(lines))


def other_language(source: str) -> str:
    """Return the magic that makes the cell another language than Python: "writefile", "html"; "" where none does."""
    magic = _CELL_MAGIC.match(source)
    return magic[1] if magic and magic[1] in _OTHER_LANGUAGES else ""


def _flush_left(lines: list[str]) -> list[str]:
    """Return the lines without the blanks before the first of them, as IPython runs a cell that was pasted from further in."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines]


def _one_by_one(lines: Sequence[str], looks: int) -> list[str]:
    """Without the magics at which Python stumbles, so that a text of several lines may have lines that look like some.

    Empty where it stumbles at something else, or more often than there are looks.
    """
    kept = list(lines)
    for _ in range(min(_ONE_BY_ONE, looks)):
        at = _stumbles_at("\n".join(kept))
        if at is None:
            return kept
        if not 0 < at <= len(kept) or _without_magic(kept[at - 1]) == kept[at - 1]:
            break
        kept[at - 1 :] = _every(kept[at - 1 :], only_first=True)
    return []


def _every(lines: Sequence[str], only_first: bool = False) -> list[str]:
    """Without whatever looks like a magic, or without the one that the first line is."""
    kept: list[str] = []
    continues = False  # a magic that ends with a backslash includes the next line
    for number, line in enumerate(lines):
        if only_first and number and not continues:
            return [*kept, *lines[number:]]
        kept.append("" if continues else _without_magic(line))
        continues = line.endswith("\\") and (continues or _is_magic(line))
    return kept


def _stumbles_at(source: str) -> int | None:
    """Return the line at which this is no Python, 0 where none is known; None where it is Python."""
    try:
        parsed(source)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return 0
    return None


def _without_magic(line: str) -> str:
    if _is_magic(line):
        return f"{line[: len(line) - len(line.lstrip())]}pass"
    return _ASSIGNED_MAGIC.sub(r"\1None", line)


def _is_magic(line: str) -> bool:
    return bool(_MAGIC.match(line)) or (line.rstrip().endswith("?") and "#" not in line)


# Join a notebook's code cells into one Python source. Nothing is executed.

CELL_LIMIT = 2000
CODE_LIMIT = 200_000  # characters in all cells together: parsing takes about a thousand bytes of memory for each
NAMES = 1000  # that are remembered of cells which are not run as Python
_HEADER = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_][A-Za-z0-9_]{,99})\b", re.MULTILINE)
METADATA_KEY = "manyheads"  # marks the cells that a release adds to the lesson's
PACKAGE, _IN_JUPYTER = "manyheads", "get_ipython"


class NotebookError(Exception):
    """This is not a notebook that can be read. The text is the sentence for the student."""


@dataclass(frozen=True)
class Aside:
    """A cell that is not run as Python, and the functions and classes that it would define.

    kind: "markdown", "raw", "check" for the cell of a visible check, or the magic that makes it another language. after: how
    many code cells stand above it.
    """

    kind: str
    after: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class NotebookSource:
    """A notebook's code cells, joined. cells: the line, from 1, at which each cell begins that is not empty.

    aside: the cells beside them that would define something.
    """

    source: str
    cells: tuple[int, ...]
    aside: tuple[Aside, ...] = ()


def read_notebook(text: str) -> NotebookSource:
    """Join the code cells in their order. Magics and `!` lines are blanked, which keeps line numbers."""
    try:
        cells = json.loads(text)["cells"]
        sources = [
            _text(cell["source"]) for cell in cells if cell["cell_type"] == "code" and not _is_visible_check(cell)
        ]
        if b"\0" in "".join(sources).encode():  # encode() also fails on a lone surrogate, which JSON can contain
            raise ValueError("not text")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotebookError("This is not a notebook that can be read: save it again from Jupyter.") from None
    if sum(map(len, sources)) > CODE_LIMIT:
        raise NotebookError(
            f"This notebook has more than {CODE_LIMIT:,} characters of code: take out what is not yours."
        )
    if len(cells) > CELL_LIMIT:
        raise NotebookError(f"This notebook has {len(cells)} cells; at most {CELL_LIMIT} are read.")
    size = sum(map(len, sources))
    parts = [without_engine(without_magics(source, size)) for source in sources]
    starts = accumulate((part.count("\n") + 2 for part in parts), initial=1)
    cells_with_code = tuple(start for part, start in zip(parts, starts, strict=False) if part.strip())
    return NotebookSource("\n\n".join(parts) + "\n", cells_with_code, tuple(_asides(cells, parts)))


def without_outputs(content: bytes) -> bytes:
    """Return a notebook without what its cells showed and the pictures pasted into it; anything else as it is."""
    try:
        notebook = json.loads(content)
        for cell in notebook["cells"]:
            cell.pop("attachments", None)
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
        return f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n".encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content


def _asides(cells: Sequence[dict[str, Any]], parts: Sequence[str]) -> Iterator[Aside]:
    """Yield the cells that would define something. parts: the code cells as Python, of those that count."""
    after, left, code = 0, NAMES, iter(parts)
    for cell in cells:
        text = _text_of(cell)
        kind = "markdown" if cell["cell_type"] == "markdown" else "raw"
        if cell["cell_type"] == "code":
            is_python = not _is_visible_check(cell) and bool(next(code).strip())
            after += is_python
            kind = "" if is_python else "check" if _is_visible_check(cell) else other_language(text)
        names = tuple(islice((header[1] for header in _HEADER.finditer(text)), left)) if kind else ()
        if names:
            left -= len(names)
            yield Aside(kind, after, names)


def without_engine(source: str) -> str:
    """Return the source without what needs the engine's package, or Jupyter itself.

    The visible checks, wherever they stand after a notebook was turned into a script or lost its metadata. Such lines
    become blank, so that line numbers stay.
    """
    if PACKAGE not in source and _IN_JUPYTER not in source:
        return source
    if sum(len(line) for line in source.split("\n") if not line.startswith("#")) > CODE_LIMIT:  # remarks cost nothing
        return source
    try:
        statements = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    lines = source.split("\n")
    for statement in filter(_needs_engine, statements):
        first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
        lines[first:last] = [""] * (last - first)
    return "\n".join(lines)


def _needs_engine(statement: ast.stmt) -> bool:
    """Return an import of the engine, a call of its visible checks, a call of Jupyter's shell, or a try around one of them."""
    if isinstance(statement, ast.Try):
        return any(map(_needs_engine, statement.body))
    if isinstance(statement, ast.Import):
        return any(alias.name.split(".")[0] == PACKAGE for alias in statement.names)
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").split(".")[0] == PACKAGE
    if not isinstance(statement, ast.Expr):
        return False
    called = {
        node.func.id for node in ast.walk(statement) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return bool(called & {"check_notebook", _IN_JUPYTER})


def _is_visible_check(cell: dict[str, object]) -> bool:
    """Return whether this is the cell that calls the visible checks. It is no part of the attempt: the box has no engine."""
    metadata = cell.get("metadata")
    ours = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    return isinstance(ours, dict) and ours.get("visible") is True


def _text_of(cell: dict[str, Any]) -> str:
    """Return the text of any cell, "" where it has none."""
    try:
        return _text(cell.get("source"))
    except TypeError:
        return ""


def _text(source: object) -> str:
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    if isinstance(source, str):
        return with_newlines(source)
    raise TypeError("a cell's source is text or a list of lines")
