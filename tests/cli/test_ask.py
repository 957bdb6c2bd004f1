"""What comes after a ✓: course ask, course train, a few steps of the real thing, and course bench, as a person runs them."""

import os
import re
import shutil
import threading
from pathlib import Path

import pytest
import torch

from manyheads.box.process import ProcessBox
from manyheads.cli.app import app
from manyheads.cli.learn import _letter, train
from manyheads.cli.options import open_console
from manyheads.errors import CourseFault
from tests.conftest import Run
from tests.make import COURSE, RIGHT, run
from tests.student.real import REPOSITORY, exercise_of, solution

SCRIPT = "exercises/averages/01_running_mean.py"


@pytest.fixture
def done_copy(student_copy: Path, run_course: Run) -> Path:
    """A student's folder in which the exercise is done."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    done = run_course("check", "running_mean", cwd=student_copy)
    assert done.returncode == 0
    assert "Five questions on your own code: course ask running_mean" in done.stdout
    assert "cannot be kept" not in done.stdout
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
    done = run(*COURSE, "ask", "running_mean", "--seed", "3", cwd=done_copy, said=said)
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


ID = "fused_qkv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The course as a student has it, who has done one exercise."""
    exercises = Path("exercises/multi_head_attention")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    (tmp_path / exercises / "fingerprints").mkdir(parents=True)
    for path in (REPOSITORY / exercises / "fingerprints").glob("0[27]_*"):
        shutil.copy(path, tmp_path / exercises / "fingerprints")
    script = exercise_of(ID).script.relative_to(REPOSITORY)
    (tmp_path / script).write_text(solution(ID), encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for a command that runs in this process: which has computed, so it may not be forked."""
    monkeypatch.setattr("manyheads.box.forked.open_own_box", lambda meta=False: ProcessBox())
    monkeypatch.chdir(folder)
    return folder


def test_it_learns_and_writes(run_course: Run, folder: Path) -> None:
    done = run_course("train", ID, "--steps", "100", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    step, means, heading, *writes, following = done.stdout.splitlines()
    loss = re.fullmatch(r"step  100, loss (\d\.\d\d): Alice .*", step)
    assert loss
    assert 2 < float(loss[1]) < 4
    assert re.fullmatch(
        rf"A loss of {loss[1]} means being as unsure as among [\d.]+ equally likely characters; at first it was [\d.]+\.",
        means,
    )
    assert heading == "It writes:"
    assert writes[0].startswith("  Alice ")
    assert following == f"Next: course check {ID}"


def test_what_stops_it_is_one_sentence(here: Path) -> None:
    script = next((here / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text("import nowhere\n", encoding="utf-8")
    says = r"^Your code raised ModuleNotFoundError on line 1.*\nNext: course check$"
    with pytest.raises(CourseFault, match=says):
        app(["train", ID], standalone_mode=False)


def test_an_exercise_without_a_module_is_told_which_has_one(here: Path) -> None:
    with pytest.raises(CourseFault, match=r"^causal_mask has no module to train\. Next: course train weight_split$"):
        train("causal_mask")


def test_a_quick_run_fills_the_lessons_first_row(run_course: Run) -> None:
    done = run_course("bench", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    ours = [line.split() for line in done.stdout.splitlines() if " 256 " in line]
    assert [row[0] for row in ours] == ["float32"] * 2 + ["bfloat16"] * 2 + ["A100,"]
    assert ours[-1][-3:] == ["0.31", "0.11", "2.8×"]
    assert all(float(row[-6]) > 0 and float(row[-5]) > 0 for row in ours[:-1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_it_says_so_and_what_to_run_instead(run_course: Run) -> None:
    done = run_course("bench", "--device", "cuda")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "course: this machine has no CUDA device that torch can use. Next: course bench --device cpu\n"
    )


@pytest.mark.gpu
def test_on_a_gpu_a_quick_run_names_the_device(run_course: Run) -> None:
    done = run_course("bench", "--quick", "--device", "cuda")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"cuda: {torch.cuda.get_device_name()}" in done.stdout
