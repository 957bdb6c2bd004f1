"""The command `course bench`: attention by hand against SDPA, or what course.yaml says of some exercises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..box.names import Device
from ..course import Course, CourseError, Exercise
from ..course.named import exercises_of
from ..student.bench_settings import FULL, QUICK, BenchEffort, settings
from .learn import write_picture
from .options import Console, CourseOption, course_of, exercise_named, open_console
from .own import done_exercises, own_or_reference

if TYPE_CHECKING:
    from ..box.level import Box
    from ..course.plot_and_bench import Measurement
    from ..student.bench_settings import Bench, BenchSetting
    from ..student.measure_own import MeasuredExercise

# `course bench EXERCISE`, or ASSIGNMENT: what a student's own code costs while one size grows.


def own_bench(console: Console, course: Course, what: str, device: Device, out: Path | None, *, quick: bool) -> None:
    """Measure what course.yaml says of the exercises that are written, and show it. Raises CourseFault."""
    exercises = _exercises_of(course, what)
    measured = _measured_exercises(console, course, exercises, device, quick=quick)
    if not measured:
        console.say(f"Nothing of {what} is written yet: there is nothing to measure.")
        console.print(f"Next: fill the first stub of {exercises[0].stem}, then: course check {exercises[0].id}")
        raise typer.Exit(1)
    import torch

    from ..report.bench_tables import own_bench_report, where_measured
    from ..report.figures import own_bench_png
    from ..student.measure_attention import machine_name

    where = where_measured(device, machine_name(device), 1, torch.__version__)
    console.print(own_bench_report(where, measured), soft_wrap=not console.is_terminal)
    _tell_the_rest(console, course, exercises, measured)
    if out is not None:
        write_picture(out, own_bench_png(where, measured))
        console.say(f"Drawn in {out}")
    if any(point.instead for measurement in measured for points in measurement.lines.values() for point in points):
        raise typer.Exit(1)


def _exercises_of(course: Course, what: str) -> list[Exercise]:
    """Return those that are meant and have something to measure. Raises CourseError."""
    meant = exercises_of(course.exercises, what) or [exercise_named(course, what, "bench")]
    exercises = [exercise for exercise in meant if exercise.bench]
    if not exercises:
        able = next((exercise.id for exercise in course.exercises if exercise.bench), None)
        raise CourseError(f"{what} has nothing to measure. Next: course bench{f' {able}' if able else ''}")
    return exercises


def _measured_exercises(
    console: Console, course: Course, exercises: list[Exercise], device: Device, *, quick: bool
) -> list[MeasuredExercise]:
    measurements: list[MeasuredExercise] = []
    with _box(device) as box:  # before this process runs a torch operation, because the box may fork it
        from ..student.measure_own import FULL, QUICK, measure_exercise

        with console.status("measuring") as status:

            def tell(measurement: Measurement, value: int) -> None:
                status.update(f"measuring {measurement.title}, {measurement.label or measurement.over} {value}")

            for exercise in exercises:
                source, is_reference = own_or_reference(course, exercise)
                if source is not None:
                    limits, effort = course.limits.for_worker(device), QUICK if quick else FULL
                    measurements += measure_exercise(
                        box, limits, exercise, source, effort, tell, is_reference=is_reference
                    )
    return measurements


def _box(device: Device) -> Box:
    """Return a box for one's own code. A GPU cannot be used in a fork of a process that knows it. Raises CourseFault."""
    if device is Device.CPU:
        from ..box.forked import open_own_box

        return open_own_box()
    from ..box.process import ProcessBox
    from ..student.measure_attention import need_device

    need_device(device)
    return ProcessBox()


def _tell_the_rest(
    console: Console, course: Course, exercises: list[Exercise], measured: list[MeasuredExercise]
) -> None:
    """Say what is not in the tables, and whose numbers may be those of a mistake."""
    own = {measurement.exercise for measurement in measured if not measurement.is_reference}
    unwritten = [exercise.id for exercise in exercises if exercise not in {one.exercise for one in measured}]
    unchecked = [exercise.id for exercise in exercises if exercise in own - done_exercises(course)]
    if unwritten:
        console.tell(f"Not written yet: {', '.join(unwritten)}.")
    if unchecked:
        listed = ", ".join(unchecked)
        console.tell(f"Not checked as right, so read with care: {listed}.")
        console.say(f"Next: course check {unchecked[0]}")


# `course bench`: attention by hand against SDPA; or the above.


def bench(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[ASSIGNMENT|EXERCISE]", help="Measure your own code [default: attention itself]."),
    ] = None,
    course: CourseOption = None,
    *,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    out: Annotated[Path | None, typer.Option("--out", help="Also draw it, to this PNG.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest sizes alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures; or measure what exercises of yours cost.

    On a CPU the first takes minutes, the second one.

    Example: `course bench attention_in_practice --out bench.png`
    """
    from ..report.bench_tables import bench_report
    from ..report.figures import bench_png, need_matplotlib

    if out is not None:
        need_matplotlib()
    console = open_console()
    if what is not None:
        own_bench(console, course_of(course), what, device, out, quick=quick)
        return
    measured = _measured(console, device, QUICK if quick else FULL)
    console.print(bench_report(measured), soft_wrap=not console.is_terminal)
    if out is not None:
        write_picture(out, bench_png(measured))
        console.say(f"Drawn in {out}")


def _measured(console: Console, device: Device, effort: BenchEffort) -> Bench:
    """Measure, and show what is being measured. Raises CourseFault if there is no such device."""
    from ..report.bench_tables import title_of
    from ..student.measure_attention import measure, need_device

    need_device(device)
    with console.status("measuring") as status:

        def tell(setting: BenchSetting) -> None:
            status.update(f"measuring T = {setting.T}, {title_of(setting)}")

        return measure(settings(effort.lengths), device, tell, effort.enough)
