"""What grading costs: the whole course against the floor, six functions against pytest and
nbgrader, `check` against torch.

    python -m bench.cost [--students 100] [--pairs 3] [--only course|graders|check]

Whole commands are measured, cold start included, and ratios are of runs that were made in turn. CPU
time is that of all programs of the machine, for attempts in the box are nobody's children: run it
where nothing else is at work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

from manyheads.student.bench_written_out_attention import processor_name

from .graders import GRADERS, LOG, REPOSITORY, run_into_log
from .mixed_class import class_of
from .six_checks import RIGHT, WRONG, WRONG_EARNS, plain

BATCH, OURS = 10, 200  # submissions for another grader, and for `course grade`
FEW = 2  # students of the smallest class: one for each of two judges
COURSE = [sys.executable, "-m", "manyheads"]


@dataclass(frozen=True)
class Cost:
    """Seconds of a submission, or of a whole run."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        """Return what one run costs more than another."""
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def __mul__(self, count: int) -> Cost:
        """Return what so many of them cost."""
        return Cost(self.wall * count, self.cpu * count)

    def __truediv__(self, count: int) -> Cost:
        """Return an equal share of it."""
        return Cost(self.wall / count, self.cpu / count)


def measure_cost(command: Sequence[str], folder: Path, count: int = 1) -> Cost:
    """Run a command that grades so many submissions."""
    ticks, began = _busy(), time.perf_counter()
    with (folder / LOG).open("wb") as log:
        run_into_log(command, folder, log)
    return Cost(
        (time.perf_counter() - began) / count, (_busy() - ticks) / os.sysconf("SC_CLK_TCK") / count
    )


def whole_course(students: int, _: int) -> Iterator[list[str]]:
    """A class whose attempts are all right, a class half of whose attempts have a fault, and the
    floor.

    What a run does once is measured with a class of `FEW` and has a row of its own, because it does
    not grow with the class. In a class that is hardly larger, it hides what a student costs.
    """
    yield [
        "the first assignment",
        "students",
        "wall s a student",
        "CPU s",
        "wall / floor",
        "CPU / floor",
    ]
    with tempfile.TemporaryDirectory() as temp_dir:
        folder = Path(temp_dir)
        correct, mixed = (
            _hand_in(folder / f"faulty_{share}", students, share) for share in (0.0, 0.5)
        )
        floor = _measure_floor(correct)
        few = _measure_grading(_hand_in(folder / "few", FEW, 0.0))
        all_right, half_faulty = _measure_grading(correct), _measure_grading(mixed)
    each_right = (all_right - few) / (students - FEW)
    start = few - each_right * FEW
    each_faulty = (half_faulty - start) / students
    costs = {
        "every check in one warm process, all right": floor,
        "`course grade`, all right": each_right,
        "`course grade`, half with a fault": each_faulty,
    }
    for name, cost in costs.items():
        ratios = (cost.wall / floor.wall, cost.cpu / floor.cpu)
        yield [
            name,
            str(students),
            f"{cost.wall:.3f}",
            f"{cost.cpu:.3f}",
            *(f"{ratio:.2f}" for ratio in ratios),
        ]
    yield [
        "once a run: the start of the judges, and the first replies",
        "",
        f"{start.wall:.1f}",
        f"{start.cpu:.1f}",
        "",
        "",
    ]


def _measure_floor(submitted: Path) -> Cost:
    command = [sys.executable, "-m", "bench.floor", str(REPOSITORY), str(submitted)]
    completed = subprocess.run(
        command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True
    )
    return Cost(**json.loads(completed.stdout))


def _measure_grading(submitted: Path) -> Cost:
    """Return what `course grade` of a class costs, without the search for wrong lines."""
    grade = [*COURSE, "grade", str(submitted), "--course", str(REPOSITORY), "--no-lines"]
    return measure_cost([*grade, "--out", f"{submitted}_results"], submitted.parent)


def graders(_: int, pairs: int) -> Iterator[list[str]]:
    """Eighteen checks of six functions: what each grader takes, in turn. A grader that scores
    otherwise is not measured.
    """
    yield ["grader", "submissions", "wall s each", "CPU s", "wall / ours", "CPU / ours"]
    points = len(plain())
    costs: dict[str, list[Cost]] = {name: [] for name in GRADERS}
    sizes = {name: OURS if name == "course grade" else BATCH for name in GRADERS}
    for _, (name, grader) in ((n, g) for n in range(pairs) for g in GRADERS.items()):
        with tempfile.TemporaryDirectory() as temp_dir:
            expected = {f"s{i:03d}": float(points) for i in range(sizes[name] - 1)} | {
                "wrong": float(WRONG_EARNS)
            }
            texts = {name: WRONG if name == "wrong" else RIGHT for name in expected}
            signed = {name: f'{text}\n\nHANDED_IN_BY = "{name}"\n' for name, text in texts.items()}
            laid_out = grader.laid_out(Path(temp_dir), signed)
            costs[name].append(measure_cost(laid_out.command, Path(temp_dir), len(expected)))
            if laid_out.scores() != expected:
                raise SystemExit(f"{name} gives other scores than {points} and {WRONG_EARNS}")
    ours = costs["course grade"]
    for name, grader_costs in costs.items():
        ratios = (_spread(map(of_each, grader_costs, ours)) for of_each in (_by_wall, _by_cpu))
        yield [
            name,
            str(sizes[name]),
            _spread(c.wall for c in grader_costs),
            _spread(c.cpu for c in grader_costs),
            *ratios,
        ]


def check(_: int, pairs: int) -> Iterator[list[str]]:
    """`course check` of a right attempt beside `import torch`."""
    yield ["", "wall s", "/ import torch"]
    with tempfile.TemporaryDirectory() as temp_dir:
        folder = Path(temp_dir)
        shutil.copy(REPOSITORY / "course.yaml", folder)
        shutil.copytree(REPOSITORY / "exercises", folder / "exercises")
        (script,) = (REPOSITORY / "solutions").glob("*/*_reshape_dance.py")
        shutil.copy(script, folder / "exercises" / script.parent.name)
        commands = [
            [sys.executable, "-c", "import torch"],
            [*COURSE, "check", "reshape_dance", "--fresh"],
        ]
        costs = list[list[Cost]]()
        for _ in range(pairs):
            costs.append([measure_cost(command, folder) for command in commands])
    yield [
        "`course check reshape_dance`",
        _spread(b.wall for _, b in costs),
        _spread(_by_wall(b, a) for a, b in costs),
    ]


MEASUREMENTS: dict[str, Callable[[int, int], Iterator[list[str]]]] = {
    "course": whole_course,
    "graders": graders,
    "check": check,
}


def main() -> None:
    """Print each table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--students", type=int, default=100, help="in each class of the whole course"
    )
    parser.add_argument(
        "--pairs", type=int, default=3, help="how often the other comparisons are made"
    )
    parser.add_argument("--only", choices=MEASUREMENTS)
    options = parser.parse_args()
    if options.students <= FEW:
        parser.error(f"--students {options.students}: at least {FEW + 1} are needed")
    print(
        f"{processor_name()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"torch {version('torch')}, {time.strftime('%B %Y')}"
    )
    for name in [options.only] if options.only else MEASUREMENTS:
        head, *rows = MEASUREMENTS[name](options.students, options.pairs)
        lines = [head, ["---"] * len(head), *rows]
        print("\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)


def _hand_in(folder: Path, size: int, faulty: float) -> Path:
    for student, files in class_of(REPOSITORY, size, faulty):
        student_folder = folder / student / "multi_head_attention"
        student_folder.mkdir(parents=True)
        for stem, file in files.items():
            (student_folder / f"{stem}{file.ending}").write_text(file.text, encoding="utf-8")
    return folder


def _busy() -> int:
    """Return the CPU time of all programs since the machine started, in ticks."""
    user, nice, system = Path("/proc/stat").read_text().split(None, 4)[1:4]
    return int(user) + int(nice) + int(system)


def _by_wall(cost: Cost, baseline: Cost) -> float:
    return cost.wall / baseline.wall


def _by_cpu(cost: Cost, baseline: Cost) -> float:
    return cost.cpu / baseline.cpu


def _spread(values: Iterable[float]) -> str:
    """Return the median, and in brackets the least and the most."""
    ordered = sorted(values)
    return f"{median(ordered):.3g} ({ordered[0]:.3g} to {ordered[-1]:.3g})"


if __name__ == "__main__":
    main()
