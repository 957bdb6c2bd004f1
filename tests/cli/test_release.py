"""`course release` says how far it is, and in one sentence what it wrote."""

from pathlib import Path

from manyheads.cli import progress
from manyheads.cli.release import _steps_shown, _still_to_fill
from tests import make
from tests.conftest import Run


def test_where_there_is_no_terminal_it_writes_lines_to_stderr(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with _steps_shown(4) as one_more, _steps_shown(0):  # where nothing is stale it says nothing
        one_more()
        one_more()
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(",")[0] for line in err.splitlines()] == [
        "recording: 4 exercises",
        "recording: 1 of 4 exercises",
        "recording: 2 of 4 exercises",
    ]


def test_what_is_not_filled_yet_is_named_before_students_read_it() -> None:
    text = b"# The lesson\n# FILL: the lesson, in a few lines\n# FILL: a question\n"
    handed_over = {"course.yaml": b"title: Averages\n", "exercises/averages/02_mean.py": text, "engine.whl": b"FILL:"}
    assert _still_to_fill(handed_over) == (
        "Students will read FILL: in 2 lines, the first in exercises/averages/02_mean.py. "
        "Next: course verify, which lists what is to be filled"
    )
    assert _still_to_fill({"course.yaml": b"title: Averages\n", "engine.whl": b"FILL:"}) == ""


def test_what_a_mutant_warns_of_is_not_printed_as_the_references(run_course: Run, tiny_copy: Path) -> None:
    solution, bank = (tiny_copy / path for path in ("solutions/averages/01_running_mean.py", "grader/misconceptions/running_mean.py"))  # fmt: skip
    make.replace(solution, "    return x.cumsum(0)", "    numpy.ones(1) / numpy.array([1.0])\n    return x.cumsum(0)")
    make.replace(solution, "import torch\n", "import numpy\nimport torch\n")
    make.replace(bank, 'edit(COUNTS, "len(x)")', 'edit(COUNTS, "len(x)", {"array([1.0])": "array([0.0])"})')
    done = run_course("release", cwd=tiny_copy)
    assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr
