"""The engine of the course and its command, `course`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext grader` in a notebook: %check, %hint, %trace and %plot."""
    from .notebook.magics import Magics

    Magics(shell).register()
