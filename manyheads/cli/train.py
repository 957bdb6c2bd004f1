"""`course train`: a small language model learns to write with a student's attention. `course bench`: what attention costs."""

from __future__ import annotations

import math
from statistics import fmean
from textwrap import wrap
from typing import Annotated

import typer

from ..box.names import Device
from ..course import CourseError
from .options import CourseOption, course_of, exercise_named, open_console
from .own import done_exercises, own_attempt
from .trace import refuse_unstarted

PROMPT, CHARACTERS, FOLD = "Alice ", 240, 76  # what it writes in the end, and the columns of it
RECENT = 50  # how many steps a loss is averaged over, because it varies from batch to batch
LINE_EVERY, SHORT = 100, 40  # steps between two lines that stay, and how many characters it writes in each


def train(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    course: CourseOption = None,
    *,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many [default: at the end].")] = None,
) -> None:
    """Put your own attention into a small language model and let it learn to write: about a minute.

    Example: `course train fused_qkv`
    """
    loaded = course_of(course)
    wanted = exercise_named(loaded, exercise, "train")
    if wanted.train is None:
        able = next((f"train {other.id}" for other in loaded.exercises if other.train is not None), "status")
        raise CourseError(f"{wanted.id} has no module to train. Next: course {able}")
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..box.forked import open_own_box

    console = open_console()
    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source = own_attempt(loaded, wanted)
        refuse_unstarted(wanted, source, "train")
        from ..box.worker.training import STEPS
        from ..student.train_model import TrainingStopped, attention_of, own_training_run

        total, losses = min(steps or STEPS, STEPS), list[float]()
        columns = (TextColumn("step"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
        bar = Progress(
            *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
        )
        try:
            with own_training_run(box, loaded.limits.for_worker(), source, attention_of(wanted.train)) as run, bar:
                task = bar.add_task("", total=total)
                for step in range(1, total + 1):
                    losses.append(run.step(step))
                    now = f"loss {fmean(losses[-RECENT:]):.2f}"
                    bar.update(task, completed=step, description=now)
                    if step % LINE_EVERY == 0:
                        written = " ".join(f"{PROMPT}{run.write(PROMPT, SHORT)}".split())
                        console.say(f"step {step:>4}, {now}: {written}")
                text = PROMPT + run.write(PROMPT, CHARACTERS)
        except TrainingStopped as stopped:
            console.say(f"✗ {stopped}", style="bold red")
            console.print(f"Next: course check {wanted.id}")
            raise typer.Exit(1) from None
    last, first = fmean(losses[-RECENT:]), losses[0]
    means = f"means being as unsure as among {_choices(last)} equally likely characters"
    console.say(f"A loss of {last:.2f} {means}; at first it was {_choices(first)}.")
    console.print("It writes:")
    console.print(*(f"  {part}" for line in text.splitlines() for part in wrap(line, FOLD)), sep="\n", markup=False)
    console.print(f"Next: course {'plot' if wanted in done_exercises(loaded) else 'check'} {wanted.id}")


def _choices(loss: float) -> str:
    """Return a loss as a number of equally likely characters."""
    return f"{math.exp(loss):.1f}" if loss < 5 else f"{math.exp(min(loss, 20)):.0f}"


def bench(
    *,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest size alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures. On a CPU that takes minutes.

    Example: `course bench --quick`
    """
    from ..student.measure_attention import FULL, QUICK, bench_report, measure, need_device, settings, title_of

    need_device(device)
    console, effort = open_console(), QUICK if quick else FULL
    with console.status("measuring") as status:
        measured = measure(
            settings(effort.lengths),
            device,
            lambda setting: status.update(f"measuring T = {setting.T}, {title_of(setting)}"),
            effort.enough,
        )
    console.print(bench_report(measured), soft_wrap=not console.is_terminal)
