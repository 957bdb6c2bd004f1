"""End a judge when the process that started it has ended, in whatever way.

A judge that is grading does not read from the pipe that brings it work, so it would not see the end of it for a while.
"""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this process at once when its parent has ended. Its box then ends, too (manyheads/box/reaper.py)."""
    if multiprocessing.parent_process() is not None:  # None where this process is the command itself
        threading.Thread(target=_end_after_parent, name="orphan", daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
