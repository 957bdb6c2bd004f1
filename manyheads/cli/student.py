"""Commands for students.

These are `course hint`, `status`, `trace`, `plot`, `ask`, `train`, `gpt2` and `bench`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from ..box.level_and_device_names import Device
from ..course import Course, CourseError, Exercise
from ..files import write_whole
from ..report.report_content import as_json, attempt_words, label_of
from ..report.terminal import below_ladder, ladder
from ..result import ExerciseResult
from ..student.check_and_keep_result import (
    Checks,
    OwnAttempt,
    checked_at,
    checked_last,
    done_exercises,
    read_own_attempt,
    recorded_stub,
)
from ..student.hints import Rung, next_hint, note_shown
from ..student.question import LETTERS, NONE, STOP, answer_lines, question_lines, read_letters
from .options import (
    AssignmentOption,
    Console,
    CourseOption,
    FreshOption,
    JsonOption,
    course_of,
    exercise_named,
    exercises_named,
    open_console,
    show_waiting,
)

if TYPE_CHECKING:
    from ..student.choose_example_calls import Example

ExerciseArgument = Annotated[
    str | None, Argument(help="Id or file.", show_default="the last checked that is not done")
]
FunctionArgument = Annotated[
    str | None, Argument(help="One function or class of it [default: all].")
]
CROP = (6, 8)  # the most rows and columns of a table that are shown: enough to read
PROMPT = "Alice "  # the text that a model continues
CHARACTERS = 240  # the length of the text that the trained model writes
GPT2_PROMPT = "Alice was beginning to get very tired of sitting by her sister on the bank, and"
# the arguments of a class that GPT-2 can use, as course.yaml gives them for `course train`
GPT2_ARGUMENTS = {"n_embd": "C", "n_head": "nh", "block_size": "T"}
LINE_EVERY = 100  # steps of the training between two printed lines
SHORT = 40  # characters that the model writes for each of these lines
RECENT = 50  # steps over which the loss is averaged, because it varies from batch to batch


def desk_of(
    course: Path | None, *, fresh: bool = False, looks: bool = False, quiet: bool = False
) -> tuple[Checks, Console]:
    """Return the checks of a student's own attempts, and the console.

    Args:
        course: The option --course, or None.
        fresh: Whether to check again attempts that have not changed.
        looks: Whether the command uses a kept result as it stands (`Checks`).
        quiet: Whether a program reads the output. If not, the console shows which exercise is being
            checked.
    """
    desk = Checks(course_of(course), fresh=fresh, looks=looks)
    console = open_console()
    if not quiet:
        desk.waiting = lambda exercise: show_waiting(console, f"checking {label_of(exercise)}")
    return desk, console


def meant_exercises(course: Course, name: str | None, command: str) -> OwnAttempt:
    """Return the attempt at the named exercise, or without a name at the one checked last.

    Raises CourseError if the name is unknown, or if no exercise was checked yet. The message
    proposes `command`.
    """
    exercise = exercise_named(course, name, command) if name else checked_last(course)
    if exercise is None:
        raise CourseError(
            f"{command} which exercise? None was checked here yet. "
            f"Next: course {command} {course.exercises[0].id}"
        )
    return read_own_attempt(course, exercise)


def result_with_hint(checks: Checks, attempt: OwnAttempt) -> ExerciseResult | None:
    """Return the result of a check, or None if there is no file.

    The result includes the first hint, so note this hint as shown.
    """
    if attempt.source.missing:
        return None
    result = checks.result(attempt)
    note_shown(result, checks.course.root)
    return result


def hint(exercise: ExerciseArgument = None, course: CourseOption = None) -> None:
    """Ask for a hint: a question, then a pointer, then nearly the answer.

    Example: `course hint 01`
    """
    desk, console = desk_of(course, looks=True)
    attempt = meant_exercises(desk.course, exercise, "hint")
    with desk:
        shown_hint = next_hint(attempt, desk.result(attempt))
    console.tell(shown_hint.title, shown_hint.sentence, f"Next: {shown_hint.next}")


def status(
    assignment: AssignmentOption = None,
    course: CourseOption = None,
    fresh: FreshOption = False,
    json: JsonOption = False,
    show_all: Annotated[
        bool, Option("--all", help="Show the whole checklist, also where the screen has no room.")
    ] = False,
) -> None:
    """Show how far you are with each exercise, and what is next.

    Example: `course status`
    """
    desk, console = desk_of(course, fresh=fresh, looks=True, quiet=json)
    owns = [
        read_own_attempt(desk.course, exercise)
        for exercise in exercises_named(desk.course, [], assignment)
    ]
    with desk:
        results = [desk.result(attempt) if attempt.is_started else None for attempt in owns]
    for result in filter(None, results):
        if result.is_done:
            note_shown(result, desk.course.root)
    if json:
        print(as_json(owns, results))
        return
    rungs = []
    for attempt, last_result in zip(owns, results, strict=True):
        check_titles = recorded_stub(attempt.exercise).check_titles
        rungs.append(Rung(attempt.exercise, check_titles, last_result, attempt.source.missing))
    console.print(ladder(rungs, is_whole=show_all))
    console.tell(*below_ladder(owns, results))


def trace(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    values: Annotated[bool, Option("--values", help="Show the numbers, too.")] = False,
    show_all: Annotated[
        bool, Option("--all", help="Show every line, also where the screen has no room.")
    ] = False,
) -> None:
    """Follow your own code: what each line does to shapes and numbers.

    Example: `course trace 01`
    """
    from ..report.trace_text import LEGEND, fitted_trace
    from ..student.trace import explain_example, follow_own

    attempt = meant_exercises(course_of(course), exercise, "trace")
    followed = follow_own(attempt, function, "trace", CROP if values else ())
    console = open_console()
    result = attempt.last_result
    id_ = attempt.exercise.id
    calls = [explain_example(*call, attempt.source, result) for call in followed.traced_examples]
    rendered, hidden_count = fitted_trace(console, calls, is_whole=show_all)
    console.print(rendered, soft_wrap=not console.is_terminal)
    console.tell(followed.ended and f"✗ {followed.ended}", style="bold red")
    console.tell(LEGEND if any(call.entries for call in calls) else "", style="bright_black")
    if hidden_count:
        names = " ".join(filter(None, (id_, function)))
        console.tell(f"{hidden_count} lines more: course trace {names} --all")
    problem = attempt_words(result).first_wrong if result and not result.is_done else None
    next_step = "course status" if result and result.is_done else f"course check {id_}"
    if any(call.entries and not (call.is_right or call.waits_for) for call in calls):
        next_step = f"change the first line that surprises you, then: {next_step}"
    elif problem:
        next_step = f"course hint {id_}"
        if calls and not followed.ended and all(call.is_right for call in calls):
            console.tell(
                f"✗ These calls are right, and yet something is not: {problem.head}",
                style="bold red",
            )
    console.tell(f"Next: {next_step}")
    if followed.ended or any(call.raised for call in calls):
        raise Exit(1)


def plot(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    gpt2: Annotated[
        bool, Option("--gpt2", help="Draw your heads inside GPT-2, too (exercises 07 and 08).")
    ] = False,
) -> None:
    """Draw your answers beside the expected ones, in plots/EXERCISE.html.

    Example: `course plot 01`
    """
    from ..report.pages import pictures_page
    from ..student.pictures import pictures
    from ..student.trace import follow_own

    attempt = meant_exercises(course_of(course), exercise, "plot")
    console = open_console()
    gpt2_example = _gpt2_example(attempt, console) if gpt2 else None
    followed = follow_own(attempt, function, "plot", first_example=gpt2_example)
    id_ = attempt.exercise.id
    drawn = pictures(followed.traced_examples)
    if gpt2:
        from ..student.gpt2 import plot_problem

        console.tell(plot_problem(followed, attempt.source), style="yellow")
    console.tell(*(picture.caption for picture in drawn))
    console.tell(followed.ended and f"✗ {followed.ended}", style="bold red")
    if drawn:
        path = attempt.course.root / "plots" / f"{id_}.html"  # which git ignores
        write_whole(
            path,
            pictures_page(f"{attempt.exercise.title}: expected, yours, difference", drawn).encode(),
        )
        console.say(f"Drawn in {path}")
    console.tell(f"Next: course check {id_}")
    if followed.ended:
        raise Exit(1)


def exercises_for_gpt2(course: Course) -> list[Exercise]:
    """Return the exercises whose module fits GPT-2. Raises CourseError if there are none."""
    fitting = [e for e in course.exercises if e.train and e.train.arguments == GPT2_ARGUMENTS]
    if not fitting:
        raise CourseError("no exercise here has a module that fits GPT-2. Next: course status")
    return fitting


def _gpt2_example(attempt: OwnAttempt, console: Console) -> Callable[[], Example]:
    """Return a function that makes the example of the attempt's module inside GPT-2.

    Raises CourseError if the exercise has no module that fits GPT-2.
    """
    exercise, fitting = attempt.exercise, exercises_for_gpt2(attempt.course)
    if exercise not in fitting:
        raise CourseError(
            f"{exercise.id} has no module that fits GPT-2. Next: course plot {fitting[0].id} --gpt2"
        )
    from ..student.gpt2 import gpt2_example
    from ..student.gpt2_weights import fetch

    return lambda: gpt2_example(exercise, fetch(console.tell))


def ask(
    exercise: Annotated[
        str | None, Argument(help="Its id or file.", show_default="the one that was done last")
    ] = None,
    course: CourseOption = None,
    seed: Annotated[
        int | None, Option(min=0, help="The same questions again [default: others].")
    ] = None,
    letters: Annotated[
        str | None, Option(help="Your answers, such as BADCA, in place of being asked.")
    ] = None,
) -> None:
    """Answer five questions about your own code.

    They ask what a line makes, and what an edit of it would do.

    Example: `course ask 01`
    """
    desk, console = desk_of(course, looks=True)
    if exercise:
        chosen = exercise_named(desk.course, exercise, "ask")
    elif finished := done_exercises(desk.course):
        chosen = max(finished, key=checked_at)
    else:
        raise CourseError(
            "no exercise is done yet, and questions come after a ✓. Next: course check"
        )
    attempt = read_own_attempt(desk.course, chosen)
    seed = random.randrange(1_000_000) if seed is None else seed
    with desk:
        if not desk.result(attempt).is_done:
            raise CourseError(
                f"{chosen.id} is not done yet, and questions come after a ✓. "
                f"Next: course check {chosen.id}"
            )
        box = desk.box()
        from ..student.ask_about_own_code import questions_about

        with show_waiting(console, "reading your code"):
            questions = questions_about(
                box,
                desk.course.limits.for_worker(),
                chosen,
                attempt.fault_dictionary,
                attempt.source,
                seed,
            )
    if not questions:
        raise CourseError(
            f"no question fits your code of {chosen.id}. Next: course trace {chosen.id}"
        )
    count = len(questions)
    correct = 0
    same = f"course ask {chosen.id} --seed {seed}"
    answers = "" if letters is None else read_letters(letters, count, f"{same} --letters")
    for number, question in enumerate(questions, 1):
        console.print()
        console.tell(*question_lines(number, count, question))
        letter = answers[number - 1] if answers else _letter(console)
        is_right = letter == LETTERS[question.correct_index]
        correct += is_right
        if letter in LETTERS and not (answers or is_right):  # a second try
            console.tell(*answer_lines(question, letter, shows_right=False))
            letter = _letter(console)
        console.tell(*answer_lines(question, letter, shows_right=True))
        if letter == STOP:
            break
    console.tell(
        f"{correct} of {count} at the first try.",
        f"Next: {same if correct < count else 'course status'}",
    )
    if answers and correct < count:
        raise Exit(1)


def _letter(console: Console) -> str:
    """Return the typed letter, or NONE for Enter, or STOP.

    On a terminal, input that was typed before the question is dropped.
    """
    reply = "?"
    while reply not in ("", STOP, *LETTERS):
        console.print("A, B, C or D (Enter: show it, q: stop): ", end="")
        with suppress(Exception):  # stdin is no terminal, or the system has no termios
            import termios

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        reply = (sys.stdin.readline() or STOP).strip().upper()
    return reply or NONE


def train(
    exercise: Annotated[str, Argument(help="Its id or file.")],
    course: CourseOption = None,
    steps: Annotated[
        int | None, Option(min=1, help="Stop after so many [default: at the end].")
    ] = None,
) -> None:
    """Let your own attention learn to write, which takes a minute.

    It is put into a small language model, as one of its blocks.

    Example: `course train 07`
    """
    loaded = course_of(course)
    chosen = exercise_named(loaded, exercise, "train")
    if chosen.train is None:
        able = next(
            (f"train {peer.id}" for peer in loaded.exercises if peer.train is not None), "status"
        )
        raise CourseError(f"{chosen.id} has no module to train. Next: course {able}")
    attempt = read_own_attempt(loaded, chosen)
    console = open_console()
    losses = list[float]()
    attempt.must_run("train")
    from ..box.without_namespaces import open_own_box
    from ..box.worker.training import STEPS
    from ..student.train_model import FUTURE, attention_of, loss_words, own_training_run

    total = min(steps or STEPS, STEPS)
    limits = loaded.limits.for_worker()
    attention = attention_of(chosen.train)
    with (
        open_own_box() as box,  # first, because it may fork this process
        own_training_run(box, limits, attempt.source, attention) as run,
        console.status("learning") as spinner,
    ):
        if run.sees_future:
            console.tell(FUTURE, style="bold red")
        for step in range(1, total + 1):
            losses.append(run.step(step))
            loss = f"loss {fmean(losses[-RECENT:]):.2f}"
            spinner.update(f"step {step} of {total}, {loss}")
            if step % LINE_EVERY == 0:
                words = (PROMPT + run.write(PROMPT, SHORT)).split()
                console.tell(f"step {step:>4}, {loss}: {' '.join(words)}")
        text = PROMPT + run.write(PROMPT, CHARACTERS)
    says = loss_words(losses[0], fmean(losses[-RECENT:]), sees_future=run.sees_future)
    console.tell(says, "It writes:", indent(text, "  "))
    is_done = not run.sees_future and chosen in done_exercises(loaded)
    console.tell(f"Next: course {'plot' if is_done else 'check'} {chosen.id}")


def gpt2(
    prompt: Annotated[str, Argument(help="The text that GPT-2 continues.")] = GPT2_PROMPT,
    course: CourseOption = None,
) -> None:
    """Let GPT-2 write with your own attention in all of its blocks.

    It is the module of exercise 07 or 08 that you saved last. The published weights (548 MB) are
    downloaded once.

    Example: `course gpt2 "The capital of France is"`
    """
    loaded = course_of(course)
    attempt = _saved_last([read_own_attempt(loaded, e) for e in exercises_for_gpt2(loaded)])
    attempt.must_run("check")
    chosen = attempt.exercise
    console = open_console()
    from ..box.without_namespaces import open_own_box
    from ..student.gpt2 import compare_with_own
    from ..student.gpt2_weights import fetch

    with open_own_box() as box:  # first, because it may fork this process
        published = fetch(console.tell)
        with console.status("writing"):
            compared = compare_with_own(box, attempt, published, prompt)
    console.tell("With GPT-2's own attention:", indent(compared.expected, "  "))
    console.tell(f"With yours, of {chosen.id}:", indent(compared.actual, "  "))
    size = f"The largest difference of the logits on the first text is {compared.difference:.2g}"
    if compared.is_rounding:
        console.tell(f"{size}: no more than rounding.", f"Next: course plot {chosen.id} --gpt2")
    else:
        console.tell(
            f"{size}: your module computes something else.", f"Next: course check {chosen.id}"
        )


def _saved_last(attempts: Sequence[OwnAttempt]) -> OwnAttempt:
    """Return the attempt whose file was saved last, or the first one if none is started.

    If the files have the same time, as in a new clone, the later exercise counts.
    """
    started = [attempt for attempt in reversed(attempts) if attempt.is_started]
    if not started:
        return attempts[0]
    return max(started, key=lambda attempt: attempt.path.stat().st_mtime_ns)


def bench(
    device: Annotated[Device, Option(help="Where to compute.")] = Device.CPU,
    quick: Annotated[
        bool, Option("--quick", help="The smallest size alone: a few seconds.")
    ] = False,
) -> None:
    """Time attention by hand against SDPA: minutes on a CPU.

    The lesson's own figures stand beside yours.

    Example: `course bench --quick`
    """
    from ..student.bench_written_out_attention import FULL, QUICK, bench_report, measure, settings

    console = open_console()
    size = QUICK if quick else FULL
    with console.status("measuring") as spinner:
        measured = measure(settings(size.lengths), device, spinner.update, size.seconds)
    console.print(bench_report(measured), soft_wrap=not console.is_terminal)
