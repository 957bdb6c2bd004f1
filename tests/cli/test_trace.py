"""`course trace`, `plot`, `ask`, `train` and `bench`, as a student asks them: also of code that
loops, exits or floods.
"""

import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.connection import Box
from manyheads.box.without_namespaces import ProcessBox
from manyheads.cli.app import app
from manyheads.cli.options import open_console
from manyheads.cli.student import _letter, train
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.files import CourseFault
from manyheads.student.choose_example_calls import examples
from manyheads.student.trace import Followed, follow
from manyheads.submission import Source
from tests.conftest import Run
from tests.make import COURSE, RIGHT, notebook, run
from tests.student.real import REPOSITORY, exercise_of, solution

SCRIPT = "exercises/averages/01_running_mean.py"
FLOODS = """\
import torch


def running_mean(x):
    if len(x) == 0:
        raise ValueError("nothing to average")
    print("half way " * 100_000)
    return x.cumsum(0) / torch.arange(1, len(x) + 1)  # [bold]per position[/bold]
"""


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def follow_source(tiny: Course, running_mean: Exercise, box: Box) -> Callable[[str], Followed]:
    """Follow this source in a process of its own."""
    recorded_examples = examples(running_mean, read(running_mean.fingerprints))

    def outcome_of(source: str) -> Followed:
        return follow(
            box,
            tiny.limits.for_worker(),
            Source("01_running_mean.py", source),
            recorded_examples,
        )

    return outcome_of


def test_each_line_is_explained_whatever_it_prints(run_course, student_copy):
    (student_copy / SCRIPT).write_text(FLOODS, encoding="utf-8")
    completed = run_course("trace", "running_mean", "--values", cwd=student_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    lines = [line.rstrip() for line in completed.stdout.splitlines()]
    assert lines[0] == "running_mean(x)"
    assert lines[1].startswith("  T = ")
    assert (
        lines[2]
        == "  8  return x.cumsum(0) / torch.arange(1, len(x) + 1)  # [bold]per position[/bold]"
    )
    operations = [" ".join(line.split()[:4]) for line in lines if "→" in line]
    assert operations == ["cumsum (T) → (T)", "div (T), int64 (T)"]
    assert float(lines[4].split()[2])
    assert "  ✓ returns (T): the right numbers" in lines
    assert lines[-1] == "Next: course check running_mean"


@pytest.mark.parametrize(
    ("source", "status", "told"),
    [
        pytest.param(
            "def running_mean(x):\n    y = x.cumsum(0)\n    return y.view(len(y), 2)\n",
            1,
            [
                "cumsum        (T) → (T)",
                "✗ view        (T)",
                (
                    "It raised RuntimeError on line 3: a reshape to a shape with another number "
                    "of elements."
                ),
                "\nChange the first line that surprises you.\nNext: course check running_mean\n",
            ],
            id="an exception, after what led to it",
        ),
        pytest.param(
            "def running_mean(x):\n    return len(x)\n",
            None,
            [
                "a tensor was expected; yours returned an int",
                "\n  ✗ returns (); (T) is asked\n\nNext: course hint running_mean\n",
            ],
            id="no operation, and no right call",
        ),
    ],
)
def test_what_is_wrong_is_told(here, capsys, source, status, told):
    (here / SCRIPT).write_text(source, encoding="utf-8")
    app(["check", "01"], standalone_mode=False)
    assert app(["trace", "01"], standalone_mode=False) == status
    out = words(capsys.readouterr().out)
    assert [text for text in told if words(text) not in out] == []


def test_an_untouched_stub_has_nothing_to_follow(here):
    says = (
        r"^running_mean is not started yet: there is nothing to trace\.\n"
        r"Next: fill the first stub of 01_running_mean, then: course trace running_mean$"
    )
    with pytest.raises(CourseFault, match=says):
        app(["trace", "running_mean"], standalone_mode=False)


def test_a_notebooks_lines_are_named_as_its_student_sees_them(here, capsys):
    (here / SCRIPT).unlink()
    cells = [
        "import torch\n\n",
        "def running_mean(x):\n    y = x.cumsum(0)\n    return y @ x.new_ones(len(x) + 1)\n",
    ]
    (here / SCRIPT).with_suffix(".ipynb").write_text(notebook(*cells), encoding="utf-8")
    assert app(["trace", "running_mean"], standalone_mode=False) == 1
    out = capsys.readouterr().out
    assert "cell 2, 2  y = x.cumsum(0)" in out
    assert "It raised RuntimeError on line 3 of code cell 2: " in words(out)


def test_a_function_that_is_not_there_is_refused_and_the_others_are_named(here):
    (here / SCRIPT).write_text(FLOODS, encoding="utf-8")
    says = (
        r"running_mean has no 'median' to trace; "
        r"it has: running_mean\. Next: course trace running_mean$"
    )
    with pytest.raises(CourseFault, match=says):
        app(["trace", "running_mean", "median"], standalone_mode=False)


def test_shapes_that_fit_no_recorded_call_are_the_instructors_to_mend(here):
    (here / SCRIPT).write_text(FLOODS, encoding="utf-8")
    course = here / "course.yaml"
    course.write_text(
        course.read_text(encoding="utf-8").replace("(x: (T,))", "(x: (T,), n)"), encoding="utf-8"
    )
    with pytest.raises(
        CourseFault,
        match=r"no recorded call of running_mean fits its .*: course verify running_mean$",
    ):
        app(["trace", "running_mean"], standalone_mode=False)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param(
            "def running_mean(x):\n    while True:\n        x = x + 1\n",
            "No answer within 2 seconds: is there an endless loop? That was in running_mean.",
            id="an endless loop",
        ),
        pytest.param(
            "import os\ndef running_mean(x):\n    os._exit(0)\n",
            (
                "The attempt ended its own process (exit status 0) in place of answering. That "
                "was in running_mean."
            ),
            id="os._exit",
        ),
        pytest.param(
            "import ctypes\ndef running_mean(x):\n    ctypes.string_at(0)\n",
            (
                "The attempt's process was ended by SIGSEGV (a crash in native code). That was in "
                "running_mean."
            ),
            id="a crash",
        ),
        pytest.param(
            "import nowhere\n",
            "Line 1 did not run to its end: there is no module nowhere where attempts are judged.",
            id="an import that fails",
        ),
        pytest.param(
            (
                "import sys\ndef running_mean(x):\n    sys.modules['manyheads'] = None\n"
                "    for end in (65, 64):  # of a pipe, or a socket\n        try:\n"
                "            __import__('os').write(end, b'x' * 99)\n        except OSError:\n"
                "            continue\n    return x\n"
            ),
            "The attempt sent something that is not an answer",
            id="bytes of its own on the wire",
        ),
    ],
)
def test_code_that_does_not_answer_gives_one_sentence(follow_source, source, says):
    outcome = follow_source(source)
    assert outcome.traced_examples == ()
    assert outcome.ended.startswith(says)


