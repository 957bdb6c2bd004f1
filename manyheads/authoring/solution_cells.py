"""Read the solutions of a course as its pages show them: cells of the source, and the words for its misconceptions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ..course import Course, Exercise
from ..course.model import FIGURES
from ..diagnosis.bank import load_bank
from ..report.pages.solution_pages import Mistake, Piece, Solution
from .stub import marked_lines
from .stub_notebook import jupytext


def solutions_of(course: Course) -> list[Solution]:
    """Return every exercise's solution, in the course's order. Raises CourseError."""
    return [_solution(exercise) for exercise in course.exercises]


def _solution(exercise: Exercise) -> Solution:
    notebook = jupytext.reads(exercise.solution.read_text(encoding="utf-8"), fmt="py:percent")
    cells = [c.source if c.cell_type == "markdown" else tuple(_pieces(c.source)) for c in notebook.cells if c.source]
    heading = next((c.lstrip("# ").splitlines()[0] for c in cells if isinstance(c, str) and c.startswith("# ")), "")
    figures = {f"{FIGURES}/{path.name}": path.read_bytes() for path in exercise.figure_sources}
    title = heading or exercise.id.replace("_", " ")
    return Solution(exercise.stem, title, tuple(cells), tuple(_mistakes(exercise)), figures)


def _mistakes(exercise: Exercise) -> Iterator[Mistake]:
    """Yield the misconceptions that a mutant of the exercise has, in the bank's order."""
    bank = load_bank(exercise)
    for id_ in dict.fromkeys(mutant.id for mutant in bank.mutants):
        if text := bank.texts.get(id_):
            yield Mistake(text.title, text.explanation, text.hints[-1])


def _pieces(code: str) -> Iterator[Piece]:
    """Yield the lines of a cell without their markers: what is given, and what students write."""
    for is_solution, lines in groupby(marked_lines(code), key=lambda each: each[0]):
        yield Piece("".join(f"{line}\n" for _, line in lines), is_solution)
