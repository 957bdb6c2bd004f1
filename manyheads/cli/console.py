"""The console that every command prints to."""

from __future__ import annotations

from rich.console import Console


def open_console(*, stderr: bool = False) -> Console:
    """A console that shows texts as they are: no number is highlighted, and :heart: in a name stays what it is."""
    return Console(stderr=stderr, highlight=False, emoji=False)
