"""`course export`: results for other systems."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..report.export import FORMATS
from ..result import read_results


class Format(StrEnum):
    """The keys of FORMATS."""

    CSV = "csv"
    GRADESCOPE = "gradescope"
    CANVAS = "canvas"
    JUNIT = "junit"


def export(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.CSV,
    out: Annotated[Path | None, typer.Option(help="A file [default: standard output].")] = None,
) -> None:
    """Write results as CSV, for Gradescope, for Canvas, or as JUnit XML.

    Example: `course export results --format canvas --out grades.csv`
    """
    text = FORMATS[format.value](read_results(results))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
