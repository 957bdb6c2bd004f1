"""Show the progress of a run: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PLAIN_SECONDS = 5.0  # between two lines without a terminal


def waiting(console: Console, doing: str) -> AbstractContextManager[object]:
    """Show on a terminal what is waited for, and for how many seconds already."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    shown.add_task(escape(doing), total=None)
    return shown


class ProgressDisplay(Protocol):
    """Shows each submission that is graded."""

    def one_more(self, stopped: bool) -> None:
        """Count one more submission. `stopped`: whether an attempt of it crashed or ran out of time."""


@contextmanager
def progress(
    console: Console, total: int, before: int, doing: str = "grading", what: str = "submissions"
) -> Iterator[ProgressDisplay]:
    """Show submissions as they are graded. `before`: how many are from an earlier run."""
    if not console.is_terminal:
        yield _Lines(console, total, before, doing, what)
        return
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[stopped]}"), console=console, transient=True) as bar:
        yield _Bar(bar, total, before)


class _Bar:
    def __init__(self, bar: Progress, total: int, before: int) -> None:
        self._bar, self._stopped = bar, 0
        self._task = bar.add_task("", total=total, completed=before, stopped="")

    def one_more(self, stopped: bool) -> None:
        self._stopped += stopped
        self._bar.update(self._task, advance=1, stopped=_said(self._stopped))


class _Rate(ProgressColumn):
    """Submissions a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


@dataclass
class _Lines:
    console: Console
    total: int
    before: int
    doing: str
    what: str
    done: int = 0
    stopped: int = 0
    started: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)

    def one_more(self, stopped: bool) -> None:
        self.done += 1
        self.stopped += stopped
        now = time.monotonic()
        if now - self.last < PLAIN_SECONDS:
            return
        self.last = now
        rate = self.done / (now - self.started)
        left = (self.total - self.before - self.done) / rate
        so_far = f"{self.before + self.done} of {self.total} {self.what}, {rate:.1f}/s, {left:.0f} s left"
        self.console.print(f"{self.doing}: {so_far}{', ' if self.stopped else ''}{_said(self.stopped)}", soft_wrap=True)


def _said(stopped: int) -> str:
    return f"{stopped} crashed or out of time" if stopped else ""
