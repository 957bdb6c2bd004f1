"""The whole course: what a student costs, in a class where all is right and in one where half of the attempts are not."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..places import REPOSITORY, environment
from ..table import table
from .against import Floor
from .cost import Cost, Running
from .full_class import class_of
from .record import Record

FAULTY = 0.5


def full_course(place: Path, students: int, right_students: int, record: Record) -> str:
    """A table. One run of each: a thousand students are their own mean. Raises NotMeasured."""
    rows = []
    right = _hand_in(place / "right", right_students, faulty=0)
    floor = Floor("judged", REPOSITORY, right).run()
    record.note("the floor, a student", floor)
    rows.append(["every check of right attempts in one warm process", str(right_students), "", *_each(floor, floor)])
    for name, submitted, size in (
        ("`course grade`, all right", right, right_students),
        ("`course grade`, half with a fault", _hand_in(place / "mixed", students, FAULTY), students),
    ):
        whole = _grade(place, submitted)
        record.note(name, whole)
        share = _share_of_faults(place / "results")
        rows.append([f"{name} ({share:.0%} of attempts below full marks)", str(size), f"{whole.wall:.1f}"])
        rows[-1] += _each(whole.each(size), floor)
    head = [
        "the full course",
        "students",
        "whole run, s",
        "wall s a student",
        "CPU s",
        "wall time / floor",
        "CPU time / floor",
    ]
    return table(head, rows)


def _hand_in(place: Path, size: int, faulty: float) -> Path:
    """The folder with the class."""
    for student, files in class_of(REPOSITORY, size, faulty):
        for stem, file in files.items():
            own = place / student / "multi_head_attention"
            own.mkdir(parents=True, exist_ok=True)
            (own / f"{stem}{file.ending}").write_text(file.text, encoding="utf-8")
    return place


def _grade(place: Path, submitted: Path) -> Cost:
    command = [
        sys.executable,
        "-m",
        "manyheads",
        "grade",
        str(submitted),
        "--course",
        str(REPOSITORY),
        "--regrade",
        "--no-lines",
    ]
    env = environment(place, Path(sys.executable).parent)
    return Running([*command, "--out", str(place / "results")], place, env).wait()


def _share_of_faults(results: Path) -> float:
    """Of all attempts, those that do not score full."""
    found = [
        float(exercise["score"] < exercise["max_score"])
        for path in results.glob("*/*.json")
        for exercise in json.loads(path.read_text())["exercises"]
    ]
    return sum(found) / len(found)


def _each(cost: Cost, floor: Cost) -> Sequence[str]:
    ratios = (cost.wall / floor.wall, cost.cpu / floor.cpu)
    return [f"{cost.wall:.3f}", f"{cost.cpu:.3f}", *(f"{ratio:.2f}" for ratio in ratios)]
