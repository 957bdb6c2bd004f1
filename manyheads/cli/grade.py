"""The command `course grade`: grade a class."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Exit, Option

from ..box.level_and_device_names import Device, Level
from ..course import Assignment
from ..course.final_scores import Decisions, final
from ..course.model import course_secret
from ..files import CourseFault
from ..judge.judge_process import GradePlan, grade_all, usable_cpu_count
from ..judge.results_folder import (
    Graded,
    Keys,
    Record,
    finish_changed_points,
    lock_results,
    seed_of_run,
)
from ..report.class_summary import GRAVE, NOBODY, ClassView
from ..report.report_content import count_with_noun, labels_of
from ..report.terminal import class_table
from ..result import Result, students_in
from ..submission import Submission, write_not_graded
from ..submission.intake_journal import to_grade
from .class_of_results import class_list, gradebooks, of_absent
from .class_sentences import list_names, print_class_state, print_labelled
from .options import (
    RESULTS,
    AssignmentOption,
    Console,
    CourseOption,
    RosterOption,
    assignment_of,
    exercises_named,
    instructors_course_of,
    open_console,
    progress,
)

# students in the table at the end: chosen for a large lecture, and so that the messages above the
# table stay within reach
MOST_CLASS_ROWS = 200
_ONE_A_CORE = "one a core that it may use"
_AS_BEFORE = "that of the results in OUT, else a new one"


def grade(
    submitted: Annotated[Path, Argument(help="The folder with `<student>/<assignment>/` folders.")],
    out: Annotated[
        Path, Option(file_okay=False, help="Where results go: `OUT/<student>/<assignment>.json`.")
    ] = RESULTS,
    device: Annotated[Device, Option(help="Where attempts compute.")] = Device.CPU,
    exercise: Annotated[
        list[str] | None,
        Option(
            help="Grade only this exercise; what OUT holds of the others stays. May be given again."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        Option(
            min=1,
            show_default=_ONE_A_CORE,
            help="How many judges work at the same time; on a GPU one.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Grade on the workers of this dask scheduler, such as tcp://HOST:8786.",
        ),
    ] = None,
    isolation: Annotated[Level, Option(help="The isolation level.")] = Level.NAMESPACES,
    seed: Annotated[
        int | None,
        Option(
            show_default=_AS_BEFORE,
            help="Draw the inputs of the run that had this seed. The results record it.",
        ),
    ] = None,
    gradebook: Annotated[
        str | None,
        Option(help="Also write to nbgrader's database, such as sqlite:///gradebook.db."),
    ] = None,
    no_lines: Annotated[
        bool,
        Option(
            "--no-lines",
            help="Do not search a wrong attempt for its wrong line (two seconds at most).",
        ),
    ] = False,
    only: Annotated[
        str | None,
        Option(
            metavar="STUDENT/EXERCISE",
            help="Grade this one attempt again, on the same inputs, and nothing else.",
        ),
    ] = None,
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Grade every submission in a folder. What is graded in OUT already, and has not changed, stays
    as it is.

    Due dates of course.yaml and overrides.yaml change what is shown, and what a gradebook gets; OUT
    holds what was found. Whatever lies there and is not graded is named with its reason; then the
    exit status is 1. The same holds where the grader itself fails at an exercise: that has no
    points, and the same command tries it again. What a learning platform gives is laid out by
    `course collect` first.

    Everybody in a run gets the same inputs, drawn from its seed. Another --seed or a new --out
    grades everything anew.

    Example: `course grade submitted --out results`
    """
    loaded = instructors_course_of(course, "grade")
    console = open_console()
    assignments = loaded.assignments if assignment is None else (assignment_of(loaded, assignment),)
    student, exercise_names = _one_attempt(only, exercise)
    selected = exercises_named(loaded, exercise_names, assignment) if exercise_names else ()
    chosen = tuple(selected_exercise.id for selected_exercise in selected)
    work = to_grade(loaded, submitted, assignments, chosen, student)
    members = class_list(loaded, roster, [s.student for s in work.submissions])
    decisions = Decisions.of_course(loaded, members.roster.students)
    secret = course_secret(loaded.root)
    run_seed = _seed(out, assignments, chosen, seed)
    plan = GradePlan(
        secret, run_seed, device, chosen, lines=not no_lines, course=loaded.root, level=isolation
    )
    judges = 1 if cluster is not None else _at_once(console, device, jobs or usable_cpu_count())
    started = time.monotonic()
    count = partial(final, decisions=decisions)
    with ExitStack() as stack:
        stack.enter_context(lock_results(out, work.submissions))
        writer = None if gradebook is None else gradebooks().GradebookWriter(loaded, gradebook)
        enter = writer and stack.enter_context(writer).write
        record = Record(
            out, Keys(loaded, plan), enter, chosen, work.handed_in, count, work.not_readable
        )
        by_submission = {
            submission: count(result)
            for submission, result in record.unchanged_results(work.submissions, again=bool(only))
        }
        earlier_count = len(by_submission)
        waiting = [submission for submission in work.submissions if submission not in by_submission]
        graded = _graded(plan, waiting, record, judges, cluster)
        _add_results(console, record, graded, by_submission, len(work.submissions))
        absent = [] if only else of_absent([*by_submission.values()], decisions, members)
        if enter is not None:
            for absent_result in absent:
                enter(absent_result)
    seconds = time.monotonic() - started
    results = [*by_submission.values(), *absent]
    changed = finish_changed_points(out)
    view = ClassView(results, NOBODY if only else members, labels_of(loaded), changed)
    if not only:
        write_not_graded(work.not_graded, out)
    if gradebook is not None:
        _say_excused(console, results)
    report = f"course report {quote(str(out))}"
    _print_class(console, view, report)
    summary = _summary(len(by_submission), earlier_count, record.partly_graded_count)
    how = f"in {seconds:.1f} s, seed: {run_seed}, isolation: {isolation}. Results: {out}/"
    is_whole = print_class_state(console, view, f"{summary} {how}")
    next_step = f"All of them: {out}/not-graded.json"
    print_labelled(console, "not graded", [*map(str, work.not_graded)], next_step)
    console.say(f"Next: {report}")
    names = {*view.by_student, *members.by_name, *students_in(out)}
    unknown = decisions.of_nobody(names, {result.assignment for result in results})
    faults = [*unknown, *_own_faults(record)]
    console.say(*(f"course: {fault}" for fault in faults), style="red")
    if faults:
        raise Exit(2)
    if work.not_graded or not is_whole:
        raise Exit(1)


