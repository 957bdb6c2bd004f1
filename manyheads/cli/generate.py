"""`course generate`: a small language model writes with a student's own cache, and the same without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, CourseError, Exercise
from .learn import PLOTS
from .options import Console, CourseOption, course_of, exercise_named, open_console
from .own import done_exercises, from_here, own_attempt, own_or_reference
from .trace import refuse_unstarted
from .train import show_learning

if TYPE_CHECKING:
    from ..box.level import Box
    from ..box.worker.training_messages import Decode, TrainPlan
    from ..course.file import AttentionModule
    from ..student.recorded_training import Decoded
    from ..student.train_model import TrainingRun
    from ..student.training_plan import TrainingText
    from ..submission import AttemptSource

SECONDS = 60.0  # for a text; a wrong cache may be slow


def generate(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file [default: the first that can].")] = None,
    course: CourseOption = None,
    *,
    prompt: Annotated[str, typer.Option(help="What the text begins with.")] = "Alice ",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="How many characters to write.")] = 120,
    temperature: Annotated[float, typer.Option(min=0, max=100, help="0: always the most probable character.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Another one draws another text.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Train anew, so many steps.")] = None,
) -> None:
    """Let a language model write with your own cache, and check that it writes the same without.

    The first time it learns, which takes about a minute; then its weights are kept in plots/.

    Example: `course generate --prompt "The queen " --temperature 0.5`
    """
    loaded = course_of(course)
    wanted = _wanted(loaded, exercise)
    assert wanted.generate is not None
    from ..box.forked import open_own_box

    console = open_console()
    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source, is_reference = own_or_reference(loaded, wanted)
        if source is None:
            refuse_unstarted(loaded, wanted, own_attempt(loaded, wanted), "generate")
            raise typer.Exit(1)
        from ..box.worker.training_messages import Decode
        from ..student.training_plan import LONG, read_text

        text = read_text()
        _refuse(text, prompt, max_new_tokens, LONG)
        message = Decode(text.encode(prompt), max_new_tokens, seed, temperature)
        if is_reference:
            console.print(f"Nothing of {wanted.id} is written here: the reference does it.", markup=False)
        cached, whole = _written(console, box, loaded, _Job(wanted, wanted.generate, source, text), message, steps)
    well = _show(console, prompt + text.decode(cached.ids), cached, whole)
    right = well and (is_reference or wanted in done_exercises(loaded))
    following = f"bench {wanted.id}" if right and wanted.bench else "status" if right else f"check {wanted.id}"
    console.print(f"Next: course {following}", markup=False)
    if not well:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Job:
    """Whose module writes, and what it learns from."""

    exercise: Exercise
    module: AttentionModule
    source: AttemptSource
    text: TrainingText


def _wanted(course: Course, name: str | None) -> Exercise:
    """Return the exercise that is named, or the first that can. Raises CourseError."""
    able = [exercise for exercise in course.exercises if exercise.generate is not None]
    if not able:
        raise CourseError("no exercise of this course writes text with a cache. Next: course status")
    wanted = able[0] if name is None else exercise_named(course, name, "generate")
    if wanted not in able:
        raise CourseError(f"{wanted.id} has no cache to write with. Next: course generate {able[0].id}")
    return wanted


def _refuse(text: TrainingText, prompt: str, count: int, context: int) -> None:
    """Raise CourseError for a prompt that the model cannot read, and a text that is longer than it can."""
    unknown = next((character for character in prompt if character not in text.vocabulary), None)
    if unknown is not None or not prompt:
        said = "a prompt has at least one character" if unknown is None else f"the model has never seen {unknown!r}"
        raise CourseError(f"{said}. Next: course generate --prompt 'Alice '")
    if len(prompt) + count > context:
        following = f"--max-new-tokens {context - len(prompt)}" if len(prompt) < context else "a shorter --prompt"
        raise CourseError(
            f"{len(prompt)} characters and {count} new ones are more than the {context} that the model knows. "
            f"Next: course generate with {following}"
        )


def _written(
    console: Console, box: Box, course: Course, job: _Job, message: Decode, steps: int | None
) -> tuple[Decoded, Decoded]:
    """Return what is written with the cache, and without. Exits with status 1 where the attempt cannot."""
    from ..student.own_training import own_training_run
    from ..student.train_model import TrainingStopped
    from ..student.training_plan import LONG, attention_of, plan_for

    limits = replace(course.limits.for_worker(), seconds_per_call=SECONDS)
    plan = plan_for(job.text, context=LONG)
    attention = attention_of(job.module, context=LONG)
    form = job.exercise.forms[job.module.module]
    try:
        with own_training_run(box, limits, job.source, attention, job.text, plan, form) as run:
            _train_or_load(console, run, course, job, plan, steps)
            return run.decode(replace(message, cached=True)), run.decode(message)
    except TrainingStopped as stopped:
        console.say(f"✗ {stopped}", style="bold red")
        console.print(f"Next: course check {job.exercise.id}")
        raise typer.Exit(1) from None


def _train_or_load(
    console: Console, run: TrainingRun, course: Course, job: _Job, plan: TrainPlan, steps: int | None
) -> None:
    """Put the weights in that an earlier run learned, or let the model learn. Raises TrainingStopped."""
    from ..student.own_training import KeptFacts, keep, kept
    from ..student.recorded_training import setup_of

    path = course.root / PLOTS / f"{job.exercise.id}_weights.safetensors"
    setup, code = setup_of(job.module, job.text, plan), job.source.digest
    known = kept(path, setup) if steps is None else None
    if known is not None and run.load(known[0]):
        since = "" if known[1].code == code else " with an earlier version of your code"
        anew = f"({from_here(path)}; --steps {plan.steps}: anew)"
        console.tell(f"It knows what it learned{since}, in {known[1].steps} steps {anew}.")
        return
    total = min(steps or plan.steps, plan.steps)
    console.say(f"It learns first, {total} steps, with this module and no cache.")
    curve = show_learning(console, run.train(total), total)
    try:
        keep(path, run.weights(), KeptFacts(setup, code, curve.steps))
    except OSError as error:
        console.say(f"{path} cannot be written ({error.strerror}): it will learn anew.")


def _show(console: Console, text: str, cached: Decoded, whole: Decoded) -> bool:
    """Return the text, whether the cache changes it, and what it saves. Returns whether it changes nothing."""
    from ..report.training_text import cache_report, written_report
    from ..student.recorded_training import compare

    found = compare(cached, whole)
    console.print(written_report(text, "It writes, with the cache:"))
    console.print(cache_report(found, cached, whole), soft_wrap=not console.is_terminal)
    return found.well
