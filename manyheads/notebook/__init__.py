"""Inside a student's notebook: the visible checks of a cell, and the magics of `%load_ext manyheads`."""

from .visible_checks import check_notebook

__all__ = ["check_notebook"]
