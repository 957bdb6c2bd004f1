"""What docs/attention.md says of grading on a GPU, measured here. Run: python -m bench.gpu

What an attempt's start costs in the box, and one student graded on both devices. `course bench`
measures attention.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from manyheads.box import open_box
from manyheads.box.level_and_device_names import Level
from manyheads.course import Course, load_course
from manyheads.files import CourseFault

ROOT = Path(__file__).parents[1]
STARTS = 10


def main() -> None:
    """Measure, print."""
    course = load_course(ROOT)
    try:
        first_start, later = starts(course)
    except CourseFault as fault:
        sys.exit(f"bench.gpu: no box: {fault}")
    print(
        f"An attempt's process with CUDA started in it: {first_start:.2f} s the first, then"
        f" {later:.2f} s (of {STARTS})."
    )
    on_gpu, on_cpu = (student(course, device) for device in ("cuda", "cpu"))
    print(
        f"One right student of an assignment, with the start: {on_gpu:.1f} s on the GPU, "
        f"{on_cpu:.1f} s on the CPU."
    )


def starts(course: Course) -> tuple[float, float]:
    """Seconds until an attempt can be asked: the first, and the median of the others. Raises
    BoxUnavailable.
    """
    limits, took = course.limits.for_worker("cuda"), []
    with open_box(Level.NAMESPACES, limits, course.root) as box:
        for _ in range(STARTS + 1):
            started = time.perf_counter()
            connection = box.attempt(limits)
            took.append(time.perf_counter() - started)
            connection.close()
    return took[0], statistics.median(took[1:])


def student(course: Course, device: str) -> float:
    """Seconds of `course grade` for one who hands in the solutions. Raises CourseFault where it
    fails.
    """
    assignment = course.assignments[0]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "submitted", "ada", assignment.id)
        work.mkdir(parents=True)
        for exercise in assignment.exercises:
            shutil.copy(exercise.solution, work)
        command = [
            sys.executable,
            "-m",
            "manyheads",
            "grade",
            str(work.parents[1]),
            "--out",
            f"{folder}/out",
        ]
        started = time.perf_counter()
        completed = subprocess.run(
            [*command, "--device", device], cwd=course.root, capture_output=True, text=True
        )
        if completed.returncode:
            raise CourseFault(f"course grade --device {device} failed: {completed.stderr.strip()}")
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