BY_LENGTH = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def test_a_picture_is_written_and_told_in_words(run_course, student_copy):
    (student_copy / SCRIPT).write_text(BY_LENGTH, encoding="utf-8")
    completed = run_course("plot", "running_mean", cwd=student_copy / "exercises")
    assert (completed.returncode, completed.stderr) == (0, "")
    caption, where, next_step = completed.stdout.splitlines()
    assert caption.startswith("running_mean(x): the largest difference is ")
    assert where == f"Drawn in {student_copy / 'plots' / 'running_mean.html'}"
    assert next_step == "Next: course check running_mean"
    page = (student_copy / "plots" / "running_mean.html").read_text(encoding="utf-8")
    assert f"<figcaption>{caption}</figcaption>" in page


@pytest.fixture
def done_copy(student_copy: Path, run_course: Run) -> Path:
    """A student's folder in which the exercise is done."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    completed = run_course("check", "running_mean", cwd=student_copy)
    assert completed.returncode == 0
    assert "Five questions on your own code: course ask running_mean" in completed.stdout
    assert "cannot be kept" not in completed.stdout
    return student_copy


def questions_in(out: str) -> list[str]:
    return re.findall(r"^Question \d of \d$", out, re.MULTILINE)


def right_letters(run_course: Run, real_copy: Path) -> str:
    """The right letters, as they are told to who gives none."""
    completed = run_course(
        "ask", "running_mean", "--seed", "3", "--letters", "-----", cwd=real_copy
    )
    return "".join(re.findall(r"^  It is ([A-D]):", completed.stdout, re.MULTILINE))


def test_who_knows_the_code_has_all_and_who_guesses_is_told_why_not(run_course, done_copy):
    letters = right_letters(run_course, done_copy)
    assert len(letters) == 5
    correct = run_course("ask", "--seed", "3", "--letters", letters, cwd=done_copy)
    assert (correct.returncode, correct.stderr) == (0, "")
    assert len(questions_in(correct.stdout)) == 5
    assert "5 of 5 at the first try." in correct.stdout
    wrong_letter = "A" if letters[0] != "A" else "B"
    guessed = run_course(
        "ask", "--seed", "3", "--letters", wrong_letter + letters[1:], cwd=done_copy
    )
    assert guessed.returncode == 1
    assert "4 of 5 at the first try." in guessed.stdout
    assert guessed.stdout.count("✗ ") == 1


@pytest.mark.journey
def test_on_a_terminal_a_wrong_answer_has_a_second_try(run_course, done_copy):
    letters = right_letters(run_course, done_copy)
    wrong_letter = "A" if letters[0] != "A" else "B"
    keystrokes = f"x\n{wrong_letter}\n{letters[0]}\n\n{letters[2].lower()}\nq\n"
    completed = run(
        *COURSE, "ask", "running_mean", "--seed", "3", cwd=done_copy, input_text=keystrokes
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len(questions_in(completed.stdout)) == 4
    assert "1 of 5 at the first try." in completed.stdout


def test_before_a_tick_there_are_no_questions(run_course, student_copy):
    none = run_course("ask", cwd=student_copy)
    assert none.returncode == 2
    assert (
        none.stderr
        == "course: no exercise is done yet, and questions come after a ✓. Next: course check\n"
    )
    (student_copy / SCRIPT).write_text(RIGHT.replace(".mean()", ".sum()"), encoding="utf-8")
    refused = run_course("ask", "running_mean", cwd=student_copy)
    assert refused.returncode == 2
    assert refused.stderr == (
        "course: running_mean is not done yet, and questions come after a ✓. Next: course "
        "check running_mean\n"
    )


def test_keys_that_were_typed_before_it_asked_are_no_answer(
    monkeypatch,
):
    pty = pytest.importorskip("pty", reason="there are no such terminals here")
    typing, terminal = pty.openpty()
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))
    os.write(typing, b"A\n")
    threading.Timer(1.0, os.write, (typing, b"b\n")).start()
    assert _letter(open_console()) == "B"


ID = "fused_qkv"


@pytest.fixture
def real_copy(tmp_path: Path) -> Path:
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
def real_folder(real_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for a command that runs in this process: which has computed, so it may not be
    forked.
    """
    monkeypatch.setattr(
        "manyheads.box.without_namespaces.open_own_box", lambda meta=False: ProcessBox()
    )
    monkeypatch.chdir(real_copy)
    return real_copy


