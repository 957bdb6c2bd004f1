"""Internal: no command reads a letter from a terminal without asking a question first.

The commands `course trace`, `plot`, `ask`, `train` and `bench`, also with code that loops, exits
or prints too much.
"""

import os
import re
import shutil
import threading
from pathlib import Path

import pytest
import torch

from manyheads.cli.options import open_console
from manyheads.cli.student import _letter
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example_calls import examples
from manyheads.student.trace import follow
from manyheads.submission import Source
from tests import make
from tests.cli.conftest import one_line_of
from tests.conftest import Run
from tests.make import COURSE, RIGHT, call_course, notebook, run
from tests.student.real import REPOSITORY, exercise_of, reference_source

SCRIPT = "exercises/averages/01_running_mean.py"
# a right attempt that prints 900 KB
FLOODS = """\
import torch


def running_mean(x):
    if len(x) == 0:
        raise ValueError("nothing to average")
    print("half way " * 100_000)
    return x.cumsum(0) / torch.arange(1, len(x) + 1)  # [bold]per position[/bold]
"""


def trace_error(folder, *names):
    """Run a `course trace` that must fail, and return its stderr."""
    completed = call_course("trace", "running_mean", *names, cwd=folder)
    assert (completed.returncode, completed.stdout) == (2, "")
    return completed.stderr


def test_trace_explains_each_line_of_code_that_floods_its_output(run_course, student_copy):
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
    ("source", "status", "lines"),
    [
        pytest.param(
            "def running_mean(x):\n    y = x.cumsum(0)\n    return y.view(len(y), 2)\n",
            1,
            [
                "cumsum        (T) → (T)",
                "✗ view        (T)",
                "It raised RuntimeError on line 3: a reshape to a shape with another number of",
                "\nChange the first line that surprises you.\nNext: course check running_mean\n",
            ],
            id="operations before an exception",
        ),
        pytest.param(
            "def running_mean(x):\n    return len(x)\n",
            0,
            [
                "a tensor was expected; yours returned an int",
                "\n  ✗ returns (); (T) is asked\n\nNext: course hint running_mean\n",
            ],
            id="no operation and no right call",
        ),
    ],
)
def test_check_and_trace_say_what_is_wrong(student_copy_in_process, source, status, lines):
    (student_copy_in_process / SCRIPT).write_text(source, encoding="utf-8")
    checked, traced = (
        call_course(command, "01", cwd=student_copy_in_process) for command in ("check", "trace")
    )
    assert traced.returncode == status
    output = one_line_of(checked.stdout + traced.stdout)
    assert [line for line in lines if one_line_of(line) not in output] == []


def test_trace_refuses_an_untouched_stub(student_copy_in_process):
    assert trace_error(student_copy_in_process) == (
        "course: running_mean is not started yet: there is nothing to trace.\n"
        "Fill the first stub of 01_running_mean.\nNext: course trace running_mean\n"
    )


def test_trace_names_lines_of_a_notebook_by_cell(student_copy_in_process):
    (student_copy_in_process / SCRIPT).unlink()
    cells = [
        "import torch\n\n",
        "def running_mean(x):\n    y = x.cumsum(0)\n    return y @ x.new_ones(len(x) + 1)\n",
    ]
    (student_copy_in_process / SCRIPT).with_suffix(".ipynb").write_text(
        notebook(*cells), encoding="utf-8"
    )
    completed = call_course("trace", "running_mean", cwd=student_copy_in_process)
    assert completed.returncode == 1
    assert "cell 2, 2  y = x.cumsum(0)" in completed.stdout
    assert "It raised RuntimeError on line 3 of code cell 2: " in one_line_of(completed.stdout)


def test_trace_refuses_an_unknown_function_and_names_the_known_ones(student_copy_in_process):
    (student_copy_in_process / SCRIPT).write_text(FLOODS, encoding="utf-8")
    assert trace_error(student_copy_in_process, "median") == (
        "course: running_mean has no 'median' to trace; "
        "it has: running_mean. Next: course trace running_mean\n"
    )


