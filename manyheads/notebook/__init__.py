"""What runs in a student's notebook: the cell of visible checks, and the magics of `%load_ext manyheads`."""

from .visible_checks import check_notebook

__all__ = ["check_notebook"]
