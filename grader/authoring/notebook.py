"""A stub as a notebook: jupytext's pairing, cell ids that do not change, nbgrader's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Group:
    """Hidden checks that share one autograded cell."""

    id: str
    points: float
    titles: tuple[str, ...]
    checks: tuple[str, ...]  # their ids


def full_notebook(source: str, exercise: str, groups: Sequence[Group]) -> str:
    """The notebook of a solution's source, for nbgrader to strip."""
    return stub_notebook(source, exercise, groups)


def stub_notebook(stub: str, exercise: str, groups: Sequence[Group]) -> str:
    """The notebook of a stub, as text: the same text for the same stub."""
    notebook = jupytext.reads(stub, fmt="py:percent")
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = NotebookNode(_metadata(f"{exercise}-{index}", tags))
        cell["id"] = f"{exercise.replace('_', '-')}-{index}"
    notebook.cells += [_graded_cell(exercise, group) for group in groups]
    notebook.metadata = NotebookNode(kernelspec=KERNEL)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return str(nbformat.writes(notebook)) + "\n"


def _metadata(grade_id: str, tags: Sequence[str]) -> dict[str, object]:
    """nbgrader's schema 3: students write in solution cells; the visible checks are read-only."""
    if "solution" in tags:
        return {"nbgrader": _nbgrader(grade_id, solution=True)}
    if "check" in tags:
        return {"nbgrader": _nbgrader(grade_id, locked=True), "editable": False, "deletable": False}
    return {}


def _graded_cell(exercise: str, group: Group) -> NotebookNode:
    lines = [f"# Graded, {group.points:g} points. `course grade` runs these checks on this notebook's code:"]
    lines += [f"#   {title}" for title in group.titles]
    metadata = {
        "nbgrader": {**_nbgrader(f"{exercise}-{group.id}", locked=True, grade=True), "points": group.points},
        "manyheads": {"checks": list(group.checks)},
        "editable": False,
        "deletable": False,
    }
    cell: NotebookNode = new_code_cell("\n".join(lines), metadata=metadata)
    cell["id"] = f"{exercise.replace('_', '-')}-{group.id}"
    return cell


def _nbgrader(grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = False) -> dict[str, object]:
    return {
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
