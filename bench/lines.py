"""How often the line of a fault is found, and how long that takes.

`python -m bench.lines [COUNT] [SECONDS] [EXERCISE…]`: right attempts with one small edit, so many of each exercise.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from manyheads.authoring.verify.faults import Fault, FaultBench
from manyheads.box.level import Box, open_box
from manyheads.box.names import Level
from manyheads.course import Course, Exercise, load_course
from manyheads.lines.find_lines import Bounds

FAULTS, SECONDS = 30, 60.0


def faults(course: Course, box: Box, exercises: Sequence[Exercise], count: int, seconds: float) -> None:
    """Try so many faults of each exercise, and print what is told of them."""
    bench = FaultBench(course, box, exercises, Bounds(seconds=seconds))
    total: Counter[str] = Counter()
    spent: list[float] = []
    for exercise in exercises:
        seen: Counter[str] = Counter()
        for fault in islice(bench.faults(exercise), count):
            started = time.perf_counter()
            bench.lines(exercise, fault.edit.after)
            spent.append(time.perf_counter() - started)
            said = f"{'undone by an edit' if fault.undone else 'by none'}: {bench.told(exercise, fault)}"
            seen[said] += 1
            if said.endswith(("nothing", "wrong")):
                print(f"    {said}: {_label(fault)}", flush=True)
        total += seen
        print(f"{exercise.id:<18} {dict(sorted(seen.items()))}", flush=True)
    spent.sort()
    middle, most = spent[len(spent) // 2], spent[-1 - len(spent) // 20]
    print(f"{dict(sorted(total.items()))}; graded with its search: median {middle:.2f} s, 19 of 20 within {most:.2f} s")


def _label(fault: Fault) -> str:
    return f"{fault.attempt} {fault.edit.line} {fault.edit.kind}: {fault.edit.described}"


def main(arguments: Sequence[str]) -> None:
    """Try the exercises that are named, or all."""
    course = load_course(Path(__file__).parents[1])
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        count = int(arguments[0]) if arguments else FAULTS
        seconds = float(arguments[1]) if len(arguments) > 1 else SECONDS
        exercises = [e for e in course.exercises if e.id in (arguments[2:] or e.id)]
        faults(course, box, exercises, count, seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
