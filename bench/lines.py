"""How often the line of a fault is found, and how long that takes: `python -m bench.lines [COUNT] [SECONDS] [EXERCISE…]`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from manyheads.authoring.verify.lines import LineBench
from manyheads.box.level import open_box
from manyheads.box.names import Level
from manyheads.course import load_course
from manyheads.lines.search import Bounds


def main(count: int, seconds: float, named: list[str]) -> None:
    """Try so many faults of each exercise, and print what is told of them."""
    course = load_course(Path(__file__).parents[1])
    exercises = [e for e in course.exercises if not named or e.id in named]
    total: Counter[str] = Counter()
    spent: list[float] = []
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        bench = LineBench(course, box, exercises, Bounds(seconds=seconds))
        for exercise in exercises:
            kinds: Counter[str] = Counter()
            for fault in islice(bench.faults(exercise), count):
                started = time.perf_counter()
                bench.lines(exercise, fault.text)
                spent.append(time.perf_counter() - started)
                said = bench.told(exercise, fault)
                kinds[f"{'undone' if fault.undone else 'other'}: {said}"] += 1
                if said in ("nothing", "wrong"):
                    print(
                        f"    {said}: {fault.attempt} {fault.edit.line} {fault.edit.kind}: {fault.edit.described}",
                        flush=True,
                    )
            total += kinds
            print(f"{exercise.id:<18} {dict(sorted(kinds.items()))}", flush=True)
    spent.sort()
    middle, most = spent[len(spent) // 2], spent[-1 - len(spent) // 20]
    print(
        f"{dict(sorted(total.items()))}; a search with its grading: median {middle:.2f} s, 19 of 20 within {most:.2f} s"
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 40, float(arguments[1]) if arguments[1:] else 60.0, arguments[2:])