def test_trace_suggests_verify_if_no_recorded_call_fits_the_declared_shapes(
    student_copy_in_process,
):
    (student_copy_in_process / SCRIPT).write_text(FLOODS, encoding="utf-8")
    make.replace(student_copy_in_process / "course.yaml", "(x: (T,))", "(x: (T,), n)")
    error = trace_error(student_copy_in_process)
    assert "no recorded call of running_mean fits its " in error
    assert error.endswith(": course verify running_mean\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(
            "def running_mean(x):\n    while True:\n        x = x + 1\n",
            "No answer within 2 seconds: is there an endless loop? That was in running_mean.",
            id="an endless loop",
        ),
        pytest.param(
            "import os\ndef running_mean(x):\n    os._exit(0)\n",
            "The attempt ended its own process (exit status 0) in place of answering. That "
            "was in running_mean.",
            id="an exit of the process",
        ),
        pytest.param(
            "import nowhere\n",
            "Line 1 did not run to its end: there is no module nowhere where attempts are judged.",
            id="an import that fails",
        ),
        pytest.param(
            "import sys\ndef running_mean(x):\n    sys.modules['manyheads'] = None\n"
            "    for end in (65, 64):  # of a pipe, or a socket\n        try:\n"
            "            __import__('os').write(end, b'x' * 99)\n        except OSError:\n"
            "            continue\n    return x\n",
            "The attempt sent something that is not an answer",
            id="bytes written to the judge's pipe",
        ),
    ],
)
def test_trace_explains_in_one_sentence_why_code_gives_no_answer(
    tiny, running_mean, box, source, reason
):
    recorded_examples = examples(running_mean, read(running_mean.fingerprints))
    attempt = Source("01_running_mean.py", source)
    outcome = follow(box, tiny.limits.for_worker(), attempt, recorded_examples)
    assert outcome.traced_examples == ()
    assert outcome.ended.startswith(reason)


DIVIDES_BY_LENGTH = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def test_plot_writes_a_page_and_prints_its_caption(run_course, student_copy):
    (student_copy / SCRIPT).write_text(DIVIDES_BY_LENGTH, encoding="utf-8")
    completed = run_course("plot", "running_mean", cwd=student_copy / "exercises")
    assert (completed.returncode, completed.stderr) == (0, "")
    caption, location, next_step = completed.stdout.splitlines()
    assert caption.startswith("running_mean(x): the largest difference is ")
    assert location == f"Drawn in {student_copy / 'plots' / 'running_mean.html'}"
    assert next_step == "Next: course check running_mean"
    page = (student_copy / "plots" / "running_mean.html").read_text(encoding="utf-8")
    assert f"<figcaption>{caption}</figcaption>" in page


@pytest.fixture
def done_copy(student_copy: Path, run_course: Run) -> Path:
    """Return a student's folder in which the exercise is done."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    completed = run_course("check", "running_mean", cwd=student_copy)
    assert completed.returncode == 0
    assert "Five questions on your own code: course ask running_mean" in completed.stdout
    assert "cannot be kept" not in completed.stdout
    return student_copy


def questions_in(output):
    """Return the headings of the questions in the output of `course ask`."""
    return re.findall(r"^Question \d of \d$", output, re.MULTILINE)


def right_letters(run_course, folder):
    """Return the letters of the right answers, which `ask` prints if all questions are skipped."""
    options = ("--seed", "3", "--letters", "-----")
    completed = run_course("ask", "running_mean", *options, cwd=folder)
    return "".join(re.findall(r"^  It is ([A-D]):", completed.stdout, re.MULTILINE))


def wrong_letter(letters):
    """Return a wrong answer to the first question."""
    return "A" if letters[0] != "A" else "B"


def test_ask_counts_right_answers_and_marks_a_wrong_one(run_course, done_copy):
    letters = right_letters(run_course, done_copy)
    assert len(letters) == 5
    correct = run_course("ask", "--seed", "3", "--letters", letters, cwd=done_copy)
    assert (correct.returncode, correct.stderr) == (0, "")
    assert len(questions_in(correct.stdout)) == 5
    assert "5 of 5 at the first try." in correct.stdout
    guess = wrong_letter(letters) + letters[1:]
    guessed = run_course("ask", "--seed", "3", "--letters", guess, cwd=done_copy)
    assert guessed.returncode == 1
    assert "4 of 5 at the first try." in guessed.stdout
    assert guessed.stdout.count("✗ ") == 1


@pytest.mark.journey
def test_ask_on_a_terminal_allows_a_second_try(run_course, done_copy):
    letters = right_letters(run_course, done_copy)
    # for question 1 an unknown key, a wrong and the right letter; 2 is skipped; "q" quits
    keys = f"x\n{wrong_letter(letters)}\n{letters[0]}\n\n{letters[2].lower()}\nq\n"
    command = (*COURSE, "ask", "running_mean", "--seed", "3")
    completed = run(*command, cwd=done_copy, input_text=keys)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len(questions_in(completed.stdout)) == 4
    assert "1 of 5 at the first try." in completed.stdout


def test_ask_refuses_an_exercise_that_is_not_done(run_course, student_copy):
    unchecked = run_course("ask", cwd=student_copy)
    assert unchecked.returncode == 2
    assert (
        unchecked.stderr
        == "course: no exercise is done yet, and questions come after a ✓. Next: course check\n"
    )
    (student_copy / SCRIPT).write_text(RIGHT.replace(".mean()", ".sum()"), encoding="utf-8")
    refused = run_course("ask", "running_mean", cwd=student_copy)
    assert refused.returncode == 2
    assert refused.stderr == (
        "course: running_mean is not done yet, and questions come after a ✓. Next: course "
        "check running_mean\n"
    )


def test_ask_ignores_keys_typed_before_the_question(
    monkeypatch,
):
    pty = pytest.importorskip("pty", reason="there are no such terminals here")
    keyboard, terminal = pty.openpty()
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))
    os.write(keyboard, b"A\n")
    threading.Timer(1.0, os.write, (keyboard, b"b\n")).start()
    assert _letter(open_console()) == "B"


ID = "fused_qkv"  # an exercise with a module that can be trained


@pytest.fixture
def real_copy(tmp_path: Path) -> Path:
    """Return a student's folder of the real course, in which one exercise is done."""
    exercises = Path("exercises/multi_head_attention")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    (tmp_path / exercises / "fingerprints").mkdir(parents=True)
    for path in (REPOSITORY / exercises / "fingerprints").glob("0[27]_*"):
        shutil.copy(path, tmp_path / exercises / "fingerprints")
    script = exercise_of(ID).script.relative_to(REPOSITORY)
    (tmp_path / script).write_text(reference_source(ID), encoding="utf-8")
    return tmp_path