def _seed(
    out: Path, assignments: Sequence[Assignment], chosen: Collection[str], seed: int | None
) -> int:
    """Return the seed of this run: the one of --seed, of the results in `out`, or a new one."""
    ids = [assignment.id for assignment in assignments]
    all_exercises = {exercise.id for assignment in assignments for exercise in assignment.exercises}
    in_part = bool(chosen) and not all_exercises.issubset(chosen)
    return seed_of_run(out, ids, seed, in_part=in_part)


def _own_faults(record: Record) -> list[str]:
    """Return each fault of the grader in this run once, with the next step."""
    return [
        f"a fault of the grader's own: {fault}. Next: course verify"
        for fault in dict.fromkeys(record.faults)
    ]


def _graded(
    plan: GradePlan, waiting: Sequence[Submission], record: Record, jobs: int, cluster: str | None
) -> Iterator[Graded]:
    """Grade the waiting submissions, on the workers of a dask scheduler if `cluster` names one."""
    if cluster is None or not waiting:
        return grade_all(plan, waiting, jobs, record.todo)
    from ..judge.dask_cluster import grade_on  # it needs an extra

    return grade_on(cluster, plan, waiting, record.todo)


def _add_results(
    console: Console,
    record: Record,
    graded: Iterable[Graded],
    by_submission: dict[Submission, Result],
    total: int,
) -> None:
    """Write each result when it is there, show the progress, and add the result to `by_submission`.

    At Ctrl-C, print how many of the `total` submissions are graded, and end the command with
    status 130.
    """
    with progress(console, total, len(by_submission)) as one_more:
        try:
            for outcome in graded:
                result = record.counted(record.add(outcome))
                by_submission[outcome.submission] = result
                checks = [check for exercise in result.exercises for check in exercise.checks]
                one_more(has_stopped=any(check.outcome in GRAVE for check in checks))
        except KeyboardInterrupt:
            summary = f"Stopped: {len(by_submission)} of {total} submissions are graded"
            console.say(f"{summary}. Next: run the same command again, and it goes on from there.")
            raise Exit(130) from None


def _say_excused(console: Console, results: Iterable[Result]) -> None:
    """Print that the gradebook has no place for the excuses of these results, if there are any."""
    excused = sorted({result.student for result in results if result.is_excused})
    if excused:
        console.say(f"{list_names(excused)}: {gradebooks().NO_EXCUSES}", style="yellow")


def _print_class(console: Console, view: ClassView, report: str) -> None:
    """Print the table of the class, without its students if they are too many.

    Args:
        console: Prints the table.
        view: The class.
        report: The command that shows more.
    """
    students = {row.student for assignment_part in view.assignments for row in assignment_part.rows}
    student_count = len(students)
    fits = student_count <= MOST_CLASS_ROWS
    console.print(class_table(view, report, students=fits))
    if not fits:
        console.say(
            f"{student_count} students are too many for a table here. Next: {report} --students"
        )


def _summary(submission_count: int, earlier_count: int, partly_graded_count: int) -> str:
    """Return for example "40 submissions (30 as before, 2 in part)"."""
    counts = ((earlier_count, "as before"), (partly_graded_count, "in part"))
    less = ", ".join(f"{count} {label}" for count, label in counts if count)
    submissions = count_with_noun(submission_count, "submission", "submissions")
    return f"{submissions} ({less})" if less else submissions


def _one_attempt(only: str | None, exercises: list[str] | None) -> tuple[str, list[str]]:
    """Return the student of --only, or "" for all students, and the names of the exercises.

    Raises CourseFault if --only is not STUDENT/EXERCISE, or comes with --exercise.
    """
    if only is None:
        return "", exercises or []
    # The option may be copied with the rest of its line from a student's page.
    student, slash, exercise = only.partition(",")[0].strip().rpartition("/")
    if not slash or not student or exercises:
        raise CourseFault(
            f"--only {only} should be STUDENT/EXERCISE, without --exercise. "
            "Next: course grade … --only ada/ID"
        )
    return student, [exercise]


def _at_once(console: Console, device: Device, jobs: int) -> int:
    """Return the number of judges that work at the same time: `jobs`, but at most one for each GPU.

    Print a note if there are fewer GPUs than `jobs`.
    """
    if device is Device.CPU:
        return jobs
    from ..box.contents import find_driver, separate_gpus

    gpus = max(1, len(separate_gpus(find_driver())))
    if jobs > gpus:
        at_work = count_with_noun(gpus, "judge", "judges")
        console.print(
            f"A GPU takes one attempt at a time: {at_work} at work.", style="bright_black"
        )
    return min(jobs, gpus)
