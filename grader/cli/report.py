"""`course report`: the class, from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..report.aggregate import class_view
from ..report.terminal import class_table, exercise_view
from ..result import read_results


def report(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    students: Annotated[bool, typer.Option(help="Also a line for every student.")] = False,
) -> None:
    """Show which misconceptions a class has, exercise by exercise.

    Example: `course report results`
    """
    found = read_results(results)
    console = Console(highlight=False)
    if students:
        console.print(class_table(found))
    for view in class_view(found):
        console.print(exercise_view(view))
    levels = ", ".join(sorted({result.isolation for result in found}))
    console.print(f"{len(found)} submissions, isolation: {levels}")