@pytest.fixture
def real_copy_in_process(real_copy, attempts_in_new_processes):
    """Return the same folder for commands that run in this process."""
    return real_copy


def test_train_reports_the_loss_and_generates_text(run_course, real_copy):
    completed = run_course("train", ID, "--steps", "100", cwd=real_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    step, meaning, heading, *generated, next_step = completed.stdout.splitlines()
    loss = re.fullmatch(r"step  100, loss (\d\.\d\d): Alice .*", step)
    assert loss
    assert 2 < float(loss[1]) < 4
    assert re.fullmatch(
        (
            rf"A loss of {loss[1]} means being as unsure as among [\d."
            r"]+ equally likely characters; at first it was [\d.]+\."
        ),
        meaning,
    )
    assert heading == "It writes:"
    assert generated[0].startswith("  Alice ")
    assert next_step == f"Next: course check {ID}"


def test_train_warns_about_a_module_without_a_causal_mask(run_course, real_copy):
    script = next((real_copy / "exercises" / "multi_head_attention").glob("07_*.py"))
    text = script.read_text(encoding="utf-8").replace(
        ".masked_fill(~self.visible[:T, :T], -math.inf)", ""
    )
    script.write_text(text, encoding="utf-8")
    completed = run_course("train", ID, "--steps", "100", cwd=real_copy)
    warning, _, meaning, heading, *_, next_step = completed.stdout.splitlines()
    assert warning.startswith("Your module sees the future: ")
    assert re.fullmatch(r"A loss of \d\.\d\d says nothing here, because .*", meaning)
    assert (heading, next_step) == ("It writes:", f"Next: course check {ID}")


def test_train_reports_an_exception_in_the_students_code(real_copy_in_process):
    script = next((real_copy_in_process / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text("import nowhere\n", encoding="utf-8")
    error = call_course("train", ID, cwd=real_copy_in_process).stderr
    assert error.startswith("course: Your code raised ModuleNotFoundError on line 1")
    assert error.endswith("\nNext: course check\n")


def test_train_suggests_an_exercise_that_has_a_module(real_copy_in_process):
    assert call_course("train", "causal_mask", cwd=real_copy_in_process).stderr == (
        "course: causal_mask has no module to train. Next: course train weight_split\n"
    )


def test_quick_bench_prints_measured_rows_and_a_reference_row(run_course):
    completed = run_course("bench", "--quick")
    assert (completed.returncode, completed.stderr) == (0, "")
    # two rows for each type of number, and the recorded row of an A100
    rows = [line.split() for line in completed.stdout.splitlines() if " 256 " in line]
    assert [row[0] for row in rows] == ["float32"] * 2 + ["bfloat16"] * 2 + ["A100,"]
    assert rows[-1][-3:] == ["0.31", "0.11", "2.8×"]
    assert all(float(row[-6]) > 0 and float(row[-5]) > 0 for row in rows[:-1])


@pytest.mark.gpu
def test_quick_bench_on_a_gpu_names_the_device(run_course):
    completed = run_course("bench", "--quick", "--device", "cuda")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert f"cuda: {torch.cuda.get_device_name()}" in completed.stdout
