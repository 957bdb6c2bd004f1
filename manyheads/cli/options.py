"""Options, the console and the progress display that several commands share."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from textwrap import fill
from typing import Annotated

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from typer import Argument, Option

from ..course import (
    Assignment,
    Course,
    CourseError,
    Exercise,
    demand_utf8,
    find_course,
    load_course,
)
from ..course.model import UnknownAssignment, assignment_named, exercises_called, unknown
from ..printable_text import visible
from ..report.command_name import as_called, next_alone, text_as_called
from ..submission import ENDINGS
from ..submission.find_submitted_files import Exercises

CourseOption = Annotated[
    Path | None, Option("--course", help="The folder with course.yaml [default: from here up].")
]
RosterOption = Annotated[
    Path | None, Option(help="A CSV of the class: id, name, section, platforms' ids; or `none`.")
]
SectionOption = Annotated[str | None, Option(help="Only this section of the roster.")]
RESULTS = Path("results")
ResultsArgument = Annotated[Path, Argument(help="The folder that course grade wrote.")]
AssignmentOption = Annotated[
    str | None, Option("--assignment", help="Only this one: its id or title, or a part.")
]
FreshOption = Annotated[
    bool, Option("--fresh", help="Run again what has not changed since its last check.")
]
JsonOption = Annotated[
    bool, Option("--json", help="Print results as JSON, by manyheads/result.schema.json.")
]


def course_of(folder: Path | None) -> Course:
    """Return the course in this folder, or without one the course around the working folder.

    Raises CourseError if there is no course, or if it cannot be loaded.
    """
    return load_course(find_course(Path.cwd()) if folder is None else folder)


def instructors_course_of(folder: Path | None, command: str) -> Course:
    """Return the course for a command that needs the instructor's repository.

    Also switch off RuntimeWarning, in this process and in its child processes.

    Args:
        folder: The option --course, or None.
        command: The name of the command, for the message.

    Raises:
        CourseError: There is no such course, or it has no solutions/.
    """
    course = course_of(folder)
    # A mutant's warnings would appear under the name of the reference. They are switched off in
    # child processes and in this one.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::RuntimeWarning")
    warnings.simplefilter("ignore", RuntimeWarning)
    if not (course.root / "solutions").is_dir():
        raise CourseError(
            f"course {command} needs the instructor's repository, with its solutions/; "
            f"{course.root} has none. Next: course check"
        )
    demand_utf8(course)
    return course


def assignment_of(course: Course, name: str | None) -> Assignment:
    """Return the assignment with this id or title, or a part of either.

    Without a name, return the only assignment. Raises CourseError.
    """
    try:
        return assignment_named(course, name, in_part=True)
    except UnknownAssignment as error:
        raise CourseError(f"{error} Next: course status") from None


def exercises_named(
    course: Course, names: list[str], assignment: str | None = None
) -> list[Exercise]:
    """Return the exercises with these names, each once, in the order of the names.

    The first of these that fits a name decides: an id, number or file of exercises; the id, title
    or folder of an assignment; a function, for the first exercise that asks for it; a copy of an
    exercise's file.

    Args:
        course: The course.
        names: The names, or an empty list for all exercises.
        assignment: Only exercises of this assignment.

    Raises:
        CourseError: A name fits nothing, or is a file outside the folder of its exercise.
    """
    candidates = list(
        course.exercises if assignment is None else assignment_of(course, assignment).exercises
    )
    exercises = [] if names else candidates
    for name in names:
        of_function = [exercise for exercise in candidates if name in exercise.shapes]
        of_assignment = [
            e
            for e in candidates
            if name.casefold() in (e.assignment.id, e.assignment.title.casefold())
            or (Path(name).is_dir() and Path(name).samefile(e.assignment.exercises_folder))
        ]
        match = (
            exercises_called(candidates, name)
            or of_assignment
            or of_function[:1]
            or _of_a_copy(course, candidates, name)
        )
        if not match:
            raise CourseError(f"{unknown(candidates, name)} Next: course status")
        path = Path(name)
        folders = [exercise.script.parent for exercise in match]
        folders += [exercise.notebook.parent for exercise in match]
        if path.suffix and path.exists() and path.resolve().parent not in folders:
            raise CourseError(
                f"{path} is not read: attempts are in {folders[0]}. "
                f"Next: copy it there, then course check {match[0].id}"
            )
        exercises += match
    return list(dict.fromkeys(exercises))


def _of_a_copy(course: Course, exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return the exercise of a copied file, such as 04_reshape_dance-Copy1.ipynb, or none."""
    is_file = Path(name).suffix.lower() in ENDINGS
    original = Exercises(course).match_name(Path(name).name) if is_file else None
    return [exercise for exercise in exercises if exercise is original]


