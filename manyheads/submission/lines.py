"""The lines of a submission as its student sees them: of a file, or of a notebook's code cells."""

from __future__ import annotations

import re
from bisect import bisect_right

from ..result import ExerciseResult, ProvedLine
from .read import AttemptSource

_NAMED = re.compile(
    r"\b((?:raised [A-Z]\w+|raised an exception of its own|in the loop|written|the stub's raise) on|come back from) line ([1-9]\d{0,6})\b"
)


def proved_line(source: AttemptSource, line: int, edit: str = "") -> ProvedLine:
    """A line of the attempt's text; of a notebook, with its place in its cell. Cells are counted from 1, code cells alone."""
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first + 1, edit=edit)


def in_cells(text: str, source: AttemptSource) -> str:
    """A sentence that names a line of a notebook with its cell, for no student sees the cells joined; of a file, as it is."""
    if not source.cells:
        return text
    return _NAMED.sub(lambda found: f"{found[1]} {proved_line(source, int(found[2])).place}", text)


def told_in_cells(result: ExerciseResult, source: AttemptSource) -> ExerciseResult:
    """The result, all of whose sentences do so."""
    checks = tuple(c.model_copy(update={"evidence": in_cells(c.evidence, source)}) for c in result.checks)
    functions = tuple(f.model_copy(update={"evidence": in_cells(f.evidence, source)}) for f in result.functions)
    note = in_cells(result.note, source)
    return (
        result.model_copy(update={"checks": checks, "functions": functions, "note": note}) if source.cells else result
    )
