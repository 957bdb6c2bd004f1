"""Show the progress of a run: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

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

from .options import Console

PLAIN_SECONDS = 5.0  # between two lines without a terminal


def waiting(console: Console, doing: str) -> AbstractContextManager[object]:
    """Show on a terminal what is waited for, and for how many seconds already."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    shown.add_task(escape(doing), total=None)
    return shown


@contextmanager
def progress(
    console: Console, total: int, before: int, doing: str = "grading", what: str = "submissions"
) -> Iterator[Counted]:
    """Show submissions as they are graded. `before`: how many are from an earlier run."""
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    shown = (*columns, TextColumn("{task.fields[stopped]}"))
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task("", total=total, completed=before, stopped="")
        yield Counted(console, bar, total, before, doing, what)


class _Rate(ProgressColumn):
    """Submissions a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


@dataclass
class Counted:
    """Counts what is done, and shows it."""

    console: Console
    bar: Progress
    total: int
    before: int
    doing: str
    what: str
    done: int = 0
    stopped: int = 0
    started: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)

    def one_more(self, stopped: bool = False) -> None:
        """Count one more. `stopped`: whether an attempt of it crashed or ran out of time."""
        self.done += 1
        self.stopped += stopped
        said = f"{self.stopped} crashed or out of time" if self.stopped else ""
        self.bar.update(self.bar.task_ids[0], advance=1, stopped=said)
        now = time.monotonic()
        if self.console.is_terminal or now - self.last < PLAIN_SECONDS:
            return
        self.last = now
        rate = self.done / (now - self.started)
        left = (self.total - self.before - self.done) / rate
        so_far = f"{self.before + self.done} of {self.total} {self.what}, {rate:.1f}/s, {left:.0f} s left"
        self.console.say(", ".join(filter(None, (f"{self.doing}: {so_far}", said))))
