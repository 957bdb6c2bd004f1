"""Commands about a student's own attempt at one exercise: `course hint`, `status`, `trace`, `plot`, `ask`, `train`; and `bench`."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from ..box.names import Device
from ..course import Course, CourseError
from ..report.labels import label_of
from ..report.terminal import Rung, State, ladder
from ..report.words import attempt_words, function_reports, problems, without_ids
from ..result import ExerciseResult
from ..student import own_attempt
from ..student.hints import Hint, next_hint, note_first
from ..student.own_attempt import Checks, Own, done_exercises, from_here, read_own, recorded_path
from ..student.question import ASKED, LETTERS, answer_lines, question_lines, read_letters
from ..submission import lines_of, proved_line
from ..submission.standing import in_cells
from ..whole import told_where, write_whole
from . import options
from .options import CourseOption, course_of, exercise_named, open_console
from .progress import waiting

if TYPE_CHECKING:
    from ..student.follow import Followed

_LAST = "the one that was checked last and is not done"
CROP = (6, 8)  # how many numbers of a table are shown: enough to read
BELOW = 6  # lines of the screen: the legend, how many lines are left out, what comes next, the prompt
ExerciseArgument = Annotated[str | None, Argument(help="Its id or file.", show_default=_LAST)]
FunctionArgument = Annotated[str | None, Argument(help="One function or class of it [default: all].")]
_DONE_LAST, _NONE, _STOP = "the one that was done last", "-", "Q"
PROMPT, CHARACTERS, FOLD = "Alice ", 240, 76  # what it writes in the end, and the columns of it
RECENT = 50  # how many steps a loss is averaged over, because it varies from batch to batch
LINE_EVERY, SHORT = 100, 40  # steps between two lines that stay, and how many characters it writes in each


class Desk(Checks):
    """The checks of a student's own attempts. What is waited for is shown on a console, unless it is quiet for programs."""

    def __init__(self, course: Course, *, fresh: bool = False, looks: bool = False, quiet: bool = False) -> None:
        super().__init__(course, fresh=fresh, looks=looks)
        self.console = open_console()
        if not quiet:
            self.waiting = lambda exercise: waiting(self.console, f"checking {label_of(exercise)}")


def own_meant(course: Course, name: str | None, command: str) -> Own:
    """Return the attempt at the exercise of this name, or without one at that which was checked last. Raises CourseError."""
    exercise = exercise_named(course, name, command) if name else own_attempt.checked_last(course)
    if exercise is None:
        said = f"{command} which exercise? None was checked here yet"
        raise CourseError(f"{said}. Next: course {command} {course.exercises[0].id}")
    return read_own(course, exercise)


def refuse_unstarted(own: Own, command: str) -> None:
    """Print a message and exit with status 1 if the student has not written anything that can run."""
    if lines := own.why_unstarted(command):
        open_console().tell(*lines)
        raise Exit(1)


def follow_own(
    course: Course, name: str | None, function: str | None, command: str, crop: tuple[int, ...] | None = None
) -> tuple[Own, Followed]:
    """Trace the attempt in exercises/ in a process of its own. Raises CourseFault; exits if it is not started.

    crop: how many numbers of each output are kept; None: all that pictures need.
    """
    own = own_meant(course, name, command)
    refuse_unstarted(own, command)
    from ..box.forked import open_own_box

    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        from ..diagnosis.recording_file import read
        from ..student.choose_example import examples_named
        from ..student.follow import TABLES, TIMES, follow
        from ..student.sentence import sentence_examples

        chosen = examples_named(own.exercise, read(recorded_path(own.exercise)), function, f"course {command}")
        if crop is None and function is None:
            chosen += sentence_examples(own.exercise)
        kept = (TABLES, TIMES) if crop is None else (crop, 1)
        return own, follow(box, course.limits.for_worker(), own.source, chosen, *kept)


def check_own(checks: Checks, own: Own) -> ExerciseResult | None:
    """Return what a check of the attempt finds, whose first hint is told with it; None where there is no file."""
    result = None if own.source.missing else checks.result(own)
    if result is not None:
        note_first(result, checks.course.root)
    return result


def json_of(owns: Sequence[Own], results: Sequence[ExerciseResult | None]) -> str:
    """Return the results as one JSON object; of what was not checked there are no checks, and a note says why."""
    told = []
    for own, result in zip(owns, results, strict=True):
        id_, most, why = own.exercise.id, own.exercise.points, own.source.problem or "not started"
        nothing = ExerciseResult(id=id_, score=0, max_score=most, checks=(), note=why)
        told.append(without_ids(result or nothing).model_dump())
    return json.dumps({"exercises": told}, indent=1, ensure_ascii=False)


