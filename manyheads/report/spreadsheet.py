"""CSV that a spreadsheet opens: cells that students chose are never formulas."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Sequence

_FORMULA = ("=", "+", "-", "@")


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def number(value: float) -> str:
    """4 for 4.0, with as many digits as a gradebook keeps."""
    return f"{value:.10g}"


def _cell(value: str) -> str:
    """The text of a cell, quoted if a spreadsheet would take it for a formula.

    Some take blanks before the sign away, and some know its full-width form, as 〃＝〃 on East Asian keyboards.
    """
    visible = "".join(letter for letter in value if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp"))
    starts = unicodedata.normalize("NFKC", visible[:1]).startswith(_FORMULA)
    return f"'{value}" if starts or value.startswith(("\t", "\r", "\n")) else value
