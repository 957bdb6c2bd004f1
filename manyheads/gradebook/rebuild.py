"""A notebook that nbgrader can trust, from an attempt: the student's words, our metadata.

Everything nbgrader reads from metadata (points, grade ids, schema versions, tags that skip
a cell) comes from the release. So an edited, deleted, copied or mislabelled cell is put
right before nbgrader sees it, and none can stop the class.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ..authoring.notebook import LOCKED, MAGICS
from .cells import KnownCell, NotebookCells

DELETED = "# This cell is not in what was handed in."


@dataclass(frozen=True)
class HandedIn:
    """A cell as the student left it."""

    source: str
    is_code: bool = True
    grade_id: str = ""


def cells_of_notebook(text: str) -> list[HandedIn]:
    """The cells of a notebook that can be read (`read_attempt` says so)."""
    return [_handed_in(cell) for cell in json.loads(text)["cells"]]


def cells_of_script(text: str, known: NotebookCells) -> list[HandedIn]:
    """The cells of a script: as the release has them where the student kept its marks, else one cell."""
    whole = [HandedIn(text, grade_id=known.solutions[0].grade_id if known.solutions else "")]
    try:
        parts = jupytext.reads(text, fmt="py:percent").cells
        tagged = [tag for part in parts for tag in part.metadata.get("tags", [])]
    except Exception:  # jupytext reads a student's YAML and markers: whatever it stumbles over, the text is code
        return whole
    if "solution" not in tagged:
        return whole
    solutions = iter([c.grade_id for c in known.solutions])
    others = [c for c in known.cells if not c.is_solution and not c.is_graded]
    found = [HandedIn(c.source, grade_id=c.grade_id) for c in others if c.grade_id.endswith(f"-{MAGICS}")]
    locked = iter([c.grade_id for c in others[len(found) :]])
    for part in parts:
        tags = part.metadata.get("tags", [])
        grade_id = next(solutions, "") if "solution" in tags else next(locked, "") if LOCKED.intersection(tags) else ""
        found.append(HandedIn(str(part.source), part.cell_type == "code", grade_id))
    return found


def rebuild(handed_in: Sequence[HandedIn], known: NotebookCells, problem: str = "") -> NotebookNode:
    """The student's cells in their order, each known cell once and with the release's metadata, none missing."""
    left = {cell.grade_id: cell for cell in known.cells}
    cells = [new_markdown_cell(problem)] if problem else []
    for cell in handed_in:
        place = left.pop(cell.grade_id, None)
        if place is not None:
            cells.append(_known(place, cell.source if place.is_solution else place.source))
        else:
            cells.append(new_code_cell(cell.source) if cell.is_code else new_markdown_cell(_text(cell.source, known)))
    cells += [_known(place, DELETED if place.is_solution else place.source) for place in left.values()]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    notebook: NotebookNode = new_notebook(cells=cells, metadata={"kernelspec": json.loads(known.kernelspec)})
    notebook.nbformat_minor = 5
    return notebook


def _text(markdown: str, known: NotebookCells) -> str:
    """A Markdown cell that is safe in an instructor's browser: the lesson's own as it is, a student's as plain text.

    nbgrader's pages render Markdown with the HTML, the scripts in its links and the remote images in it.
    """
    if markdown in known.texts:
        return markdown
    longest = max(map(len, re.findall("`+", markdown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{markdown}\n{fence}"


def _known(place: KnownCell, source: str) -> NotebookNode:
    cell: NotebookNode = new_code_cell(source, metadata=json.loads(json.dumps(place.metadata)))
    return cell


def _handed_in(cell: dict[str, object]) -> HandedIn:
    metadata = cell.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = about.get("grade_id") if isinstance(about, dict) else None
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    text = text.encode(errors="replace").decode()  # JSON may hold half of a surrogate pair, which no file can
    return HandedIn(text, cell.get("cell_type") == "code", grade_id if isinstance(grade_id, str) else "")