def problem_lines(own: Own, result: ExerciseResult | None) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error: sentence. Of a notebook, line 1."""
    for each in problems(result, own.source) if result else ():
        place = "1:1" if own.source.cells else f"{each.line}:{each.column}"
        yield f"{own.path}:{place}: error: {each.sentence}"
    if result is None:
        yield f"{own.path}:1:1: error: {' '.join(own.source.problem.split())}"


def hint(
    exercise: ExerciseArgument = None,
    course: CourseOption = None,
    again: Annotated[bool, Option("--again", help="Start with the first step again.")] = False,
) -> None:
    """Ask for a hint: a question first, then a pointer, then nearly the answer.

    Example: `course hint reshape_dance`
    """
    desk = Desk(course_of(course), looks=True)
    own, console = own_meant(desk.course, exercise, "hint"), desk.console
    id_ = own.exercise.id
    if own.source.missing:
        refuse_unstarted(own, "hint")
    if not own.is_started:
        first = f"fill the first stub of {from_here(own.exercise.script)}"
        console.tell(own.exercise.hint, f"Next: {first}, then: course check {id_}")
        return
    with desk:
        given = hint_on(own, desk.result(own), again=again)
    if given is None:
        console.tell(f"{id_} needs no hint: every check passes.", "Next: course status")
    else:
        console.tell(*filter(None, (given.title, given.sentence)), f"Next: course {given.following} {id_}")


def hint_on(own: Own, result: ExerciseResult, *, again: bool = False) -> Hint | None:
    """Return the next hint, which counts as shown from now on; None where every check passes. again: start with the first."""
    from ..diagnosis.recording_file import read

    if result.is_done:
        return None
    return next_hint(read(recorded_path(own.exercise)), result, own.exercise.hint, own.course.root, again=again)


def status(
    assignment: options.AssignmentOption = None,
    course: CourseOption = None,
    fresh: options.FreshOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show which exercises are done, in progress or untouched, your points, and what is next.

    Example: `course status`
    """
    desk = Desk(course_of(course), fresh=fresh, looks=True, quiet=as_json)
    console, named = desk.console, options.exercises_named(desk.course, [], assignment)
    owns = [read_own(desk.course, exercise) for exercise in named]
    with desk:
        results = [desk.result(own) if own.is_started else None for own in owns]
    if as_json:
        print(json_of(owns, results))
        return
    rungs = list(map(_rung, owns, results))
    console.print(ladder(rungs))
    for said in (own.source.problem if own.source.missing else own.source.note for own in owns):
        console.tell(*[f"note: {line}" for line in said.splitlines()[:1]], style="dim")
    undone = next((own for own, rung in zip(owns, rungs, strict=True) if rung.state != "done"), None)
    untouched = undone and not undone.is_started and not undone.source.missing
    first = f"fill the stubs of {from_here(undone.exercise.script)}, then: " if undone and untouched else ""
    console.print(f"Next: {first}course check {undone.exercise.id}" if undone else "All done.")


def _rung(own: Own, result: ExerciseResult | None) -> Rung:
    named, most = (own.exercise.assignment.title, label_of(own.exercise)), own.exercise.points
    passed = {check.id for check in result.checks if check.outcome == "passed"} if result else set()
    asked = tuple((title, id_ in passed) for id_, title in own_attempt.recorded(own.exercise)[1])
    if result is None:
        return Rung(*named, "missing" if own.source.missing else "untouched", 0, most, asked)
    functions = tuple(function_reports(result))
    state: State = "done" if result.is_done else "in progress"
    return Rung(*named, state, result.score or 0.0, most, asked, functions, result.unseen)


