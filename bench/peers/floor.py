"""The floor: every check of every attempt in one warm process, with nothing around the attempt. A script.

python -m bench.peers.floor called FOLDER             the peers' checks, called one after another
python -m bench.peers.floor tested FOLDER             the same as tests of one pytest session
python -m bench.peers.floor judged COURSE SUBMITTED   hidden checks in our judge's session, the attempt imported there

FOLDER is a class handed in to `course grade`. Prints the seconds of one submission as JSON; the first few, which find
the process cold, are left out.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import torch

from ..graders import PlainPytest
from .checks import NAME
from .forms import assignment

WARM_UP = 3
PLAIN = "-s -p no:terminal -p no:cacheprovider -p no:faulthandler --disable-plugin-autoload -c /dev/null".split()
Turn = Callable[[], None]
Measure = Callable[[Iterable[Turn]], None]


def called(measure: Measure, folder: Path) -> None:
    """A turn for each submission: the attempt is run, then the statements of every check."""
    wanted = assignment()
    setup: dict[str, object] = {}
    exec(wanted.setup, setup)
    checks = [compile(text, name, "exec") for name, text in wanted.checks.items()]

    def turn(path: Path) -> None:
        names = setup | _imported(path)
        for check in checks:
            exec(check, dict(names))

    measure(partial(turn, path) for path in _attempts(folder))


def tested(measure: Measure, folder: Path) -> None:
    """A turn for each submission: the test file's functions are the attempt's, and all its tests are run."""

    class Turns:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            def turn(path: Path) -> None:
                module = session.items[0].getparent(pytest.Module)
                assert module is not None
                vars(module.obj).update(_imported(path))
                for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

            measure(partial(turn, path) for path in _attempts(folder))
            return True

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                raise SystemExit(f"{report.nodeid} failed: {report.longreprtext}")

    _imported(_attempts(folder)[0], NAME)
    with tempfile.TemporaryDirectory() as place:
        PlainPytest(assignment()).prepare(Path(place))
        pytest.main([*PLAIN, f"{place}/tests"], plugins=[Turns()])


def judged(measure: Measure, root: Path, submitted: Path) -> None:
    """A turn for each submission: every exercise's hidden checks, as our judge runs them for trusted code."""
    from manyheads.checks.local import LocalRecordingRunner
    from manyheads.course import load_course
    from manyheads.judge.catalogue import Catalogue
    from manyheads.submission import Submission, find_submissions

    course = load_course(root)
    catalogue = Catalogue(course)

    def turn(submission: Submission) -> None:
        assignment = submission.assignment
        for exercise in assignment.exercises:
            subject = LocalRecordingRunner(_imported(submission.folder / f"{exercise.stem}.py"))
            reference = catalogue.reference(exercise)
            outcomes = catalogue.run(exercise, subject, reference, b"floor", submission.student, exercise.id)
            failed = [o.id for o in outcomes if o.outcome != "passed"]
            if failed:
                raise SystemExit(f"{submission.student}'s {exercise.id} is not right: {failed}")

    measure(partial(turn, submission) for submission in find_submissions(course, submitted)[0])


def main(kind: str, places: Sequence[str]) -> None:
    """Print what a submission costs."""
    torch.set_num_threads(1)
    walls: list[float] = []
    cpus: list[float] = []

    def measure(turns: Iterable[Turn]) -> None:
        for turn in turns:
            wall, cpu = time.perf_counter(), time.process_time()
            turn()
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings of attempts say nothing
        folder = Path(places[0])
        if kind == "judged":
            judged(measure, folder, Path(places[1]))
        else:
            {"called": called, "tested": tested}[kind](measure, folder)
    print(json.dumps({"wall": _mean(walls), "cpu": _mean(cpus)}))


def _attempts(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"submitted/*/*/01_{NAME}.py"))


def _imported(path: Path, name: str = "attempt") -> dict[str, object]:
    module = types.ModuleType(name)
    sys.modules[name] = module  # where dataclasses look for their module
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), vars(module))
    return vars(module)


def _mean(seconds: Sequence[float]) -> float:
    warm = seconds[WARM_UP:] or seconds
    return sum(warm) / len(warm)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
