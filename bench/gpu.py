"""What docs/attention.md says of a GPU, measured here and printed as Markdown. Run: python -m bench.gpu

Attention by hand against SDPA, what an attempt's start costs in the box, and one student graded on both devices.
"""

from __future__ import annotations

import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from manyheads.box.level import Level, open_box
from manyheads.course import Course, load_course
from manyheads.errors import CourseFault
from manyheads.student.measure_attention import (
    FULL,
    LESSON,
    Bench,
    BenchRow,
    Measured,
    measure,
    remarks,
    settings,
    title_of,
)

ROOT = Path(__file__).parents[1]
STARTS = 10
NONE = "–"


def main() -> None:
    """Measure, print."""
    if not torch.cuda.is_available():
        sys.exit("bench.gpu: this machine has no CUDA device that torch can use. Next: run it where there is one")
    course = load_course(ROOT)
    print(f"{where()}\n")
    print("\n".join(table(measure(settings(FULL[0]), "cuda", lambda _: None, FULL[1]))))
    try:
        first, later = starts(course)
        print(
            f"\nAn attempt's process with CUDA started in it: {first:.2f} s the first, then {later:.2f} s (of {STARTS})."
        )
    except CourseFault as fault:
        print(f"\nNo box: {fault}")
        return
    on_gpu, on_cpu = (student(course, device) for device in ("cuda", "cpu"))
    print(
        f"One right student of the whole course: {on_gpu:.1f} s on the GPU, {on_cpu:.1f} s on the CPU, the start included."
    )


def where() -> str:
    """The device and the versions."""
    driver = Path("/proc/driver/nvidia/version")
    kernel = driver.read_text().splitlines()[0] if driver.exists() else "its driver does not say its version"
    return (
        f"{torch.cuda.get_device_name()}; torch {torch.__version__}, CUDA {torch.version.cuda}; "
        f"Python {platform.python_version()}; {kernel}; {time.strftime('%d %B %Y')}"
    )


def table(bench: Bench) -> Iterator[str]:
    """The rows of docs/attention.md's table, and what they mean."""
    yield "| | T | by hand | SDPA | times faster | the lesson's A100 | matrix not made | peak by hand | peak of SDPA |"
    yield "|---|---|---|---|---|---|---|---|---|"
    before = ""
    for row in bench.rows:
        title = title_of(row.setting)
        yield f"| {'' if title == before else title} | {row.setting.T} | {' | '.join(_cells(row))} |"
        before = title
    yield ""
    yield from remarks(bench)


def _cells(row: BenchRow) -> Iterator[str]:
    yield _time(row.by_hand)
    yield _time(row.sdpa)
    yield NONE if row.faster is None else f"{row.faster:.1f}"
    by_hand, sdpa = LESSON.get(row.setting, (None, None))
    yield f"{_time(by_hand)}, {_time(sdpa)}: {by_hand.time / sdpa.time:.1f}" if by_hand and sdpa else ""
    yield f"{row.setting.matrix / 1e6:.3g}"
    for measured in (row.by_hand, row.sdpa):
        yield NONE if measured is None or measured.peak is None else f"{measured.peak / 1e6:.4g}"


def _time(measured: Measured | None) -> str:
    return NONE if measured is None else f"{measured.time:.3g}"


def starts(course: Course) -> tuple[float, float]:
    """Seconds until an attempt can be asked: the first, and the median of the others. Raises BoxUnavailable."""
    limits, took = course.limits.for_worker("cuda"), []
    with open_box(Level.NAMESPACES, limits, course.root) as box:
        for _ in range(STARTS + 1):
            started = time.perf_counter()
            connection = box.attempt(limits)
            took.append(time.perf_counter() - started)
            connection.close()
    return took[0], statistics.median(took[1:])


def student(course: Course, device: str) -> float:
    """Seconds of `course grade` for one who hands in the solutions. Raises CourseFault where it fails."""
    assignment = course.assignments[0]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "submitted", "ada", assignment.id)
        work.mkdir(parents=True)
        for exercise in assignment.exercises:
            shutil.copy(exercise.solution, work)
        command = [sys.executable, "-m", "manyheads", "grade", str(work.parents[1]), "--out", f"{folder}/out"]
        started = time.perf_counter()
        done = subprocess.run(
            [*command, "--device", device], cwd=course.root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CourseFault(f"course grade --device {device} failed: {done.stderr.strip()}")
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
