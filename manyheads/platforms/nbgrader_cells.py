"""What stands in the cells of a notebook of nbgrader's: an attempt as it was graded, its points, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..course import CourseError, Exercise
from ..report.words import attempt_words, said_of_not_graded, told
from ..result import Adjustment, ExerciseResult, Result
from ..submission import Submission, code_digest, largest, read_exercise, read_text
from ..submission.read import METADATA_KEY

DELETED = "# This cell is not in what was handed in."
WHOLE = "# What was handed in stands in the first of these cells, as a whole."
_INDENT = "    "  # four blanks: nbgrader renders comments as Markdown, in which this is literal text
_HAIR = 1e-6  # what sums of points differ by


@dataclass(frozen=True)
class KnownCell:
    """A released cell that nbgrader keeps: the student's own, a locked one, or an autograded one, which alone has points."""

    grade_id: str
    source: str
    is_solution: bool
    points: float | None
    checksum: str
    checks: tuple[str, ...]  # the ids of the hidden checks that share its points

    def score(self, result: ExerciseResult) -> float:
        """Return what its checks earned; never more than its points, which floating-point sums may pass by a hair."""
        return min(self.points or 0.0, sum(check.score for check in result.checks if check.id in self.checks))


@dataclass(frozen=True)
class Released:
    """The notebook of an exercise as it was released, and those of its cells that nbgrader keeps, in their order."""

    name: str
    kernelspec: Mapping[str, Any]
    content: tuple[Mapping[str, Any], ...]  # all of its cells
    cells: tuple[KnownCell, ...]

    @property
    def graded(self) -> tuple[KnownCell, ...]:
        """Those with points, none of them perhaps."""
        return tuple(cell for cell in self.cells if cell.points is not None)

    @property
    def solutions(self) -> tuple[KnownCell, ...]:
        """Those that the student writes in. Comments stand on the first."""
        return tuple(cell for cell in self.cells if cell.is_solution)


def released(exercise: Exercise) -> Released:
    """Read the released notebook. Raises CourseError where it is missing."""
    path = exercise.notebook
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        found = [(cell, cell["metadata"]["nbgrader"]) for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
        cells = tuple(
            KnownCell(
                about["grade_id"],
                _source(cell),
                bool(about["solution"]),
                float(about.get("points", 0)) if about["grade"] else None,
                str(about["checksum"]),
                tuple(cell["metadata"].get(METADATA_KEY, {}).get("checks", ())),
            )
            for cell, about in found
        )
        return Released(path.stem, notebook["metadata"]["kernelspec"], tuple(notebook["cells"]), cells)
    except (OSError, ValueError, LookupError):
        raise CourseError(f"{path} is missing, or not as it was released. Next: course release") from None


# An attempt as it was graded, in the cells of the release: nbgrader trusts a notebook's metadata, and its pages render a
# student's Markdown with the scripts in it. So of what was handed in there is code alone.


def shown(submission: Submission, exercise: Exercise, limit_kib: int) -> str:
    """Return the released notebook with the attempt in its cells, as text."""
    known = released(exercise)
    untouched = code_digest(exercise.script.read_text(encoding="utf-8")) if exercise.script.exists() else None
    attempt = read_exercise(submission.folder, exercise, untouched, limit_kib)
    cells = [dict(cell) for cell in known.content]
    places = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]
    said = f"{attempt.name} was not handed in." if attempt.missing else attempt.problem
    if said:
        cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": said})
    elif attempt.name.endswith(".ipynb"):
        text = read_text(submission.folder / attempt.name, largest(attempt.name, limit_kib))
        own = [*_code_cells(json.loads(text))]
        ids = {cell.grade_id for cell in known.cells}
        for place in places:
            grade_id = place["metadata"]["nbgrader"]["grade_id"]
            place["source"] = "\n".join(source for id_, source in own if id_ == grade_id) or DELETED
        cells += [_code(source) for id_, source in own if id_ not in ids and source.strip()]
    else:
        for place in places:
            place["source"] = attempt.source if place is places[0] else WHOLE
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    about = {"metadata": {"kernelspec": known.kernelspec}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps({"cells": cells, **about}, indent=1, ensure_ascii=False) + "\n"


def _code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}