def exercise_named(course: Course, name: str, command: str) -> Exercise:
    """Return the only exercise with this name (`exercises_named`).

    Raises CourseError if there is none, or if there are several. The message proposes `command`.
    """
    matches = exercises_named(course, [name])
    if len(matches) > 1:
        ids = ", ".join(result.id for result in matches)
        raise CourseError(
            f"{name!r} may be any of these: {ids}. Next: course {command} {matches[0].id}"
        )
    return matches[0]


class Console(rich.console.Console):
    """The console that every command prints to.

    No text can move the cursor or reverse a line, even if a student wrote it. "Next:" and a command
    have their own line, which is never folded, so that it can be copied. If the output is no
    terminal, a message of one line stays one line.
    """

    def say(self, *sentences: str, style: str | Style | None = None) -> None:
        """Print each sentence on one line, which a terminal may break within a word.

        On a terminal, or if the text has such a line already, a command after "Next:" stands on a
        separate line. `course` becomes the name of the command here.
        """
        for sentence in sentences:
            text = as_called(sentence)
            alone = self.is_terminal or "\nNext: " in f"\n{text}"
            self.print(
                next_alone(text) if alone else text, style=style, markup=False, soft_wrap=True
            )

    def tell(self, *sentences: str | Text, style: str | Style | None = None) -> None:
        """Print sentences without markup, and omit empty ones.

        A terminal folds them between words, with further lines indented.
        """
        for sentence in filter(None, sentences):
            text = str(sentence)
            if self.is_terminal:
                text = "\n".join(
                    _below_itself(line, self.width)
                    for line in next_alone(as_called(text)).splitlines()
                )
            self.say(text, style=sentence.style if isinstance(sentence, Text) else style)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render a text with the local name of the command, and without invisible characters."""
        renderable = text_as_called(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(renderable, options):
            # Control segments are rich's own.
            is_ours = segment.control or segment.text.isprintable()
            yield segment if is_ours else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """End the command without further output, because the reader of the output is gone."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141)  # as after SIGPIPE


def _below_itself(line: str, width: int) -> str:
    """Return the folded line, but do not fold a command that may be copied."""
    if line.startswith("Next: "):
        return line
    further = " " * (len(line) - len(line.lstrip()) + 2)
    return fill(
        line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that shows texts unchanged, even :heart: in a name."""
    return Console(stderr=stderr, highlight=False, emoji=False)


PLAIN_SECONDS = 5.0  # between two lines without a terminal


def show_waiting(console: Console, doing: str) -> AbstractContextManager[object]:
    """Return a context that shows the current work and its seconds so far on a terminal."""
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
    """Show the progress of grading, and yield a function to call after each submission.

    The argument of this function is whether the submission crashed or ran out of time. A terminal
    shows a bar. Other output gets a line at most every PLAIN_SECONDS.

    Args:
        console: Shows the progress.
        total: The number of submissions, including those of an earlier run.
        earlier_count: The number of submissions that an earlier run graded.
        doing: The name of the work.
        unit: The name of the counted objects.
    """
    counts = (BarColumn(), MofNCompleteColumn(), "{task.fields[rate]}", TimeRemainingColumn())
    columns = (doing, *counts, "{task.fields[stopped]}")
    started = shown_at = time.monotonic()
    count = stopped = 0

    def one_more(*, has_stopped: bool = False) -> None:
        nonlocal count, stopped, shown_at
        count += 1
        stopped += has_stopped
        moment = time.monotonic()
        rate = count / max(moment - started, 1e-9)  # a coarse clock may not have moved
        ended = f"{stopped} crashed or out of time" if stopped else ""
        bar.update(task, advance=1, rate=f"{rate:.1f}/s", stopped=ended)
        if not console.is_terminal and moment - shown_at >= PLAIN_SECONDS:
            shown_at = moment
            seconds_left = (total - earlier_count - count) / rate
            so_far = (
                f"{earlier_count + count} of {total} {unit}, {rate:.1f}/s, "
                f"{seconds_left:.0f} s left"
            )
            console.say(", ".join(filter(None, (f"{doing}: {so_far}", ended))))

    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total, completed=earlier_count, stopped="", rate="")
        yield one_more
