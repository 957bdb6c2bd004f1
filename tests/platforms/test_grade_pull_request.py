"""One pull request graded: in the box, or not at all."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

from manyheads.box.names import Device, Level
from manyheads.cli.app import app
from manyheads.judge.judge_process import Graded, GradePlan
from manyheads.platforms import grade_pull_request as grade_room
from manyheads.platforms.github import Collected
from manyheads.platforms.grade_pull_request import Artifact, earlier_artifact, grade_collected, write_artifact
from manyheads.result import Result
from manyheads.submission import Submission
from tests.make import REPOSITORY, TINY

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
    assert grade_collected(tiny, collected, submitted, Device.CPU).results == []


def test_the_box_is_of_namespaces_and_no_other_folder_is_read(tiny, collected, submitted, make_result, monkeypatch):
    (submitted / "ben" / "averages").mkdir(parents=True)
    (submitted / "ben" / "averages" / "01_running_mean.py").write_text("x = 2\n")
    plans = []
    monkeypatch.setattr(grade_room, "SteadyJudge", judges(plans, make_result()))
    assert grade_collected(tiny, collected, submitted, Device.CUDA).results == [make_result()]
    assert [(plan.level, plan.device, plan.seed) for plan in plans] == [(Level.NAMESPACES, Device.CUDA, 0)]


def judges(plans: list[GradePlan], result: Result, *faults: str) -> type:
    """What stands for a judge, and finds this."""

    class Finds:
        def __init__(self, plan: GradePlan) -> None:
            plans.append(plan)

        def grade(self, submission: Submission, only: Sequence[str]) -> Graded:
            return Graded(submission, result, faults)

        def close(self) -> None:
            """There is nothing to end."""

    return Finds


def test_what_has_not_changed_since_the_last_push_is_not_graded_again(
    tiny, collected, submitted, make_result, monkeypatch, tmp_path
):
    out, plans, attempt = tmp_path / "out", [], submitted / "ada" / "averages" / "01_running_mean.py"
    monkeypatch.setattr(grade_room, "SteadyJudge", judges(plans, make_result("failed")))

    def push(device: Device = Device.CPU) -> int:
        before = len(plans)
        done = grade_collected(tiny, collected, submitted, device, earlier_artifact(out, tiny, collected, device))
        assert [result.score for result in done.results] == [3 if len(plans) <= 2 else None]
        write_artifact(out, collected, device, done)
        return len(plans) - before

    assert [push(), push()] == [1, 0]
    attempt.write_text("x = 2\n")
    assert [push(), push()] == [1, 0]
    monkeypatch.setattr(grade_room, "SteadyJudge", judges(plans, make_result("skipped")))
    attempt.write_text("x = 3\n")
    assert [push(), push()] == [1, 1], "what the grader failed at is tried again"
    assert push(Device.CUDA) == 1, "what another device found is not what this one finds"
    (out / "about.json").write_text("{}")
    assert push() == 1


def test_a_fault_of_the_graders_own_is_in_the_jobs_log(tiny, collected, submitted, make_result, monkeypatch, capsys):
    monkeypatch.setattr(grade_room, "SteadyJudge", judges([], make_result(), "values: x"))
    grade_collected(tiny, collected, submitted, Device.CPU)
    assert capsys.readouterr().err == "course: a fault of the grader's own: values: x. Next: course verify\n"


def test_without_a_box_nothing_is_graded(run_course, tiny_copy, submitted, tmp_path):
    out, said = tmp_path / "results", tmp_path / "output"
    environment = {"PATH": "", "GITHUB_OUTPUT": str(said), "GITHUB_STEP_SUMMARY": str(said)}
    done = run_course("ci", "grade", "--submitted", submitted, "--out", out, cwd=tiny_copy, env=environment)
    assert done.returncode == 2
    assert done.stderr.endswith("Next: sudo apt-get install bubblewrap\n")
    assert not out.exists()
    assert not said.exists()


GH = """#!/bin/sh
# What the service's command line does of it: list runs, and bring an artifact into a folder of its own.
case "$2" in list) printf '1\\n2\\n3\\n' ;; download) mkdir -p "$9" && cp -R "artifacts/$3" "$9/results-cpu-1" ;; esac
"""


def test_artifacts_come_home_by_one_command_and_the_roster_knows_whose_they_are(run_course, tmp_path, make_result):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "roster.csv").write_text("id,name,github\ns1,Ada,Ada-Codes\ns2,Ben,\n")
    for run, outcome in (("1", "failed"), ("2", "passed")):  # of the third there is no artifact
        collected = Collected(student="ada-codes", number=7, head="a" * 40, refused=())
        result = make_result(outcome).model_copy(update={"student": "ada-codes"})
        write_artifact(tmp_path / "artifacts" / run, collected, Device.CPU, Artifact([result]))
    docs = (REPOSITORY / "docs" / "pull-requests.md").read_text(encoding="utf-8")
    command = docs[docs.index("    mkdir -p home") : docs.index("    course report results-home")]
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.defpath}", "CLASS": "school/class"}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "results-home" / "ada-codes" / "averages.json").exists()) == (1, True)
    told = ["results-home", "--roster", "roster.csv", "--course", str(TINY)]
    done = run_course("export", *told, "--format", "canvas", cwd=tmp_path)
    assert done.stdout.splitlines()[2:] == ["Ada,,,s1,,4", "Ben,,,s2,,"]
    assert run_course("report", *told[:3], cwd=tmp_path).returncode == 0
    shutil.copytree(tmp_path / "results-home" / "ada-codes", tmp_path / "results-home" / "s1")
    path = tmp_path / "results-home" / "s1" / "averages.json"
    path.write_text(path.read_text().replace("ada-codes", "s1"))
    done = run_course("export", *told, cwd=tmp_path)
    assert "ada-codes and s1 are one student by the roster. Next: take" in done.stderr