def _code_cells(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the grade id and the text of each code cell of a notebook that can be read as an attempt."""
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            metadata = cell.get("metadata")
            about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
            grade_id = about.get("grade_id") if isinstance(about, dict) else None
            text = _source(cell).encode(errors="replace").decode()  # JSON may hold half a surrogate pair, no file can
            yield grade_id if isinstance(grade_id, str) else "", text


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


# What counts, cell by cell. nbgrader knows points by cell, a penalty by notebook, and no excuse.


def cell_scores(exercise: ExerciseResult, result: Result, cells: Sequence[KnownCell]) -> list[float]:
    """Return the points of each cell, before a late penalty.

    Where the exercise's score is not its checks' (it was set by hand), cells share it by their points. An exercise
    that is excused has the share of its points that the others have: then nbgrader's total is the same share of all
    points as without it, if there is one.
    """
    before = next((each.before for each in exercise.adjustments if each.rule == "late"), exercise.score)
    share = None
    if exercise.excused:
        share = result.score / result.max_score if result.score is not None and result.max_score else None
    elif before is not None and abs(before - sum(check.score for check in exercise.checks)) > _HAIR:
        share = before / exercise.max_score if exercise.max_score else None
    return [cell.score(exercise) if share is None else (cell.points or 0.0) * share for cell in cells]


def other_points(exercise: ExerciseResult, cells: Sequence[KnownCell]) -> str:
    """Return the first cell whose points are not those that the result was graded for; "" where all are."""
    worth = {check.id: check.max_score for check in exercise.checks}
    for cell in cells if worth else ():
        if abs(sum(worth.pop(id_, 0.0) for id_ in cell.checks) - (cell.points or 0.0)) > _HAIR:
            return cell.grade_id
    total = sum(cell.points or 0.0 for cell in cells)
    return cells[-1].grade_id if any(worth.values()) or abs(total - exercise.max_score) > _HAIR else ""


def late_share(exercise: ExerciseResult) -> float:
    """Return the share of the points that being late costs."""
    late = next((adjustment for adjustment in exercise.adjustments if adjustment.rule == "late"), None)
    return 0.0 if late is None or not late.before or exercise.excused else 1 - late.after / late.before


# What is said.


def comment(result: ExerciseResult, isolation: str, decided: Sequence[Adjustment] = ()) -> str:
    """Return the comment on an attempt, function by function: what the student did, what was seen, a hint.

    decided: by which rules it counts as it does; they stand first.
    """
    words = attempt_words(result)
    lines = [*map(told, decided), *filter(None, [result.note])]
    lines += ["All checks passed."] if words.passed else []
    for function in () if words.passed else words.functions:
        if function.head:
            lines.append(f"{function.mark} {function.head}" if function.name else function.head)
        lines += (f"hint: {text}" if kind == "hint" else text for kind, text, _ in function.told)
    lines += [f"hint: {words.hint}"] if words.hint else []
    lines.append(f"(isolation: {isolation})")
    return "\n".join(_INDENT + line for text in lines for line in text.splitlines())


def group_report(result: ExerciseResult, cell: KnownCell) -> str:
    """Return a line for each check of a cell, with the evidence if it failed; or that the exercise is not graded."""
    if not result.is_graded:
        return f"{said_of_not_graded(result)}\n"
    lines = []
    for check in (check for check in result.checks if check.id in cell.checks):
        passed = check.outcome == "passed"
        lines.append(f"{'✓' if passed else '✗'} {check.title:<60} {check.score:g} / {check.max_score:g}")
        lines += [] if passed else [f"    {check.evidence}"]
    return "\n".join(lines) + "\n"
