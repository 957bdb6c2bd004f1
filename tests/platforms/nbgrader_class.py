"""The trap class: submissions that are known to cause problems for nbgrader."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS as ANSWERS
from tests.make import NOT_OF_THE_COURSE, REPOSITORY, TINY

STEM, WRONG = "01_running_mean", ANSWERS["ben"]


def copy_for_nbgrader(source: Path, target: Path) -> Path:
    """Copy an instructor's course, and add nbgrader's configuration."""
    for name in ("solutions", "exercises", "grader"):
        shutil.copytree(source / name, target / name, ignore=NOT_OF_THE_COURSE)
    for path in (source / "course.yaml", REPOSITORY / "nbgrader_config.py"):
        shutil.copy(path, target)
    return target


def filled_notebook(source: str) -> dict:
    """Return the released notebook with this source in its solution cell."""
    notebook = json.loads(
        (TINY / "exercises" / "averages" / f"{STEM}.ipynb").read_text(encoding="utf-8")
    )
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = source
    return notebook


def graded_cells(notebook: dict) -> list[dict]:
    """Return the cells that give points."""
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("points")]


def edited_notebook() -> dict:
    """Return a right notebook whose graded cells contain other code."""
    notebook = filled_notebook(RIGHT)
    for cell in graded_cells(notebook):
        cell["source"], cell["metadata"]["editable"] = "mine = 'now'", True
    return notebook


def without_graded() -> dict:
    """Return a right notebook without its graded cells."""
    notebook = filled_notebook(RIGHT)
    return {
        **notebook,
        "cells": [cell for cell in notebook["cells"] if cell not in graded_cells(notebook)],
    }


def tampered_notebook() -> dict:
    """Return a wrong notebook that tries to get full marks.

    Its graded cells are copied, give 100 points, run one check only, and show full marks as
    outputs. All cells are tagged not to be executed.
    """
    notebook = filled_notebook(WRONG)
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception"]
    for cell in graded_cells(notebook):
        cell["metadata"]["nbgrader"]["points"] = 100
        cell["metadata"]["manyheads"] = {"checks": ["shape"]}
        full = {"data": {"text/plain": "1.0"}, "metadata": {}, "execution_count": 1}
        cell["outputs"] = [{"output_type": "execute_result", **full}]
    copies = json.loads(json.dumps(graded_cells(notebook)))
    return {**notebook, "cells": [copies[0], *notebook["cells"], *copies]}


def mislabelled_notebook() -> dict:
    """Return a right notebook with invalid nbgrader metadata and another kernel."""
    notebook = filled_notebook(RIGHT)
    changes = [
        {"schema_version": 99},
        {"grade_id": 7},
        {"locked": False, "solution": True},
        {"points": "many"},
    ]
    for cell, change in zip(graded_cells(notebook), changes, strict=True):
        cell["metadata"]["nbgrader"].update(change)
    notebook["cells"][0]["metadata"]["nbgrader"] = "mine"
    notebook["metadata"] = {
        "kernelspec": {"name": "bash", "language": "bash", "display_name": "Bash"}
    }
    return notebook


def with_texts(source: str, *texts: str) -> dict:
    """Return a filled notebook with these texts as Markdown cells before its own cells."""
    notebook = filled_notebook(source)
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text} for text in texts]
    return {**notebook, "cells": [*cells, *notebook["cells"]]}


TORN = "cut \ud83d here"  # half of a surrogate pair: valid in JSON, but not in UTF-8
FENCES = "My note:\n```python\nif a < b: pass\n```\n[again](javascript:alert(4))"
SCRIPTS = (
    "<script>alert(2)</script>",
    "[click](javascript:alert(3))",
    "![x](https://example.org/seen.png)",
    FENCES,
)
RAISING = 'def running_mean(x):\n    raise KeyError("<script>alert(1)</script>")\n'
NOISE = (
    "import sys, warnings\n\nprint('to stderr', file=sys.stderr)\nwarnings.warn('careful')\n\n\n"
)
NOISY = NOISE + RIGHT.replace("    assert", "    print('called', file=sys.stderr)\n    assert")
STUB = (TINY / "exercises" / "averages" / f"{STEM}.py").read_text(encoding="utf-8")

# student: (expected points, the submitted files by name)
CLASS: dict[str, tuple[float, dict[str, object]]] = {
    "right_script": (4, {f"{STEM}.py": RIGHT, "notes.md": "mine", "nested/helper.py": "x = 1\n"}),
    "wrong_notebook": (2, {f"{STEM}.ipynb": filled_notebook(WRONG)}),
    "notebook_that_is_not_json": (0, {f"{STEM}.ipynb": "{'cells': ["}),
    "noise_on_stderr": (4, {f"{STEM}.ipynb": filled_notebook(NOISY)}),
    "graded_cells_edited": (4, {f"{STEM}.ipynb": edited_notebook()}),
    "graded_cells_deleted": (4, {f"{STEM}.ipynb": without_graded()}),
    "graded_cells_tampered_with": (2, {f"{STEM}.ipynb": tampered_notebook()}),
    "metadata_of_another_world": (4, {f"{STEM}.ipynb": mislabelled_notebook()}),
    "stub_and_notebook": (4, {f"{STEM}.py": STUB, f"{STEM}.ipynb": filled_notebook(RIGHT)}),
    "script_and_notebook": (2, {f"{STEM}.py": WRONG, f"{STEM}.ipynb": filled_notebook(RIGHT)}),
    "late": (4, {f"{STEM}.py": RIGHT, "timestamp.txt": "2026-01-02 12:00:00 UTC"}),
    "late_they_say": (4, {f"{STEM}.py": RIGHT, "timestamp.txt": "the dog ate it"}),
    "nothing_handed_in": (0, {"notes.md": "sorry"}),
    "half_a_smiley": (4, {f"{STEM}.ipynb": with_texts(RIGHT, TORN)}),
    "exits": (0, {f"{STEM}.py": "import os\n\nos._exit(0)\n"}),
    "html_in_every_text": (0, {f"{STEM}.ipynb": with_texts(RAISING, *SCRIPTS)}),
}


def hand_in_class(submitted: Path) -> None:
    """Write every submission of the class into this folder."""
    for student, (_, files) in CLASS.items():
        for name, content in files.items():
            path = submitted / student / "averages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
            )


def gradebook_points(gradebook: Any) -> dict[str, float]:
    """Return each student's points after the late penalty, as nbgrader's own pages show them."""
    return {
        entry.student_id: round(entry.score - entry.late_submission_penalty, 9)
        for entry in gradebook.assignment_submissions("averages")
    }
