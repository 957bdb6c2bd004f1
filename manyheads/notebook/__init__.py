"""What runs in a student's notebook: the first cell, the magics, and the cell of visible checks."""

from __future__ import annotations

from .visible_checks import check_notebook

__all__ = ["check_notebook", "load_magics"]


def load_magics(exercise: str) -> None:
    """Register %check, %ask and %course for this exercise with the shell, if there is one.

    Example: `load_magics("reshape_dance")`
    """
    from IPython.core.getipython import get_ipython

    from .magics import Magics

    shell = get_ipython()
    if shell is not None:
        Magics(shell, exercise)
