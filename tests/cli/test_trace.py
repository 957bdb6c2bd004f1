"""course trace and course plot, as a student asks them: also of code that loops, exits or floods."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.cli.app import app
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.errors import CourseFault
from manyheads.student.choose_example import examples
from manyheads.student.follow import Followed, follow
from manyheads.submission import AttemptSource
from tests.conftest import Run

SCRIPT = "exercises/averages/01_running_mean.py"
RIGHT = """\
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
def followed(tiny: Course, running_mean: Exercise, box: Box) -> Callable[[str], Followed]:
    """Follow this source in a process of its own."""
    wanted = examples(running_mean, read(running_mean.fingerprints))

    def followed(source: str) -> Followed:
        return follow(box, tiny.limits.for_worker(), AttemptSource("01_running_mean.py", source), wanted)

    return followed


def test_each_line_is_explained_whatever_it_prints(run_course: Run, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    done = run_course("trace", "running_mean", "--values", cwd=student_copy)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "running_mean(x)"
    assert lines[1].startswith("  T = ")
    assert lines[2] == "  8  return x.cumsum(0) / torch.arange(1, len(x) + 1)  # [bold]per position[/bold]"
    assert [line.split()[:4] for line in lines if "→" in line] == [
        ["cumsum", "(T)", "→", "(T)"],
        ["div", "(T),", "int64", "(T)"],
    ]
    numbers = lines[4].split()
    assert len(numbers) > 2
    assert float(numbers[0])
    assert "  ✓ returns (T): the right numbers" in lines
    assert lines[-1] == "Next: course check running_mean"


def test_an_exception_is_status_1_after_the_lines_that_led_to_it(run_course: Run, student_copy: Path) -> None:
    source = "def running_mean(x):\n    y = x.cumsum(0)\n    return y.view(len(y), 2)\n"
    (student_copy / SCRIPT).write_text(source, encoding="utf-8")
    done = run_course("trace", "01", cwd=student_copy)
    assert (done.returncode, done.stderr) == (1, "")
    assert "cumsum        (T) → (T)" in done.stdout
    assert "✗ view         (T)" in done.stdout
    assert "It raised RuntimeError on line 3: a reshape to a shape with another number of elements." in done.stdout
    assert done.stdout.endswith("\nChange the first line that surprises you.\nNext: course check running_mean\n")


def test_an_untouched_stub_has_nothing_to_follow(here: Path) -> None:
    says = (
        r"^running_mean is not started yet: there is nothing to trace\.\n"
        r"Next: fill the first stub of 01_running_mean, then: course trace running_mean$"
    )
    with pytest.raises(CourseFault, match=says):
        app(["trace", "running_mean"], standalone_mode=False)


def test_a_notebooks_lines_are_named_as_its_student_sees_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / SCRIPT).unlink()
    cells = ["import torch\n\n", "def running_mean(x):\n    y = x.cumsum(0)\n    return y @ x.new_ones(len(x) + 1)\n"]
    told = [{"cell_type": "code", "metadata": {}, "source": text, "outputs": []} for text in cells]
    notebook = {"cells": told, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (here / SCRIPT).with_suffix(".ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert app(["trace", "running_mean"], standalone_mode=False) == 1
    out = capsys.readouterr().out
    assert "cell 2, 2  y = x.cumsum(0)" in out
    assert "It raised RuntimeError on line 3 of code cell 2: " in words(out)


def test_a_function_that_is_not_there_is_refused_and_the_others_are_named(here: Path) -> None:
    (here / SCRIPT).write_text(RIGHT, encoding="utf-8")
    says = r"running_mean has no 'median' to trace; it has: running_mean\. Next: course trace running_mean$"
    with pytest.raises(CourseFault, match=says):
        app(["trace", "running_mean", "median"], standalone_mode=False)


def test_shapes_that_fit_no_recorded_call_are_the_instructors_to_mend(here: Path) -> None:
    (here / SCRIPT).write_text(RIGHT, encoding="utf-8")
    course = here / "course.yaml"
    course.write_text(course.read_text(encoding="utf-8").replace("(x: (T,))", "(x: (T,), n)"), encoding="utf-8")
    says = r"no recorded call of running_mean fits its shapes .* Next: tell .*: course verify running_mean$"
    with pytest.raises(CourseFault, match=says):
        app(["trace", "running_mean"], standalone_mode=False)


@pytest.mark.parametrize(("source", "says"), [
    pytest.param("def running_mean(x):\n    while True:\n        x = x + 1\n", "No answer within 2 seconds: is there an endless loop? That was in running_mean.", id="an endless loop"),
    pytest.param("import os\ndef running_mean(x):\n    os._exit(0)\n", "The attempt ended its own process (exit status 0) in place of answering. That was in running_mean.", id="os._exit"),
    pytest.param("import ctypes\ndef running_mean(x):\n    ctypes.string_at(0)\n", "The attempt's process was ended by SIGSEGV (a crash in native code). That was in running_mean.", id="a crash"),
    pytest.param("import os\nos._exit(3)\n", "Line 2 was left out: it ended the whole process.", id="os._exit while it is imported"),
    pytest.param("n = int(input())\n", "Line 1 did not run to its end: it raised EOFError on line 1: input() waits for somebody to type, and nobody does while a file is checked. Python says: EOF when reading a line", id="input()"),
    pytest.param("import nowhere\n", "Line 1 did not run to its end: there is no module nowhere where attempts are judged.", id="an import that fails"),
    pytest.param("import sys\ndef running_mean(x):\n    sys.modules['manyheads'] = None\n    for end in (65, 64):  # of a pipe, or a socket\n        try:\n            __import__('os').write(end, b'x' * 99)\n        except OSError:\n            continue\n    return x\n", "The attempt sent something that is not an answer", id="bytes of its own on the wire"),
])  # fmt: skip
def test_code_that_does_not_answer_gives_one_sentence(followed, source, says):
    seen = followed(source)
    assert seen.shown == ()
    assert seen.ended.startswith(says)


WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def test_a_picture_is_written_and_told_in_words(run_course: Run, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    done = run_course("plot", "running_mean", cwd=student_copy / "exercises")
    assert (done.returncode, done.stderr) == (0, "")
    first, where, following = done.stdout.splitlines()
    assert first.startswith("running_mean(x): the largest difference is ")
    assert where == f"Drawn in {student_copy / 'plots' / 'running_mean.html'}"
    assert following == "Next: course check running_mean"
    page = (student_copy / "plots" / "running_mean.html").read_text(encoding="utf-8")
    assert f"<figcaption>{first}</figcaption>" in page


def test_where_no_picture_can_be_it_is_said_why_and_what_is_next(run_course: Run, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    (student_copy / "plots").write_text("a file in the way")
    done = run_course("plot", "running_mean", cwd=student_copy)
    assert done.returncode == 2
    said = f"course: {student_copy / 'plots'}: File exists. Next: move it elsewhere, or name another place\n"
    assert done.stderr == said
