"""Convert a stub to a notebook: paired by jupytext, with stable cell ids and nbgrader's metadata.

`nbgrader generate_assignment` writes the same bytes, including its checksums. So
nbgrader can validate and autograde a notebook from `course release` as its own.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from ..checks.outcome import CheckOutcome
from ..submission.read import METADATA_KEY

# jupytext and nbformat, imported in a third of the time.
#
# Both import jsonschema, which imports `rfc3987_syntax` where that is installed (Jupyter installs it). That builds the
# grammar of internationalised web addresses as it is imported: one to two seconds of every process. No notebook's
# schema has such an address, so here it counts as not installed, which jsonschema allows.

GRAMMAR = "rfc3987_syntax"

_known = GRAMMAR in sys.modules
if not _known:
    cast("dict[str, None]", sys.modules)[GRAMMAR] = None  # what Python itself writes there to refuse an import
try:
    import jupytext
    import nbformat
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell
finally:
    if not _known:
        del sys.modules[GRAMMAR]

__all__ = ["NotebookNode", "jupytext", "nbformat", "new_code_cell"]


PREDICT = "predict"  # tags a cell that answers a question which its reader has guessed at
LOCKED = frozenset(("check", PREDICT))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# One statement, so that a grader recognises it whole where the cell's metadata is lost (`submission/read.py`). Short,
# because Validate shows it above what it says.
_VISIBLE = """\
# What your answers show, before anybody grades them. In a terminal: course check EXERCISE
try:
    from manyheads.notebook import check_notebook
except ModuleNotFoundError:
    import sys
    print("To check your answers here, install the engine: %pip install ../../manyheads-*.whl",
          "(on Colab: the lines in the class repository's README.md)", file=sys.stderr)
else:
    check_notebook("EXERCISE")"""


MAGICS = "magics"  # of the first cell's grade id: a notebook has it, and a script has not
# The same here: a grader recognises the statement. Where the engine is missing, every other cell runs all the same.
_FIRST = """\
# Run this first. Then, in any cell: %check; once the notebook is saved, also %course hint, %course trace or %ask
try:
    from manyheads.notebook import load_magics
except ModuleNotFoundError:
    print("%check needs the engine; the last cells say how to install it.")
else:
    load_magics("EXERCISE")"""


@dataclass(frozen=True)
class Group:
    """Hidden checks that share one autograded cell."""

    id: str
    points: float
    titles: tuple[str, ...]
    checks: tuple[str, ...]  # their ids


def groups(hidden: Iterable[CheckOutcome]) -> list[Group]:
    """Return the hidden checks of an exercise by their layers."""
    layers: dict[str, list[CheckOutcome]] = {}
    for check in sorted(hidden, key=lambda c: c.layer):
        layers.setdefault(check.layer.name.lower(), []).append(check)
    return [
        Group(name, sum(c.points for c in checks), tuple(c.title for c in checks), tuple(c.id for c in checks))
        for name, checks in layers.items()
    ]


def stub_notebook(stub: str, exercise: str, groups: Sequence[Group]) -> str:
    """Return the notebook of a stub as text, the same for the same stub; of a solution's source, for nbgrader to strip."""
    notebook = jupytext.reads(stub, fmt="py:percent")
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = NotebookNode(_metadata(f"{exercise}-{index}", tags))
        cell["id"] = f"{exercise.replace('_', '-')}-{index}"
    notebook.cells.insert(0, _first_cell(exercise))
    notebook.cells += [_visible_cell(exercise), *(_graded_cell(exercise, group) for group in groups)]
    for cell in notebook.cells:
        _seal(cell)
    notebook.metadata = NotebookNode(kernelspec=KERNEL)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return str(nbformat.writes(notebook)) + "\n"


def _metadata(grade_id: str, tags: Sequence[str]) -> dict[str, object]:
    """Return nbgrader's metadata, schema 3.

    Students write in solution cells; checks and predictions' answers are read-only.
    """
    if "solution" in tags:
        return {"nbgrader": _nbgrader(grade_id, solution=True), "deletable": False}
    if LOCKED.intersection(tags):
        return {"nbgrader": _nbgrader(grade_id, locked=True), "editable": False, "deletable": False}
    return {}


def _first_cell(exercise: str) -> NotebookNode:
    """Return the cell that loads the magics, and tells them which exercise this notebook is."""
    metadata = _metadata(f"{exercise}-{MAGICS}", ["check"])
    cell: NotebookNode = new_code_cell(_FIRST.replace("EXERCISE", exercise), metadata=metadata)
    cell["id"] = f"{exercise.replace('_', '-')}-{MAGICS}"
    return cell


def _visible_cell(exercise: str) -> NotebookNode:
    """Return the cell that runs the visible checks.

    It is an autograded cell without points, because `nbgrader validate` runs autograded cells only. Where the engine is
    missing it says so on stderr: that is no traceback, and `nbgrader validate` takes it as a failure, where a printed
    line would be a success.
    """
    lines = [line.replace("EXERCISE", exercise) for line in _VISIBLE.splitlines()]
    return _autograded(exercise, Group("visible", 0, (), ()), lines)


def _graded_cell(exercise: str, group: Group) -> NotebookNode:
    lines = [f"# Graded, {group.points:g} points. `course grade` runs these checks on this notebook's code:"]
    return _autograded(exercise, group, [*lines, *(f"#   {title}" for title in group.titles)])


def _autograded(exercise: str, group: Group, lines: Sequence[str]) -> NotebookNode:
    metadata = {
        "nbgrader": {**_nbgrader(f"{exercise}-{group.id}", locked=True, grade=True), "points": group.points},
        METADATA_KEY: {"checks": list(group.checks)} if group.checks else {"visible": True},
        "editable": False,
        "deletable": False,
    }
    cell: NotebookNode = new_code_cell("\n".join(lines), metadata=metadata)
    cell["id"] = f"{exercise.replace('_', '-')}-{group.id}"
    return cell


def _seal(cell: NotebookNode) -> None:
    """Add nbgrader's checksum, by which it recognises edited cells. It is computed here, so a release needs no nbgrader."""
    about = cell.metadata.get("nbgrader")
    if about is None:
        return
    parts = [cell.source, cell.cell_type, about["grade"], about["solution"], about["locked"], about["grade_id"]]
    if about["grade"]:
        parts.append(float(about["points"]))
    about["checksum"] = hashlib.md5("".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()
    about["cell_type"] = cell.cell_type


def _nbgrader(grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = False) -> dict[str, object]:
    return {
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
