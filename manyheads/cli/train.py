"""`course train`: train a language model with a student's attention, beside the reference's recorded curve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, CourseError, Exercise
from .learn import PLOTS, write_picture
from .options import Console, CourseOption, course_of, exercise_named, open_console
from .own import done_exercises, from_here, own_attempt
from .trace import refuse_unstarted

if TYPE_CHECKING:
    from ..box.level import Box
    from ..course.file import Trainable
    from ..student.plot_content import Band
    from ..student.training_plan import Curve
    from ..submission import AttemptSource

PROMPT, CHARACTERS = "Alice ", 240
_LINE_EVERY = 100  # steps between two lines without a terminal


def show_learning(console: Console, learning: Iterator[Curve], total: int, reference: Curve | None = None) -> Curve:
    """Show the progress, beside the reference's where it is known. Returns the whole curve. Raises TrainingStopped."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("step"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total)
        said = 0
        for curve in learning:
            beside = "" if reference is None else f", the reference {reference.recent(curve.steps):.2f}"
            losses = f"loss {curve.recent():.2f}{beside}"
            bar.update(task, completed=curve.steps, description=losses)
            if not console.is_terminal and curve.steps // _LINE_EVERY > said:
                said = curve.steps // _LINE_EVERY
                console.say(f"step {curve.steps} of {total}: {losses}")
    return curve


def train(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    course: CourseOption = None,
    *,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many [default: at the end].")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The PNG to write [default: plots/EXERCISE_training.png].")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Also write a page, beside the PNG: your own heads, the curve, the text.")
    ] = False,
) -> None:
    """Put your own attention into a small language model and let it learn to write: about a minute.

    Example: `course train fused_qkv`
    """
    loaded = course_of(course)
    wanted = exercise_named(loaded, exercise, "train")
    if wanted.train is None:
        raise CourseError(f"{wanted.id} has no module to train. Next: {_another(loaded)}")
    from ..box.forked import open_own_box

    console = open_console()
    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source = own_attempt(loaded, wanted)
        refuse_unstarted(loaded, wanted, source, "train")
        from ..student.recorded_training import read

        recorded = read(wanted.curve)
        curve, written = _learned(console, box, loaded, wanted.train, source, recorded.curve, steps, wanted.id)
        heads = _heads(box, loaded, wanted, source) if page else []
    from ..report.training_text import training_report, written_report
    from ..student.recorded_training import verdict

    found = verdict(curve, recorded)
    console.print(training_report(curve, recorded.curve, found), soft_wrap=not console.is_terminal)
    console.print(written_report(PROMPT + written))
    picture = out or loaded.root / PLOTS / f"{wanted.id}_training.png"
    _draw(console, picture, curve, recorded.curve, wanted.title)
    done = done_exercises(loaded)
    if page:
        from ..report.pages.trained import Trained, trained_page

        trained = Trained(curve, recorded.curve.until(curve.steps), found, PROMPT + written, heads)
        path = picture.with_suffix(".html")
        write_picture(path, trained_page(loaded, wanted, done, trained).encode())
        following = f"open {from_here(path)} in your browser"
    elif found.well and wanted in done:
        following = f"course train {wanted.id} --page shows your own heads, too"
    else:
        following = f"course check {wanted.id}"
    console.say(f"Next: {following}")
    if not found.well:
        raise typer.Exit(1)


def _learned(
    console: Console,
    box: Box,
    course: Course,
    trainable: Trainable,
    source: AttemptSource,
    reference: Curve,
    steps: int | None,
    id_: str,
) -> tuple[Curve, str]:
    """Train. Returns the attempt's curve and the generated text. Exits with status 1 if it cannot be trained."""
    from ..student.own_training import own_training_run
    from ..student.train_model import TrainingStopped
    from ..student.training_plan import attention_of, plan_for, read_text

    text = read_text()
    plan = plan_for(text)
    total = min(steps or plan.steps, plan.steps)
    try:
        with own_training_run(box, course.limits.for_worker(), source, attention_of(trainable), text, plan) as run:
            curve = show_learning(console, run.train(total), total, reference)
            return curve, run.generate(PROMPT, CHARACTERS)
    except TrainingStopped as stopped:
        console.say(f"✗ {stopped}", style="bold red")
        console.print(f"Next: course check {id_}")
        raise typer.Exit(1) from None


def _heads(box: Box, course: Course, exercise: Exercise, source: AttemptSource) -> list[Band]:
    """Return what the attempt's heads attend to in a sentence, with the weights of the recorded model; empty if none are found."""
    from ..student.follow import TABLES, TIMES, follow
    from ..student.sentence import every_band, sentence_examples

    return every_band(follow(box, course.limits.for_worker(), source, sentence_examples(exercise), TABLES, TIMES).shown)


def _another(course: Course) -> str:
    """Return the command for the first exercise that has a module to train."""
    able = [e.id for e in course.exercises if e.train is not None]
    return f"course train {able[0]}" if able else "course status"


def _draw(console: Console, path: Path, curve: Curve, reference: Curve, title: str) -> None:
    """Write the picture, if matplotlib is installed."""
    from ..errors import CourseFault
    from ..report.figures import need_matplotlib, training_png

    try:
        need_matplotlib()
    except CourseFault as missing:
        console.say(f"No picture: {missing}")
        return
    write_picture(path, training_png(curve, reference, f"{title}: how it learns"))
    console.say(f"Drawn in {path}")
