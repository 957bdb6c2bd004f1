"""What a submission costs: `course grade`, three other graders in two forms, and the floor, on the same 18 checks.

python -m bench.peers                     ratios to the peers and to the floor; a quarter of an hour
python -m bench.peers --only pytest       only peers whose names hold one of these words
python -m bench.peers --flat              whether 2,000 submissions cost more each than 200
python -m bench.peers --full 1000         a class of so many for the whole course, half of its attempts with a fault
python -m bench.peers --all --write       all of it, and docs/performance.md says what came out

The first time it builds three virtual environments in .cache/bench. Run it on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..places import CACHE
from .against import against_floor, against_peers
from .cost import NotMeasured
from .field import PEERS, Field
from .flat import flatness
from .page import rewrite
from .record import Record

FULL_STUDENTS = 1000
Measurement = Callable[[Path, Record], str]


def main() -> int:
    """Exit status: 0 measured, whatever came out; 2 where a grader fails or does not grade as it should."""
    options = _options()
    command = shlex.join(["python", "-m", "bench.peers", *sys.argv[1:]])
    for name, measure in _chosen(options).items():
        record = Record()
        with tempfile.TemporaryDirectory(prefix="bench_peers_") as folder:
            try:
                found = measure(Path(folder), record)
            except NotMeasured as error:
                print(f"{name}: not measured: {error}. Next: run that command by hand", file=sys.stderr)
                return 2
        text = f"{found}\n\n{record.beneath(command)}"
        print(f"\n{text}\n", flush=True)
        if options.write:
            rewrite(name, text)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="What a submission costs.")
    parser.add_argument("--work", type=Path, default=CACHE, help="where environments are kept")
    parser.add_argument("--only", default="", help="only peers whose names hold one of these words: a,b")
    parser.add_argument("--pairs", type=int, default=5, help="how often each comparison is made")
    parser.add_argument("--batch", type=int, default=10, help="submissions for a peer")
    parser.add_argument("--ours", type=int, default=200, help="submissions for `course grade`")
    parser.add_argument("--flat", action="store_true", help="20, 200 and 2,000 submissions")
    parser.add_argument("--full", type=int, nargs="?", const=FULL_STUDENTS, help="students for the whole course")
    parser.add_argument("--all", action="store_true", help="the ratios, --flat and --full")
    parser.add_argument("--write", action="store_true", help="rewrite the tables of docs/performance.md")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> dict[str, Measurement]:
    """What to measure, by the name of its section."""
    words = options.only.split(",")
    names = [name for name in PEERS if any(word in name for word in words)]
    ours, pairs, students = options.ours, options.pairs, options.full or FULL_STUDENTS

    def full(place: Path, record: Record) -> str:
        from .full import full_course  # torch and the real course

        return full_course(place, students, max(10, students // 10), record)

    def field(place: Path) -> Field:
        return Field(options.work, place)

    ratios: dict[str, Measurement] = {
        "peers": lambda place, record: against_peers(field(place), names, ours, options.batch, pairs, record),
        "floor": lambda place, record: against_floor(field(place), ours, pairs, record),
    }
    flat: dict[str, Measurement] = {
        "flat": lambda place, record: flatness(field(place), (ours // 10, ours, 10 * ours), min(pairs, 3), record)
    }
    chosen = {} if (options.flat or options.full) and not options.all else ratios
    chosen |= flat if options.flat or options.all else {}
    return chosen | ({"full": full} if options.full or options.all else {})


if __name__ == "__main__":
    sys.exit(main())
