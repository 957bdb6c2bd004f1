"""`course ask`, `train` and `bench`: what comes after a ✓. Questions, a small language model, and what attention costs."""

from __future__ import annotations

import math
import random
import sys
from contextlib import suppress
from statistics import fmean
from textwrap import wrap
from typing import Annotated

import typer

from ..box.names import Device
from ..course import CourseError
from ..student.own_attempt import checked_at, done_exercises, read_own, recorded_path
from ..student.question import ASKED, LETTERS, answer_lines, question_lines, read_letters
from .options import Console, CourseOption, course_of, exercise_named, open_console
from .own import checks_on, refuse_unstarted
from .progress import waiting

_DONE_LAST, _NONE, _STOP = "the one that was done last", "-", "Q"
PROMPT, CHARACTERS, FOLD = "Alice ", 240, 76  # what it writes in the end, and the columns of it
RECENT = 50  # how many steps a loss is averaged over, because it varies from batch to batch
LINE_EVERY, SHORT = 100, 40  # steps between two lines that stay, and how many characters it writes in each


def ask(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=_DONE_LAST)] = None,
    course: CourseOption = None,
    *,
    count: Annotated[int, typer.Option(min=1, max=20, help="How many questions.")] = ASKED,
    seed: Annotated[int | None, typer.Option(min=0, help="The same questions again [default: others].")] = None,
    letters: Annotated[str | None, typer.Option(help="Your answers, such as BADCA, in place of being asked.")] = None,
) -> None:
    """Answer questions about your own code: what each line makes, and what an edit of it would do.

    Example: `course ask reshape_dance`
    """
    console, loaded = open_console(), course_of(course)
    done = done_exercises(loaded) if exercise is None else set()
    if exercise is None and not done:
        raise CourseError("no exercise is done yet, and questions come after a ✓. Next: course check")
    wanted = exercise_named(loaded, exercise, "ask") if exercise else max(done, key=checked_at)
    own, seed = read_own(loaded, wanted), random.randrange(1_000_000) if seed is None else seed
    with checks_on(loaded, console, looks=True) as checks:
        if own.source.missing or not checks.result(own).is_done:
            said = f"{wanted.id} is not done yet, and questions come after a ✓."
            raise CourseError(f"{said} Next: course check {wanted.id}")
        box = checks.box()
        from ..diagnosis.recording_file import read
        from ..student.ask_questions import questions_about

        with waiting(console, "reading your code"):
            recording, limits = read(recorded_path(wanted)), loaded.limits.for_worker()
            questions = questions_about(box, limits, wanted, recording, own.source, seed, count)
    if not questions:
        raise CourseError(f"no question fits your code of {wanted.id}. Next: course trace {wanted.id}")
    same = f"course ask {wanted.id} --seed {seed}"
    given = "" if letters is None else read_letters(letters, len(questions), f"{same} --count {count} --letters")
    right = 0
    for number, question in enumerate(questions):
        console.print()
        console.tell(*question_lines(number + 1, len(questions), question))
        letter = given[number] if given else _letter(console)
        is_right = LETTERS.find(letter) == question.right
        right += is_right
        console.tell(*answer_lines(question, letter, shows_right=bool(given) or letter == _NONE))
        if not given and not is_right and letter in LETTERS:
            letter = _letter(console)
            console.tell(*answer_lines(question, letter, shows_right=True))
        if letter == _STOP:
            break
    console.tell(f"{right} of {len(questions)} at the first try.")
    console.tell(f"Next: {same if right < len(questions) else 'course status'}")
    if given and right < len(questions):
        raise typer.Exit(1)


def _letter(console: Console) -> str:
    """Return the letter that is typed; what was typed on a terminal before it was asked for is dropped."""
    while True:
        console.print("A, B, C or D (Enter: show it, q: stop): ", end="")
        with suppress(Exception):  # where this is no terminal, or there are none
            import termios

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            said = input().strip().upper()
        except EOFError:
            return _STOP
        if said in ("", _STOP, *LETTERS):
            return said or _NONE


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
    console, own = open_console(), read_own(loaded, wanted)
    refuse_unstarted(own, "train")
    from ..box.forked import open_own_box

    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        from ..box.worker.training import STEPS
        from ..student.train_model import TrainingStopped, attention_of, own_training_run

        total, losses = min(steps or STEPS, STEPS), list[float]()
        learning = own_training_run(box, loaded.limits.for_worker(), own.source, attention_of(wanted.train))
        try:
            with learning as run, console.status("learning") as shown:
                for step in range(1, total + 1):
                    losses.append(run.step(step))
                    now = f"loss {fmean(losses[-RECENT:]):.2f}"
                    shown.update(f"step {step} of {total}, {now}")
                    if step % LINE_EVERY == 0:
                        written = " ".join(f"{PROMPT}{run.write(PROMPT, SHORT)}".split())
                        console.say(f"step {step:>4}, {now}: {written}")
                text = PROMPT + run.write(PROMPT, CHARACTERS)
        except TrainingStopped as stopped:
            console.say(f"✗ {stopped}", style="bold red")
            console.print(f"Next: course check {wanted.id}")
            raise typer.Exit(1) from None
    last, first = (math.exp(min(loss, 20)) for loss in (fmean(losses[-RECENT:]), losses[0]))
    means = f"means being as unsure as among {last:.3g} equally likely characters; at first it was {first:.3g}"
    console.say(f"A loss of {math.log(last):.2f} {means}.")
    console.print("It writes:")
    console.print(*(f"  {part}" for line in text.splitlines() for part in wrap(line, FOLD)), sep="\n", markup=False)
    console.print(f"Next: course {'plot' if wanted in done_exercises(loaded) else 'check'} {wanted.id}")


def bench(
    *,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest size alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures. On a CPU that takes minutes.

    Example: `course bench --quick`
    """
    from ..student.measure_attention import (
        FULL,
        QUICK,
        BenchSetting,
        bench_report,
        measure,
        need_device,
        settings,
        title_of,
    )

    need_device(device)
    console, effort = open_console(), QUICK if quick else FULL
    with console.status("measuring") as status:

        def say(setting: BenchSetting) -> None:
            status.update(f"measuring T = {setting.T}, {title_of(setting)}")

        measured = measure(settings(effort.lengths), device, say, effort.enough)
    console.print(bench_report(measured), soft_wrap=not console.is_terminal)