def test_it_learns_and_writes(run_course, real_copy):
    completed = run_course("train", ID, "--steps", "100", cwd=real_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    step, means, heading, *writes, next_step = completed.stdout.splitlines()
    loss = re.fullmatch(r"step  100, loss (\d\.\d\d): Alice .*", step)
    assert loss
    assert 2 < float(loss[1]) < 4
    assert re.fullmatch(
        (
            rf"A loss of {loss[1]} means being as unsure as among [\d."
            r"]+ equally likely characters; at first it was [\d.]+\."
        ),
        means,
    )
    assert heading == "It writes:"
    assert writes[0].startswith("  Alice ")
    assert next_step == f"Next: course check {ID}"


def test_a_module_without_a_mask_is_told_so_before_it_learns_and_its_loss_means_nothing(
    run_course, real_copy
):
    script = next((real_copy / "exercises" / "multi_head_attention").glob("07_*.py"))
    text = script.read_text(encoding="utf-8").replace(
        ".masked_fill(~self.visible[:T, :T], -math.inf)", ""
    )
    script.write_text(text, encoding="utf-8")
    completed = run_course("train", ID, "--steps", "100", cwd=real_copy)
    warning, _, means, heading, *_, next_step = completed.stdout.splitlines()
    assert warning.startswith("Your module sees the future: ")
    assert re.fullmatch(r"A loss of \d\.\d\d says nothing here, because .*", means)
    assert (heading, next_step) == ("It writes:", f"Next: course check {ID}")


def test_what_stops_it_is_one_sentence(real_folder):
    script = next((real_folder / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text("import nowhere\n", encoding="utf-8")
    says = r"^Your code raised ModuleNotFoundError on line 1.*\nNext: course check$"
    with pytest.raises(CourseFault, match=says):
        app(["train", ID], standalone_mode=False)


def test_an_exercise_without_a_module_is_told_which_has_one(real_folder):
    with pytest.raises(
        CourseFault, match=r"^causal_mask has no module to train\. Next: course train weight_split$"
    ):
        train("causal_mask")


def test_a_quick_run_fills_the_lessons_first_row(run_course):
    completed = run_course("bench", "--quick")
    assert (completed.returncode, completed.stderr) == (0, "")
    ours = [line.split() for line in completed.stdout.splitlines() if " 256 " in line]
    assert [row[0] for row in ours] == ["float32"] * 2 + ["bfloat16"] * 2 + ["A100,"]
    assert ours[-1][-3:] == ["0.31", "0.11", "2.8×"]
    assert all(float(row[-6]) > 0 and float(row[-5]) > 0 for row in ours[:-1])


@pytest.mark.gpu
def test_on_a_gpu_a_quick_run_names_the_device(run_course):
    completed = run_course("bench", "--quick", "--device", "cuda")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert f"cuda: {torch.cuda.get_device_name()}" in completed.stdout
