"""`course train`: train a language model with a student's attention, beside the reference's recorded curve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..course import Course, CourseError, Exercise
from .console import open_console
from .learning import show_learning
from .options import CourseOption, course_of, exercise_named
from .own import done_exercises, from_here, own_attempt
from .picture import write_picture
from .plot import FOLDER
from .trace import refuse_unstarted

if TYPE_CHECKING:
    from ..box.level import Box
    from ..course.file import Trainable
    from ..submission import AttemptSource
    from ..tools.bands import Band
    from ..training.curve import Curve

PROMPT, CHARACTERS = "Alice ", 240


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
        following = _another(loaded) if wanted.generate is None else f"course generate {wanted.id}"
        raise CourseError(f"{wanted.id} has no module to train. Next: {following}")
    from ..box.forked import open_own_box

    console = open_console()
    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source = own_attempt(loaded, wanted)
        refuse_unstarted(loaded, wanted, source, "train")
        from ..training.recorded import read

        recorded = read(wanted.curve)
        curve, written = _learned(console, box, loaded, wanted.train, source, recorded.curve, steps, wanted.id)
        heads = _heads(box, loaded, wanted, source) if page else []
    from ..report.training import training_report, written_report
    from ..training.verdict import verdict

    found = verdict(curve, recorded)
    console.print(training_report(curve, recorded.curve, found), soft_wrap=True)
    console.print(written_report(PROMPT + written))
    picture = out or loaded.root / FOLDER / f"{wanted.id}_training.png"
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
    console.print(f"Next: {following}", soft_wrap=True, markup=False)
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
    from ..training.own import own_training_run
    from ..training.plan import attention_of, plan_for
    from ..training.run import TrainingStopped
    from ..training.text import read_text

    text = read_text()
    plan = plan_for(text)
    total = min(steps or plan.steps, plan.steps)
    try:
        with own_training_run(box, course.limits.for_worker(), source, attention_of(trainable), text, plan) as run:
            curve = show_learning(console, run.train(total), total, reference)
            return curve, run.generate(PROMPT, CHARACTERS)
    except TrainingStopped as stopped:
        console.print(f"✗ {stopped}", style="bold red", soft_wrap=True, markup=False)
        console.print(f"Next: course check {id_}")
        raise typer.Exit(1) from None


def _heads(box: Box, course: Course, exercise: Exercise, source: AttemptSource) -> list[Band]:
    """What the attempt's heads attend to in a sentence, with the weights of the recorded model; empty if none are found."""
    from ..tools.crops import TABLES, TIMES
    from ..tools.follow import follow
    from ..tools.recorded import with_recorded
    from ..tools.sentence import every_band, sentence_examples

    chosen = with_recorded(sentence_examples(exercise), exercise)
    return every_band(follow(box, course.limits.for_worker(), source, chosen, TABLES, TIMES).shown)


def _another(course: Course) -> str:
    """The command for the first exercise that has a module to train."""
    able = [e.id for e in course.exercises if e.train is not None]
    return f"course train {able[0]}" if able else "course status"


def _draw(console: Console, path: Path, curve: Curve, reference: Curve, title: str) -> None:
    """Write the picture, if matplotlib is installed."""
    from ..errors import CourseFault
    from ..report.matplotlib_needed import need_matplotlib
    from ..report.training_picture import png

    try:
        need_matplotlib()
    except CourseFault as missing:
        console.print(f"No picture: {missing}", soft_wrap=True, markup=False)
        return
    write_picture(path, png(curve, reference, f"{title}: how it learns"))
    console.print(f"Drawn in {path}", soft_wrap=True, markup=False)