def trace(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    values: Annotated[bool, Option("--values", help="Show the numbers, too.")] = False,
    whole: Annotated[bool, Option("--all", help="Show every line, also where the screen has no room.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    own, followed = follow_own(course_of(course), exercise, function, "trace", CROP if values else ())
    from rich.console import Group

    from ..report.trace_text import LEGEND, fitted_trace, trace_report
    from ..student.explain_trace import explained
    from ..student.follow import Source

    console, id_, source, last = open_console(), own.exercise.id, own.source, own.last
    texts = tuple(lines_of(source.source))
    places = (proved_line(source, line) for line in range(1, len(texts) + 1))
    labels = tuple(f"cell {place.cell}, {place.line_in_cell}" for place in places) if source.cells else ()
    lines = Source(texts, labels, frozenset(line.line for line in last.lines) if last else frozenset())
    told = [explained(example, traced, lines) for example, traced in followed.shown]
    told = [replace(each, raised=in_cells(each.raised, source)) for each in told]
    shown, left = (Group(*map(trace_report, told)), 0) if whole else fitted_trace(console, told, BELOW)
    console.print(shown, soft_wrap=not console.is_terminal)
    console.tell(*[f"✗ {followed.ended}"] * bool(followed.ended), style="bold red")
    console.tell(*[LEGEND] * bool(told), style="bright_black")
    if left:
        console.say(f"{left} lines more: course trace {' '.join(filter(None, (id_, function)))} --all")
    first, next_, stopped = "", f"course check {id_}", followed.ended or any(each.raised for each in told)
    if any(each.entries and not each.right for each in told):
        first = "change the first line that surprises you, then: "
    elif not stopped and last and not last.is_done and (wrong := attempt_words(last).first):
        console.tell(f"✗ These calls are right, and yet something is not: {wrong.head}", style="bold red")
        next_ = f"course hint {id_}"
    console.print(f"Next: {first}{next_}")
    if stopped:
        raise Exit(1)


def plot(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    out: Annotated[Path | None, Option("--out", help="The page to write [default: plots/EXERCISE.html].")] = None,
) -> None:
    """Draw your answers beside the expected ones, head by head, and what your heads attend to.

    Example: `course plot causal_mask`
    """
    loaded, console = course_of(course), open_console()
    own, followed = follow_own(loaded, exercise, function, "plot")
    from ..report.pages import pictures_page
    from ..student.plot_content import pictures

    shown, wanted = pictures(followed.shown), own.exercise
    console.tell(*(picture.caption for picture in shown))
    console.tell(*[f"✗ {followed.ended}"] * bool(followed.ended), style="bold red")
    if shown:
        path = out or loaded.root / "plots" / f"{wanted.id}.html"  # which git ignores
        with told_where(path, f"course plot {wanted.id} --out ~/{wanted.id}.html"):
            write_whole(path, pictures_page(f"{wanted.title}: expected, yours, difference", shown).encode())
        console.say(f"Drawn in {path}")
    console.print(f"Next: course check {wanted.id}")
    if followed.ended:
        raise Exit(1)


def ask(
    exercise: Annotated[str | None, Argument(help="Its id or file.", show_default=_DONE_LAST)] = None,
    course: CourseOption = None,
    count: Annotated[int, Option(min=1, max=20, help="How many questions.")] = ASKED,
    seed: Annotated[int | None, Option(min=0, help="The same questions again [default: others].")] = None,
    letters: Annotated[str | None, Option(help="Your answers, such as BADCA, in place of being asked.")] = None,
) -> None:
    """Answer questions about your own code: what each line makes, and what an edit of it would do.

    Example: `course ask reshape_dance`
    """
    desk = Desk(course_of(course), looks=True)
    console, loaded = desk.console, desk.course
    done = done_exercises(loaded) if exercise is None else set()
    if exercise is None and not done:
        raise CourseError("no exercise is done yet, and questions come after a ✓. Next: course check")
    wanted = exercise_named(loaded, exercise, "ask") if exercise else max(done, key=own_attempt.checked_at)
    own, seed = read_own(loaded, wanted), random.randrange(1_000_000) if seed is None else seed
    with desk:
        if own.source.missing or not desk.result(own).is_done:
            said = f"{wanted.id} is not done yet, and questions come after a ✓"
            raise CourseError(f"{said}. Next: course check {wanted.id}")
        box = desk.box()
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
    following = same if right < len(questions) else "course status"
    console.tell(f"{right} of {len(questions)} at the first try.", f"Next: {following}")
    if given and right < len(questions):
        raise Exit(1)


def _letter(console: options.Console) -> str:
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
    exercise: Annotated[str, Argument(help="Its id or file.")],
    course: CourseOption = None,
    steps: Annotated[int | None, Option(min=1, help="Stop after so many [default: at the end].")] = None,
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
            raise Exit(1) from None
    last, first = (math.exp(min(loss, 20)) for loss in (fmean(losses[-RECENT:]), losses[0]))
    means = f"means being as unsure as among {last:.1f} equally likely characters; at first it was {first:.1f}"
    console.tell(f"A loss of {math.log(last):.2f} {means}.", "It writes:")
    console.print(*(f"  {part}" for line in text.splitlines() for part in wrap(line, FOLD)), sep="\n", markup=False)
    console.print(f"Next: course {'plot' if wanted in done_exercises(loaded) else 'check'} {wanted.id}")


def bench(
    device: Annotated[Device, Option(help="Where to compute.")] = Device.CPU,
    quick: Annotated[bool, Option("--quick", help="The smallest size alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures. On a CPU that takes minutes.

    Example: `course bench --quick`
    """
    from ..student import measure_attention as measuring

    measuring.need_device(device)
    console, effort = open_console(), measuring.QUICK if quick else measuring.FULL
    with console.status("measuring") as status:

        def say(setting: measuring.BenchSetting) -> None:
            status.update(f"measuring T = {setting.T}, {measuring.title_of(setting)}")

        measured = measuring.measure(measuring.settings(effort.lengths), device, say, effort.enough)
    console.print(measuring.bench_report(measured), soft_wrap=not console.is_terminal)
