"""What runs in a student's notebook: the magics that its first cell loads, and the cell of visible
checks.

That compares the kernel's functions with the recorded answers beside the notebook. Nothing is
hidden here and nothing is graded: the student's own code runs in the student's own kernel.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from sys import modules

from ..checks.local import LocalRecordingRunner
from ..diagnosis.recording_file import read
from ..report.called import NOTEBOOK, as_called
from ..report.notebook_html import checked
from ..report.words import attempt_words
from ..student.check_attempt import check_attempt


class VisibleCheckFailed(AssertionError):
    """A visible check failed, or could not be made. The text says it all."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows, without the stack, which says nothing about the student's
        code.
        """
        return str(self).splitlines()


def check_notebook(exercise: str, namespace: Mapping[str, object] | None = None) -> None:
    """Check what is defined in this notebook.

    Raises VisibleCheckFailed, with the report, if a check fails, and where the recorded answers are
    missing.

    Example: `check_notebook("reshape_dance")`
    """
    recorded = sorted((Path.cwd() / "fingerprints").glob(f"[0-9][0-9]_{exercise}.safetensors"))
    if not recorded:
        missing = f"fingerprints/…{exercise}.safetensors is not in this notebook's folder: "
        raise VisibleCheckFailed(
            f"{missing}open it where the class repository has it, and run this cell again."
        )
    names = vars(modules["__main__"]) if namespace is None else namespace
    result = check_attempt(read(recorded[0]), LocalRecordingRunner(names), source_of(names) or None)
    # of no course: the notebook may lie anywhere
    view = checked(result, recorded[0].stem.replace("_", " "))
    next_step = attempt_words(result).next
    text = f"{view.text}\nNext: {as_called(next_step, NOTEBOOK)}" if next_step else view.text
    if any(check.outcome != "passed" for check in result.checks):
        raise VisibleCheckFailed(text)
    print(text)


def source_of(namespace: Mapping[str, object]) -> str:
    """Return the text of the functions and classes that are defined in this kernel; of what has
    none, nothing.
    """
    texts = []
    for value in dict(namespace).values():
        if inspect.isfunction(value) or inspect.isclass(value):
            # inspect walks the tree of a class's cell, however deep
            with suppress(OSError, TypeError, RecursionError):
                texts.append(
                    textwrap.dedent(inspect.getsource(value))
                    if value.__module__ == "__main__"
                    else ""
                )
    return "\n".join(texts)


def load_magics(exercise: str) -> None:
    """Register %check, %ask and %course for this exercise with the shell, if there is one.

    Example: `load_magics("reshape_dance")`
    """
    from IPython.core.getipython import get_ipython

    from .magics import Magics

    if (shell := get_ipython()) is not None:
        Magics(shell, exercise, source_of)
