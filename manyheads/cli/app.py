"""The commands, put together."""

from __future__ import annotations

import typer

from .bench import bench
from .check import check
from .ci import ci
from .collect import collect
from .compare import compare
from .doctor import doctor
from .export import export
from .grade import grade
from .hint import hint
from .init import init, new
from .plot import plot
from .release import release
from .report import report
from .resolve import resolve
from .similar import similar
from .status import status
from .trace import trace
from .train import train
from .verify import verify

app = typer.Typer(
    name="course",
    help="Build what a course asks for, stub by stub; grade it where it can do no harm.\n\n"
    "Example: `course status` (students), `course collect DOWNLOAD`, then\n`course grade submitted` (instructors). Every command has a `--help` of its own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for command in (
    status,
    check,
    hint,
    trace,
    plot,
    train,
    bench,
    collect,
    grade,
    report,
    compare,
    similar,
    export,
    resolve,
    doctor,
    init,
    new,
    release,
    verify,
):
    app.command()(command)
app.add_typer(ci, name="ci")
