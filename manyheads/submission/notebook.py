"""Join a notebook's code cells into one Python source. Nothing is executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from .magics import other_language, without_magics
from .parsed import parsed
from .text import with_newlines

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
    """The source without what needs the engine's package, or Jupyter itself: the visible checks, wherever they stand after
    a notebook was turned into a script or lost its metadata. Such lines become blank, so that line numbers stay."""
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
    """An import of the engine, a call of its visible checks, a call of Jupyter's shell, or a try around one of them."""
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
    """Whether this is the cell that calls the visible checks. It is no part of the attempt: the box has no engine."""
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
