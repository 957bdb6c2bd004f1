"""The lines of a submission as its student sees them: of a file, or of a notebook's code cells."""

from __future__ import annotations

from bisect import bisect_right

from ..result import ProvedLine
from .read import AttemptSource


def proved_line(source: AttemptSource, line: int, edit: str = "") -> ProvedLine:
    """A line of the attempt's text; of a notebook, with its place in its cell. Cells are counted from 1, code cells alone."""
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first + 1, edit=edit)
