"""`course check --watch` on a terminal: a real one, with real saves."""

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest

from manyheads.cli.check import _saves, watch_saves
from manyheads.cli.options import open_console
from manyheads.course import load_course
from manyheads.result import ExerciseResult
from manyheads.student.own_attempt import Checks, Own
from tests import make
from tests.make import REPOSITORY, RIGHT, WRONG

SCRIPT = "exercises/averages/01_running_mean.py"
SECONDS = 60.0  # until a test gives up


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm", "COLUMNS": "200"}
            os.execve(sys.executable, [sys.executable, "-m", "manyheads", "check", "--watch", *arguments], environment)
        self._unread = ""

    def read_until(self, pattern: str) -> str:
        """Everything up to what this pattern matches, without colours."""
        ends = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self._unread, re.DOTALL)):
            assert time.monotonic() < ends, self._unread
            if not select.select([self._terminal], [], [], 1.0)[0]:
                continue
            data = os.read(self._terminal, 65536).decode("utf-8", "replace")
            self._unread += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data)
        text, self._unread = self._unread[: found.end()], self._unread[found.end() :]
        return text

    def interrupt(self) -> int:
        """Ctrl-C; the exit status."""
        os.write(self._terminal, b"\x03")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def save(folder: Path, text: str) -> None:
    """As most editors do: a new file takes the old one's place."""
    new = folder / "exercises" / "averages" / ".saving"
    new.write_text(text, encoding="utf-8")
    new.replace(folder / SCRIPT)


DONE = r"All done.\s+What you save is checked. Ctrl-C ends this"


def test_every_save_is_checked_also_where_all_is_done(student_copy: Path) -> None:
    save(student_copy, RIGHT)
    terminal = Terminal(student_copy)
    terminal.read_until(DONE)
    save(student_copy, WRONG)  # once, at once: what is saved before it watches counts as well
    told = terminal.read_until("Ctrl-C ends this").lower()
    assert "checking 01 the running mean" in told  # which takes its time where a loop has no end
    assert "divided by" in told
    save(student_copy, "def running_mean(x:\n")
    assert "Python cannot read your file" in terminal.read_until("Ctrl-C ends this")
    save(student_copy, RIGHT)
    assert "✓ 01 The running mean" in terminal.read_until(DONE)
    save(student_copy, WRONG)
    assert "divided by" in terminal.read_until("Ctrl-C ends this").lower()
    assert terminal.interrupt() == 0


def test_what_is_saved_while_the_first_check_runs_is_checked(student_copy: Path) -> None:
    (exercise,) = load_course(student_copy).exercises
    saves = _saves([exercise], exercise)
    assert next(saves) == exercise
    save(student_copy, WRONG)
    assert next(saves) == exercise


def test_what_is_not_done_is_checked_once_at_the_start(student_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(student_copy, WRONG)
    course, checked = load_course(student_copy), list[str]()

    def run(checks: Checks, own: Own) -> ExerciseResult:
        checked.append(own.exercise.id)
        return make.exercise(own.exercise.id, make.check("values"))

    monkeypatch.setattr(Checks, "_run", run)
    monkeypatch.setattr("manyheads.cli.check._saves", lambda named, first: iter((first,)))
    watch_saves(Checks(course), open_console(), course.exercises)
    assert checked == ["running_mean"]
