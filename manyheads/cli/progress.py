"""Show the progress of a run: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .options import Console

PLAIN_SECONDS = 5.0  # between two lines without a terminal


def waiting(console: Console, doing: str) -> AbstractContextManager[object]:
    """Show on a terminal what is waited for, and for how many seconds already."""
    columns = (SpinnerColumn(), "{task.description}", TimeElapsedColumn())
    spinner = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    spinner.add_task(escape(doing), total=None)
    return spinner


@contextmanager
def progress(
    console: Console,
    total: int,
    earlier_count: int,
    doing: str = "grading",
    unit: str = "submissions",
) -> Iterator[Callable[..., None]]:
    """Show submissions as they are graded. Yields what counts one more, which may have crashed or
    run out of time.

    earlier_count: how many are from an earlier run.
    """
    counts = (BarColumn(), MofNCompleteColumn(), "{task.fields[rate]}", TimeRemainingColumn())
    columns = (doing, *counts, "{task.fields[stopped]}")
    started = last = time.monotonic()
    done = stopped = 0

    def one_more(has_stopped: bool = False) -> None:
        nonlocal done, stopped, last
        done, stopped, now = done + 1, stopped + has_stopped, time.monotonic()
        rate = done / max(now - started, 1e-9)
        ended = f"{stopped} crashed or out of time" if stopped else ""
        bar.update(task, advance=1, rate=f"{rate:.1f}/s", stopped=ended)
        if not console.is_terminal and now - last >= PLAIN_SECONDS:
            last = now
            seconds_left = (total - earlier_count - done) / rate
            so_far = (
                f"{earlier_count + done} of {total} {unit}, {rate:.1f}/s, {seconds_left:.0f} s left"
            )
            console.say(", ".join(filter(None, (f"{doing}: {so_far}", ended))))

    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total, completed=earlier_count, stopped="", rate="")
        yield one_more
