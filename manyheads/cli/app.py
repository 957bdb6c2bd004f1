"""All commands, in panels. In a student's repository, the help shows only commands for students."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from ..course import CourseError, find_course
from .author import doctor, init, new, release, verify
from .check import check, lsp
from .ci import ci
from .collect import collect
from .grade import grade
from .overrides import overrides
from .results import export, feedback, report
from .student import ask, bench, gpt2, hint, plot, status, trace, train

EACH = "Every command has a `--help` of its own."
STUDENTS = (
    "Build what a course asks for, stub by stub.\n\n"
    f"Example: `course status`, then `course check`. {EACH}"
)
INSTRUCTORS = (
    "Build what a course asks for, stub by stub; grade it where it can do no harm.\n\n"
    "Example: `course status` (students), `course collect DOWNLOAD`, then\n"
    f"`course grade submitted` (instructors). {EACH}"
)
FOR_STUDENTS = "For students"
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    FOR_STUDENTS: (status, check, hint, trace, plot, ask, train, gpt2, bench, lsp),
    "To grade a class": (collect, grade, overrides, report, export, feedback),
    "To make a course": (init, new, release, verify),
    "For everybody": (doctor,),
}
try:  # the help hides some commands, but every command works everywhere
    _root = find_course(Path.cwd())
    _hidden = not (_root / "solutions").is_dir()
    _of_attention = (
        ()
        if " train:" in (_root / "course.yaml").read_text("utf-8", "replace")
        else (train, gpt2, bench)
    )
# There is no course, or the folder is gone. The command itself reports that.
except (CourseError, OSError):
    _hidden = False
    _of_attention = ()
app = typer.Typer(
    name="course",
    help=STUDENTS if _hidden else INSTRUCTORS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for panel, commands in PANELS.items():
    for command in commands:
        is_hidden = (_hidden and panel != FOR_STUDENTS) or command in _of_attention
        app.command(rich_help_panel=panel, hidden=is_hidden)(command)
app.add_typer(ci, name="ci", rich_help_panel="For workflows", hidden=_hidden)
