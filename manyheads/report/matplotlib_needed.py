"""matplotlib, which only the commands that draw need."""

from __future__ import annotations

import logging

from ..errors import CourseFault


def need_matplotlib() -> None:
    """Import it. Raises CourseFault if it is not installed. Call it before minutes of measuring.

    Where no home can be written, it keeps its fonts in a temporary folder, and would say so in two lines of its own.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise CourseFault("pictures need matplotlib, which is not installed. Next: pip install matplotlib") from None
