"""`course plot` writes a picture, says where, and opens nothing."""

from pathlib import Path

import pytest

from manyheads.cli.app import app
from manyheads.errors import CourseFault
from tests.conftest import Run

SCRIPT = "exercises/averages/01_running_mean.py"
WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


@pytest.fixture
def student_copy(student_copy: Path) -> Path:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    return student_copy


def test_a_picture_is_written_and_told_in_words(run_course: Run, student_copy: Path) -> None:
    done = run_course("plot", "running_mean", cwd=student_copy / "exercises")
    assert (done.returncode, done.stderr) == (0, "")
    first, where, following = done.stdout.splitlines()
    assert first.startswith("running_mean(x): the largest difference is ")
    assert where == f"Drawn in {student_copy / 'plots' / 'running_mean.html'}"
    assert following == "Next: course check running_mean"
    page = (student_copy / "plots" / "running_mean.html").read_text(encoding="utf-8")
    assert f"<figcaption>{first}</figcaption>" in page


def test_a_picture_may_go_elsewhere_but_not_where_none_can_be(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["plot", "running_mean", "--out", "mine.html"], standalone_mode=False)
    assert "Drawn in mine.html" in capsys.readouterr().out
    assert (here / "mine.html").exists()
    says = r"cannot be written \(.*\)\. Next: course plot running_mean --out ~/running_mean\.html$"
    with pytest.raises(CourseFault, match=says):
        app(["plot", "running_mean", "--out", "course.yaml/mine.html"], standalone_mode=False)
    assert not (here / "plots").exists()
