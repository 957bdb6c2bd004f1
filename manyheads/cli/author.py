"""Commands for authors: `course init`, `new`, `release`, `verify` and `doctor`.

`course release` makes exercises/ from solutions/, and from them the students' class repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from ..box.level_and_device_names import Level
from ..course import Course, CourseError
from ..judge.judge_process import usable_cpu_count
from ..report.command_name import as_called
from ..report.report_content import count_with_noun
from .options import (
    AssignmentOption,
    CourseOption,
    assignment_of,
    course_of,
    exercises_named,
    instructors_course_of,
    open_console,
    progress,
)

if TYPE_CHECKING:
    from ..judge.run_hidden_checks import Catalogue


# the mark and the style of a claim or fact that is right, is wrong, or does not count
MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def init(
    folder: Annotated[Path, Argument(help="A new folder, or an empty one.")],
    title: Annotated[str, Option(help="The title of the course.")] = "Averages",
) -> None:
    """Make a small complete course of your own: one exercise worked out, a class to grade, a
    Makefile, a workflow.

    Example: `course init ../my-course`
    """
    from ..authoring.new_course import init_course

    paths = init_course(folder, title)
    open_console().say(
        f"{len(paths)} files in {folder}. Next: course release --course {quote(str(folder))}"
    )


def new(
    name: Annotated[
        str, Argument(metavar="ASSIGNMENT/EXERCISE", help="Two ids, such as averages/median.")
    ],
    numpy: Annotated[
        bool, Option("--numpy", help="With NumPy's arrays in place of torch's tensors.")
    ] = False,
    instead: Annotated[
        str | None,
        Option(
            metavar="ASSIGNMENT",
            help="Take this assignment out, such as the example of `course init`.",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Add the skeleton of an exercise, which works as it is and says in place what to fill.

    Example: `course new averages/running_median`, or `course new basics/softmax --instead averages`
    """
    from ..authoring.new_course import FILL, new_exercise

    loaded = instructors_course_of(course, "new")
    assignment, _, exercise = name.partition("/")
    ids = [candidate.id for candidate in loaded.assignments]
    if not exercise and assignment in ids:
        raise CourseError(
            f"{name} is an assignment: what is the exercise called? Next: course new {name}/NAME"
        )
    if not exercise:
        raise CourseError(f"{name!r} names no assignment. Next: course new {ids[0]}/{name}")
    replaced = next(
        (candidate for candidate in loaded.assignments if candidate.id == instead), None
    )
    if instead is not None and (replaced is None or instead == assignment):
        raise CourseError(
            f"{instead} is no other assignment that is there. Next: course new --help"
        )
    library = "numpy" if numpy else "torch"
    written = new_exercise(loaded, assignment, exercise, library, replaced)
    console = open_console()
    remaining = [id_ for id_ in ids if id_ != instead]
    if assignment not in ids and remaining:  # on purpose, or by a slip of the pen
        console.say(f"{assignment} is a new assignment, beside {', '.join(remaining)}")
    console.say(*(str(path.relative_to(loaded.root)) for path in written))
    console.say(
        f"Next: fill what says {FILL} there, then: course release {exercise} && course verify "
        f"{exercise}"
    )


