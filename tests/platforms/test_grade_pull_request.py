"""One pull request graded: in the box, or not at all."""

import re

import pytest
from typer.testing import CliRunner

from manyheads.box.names import Device, Level
from manyheads.cli.app import app
from manyheads.judge.judge_process import Graded, GradePlan
from manyheads.platforms import grade_pull_request as grade_room
from manyheads.platforms.grade_pull_request import grade_collected, started_in
from manyheads.result import Result
from manyheads.submission import Submission

STUB = "exercises/averages/01_running_mean.py"


@pytest.mark.parametrize("name", ["collect", "grade", "report"])
def test_help_shows_an_example_that_is_a_command(name: str) -> None:
    done = CliRunner().invoke(app, ["ci", name, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert re.search(rf"Example: `?course ci {name}\b", done.output)


def test_nothing_started_needs_no_box(tiny, collected, submitted, monkeypatch):
    monkeypatch.setattr(grade_room, "SteadyJudge", None)
    stub = (tiny.root / STUB).read_text(encoding="utf-8")
    (submitted / "ada" / "averages" / "01_running_mean.py").write_text("# read it\n" + stub, encoding="utf-8")
    assert grade_collected(tiny, collected, submitted, Device.CPU, started_in(tiny, submitted / "ada")) == []


def test_the_box_is_of_namespaces_and_no_other_folder_is_read(tiny, collected, submitted, make_result, monkeypatch):
    (submitted / "ben" / "averages").mkdir(parents=True)
    (submitted / "ben" / "averages" / "01_running_mean.py").write_text("x = 2\n")
    plans = []
    monkeypatch.setattr(grade_room, "SteadyJudge", judges(plans, make_result()))
    assert grade_collected(tiny, collected, submitted, Device.CUDA, started_in(tiny, submitted / "ada")) == [
        make_result()
    ]
    assert [(plan.level, plan.device, plan.seed) for plan in plans] == [(Level.NAMESPACES, Device.CUDA, 0)]


def judges(plans: list[GradePlan], result: Result, *faults: str) -> type:
    """What stands for a judge, and finds this."""

    class Finds:
        def __init__(self, plan: GradePlan) -> None:
            plans.append(plan)

        def grade(self, submission: Submission) -> Graded:
            return Graded(submission, result, faults)

        def close(self) -> None:
            """There is nothing to end."""

    return Finds


def test_a_fault_of_the_graders_own_is_in_the_jobs_log(tiny, collected, submitted, make_result, monkeypatch, capsys):
    monkeypatch.setattr(grade_room, "SteadyJudge", judges([], make_result(), "values: x"))
    grade_collected(tiny, collected, submitted, Device.CPU, started_in(tiny, submitted / "ada"))
    assert capsys.readouterr().err == "course: a fault of the grader's own: values: x. Next: course verify\n"


def test_without_a_box_nothing_is_graded(run_course, tiny_copy, submitted, tmp_path):
    out, said = tmp_path / "results", tmp_path / "output"
    environment = {"PATH": "", "GITHUB_OUTPUT": str(said), "GITHUB_STEP_SUMMARY": str(said)}
    done = run_course("ci", "grade", "--submitted", submitted, "--out", out, cwd=tiny_copy, env=environment)
    assert done.returncode == 2
    assert done.stderr.endswith("Next: sudo apt-get install bubblewrap\n")
    assert not out.exists()
    assert not said.exists()
