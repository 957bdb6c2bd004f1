"""How often the line of a fault is found, and how long that takes.

`python -m bench.lines faults [COUNT] [SECONDS] [EXERCISE…]`: right attempts with one small edit, so many of each exercise.
`python -m bench.lines wrong`: the course's unlisted wrong attempts.
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
            bench.lines(exercise, fault.text)
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


def wrong(course: Course, box: Box, exercises: Sequence[Exercise]) -> None:
    """Print the lines of the unlisted wrong attempts."""
    bench = FaultBench(course, box, exercises, Bounds(seconds=SECONDS))
    tried = found = 0
    for exercise in exercises:
        for path in sorted((course.root / "grader" / "wrong" / exercise.id).glob("*.py")):
            lines = bench.lines(exercise, path.read_text(encoding="utf-8"))
            tried, found = tried + 1, found + bool(lines)
            print(
                f"{exercise.id:<18} {path.stem:<34} {'; '.join(f'{each.line}: {each.edit}' for each in lines)}",
                flush=True,
            )
    print(f"{found} of {tried} have a line")


def _label(fault: Fault) -> str:
    return f"{fault.attempt} {fault.edit.line} {fault.edit.kind}: {fault.edit.described}"


def main(arguments: Sequence[str]) -> None:
    """Run one of the two."""
    course = load_course(Path(__file__).parents[1])
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        if arguments[:1] == ["wrong"]:
            wrong(course, box, course.exercises)
        else:
            count = int(arguments[1]) if len(arguments) > 1 else FAULTS
            seconds = float(arguments[2]) if len(arguments) > 2 else SECONDS
            exercises = [e for e in course.exercises if e.id in (arguments[3:] or e.id)]
            faults(course, box, exercises, count, seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
