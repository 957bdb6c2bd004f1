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
# Both import jsonschema, which imports `rfc3987_syntax` if that is installed (Jupyter installs it).
# Its import builds the grammar of internationalised web addresses, which takes one to two seconds
# in every process. No notebook's schema has such an address. So the module counts as not installed
# here, which jsonschema allows.

GRAMMAR = "rfc3987_syntax"

# None in sys.modules makes the import raise ModuleNotFoundError.
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

PREDICT = "predict"  # tags a cell that answers a question after the reader has guessed
CHECK = "check"  # tags a cell that shows a student whether a function is right
LOCKED = frozenset((CHECK, PREDICT))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# The text is one statement, so that a grader recognises all its lines even if the metadata of the
# cell is lost (`submission/read.py`). It is short, because Validate shows it above its output.
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

MAGICS = "magics"  # ends the grade id of a notebook's first cell, which a script does not have
# A grader recognises this statement, too. All other cells also run without the engine.
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
    """Return the notebook of a stub as text.

    The same stub gives the same text.

    Args:
        stub: The stub, or the source of a solution, which nbgrader then strips.
        exercise: The id of the exercise.
        hidden: The checks of the exercise. All checks of a layer share one autograded cell.
    """
    notebook = jupytext.reads(stub, fmt="py:percent")
    for index, cell in enumerate(notebook.cells):
        tags = {*cell.metadata.get("tags", [])}
        role = "locked" if tags & LOCKED else ""
        _finish(cell, f"{exercise}-{index}", "solution" if "solution" in tags else role)
    # This cell loads the magics, and passes them the exercise of this notebook.
    magics_cell = _finish(
        new_code_cell(_FIRST.replace("EXERCISE", exercise)), f"{exercise}-{MAGICS}", "locked"
    )
    # This cell is autograded, with zero points, because `nbgrader validate` runs only autograded
    # cells. If the engine is missing, its message goes to stderr: `nbgrader validate` takes output
    # on stderr as a failure, and a printed line as a success.
    visible_cell = new_code_cell(_VISIBLE.replace("EXERCISE", exercise))
    visible = _finish(visible_cell, f"{exercise}-visible", "locked", 0, visible=True)
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

    nbgrader notices edits by the checksum. It is computed here, so a release needs no nbgrader.

    Args:
        cell: The cell, which is changed.
        id_: Its id.
        role: "solution" if students write in the cell, "locked" if it is read-only.
        points: The points of an autograded cell.
        metadata: Further metadata, which a grader reads.
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
        if role == "locked":
            cell.metadata["editable"] = False
        if metadata:
            cell.metadata[METADATA_KEY] = metadata
    return cell
