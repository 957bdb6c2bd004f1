"""The console that every command prints to."""

from __future__ import annotations

import os
import sys

from rich.console import Console

from ..errors import CourseFault


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise CourseFault, and let nothing more be written: whoever read the output is gone."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CourseFault("the reader of standard output is gone. Next: the same command, with its output to a file")


def open_console(*, stderr: bool = False) -> Console:
    """A console that shows texts as they are: no number is highlighted, and :heart: in a name stays what it is."""
    return _Console(stderr=stderr, highlight=False, emoji=False)
