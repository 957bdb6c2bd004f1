"""CSV that a spreadsheet opens: cells that students chose are never formulas."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence

_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = re.compile(r"([;\t|])")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def number(value: float) -> str:
    """4 for 4.0, with as many digits as a gradebook keeps."""
    return f"{value:.10g}"


def number_or_blank(value: float | None) -> str:
    """The same; a blank where there is no number."""
    return "" if value is None else number(value)


def _cell(value: str) -> str:
    """The text of a cell, with a quote before whatever a spreadsheet would take for a formula.

    Some take blanks before the sign away, and some know its full-width form, as 〃＝〃 on East Asian keyboards. One that
    separates cells by another sign than the comma, as in most of Europe, begins a new cell within a text. A line break
    would begin a new row for whoever reads line by line.
    """
    value = _LINE_BREAKS.sub(" ", value)
    first, *rest = _SEPARATORS.split(value)
    parts = [first] + [f"'{part}" if each % 2 and _is_formula(part) else part for each, part in enumerate(rest)]
    starts = _is_formula(value) or value.startswith("\t")
    return ("'" if starts else "") + "".join(parts)


def _is_formula(text: str) -> bool:
    visible = "".join(letter for letter in text if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp"))
    return unicodedata.normalize("NFKC", visible[:1]).startswith(_FORMULA)
