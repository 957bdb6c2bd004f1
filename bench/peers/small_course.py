"""The course that `course grade` grades: one exercise of six functions, with the same 18 checks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ..places import REPOSITORY
from .checks import CHECKS, NAME, RIGHT
from .forms import hidden_checks

ASSIGNMENT = "attention"
COURSE = f"""\
title: Six functions

assignments:
  - id: {ASSIGNMENT}
    title: Six functions
    exercises:
      - id: {NAME}
        title: Six functions
        points: {len(CHECKS)}
        hint: Write down the shape after every line.
"""
MUTANTS = '''

def make(*, mask="tril", merge="transpose"):
    """The exercise's names with these faults."""
    names = dict(globals())
    if mask == "triu":
        names["causal_mask"] = lambda T: torch.ones(T, T, dtype=torch.bool).triu()
    if merge == "reshape":
        names["merge_heads"] = lambda y: y.reshape(y.shape[0], y.shape[2], -1)
    return names


MUTANTS = (("mask_reversed", {"mask": "triu"}), ("merge_no_transpose", {"merge": "reshape"}))
'''
TEXTS = """\
mask_reversed:
  title: "You hid the past and showed the future."
  explanation: "A query may attend to keys at or before its own position."
  hints: ["What may query 0 see?", "Look at the line with tril or triu.", "Keep the lower triangle."]
merge_no_transpose:
  title: "You merged without moving heads back."
  explanation: "Reshape never moves data."
  hints: ["Which axes must lie side by side?", "Look at the line that reshapes.", "Transpose 1 and 2 first."]
"""


def lay_out(course: Path) -> None:
    """Write the course, not yet released: right attempts can be graded, and nothing else is needed."""
    hidden = course / "grader"
    files = {
        course / "course.yaml": COURSE,
        course / "solutions" / ASSIGNMENT / f"01_{NAME}.py": _solution(),
        hidden / "checks" / f"test_{NAME}.py": hidden_checks(),
        hidden / "misconceptions" / f"{NAME}.py": RIGHT + MUTANTS,
        hidden / "misconceptions" / "texts.yaml": TEXTS,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def lay_out_released(course: Path) -> None:
    """Write the course and release it."""
    lay_out(course)
    release = [sys.executable, "-m", "manyheads", "release", "--course", str(course)]
    subprocess.run(release, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)


def _solution() -> str:
    """The functions as the single source of the exercise: a percent script that says what a student writes."""
    _, imports, functions = re.split(r"\n\n(?=import math)|\n\n\n(?=def)", RIGHT, maxsplit=2)
    marked = re.sub(
        r'(    """.*"""\n)((?:    .+\n)+)', r"\1    ### BEGIN SOLUTION\n\2    ### END SOLUTION\n", functions
    )
    return f'# %% [markdown]\n# # Six functions\n\n# %% tags=["setup"]\n{imports}\n\n\n# %% tags=["solution"]\n{marked}'
