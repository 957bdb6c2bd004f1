"""The visible checks inside a notebook: compare the kernel's functions with the recorded answers beside the notebook.

Nothing is hidden here and nothing is graded: the student's own code runs in the student's own kernel.
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
from ..errors import CourseFault
from ..report.notebook_html import checked
from ..report.terminal import next_after
from ..student.check_attempt import check_attempt


class _TextAlone(Exception):
    """An exception that IPython shows without its stack, which says nothing about the student's code."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows."""
        return str(self).splitlines()


class VisibleCheckFailed(_TextAlone, AssertionError):
    """A visible check failed. The text is the report."""


class NothingRecorded(_TextAlone, CourseFault):
    """The recorded answers are not beside the notebook. The text says what to do next."""


def check_notebook(exercise: str, namespace: Mapping[str, object] | None = None) -> None:
    """Check what is defined in this notebook.

    Raises VisibleCheckFailed, with the report, if a check fails, and NothingRecorded where the recorded answers are
    missing.

    Example: `check_notebook("reshape_dance")`
    """
    recorded = sorted((Path.cwd() / "fingerprints").glob(f"[0-9][0-9]_{exercise}.safetensors"))
    if not recorded:
        raise NothingRecorded(
            f"fingerprints/…{exercise}.safetensors is not in this notebook's folder: keep the released folder together. "
            "Next: %cd to the exercises' folder in the class repository, then this cell again"
        )
    names = vars(modules["__main__"]) if namespace is None else namespace
    result = check_attempt(read(recorded[0]), LocalRecordingRunner(names), source_of(names) or None)
    label = recorded[0].stem.replace("_", " ")  # no course is asked for its title here: the notebook may lie anywhere
    text = "\n".join(filter(None, (checked(result, label).text, next_after(result))))
    if any(check.outcome != "passed" for check in result.checks):
        raise VisibleCheckFailed(text)
    print(text)


def source_of(namespace: Mapping[str, object]) -> str:
    """Return the text of the functions and classes that are defined in this kernel; of what has none, nothing."""
    texts = []
    for value in dict(namespace).values():
        if inspect.isfunction(value) or inspect.isclass(value):
            with suppress(OSError, TypeError):
                texts.append(textwrap.dedent(inspect.getsource(value)) if value.__module__ == "__main__" else "")
    return "\n".join(texts)