def verify(
    exercises: Annotated[list[str] | None, Argument(help="Ids [default: all].")] = None,
    seeds: Annotated[
        int, Option(min=1, help="Draws of inputs for every right and wrong attempt.")
    ] = 5,
    pairs: Annotated[
        int, Option(min=0, help="Pairs of faults to try in each exercise; 0: all.")
    ] = 40,
    changed: Annotated[
        bool,
        Option("--changed", help="Skip the claims that held, if nothing has changed since."),
    ] = False,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Check that stubs score 0, right attempts full, mutants are caught and named, and nothing
    hidden is released.

    Example: `course verify 01 --seeds 20`
    """
    loaded = instructors_course_of(course, "verify")
    selected = exercises_named(loaded, exercises or [], assignment)
    from ..authoring.verify.run_claims import Line, verify_course

    console = open_console()

    def show(line: Line) -> None:
        mark, style = MARKS[line.is_satisfied]
        console.say(
            f"{mark} {line.subject:<18} {as_called(line.says):<72} {line.figures:>5}", style=style
        )
        console.say(*(f"    {text}" for text in line.lines))

    lines = verify_course(
        loaded,
        selected,
        show,
        seeds=seeds,
        pairs=pairs,
        jobs=usable_cpu_count(),
        only_changed=changed,
    )
    broken = sum(line.is_satisfied is False for line in lines)
    fallen = count_with_noun(broken, "claim does", "claims do")
    console.print(f"{fallen} not hold." if broken else "Every claim holds.")
    if broken:
        raise Exit(1)


def doctor(course: CourseOption = None) -> None:
    """Show which isolation levels hold here, proved by a canary, and what would improve this
    machine.

    Example: `course doctor`
    """
    from ..authoring.isolation_levels_of_this_machine import findings

    console = open_console()
    graded = False
    for finding in findings(course_of(course)):
        mark, _ = MARKS[finding.good]
        console.say(f"{mark} {finding.subject:<18} {finding.says}")
        if finding.command:
            console.say(f"    Next: {finding.command}")
        graded |= finding.subject == Level.NAMESPACES and finding.good is True
    console.print(
        "This machine can grade."
        if graded
        else "This machine cannot grade; `course check` still works."
    )
    if not graded:
        raise Exit(1)


NOBODY = "@instructor"


def release(
    exercises: Annotated[
        list[str] | None,
        Argument(help="Ids: write only their files, while you work on them [default: all]."),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            file_okay=False,
            help="Make the students' class repository here, or bring it up to date.",
        ),
    ] = None,
    owner: Annotated[
        str | None, Option(help="Who reviews changes there: a login or team [default: as before].")
    ] = None,
    course: CourseOption = None,
    gradescope: Annotated[
        Path | None,
        Option(
            dir_okay=False,
            metavar="OUT.zip",
            help="Make Gradescope's autograder: it holds the answers.",
        ),
    ] = None,
    assignment: AssignmentOption = None,
    torch_index: Annotated[
        str,
        Option(
            metavar="URL",
            help="With --gradescope: the wheel index to take torch from, such as a CPU one.",
        ),
    ] = "",
) -> None:
    """Make exercises/ (stubs, notebooks, recording) from solutions/; with --out, the students'
    class repository too.

    Example: `course release --out ../class --owner @ada`, or `course release 01`
    """
    loaded = instructors_course_of(course, "release")
    console = open_console()
    only = assignment if gradescope is None else None
    selected = exercises_named(loaded, exercises or [], only) if exercises or only else None
    if selected and gradescope is not None:
        raise CourseError(
            f"an autograder has every exercise. Next: course release --gradescope {gradescope}"
        )
    if gradescope is None and torch_index:
        raise CourseError(
            "--torch-index is Gradescope's. Next: course release --gradescope OUT.zip with it"
        )
    if selected and out is not None:
        raise CourseError(
            f"a class repository has every exercise. Next: course release --out {quote(str(out))}"
        )
    from ..authoring.class_repository import autograder_of, write_autograder
    from ..authoring.release_exercises import write_release
    from ..judge.run_hidden_checks import Catalogue

    autograder_for = None if gradescope is None else assignment_of(loaded, assignment)
    catalogue = Catalogue(loaded)
    course_option = "" if course is None else f" --course {quote(str(course))}"
    written = write_release(loaded, catalogue, selected, usable_cpu_count(), _steps_shown)
    next_step = " ".join(("course verify", *(exercise.id for exercise in selected or ())))
    files = [*written]
    written_count = sum(written.values())
    summary = (
        f"{len(files)} files in {loaded.root / 'exercises'}: {written_count} written, "
        f"{len(files) - written_count} left as they were"
    )
    console.say(f"{summary}. Next: {next_step}{course_option}")
    if out is not None:
        console.say(_class_repository(loaded, catalogue, files, out, owner, course_option))
    if gradescope is not None and autograder_for is not None:
        write_autograder(autograder_of(loaded, autograder_for, torch_index), gradescope)
        megabytes = gradescope.stat().st_size / 1e6
        console.say(
            f"{gradescope} ({megabytes:.1f} MB) grades {autograder_for.title}, and holds its "
            "answers. Next: upload it as the autograder's zip"
        )


@contextmanager
def _steps_shown(total: int) -> Iterator[Callable[[], None]]:
    """Show the recording of `total` exercises, and yield a function to call after each one."""
    console = open_console(stderr=True)
    if total and not console.is_terminal:
        # The first exercise may take a minute.
        console.print(f"recording: {count_with_noun(total, 'exercise', 'exercises')}")
    with progress(console, total, 0, "recording", "exercises") as one_more:
        yield one_more


def _class_repository(
    course: Course,
    catalogue: Catalogue,
    written: list[Path],
    out: Path,
    owner: str | None,
    course_option: str,
) -> str:
    """Try the class repository, write it to `out`, and return a sentence with the next step.

    Args:
        course: The course.
        catalogue: The hidden checks of the course.
        written: The released files.
        out: The folder of the class repository.
        owner: The reviewer of changes, or None to keep the reviewer of the last release.
        course_option: The option --course for the next command, or "".
    """
    from ..authoring.class_repository import bundle, digests, earlier_release, hand_over, try_out

    earlier = earlier_release(out)
    quoted_out = quote(str(out))
    known_owner = owner or earlier.owner or NOBODY
    files = bundle(course, written, known_owner)
    with open_console(stderr=True).status("trying the class repository before it is written"):
        try_out(
            course,
            catalogue,
            files,
            usable_cpu_count(),
            is_handed_over=earlier.files == digests(files),
        )
    changed = hand_over(course, out, files)
    if unfilled := _still_to_fill(files):
        open_console(stderr=True).say(unfilled, style="yellow")
    if known_owner == NOBODY:
        next_step = (
            f"course release --out {quoted_out} --owner @YOU{course_option}, for CODEOWNERS names"
            " nobody yet"
        )
    elif (out / ".git").exists():
        next_step = f"look at it (git -C {quoted_out} diff), commit, push"
    else:
        next_step = f"git init {quoted_out}"
    summary = f"in {out}, {len(changed)} of them changed" if earlier.files else f"written to {out}"
    return f"{len(files)} files {summary}. Next: {next_step}"


def _still_to_fill(files: Mapping[str, bytes]) -> str:
    """Return a sentence if students would read marks that `course new` left to fill, or ""."""
    from ..authoring.new_course import FILL

    mark_counts = {
        path: content.count(FILL.encode())
        for path, content in files.items()
        if path == "course.yaml" or path.startswith("exercises/")
    }
    total = sum(mark_counts.values())
    if not total:
        return ""
    first_path = min(path for path, count in mark_counts.items() if count)
    lines = f"{count_with_noun(total, 'line', 'lines')}, the first in {first_path}"
    return (
        f"Students will read {FILL} in {lines}. Next: course verify, which lists what is to "
        "be filled"
    )
