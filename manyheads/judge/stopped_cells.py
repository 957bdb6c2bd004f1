"""What is said of a file that cannot be imported, and of a notebook's cells that did not run to their end: a scratch cell
costs nothing, and is not passed over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from ..box.worker.answers import Raised
from ..checks.explain import explain
from ..submission import AttemptSource

_SHOWN = 3


def explain_import(raised: Raised) -> str:
    """As `explain`, with a sentence of its own for what Python cannot parse because it is nested too deeply."""
    if raised.type != "SyntaxError" or "nested" not in raised.message:
        return explain(raised)
    where = f" on line {raised.line}" if raised.line else ""
    return f"raised SyntaxError{where}: something is nested too deeply for Python to read, such as a sum of thousands of terms"


def stopped_cells(source: AttemptSource, stopped: Sequence[Raised], describe: Callable[[Raised], str]) -> str:
    """A sentence for each cell, the first few; "" where every cell ran to its end. Cells are counted from 1, code cells alone.

    describe: what is shown of an exception.
    """
    sentences = []
    for raised in stopped[:_SHOWN]:
        number = bisect_right(source.cells, raised.line or 0)
        which = f"Code cell {number}" if number else "A code cell"
        sentences.append(f"{which} did not run to its end: it {describe(raised)}.")
    if len(stopped) > _SHOWN:
        sentences.append(f"So did {len(stopped) - _SHOWN} more.")
    return " ".join(sentences)
