"""`course ask`, as a student uses it after a ✓."""

import os
import re
import threading
from pathlib import Path

import pytest

from manyheads.cli.learn import _letter
from manyheads.cli.options import open_console
from tests.conftest import Run
from tests.make import COURSE, RIGHT, run

SCRIPT = "exercises/averages/01_running_mean.py"


@pytest.fixture
def done_copy(student_copy: Path, run_course: Run) -> Path:
    """A student's folder in which the exercise is done."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    done = run_course("check", "running_mean", cwd=student_copy)
    assert done.returncode == 0
    assert "Five questions on your own code: course ask running_mean" in done.stdout
    return student_copy


def questions_in(out: str) -> list[str]:
    return re.findall(r"^Question \d of \d$", out, re.MULTILINE)


def right_letters(run_course: Run, folder: Path) -> str:
    """The right letters, as they are told to who gives none."""
    told = run_course("ask", "running_mean", "--seed", "3", "--letters", "-----", cwd=folder)
    return "".join(re.findall(r"^  It is ([A-D]):", told.stdout, re.MULTILINE))


def test_who_knows_the_code_has_all_and_who_guesses_is_told_why_not(run_course: Run, done_copy: Path) -> None:
    letters = right_letters(run_course, done_copy)
    assert len(letters) == 5
    known = run_course("ask", "--seed", "3", "--letters", letters, cwd=done_copy)
    assert (known.returncode, known.stderr) == (0, "")
    assert len(questions_in(known.stdout)) == 5
    assert "5 of 5 at the first try." in known.stdout
    first = "A" if letters[0] != "A" else "B"
    guessed = run_course("ask", "--seed", "3", "--letters", first + letters[1:], cwd=done_copy)
    assert guessed.returncode == 1
    assert "4 of 5 at the first try." in guessed.stdout
    assert guessed.stdout.count("✗ ") == 1


@pytest.mark.journey
def test_on_a_terminal_a_wrong_answer_has_a_second_try(run_course: Run, done_copy: Path) -> None:
    letters = right_letters(run_course, done_copy)
    first = "A" if letters[0] != "A" else "B"
    said = f"x\n{first}\n{letters[0]}\n\n{letters[2].lower()}\nq\n"
    done = run(*COURSE, "ask", "--seed", "3", cwd=done_copy, said=said)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(questions_in(done.stdout)) == 4
    assert "1 of 5 at the first try." in done.stdout


def test_before_a_tick_there_are_no_questions(run_course: Run, student_copy: Path) -> None:
    none = run_course("ask", cwd=student_copy)
    assert none.returncode == 2
    assert none.stderr == "course: no exercise is done yet, and questions come after a ✓. Next: course check\n"
    (student_copy / SCRIPT).write_text(RIGHT.replace(".mean()", ".sum()"), encoding="utf-8")
    wrong = run_course("ask", "running_mean", cwd=student_copy)
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "course: running_mean is not done yet, and questions come after a ✓. Next: course check running_mean\n"
    )


def test_keys_that_were_typed_before_it_asked_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pty = pytest.importorskip("pty", reason="there are no such terminals here")
    typing, terminal = pty.openpty()
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))
    os.write(typing, b"A\n")
    threading.Timer(1.0, os.write, (typing, b"b\n")).start()
    assert _letter(open_console()) == "B"
