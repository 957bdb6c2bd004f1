"""`course export`: results for other systems."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CourseFault
from ..report.export import FORMATS, gradescope_files
from ..result import Result, read_results
from .options import CourseOption, course_of


class Format(StrEnum):
    """The keys of FORMATS."""

    CSV = "csv"
    GRADESCOPE = "gradescope"
    CANVAS = "canvas"
    JUNIT = "junit"


def export(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.CSV,
    out: Annotated[
        Path | None,
        typer.Option(help="A file [default: standard output]; for Gradescope a folder, one file a submission."),
    ] = None,
    gradebook: Annotated[
        str | None, typer.Option(help="Read nbgrader's database in place of results, such as sqlite:///gradebook.db.")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Write results as CSV, for Gradescope, for Canvas, or as JUnit XML.

    Example: `course export results --format canvas --out grades.csv`
    """
    found = read_results(results) if gradebook is None else _from_gradebook(gradebook, course)
    if out is None:
        sys.stdout.write(FORMATS[format.value](found))
        return
    files = {out: FORMATS[format.value](found)}
    if format is Format.GRADESCOPE and (out.is_dir() or not out.suffix):
        files = {out / path: text for path, text in gradescope_files(found).items()}
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CourseFault(f"{out} cannot be written ({error.strerror}). Next: give --out another path") from None


def _from_gradebook(url: str, course: Path | None) -> list[Result]:
    """Read the results. Raises CourseFault if nbgrader is not installed or the database cannot be read."""
    try:
        from ..gradebook.reader import read_gradebook
    except ImportError:
        raise CourseFault("--gradebook needs nbgrader. Next: pip install 'manyheads[nbgrader]'") from None
    return read_gradebook(course_of(course), url)
