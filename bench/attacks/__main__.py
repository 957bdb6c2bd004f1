"""Ten attacks on four graders, and one table of what happened.

python -m bench.attacks                          everything; the first time it builds two virtual environments
python -m bench.attacks --only exits_with_0      one attack
python -m bench.attacks --graders course,pytest  only graders whose names hold one of these words
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ..graders import Grader, ManyHeads, Nbgrader, Otter, PlainPytest
from ..places import CACHE
from ..table import table
from .exercise import RUNNING_MEAN, lay_out
from .run import run
from .verdict import is_sound, verdict

ATTACKS = {
    "exits_with_0": "`os._exit(0)` when asked",
    "patched_comparisons": "`torch.testing.assert_close`, `allclose`, `equal` patched",
    "tensor_that_agrees": "a tensor whose `__torch_function__` always agrees",
    "takes_the_reference": "the reference taken from frames, modules or `gc`",
    "sends_the_tests_away": "files of the class sent to a listener on 127.0.0.1",
    "spoils_a_neighbour": "a neighbour's submission rewritten",
    "daemon_that_rewrites_results": "a daemon that outlives the run and rewrites results",
    "loops_and_ignores_signals": "an endless loop that ignores signals",
    "fills_the_memory": "3 GiB of memory, 200 MB in /dev/shm",
    "own_modules": "`conftest.py` and `torch.py` handed in beside the attempt",
}
GRADERS: dict[str, Callable[[Path], Grader]] = {
    "nbgrader autograde": lambda cache: Nbgrader(cache, RUNNING_MEAN),
    "otter run": lambda cache: Otter(cache, RUNNING_MEAN),
    "plain pytest": lambda cache: PlainPytest(RUNNING_MEAN),
    "course grade": lambda cache: ManyHeads(lay_out, "averages", "running_mean", jobs=1),
}


def main() -> int:
    """Exit status: 0 measured, whatever came out; 2 where a grader does not even grade the control."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description="Ten attacks on four graders.")
    parser.add_argument("--work", type=Path, default=CACHE, help="where environments are kept")
    parser.add_argument("--only", choices=ATTACKS, action="append", help="only this attack; may be given again")
    parser.add_argument("--graders", default="", help="only graders whose names hold one of these words: a,b")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds after which a class counts as hung")
    options = parser.parse_args()
    words = options.graders.split(",")
    graders = [make(options.work) for name, make in GRADERS.items() if any(word in name for word in words)]
    tricks = options.only or list(ATTACKS)
    columns: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="bench_attacks_") as folder:
        for grader in graders:
            version = grader.version()
            place = Path(folder, version.split()[0])
            control = run(grader, "control", place / "control", options.limit)
            say(version, "control", asdict(control))
            if not is_sound(control):
                print(f"{version} does not grade the control. Next: read the evidence above", file=sys.stderr)
                return 2
            cells = columns[f"{grader.name} ({version})"] = []
            for trick in tricks:
                seen = run(grader, trick, place / trick, options.limit)
                cells.append("; ".join(verdict(seen, control)))
                say(version, trick, asdict(seen), cells[-1])
    names = [ATTACKS[trick] for trick in tricks]
    print(table(["attack", *columns], zip(names, *columns.values(), strict=True)))
    return 0


def say(*words: object) -> None:
    """The evidence, while it comes in."""
    print(*words, sep=" | ", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
