"""What tests share: the tiny course, warm boxes, a real browser, and the command as a person runs
it.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

# before any test imports them in twice the time
import manyheads.authoring.make_stub  # noqa: F401
from manyheads.box import open_box
from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import Level
from manyheads.course import Assignment, Course, Exercise, load_course
from tests.browser import Browser, installed_browser
from tests.make import REPOSITORY, TINY, copy_course, with_last_mean
from tests.warm import fork_judges, run_warm, start_for_all, use

OF_ONE_KIND = re.compile(r"^pytestmark = pytest\.mark\.(\w+)", re.MULTILINE)  # its marker
NO_BOX = "bubblewrap (the command bwrap) is not installed"

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_configure(config: pytest.Config) -> None:
    """Let the shell know the command `course`, let Ctrl-C reach what tests start, and share what is
    started for all.
    """
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # as `make test &` begins: every child would inherit that
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if servers := getattr(config, "workerinput", {}).get("warm"):  # this is a worker
        use(servers)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Where workers run the whole suite, they share what takes seconds to import. It imports while
    they collect tests.
    """
    if node.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        node.workerinput["warm"] = start_for_all()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of journeys alone is left out before it is imported, where journeys are: some import
    nbgrader or dask.
    """
    if not collection_path.match("test_*.py"):
        return None
    marked = OF_ONE_KIND.search(collection_path.read_text(encoding="utf-8"))
    return True if marked and f"not {marked[1]}" in config.option.markexpr else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU or bubblewrap where there is none."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no CUDA device that torch can use")
    if item.get_closest_marker("bwrap") and shutil.which("bwrap") is None:
        pytest.skip(NO_BOX)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test whose failure says that bubblewrap is not installed."""
    report = yield
    if (
        report.failed
        and shutil.which("bwrap") is None
        and NO_BOX in f"{report.longrepr}{report.sections}"
    ):
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, NO_BOX)
    return report


def skip_summary(reasons: Counter[str]) -> str:
    """Return one line that says how many tests were skipped for each reason, the most first."""
    if not reasons:
        return "No test was skipped."
    counts = "; ".join(f"{count} because {reason}" for reason, count in reasons.most_common())
    return f"Skipped: {counts}."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Print after pytest's own last line what was skipped, and why."""
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or session.config.option.collectonly:
        return
    reports = terminal.stats.get("skipped", [])
    # longrepr is (path, line, "Skipped: " and the reason)
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    terminal.write_line(skip_summary(reasons))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of the real course."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)


@pytest.fixture(scope="session")
def tiny() -> Course:
    """The tiny course where it stands: not to be written to."""
    return load_course(TINY)


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    """The folder of a copy of the tiny course, to write to."""
    return copy_course(TINY, tmp_path / "tiny")


@pytest.fixture
def two_means(tiny_copy: Path) -> Path:
    """A copy of the tiny course with a second exercise, to write to."""
    return with_last_mean(tiny_copy)


@pytest.fixture(scope="session")
def averages(tiny: Course) -> Assignment:
    """The tiny course's assignment."""
    return tiny.assignments[0]


@pytest.fixture(scope="session")
def running_mean(averages: Assignment) -> Exercise:
    """The tiny course's exercise."""
    return averages.exercises[0]


@pytest.fixture(scope="session")
def box(tiny: Course) -> Iterator[Box]:
    """A warm box of the level that grades."""
    with open_box(Level.NAMESPACES, tiny.limits.for_worker(), tiny.root) as opened:
        yield opened


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Make a folder once, whichever of pytest-xdist's workers asks first. It is to be looked at,
    and never worked in.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def folder(name: str, make: Callable[[Path], None]) -> Path:
        target, ready = shared / name, shared / f"{name}.ready"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.exists():
                shutil.rmtree(target, ignore_errors=True)  # another worker's, which failed
                make(target)
                ready.touch()
        return target

    return folder


# of its own for each: what a page left open goes on asking for is nobody else's
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser; without one, its tests are skipped and say so."""
    program = installed_browser() or pytest.skip(
        "no Chromium or Chrome is installed: no browser shows a page"
    )
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def warm_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge processes are forked, where how they start is not what is tested."""
    fork_judges(monkeypatch)


@pytest.fixture
def run_course(tmp_path: Path) -> Run:
    """Run `course` with these arguments, in a folder without a course unless `cwd` says
    otherwise.
    """

    def run(
        *arguments: object, cwd: Path = tmp_path, env: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "manyheads", *map(str, arguments)]
        environment = {
            **os.environ,
            "COLUMNS": "100",
            "PYTHONPATH": str(REPOSITORY),
            "NO_COLOR": "1",
            **env,
        }
        # which an interpreter reads as it starts
        if not any(name.startswith("PYTHON") for name in env):
            return run_warm("manyheads", command[3:], cwd, environment)
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )

    return run
