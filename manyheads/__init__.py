"""The engine of the course and its command, `course`."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes time, and Ctrl-C is not handled before
if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext manyheads` in a notebook: %check, %ask and %course."""
    from .notebook.magics import Magics

    Magics(shell).register()
