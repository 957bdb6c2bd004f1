"""Convert a stub to a notebook: paired by jupytext, with stable cell ids and nbgrader's metadata.

`nbgrader generate_assignment` writes the same bytes, including its checksums. So
nbgrader can validate and autograde a notebook from `course release` as its own.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby

from ..checks.hidden_check import CheckOutcome
from ..submission.read import METADATA_KEY

# jupytext and nbformat, imported in a third of the time.
#
# Both import jsonschema, which imports `rfc3987_syntax` where that is installed (Jupyter installs
# it). That builds the grammar of internationalised web addresses as it is imported: one to two
# seconds of every process. No notebook's schema has such an address, so here it counts as not
# installed, which jsonschema allows.

GRAMMAR = "rfc3987_syntax"

# what Python itself writes there to refuse an import
sys.modules.setdefault(GRAMMAR, None)  # type: ignore[arg-type]
try:
    import jupytext
    import nbformat
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell
finally:
    if sys.modules[GRAMMAR] is None:
        del sys.modules[GRAMMAR]

__all__ = ["NotebookNode", "jupytext", "nbformat", "new_code_cell"]

PREDICT = "predict"  # tags a cell that answers a question which its reader has guessed at
CHECK = "check"  # tags a cell that shows a student whether a function is right
LOCKED = frozenset((CHECK, PREDICT))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# One statement, so that a grader recognises it whole where the cell's metadata is lost
# (`submission/read.py`). Short, because Validate shows it above what it says.
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
# The same here: a grader recognises the statement. Where the engine is missing, every other cell
# runs all the same.
_FIRST = """\
# Run this first. Then, in any cell: %check; once the notebook is saved, also %course hint, \
%course trace or %ask
try:
    from manyheads.notebook import load_magics
except ModuleNotFoundError:
    print("%check needs the engine; the last cells say how to install it.")
else:
    load_magics("EXERCISE")"""


def stub_notebook(stub: str, exercise: str, hidden: Iterable[CheckOutcome]) -> str:
    """Return the notebook of a stub as text, the same for the same stub; of a solution's source,
    for nbgrader to strip.

    hidden: the checks of the exercise. Those of a layer share one autograded cell.
    """
    notebook = jupytext.reads(stub, fmt="py:percent")
    for index, cell in enumerate(notebook.cells):
        tags = {*cell.metadata.get("tags", [])}
        _finish(
            cell,
            f"{exercise}-{index}",
            "solution" if "solution" in tags else "locked" if tags & LOCKED else "",
        )
    # It loads the magics, and tells them which exercise this notebook is.
    magics_cell = _finish(
        new_code_cell(_FIRST.replace("EXERCISE", exercise)), f"{exercise}-{MAGICS}", "locked"
    )
    # Without points, because `nbgrader validate` runs autograded cells only. Where the engine is
    # missing it says so on
    # stderr: `nbgrader validate` takes that as a failure, where a printed line would be a success.
    last = new_code_cell(_VISIBLE.replace("EXERCISE", exercise))
    visible = _finish(last, f"{exercise}-visible", "locked", 0, visible=True)
    by_layer = groupby(sorted(hidden, key=lambda check: check.layer), key=lambda check: check.layer)
    graded = [
        _graded_cell(f"{exercise}-{layer.name.lower()}", list(checks)) for layer, checks in by_layer
    ]
    notebook.cells = [magics_cell, *notebook.cells, visible, *graded]
    notebook.metadata = NotebookNode(kernelspec=KERNEL)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return str(nbformat.writes(notebook)) + "\n"


def _graded_cell(id_: str, checks: Sequence[CheckOutcome]) -> NotebookNode:
    points = sum(check.points for check in checks)
    head = f"# Graded, {points:g} points. `course grade` runs these checks on this notebook's code:"
    cell: NotebookNode = new_code_cell(
        "\n".join([head, *(f"#   {check.title}" for check in checks)])
    )
    return _finish(cell, id_, "locked", points, checks=[check.id for check in checks])


def _finish(
    cell: NotebookNode, id_: str, role: str = "", points: float | None = None, **metadata: object
) -> NotebookNode:
    """Give a cell its id, and nbgrader's metadata (schema 3).

    role: students write in a "solution"; what is "locked" is read-only. points: of an autograded
    cell. metadata: what a grader reads of it. The checksum, by which nbgrader sees edits, is
    computed here, so a release needs no nbgrader.
    """
    cell["id"], cell.metadata = id_.replace("_", "-"), NotebookNode()
    if role:
        marks = {
            "grade": points is not None,
            "solution": role == "solution",
            "locked": role == "locked",
        }
        worth = {} if points is None else {"points": points}
        hashed = [cell.source, cell.cell_type, *marks.values(), id_, *map(float, worth.values())]
        checksum = hashlib.md5(
            "".join(map(str, hashed)).encode(), usedforsecurity=False
        ).hexdigest()
        grade_fields = {
            "grade_id": id_,
            "checksum": checksum,
            "cell_type": cell.cell_type,
            "task": False,
            "schema_version": 3,
        }
        cell.metadata = NotebookNode(nbgrader={**marks, **grade_fields, **worth}, deletable=False)
        cell.metadata |= ({"editable": False} if role == "locked" else {}) | (
            {METADATA_KEY: metadata} if metadata else {}
        )
    return cell
