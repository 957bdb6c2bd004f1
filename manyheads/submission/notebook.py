"""Join a notebook's code cells into one Python source, without what IPython takes for its own. Nothing is executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from .source_text import CODE_LIMIT, Aside, AttemptSource, Unreadable, read_statements, with_newlines

CELL_LIMIT = 2000
NAMES = 1000  # that are remembered of cells which are not run as Python
METADATA_KEY = "manyheads"  # marks the cells that a release adds to the lesson's
PACKAGE, _IN_JUPYTER = "manyheads", "get_ipython"
_HEADER = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_][A-Za-z0-9_]{,99})\b", re.MULTILINE)
_OTHER_LANGUAGE = re.compile(
    r"\s*%%(bash|cmd|file|html|javascript|js|latex|markdown|perl|ruby|script|sh|svg|sx|system|writefile)(?!\S)"
)
# A line of IPython's: its indent, what is assigned to, and lines that a backslash continues.
_MAGIC = re.compile(
    r"^([ \t]*)(?:([A-Za-z_]\w*[ \t]*=[ \t]*)?(?:%{1,2}[A-Za-z_]|!(?!=))(?:.*\\\n)*.*|\?.*|[\w.*\[\]]+\?{1,2}[ \t]*$)",
    re.MULTILINE,
)
# A string, whether it ends or not, a remark, a line that goes on, and everything else up to what matters.
_PIECE = re.compile(
    r"""\"{3}(?:\\?.)*?(?:\"{3}|\Z)|'{3}(?:\\?.)*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?"""
    r"""|\#[^\n]*|\\\n|[^"'#\\()\[\]{}\n]+|.""",
    re.DOTALL,
)


class NotebookError(Unreadable):
    """This is not a notebook that can be read. The text is the sentence for the student."""


def without_magics(source: str) -> str:
    """Return the text, where it is no Python, without lines of IPython's: a magic, a `!` or a `?`. Line numbers stay."""
    if not _MAGIC.search(source) or read_statements(source):
        return source
    kept, at, depth, begins = list[str](), 0, 0, True
    while at < len(source):
        magic = _MAGIC.match(source, at) if begins and not depth else None
        piece = magic or _PIECE.match(source, at)
        assert piece is not None  # any character is one
        at, text = piece.end(), piece[0]
        if magic is not None:
            text = f"{magic[1]}{f'{magic[2]}None' if magic[2] else 'pass'}" + "\n" * text.count("\n")
        else:
            depth = max(0, depth + (text in "([{") - (text in ")]}"))
        begins = text == "\n"
        kept.append(text)
    return "".join(kept)


def without_engine(source: str) -> str:
    """Return the source without what needs the engine's package, or Jupyter itself.

    The visible checks, wherever they stand after a notebook was turned into a script or lost its metadata. Such lines
    become blank, so that line numbers stay.
    """
    if PACKAGE not in source and _IN_JUPYTER not in source:
        return source
    lines = source.split("\n")
    for statement in filter(_needs_engine, read_statements(source)):
        first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
        lines[first:last] = [""] * (last - first)
    return "\n".join(lines)


def _needs_engine(statement: ast.stmt) -> bool:
    """Return an import of the engine, a call of its visible checks, a call of Jupyter's shell, or a try around one of them."""
    match statement:
        case ast.Try(body=body):
            return any(map(_needs_engine, body))
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] == PACKAGE for alias in names)
        case ast.ImportFrom(module=module):
            return (module or "").split(".")[0] == PACKAGE
        case ast.Expr():
            calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
            return any(isinstance(f, ast.Name) and f.id in ("check_notebook", _IN_JUPYTER) for f in calls)
    return False


def read_notebook(text: str) -> AttemptSource:
    """Join the code cells in their order. Magics and `!` lines are passed over, which keeps line numbers. Raises NotebookError."""
    try:
        cells = json.loads(text)["cells"]
        code = [cell["cell_type"] == "code" and not _is_visible_check(cell) for cell in cells]
        sources = [_text(cell["source"]) if is_code else "" for cell, is_code in zip(cells, code, strict=True)]
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
    parts, starts, aside, line, left = list[str](), list[int](), list[Aside](), 1, NAMES
    for cell, is_code, source in zip(cells, code, sources, strict=True):
        part = _cell_as_python(source)
        if part.strip():
            starts.append(line)
        elif (beside := _aside(cell, len(starts), left)).names:
            left -= len(beside.names)
            aside.append(beside)
        if is_code:
            parts.append(part)
            line += part.count("\n") + 2
    return AttemptSource("", "\n\n".join(parts) + "\n", cells=tuple(starts), aside=tuple(aside))


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


def _cell_as_python(source: str) -> str:
    """Return a cell without magics, moved to the margin as IPython runs one that was pasted from further in."""
    if _OTHER_LANGUAGE.match(source):
        return "\n" * source.count("\n")
    first = next((line for line in source.split("\n") if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    if indent and not read_statements(source):
        source = "\n".join(line.removeprefix(indent) for line in source.split("\n"))
    return without_engine(without_magics(source))


def _aside(cell: Mapping[str, Any], after: int, left: int) -> Aside:
    """Return what a cell that is not run as Python would define, of so many names at most."""
    source = cell.get("source")
    text = _text(source) if isinstance(source, str | list) else ""
    language = _OTHER_LANGUAGE.match(text)
    in_code = "check" if _is_visible_check(cell) else language[1] if language else ""
    kind = {"code": in_code, "markdown": "markdown"}.get(str(cell["cell_type"]), "raw")
    headers = islice(_HEADER.finditer(text), left if kind else 0)
    return Aside(kind, after, tuple(header[1] for header in headers))


def _is_visible_check(cell: Mapping[str, Any]) -> bool:
    """Return whether this is the cell that calls the visible checks. It is no part of the attempt: the box has no engine."""
    metadata = cell.get("metadata")
    ours = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    return isinstance(ours, dict) and ours.get("visible") is True


def _text(source: object) -> str:
    """Return the text of a cell, which is one text or a list of lines. Raises TypeError."""
    if isinstance(source, list):
        source = "".join(map(str, source))
    if isinstance(source, str):
        return with_newlines(source)
    raise TypeError("a cell's source is text or a list of lines")
