"""A pull request: graded in the box, handed on as data that anybody could have written, reported, with remarks on lines."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jupytext
import pytest

from manyheads.box.names import Device, Level
from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.judge.judge_process import Graded, GradePlan
from manyheads.platforms import pull_request as grade_room
from manyheads.platforms.github import Collected, ServiceError
from manyheads.platforms.pull_request import (
    ENDED,
    Artifact,
    ArtifactError,
    body,
    gpu_run,
    grade_collected,
    read_artifact,
    run_of,
    verdict,
    why_not_on_a_gpu,
    write_artifact,
    write_report,
)
from manyheads.platforms.pull_request import annotate as annotated
from manyheads.report.markdown import LONGEST
from manyheads.result import CheckResult, ProvedLine, Result
from manyheads.submission import Submission, proved_line, read_file
from tests.make import REPOSITORY, TINY
from tests.workflows.hosted.service import Service

MakeResult = Callable[..., Result]
STARTED = {"running_mean": "01_running_mean.py"}


STUB = "exercises/averages/01_running_mean.py"


def test_nothing_started_needs_no_box(tiny, collected, submitted, monkeypatch):
    monkeypatch.setattr(grade_room, "SteadyJudge", None)
    stub = (tiny.root / STUB).read_text(encoding="utf-8")
    (submitted / "ada" / "averages" / "01_running_mean.py").write_text("# read it\n" + stub, encoding="utf-8")
    assert grade_collected(tiny, collected, submitted, Device.CPU, submitted).results == ()


def test_the_box_is_of_namespaces_and_no_other_folder_is_read(tiny, collected, submitted, make_result, monkeypatch):
    (submitted / "ben" / "averages").mkdir(parents=True)
    (submitted / "ben" / "averages" / "01_running_mean.py").write_text("x = 2\n")
    plans = []
    monkeypatch.setattr(grade_room, "SteadyJudge", judges(plans, make_result()))
    assert grade_collected(tiny, collected, submitted, Device.CUDA, submitted).results == (make_result(),)
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
        done = grade_collected(tiny, collected, submitted, device, out)
        assert [result.score for result in done.results] == [3 if len(plans) <= 2 else None]
        write_artifact(out, done)
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


def test_it_tells_lines_and_never_the_edits_that_prove_them(tiny, collected, submitted, make_result, monkeypatch):
    found = make_result("failed")
    lines = (ProvedLine(line=7, edit="secret → edit"), ProvedLine(line=9))
    found = found.model_copy(update={"exercises": (found.exercises[0].model_copy(update={"lines": lines}),)})
    monkeypatch.setattr(grade_room, "SteadyJudge", judges([], found))
    (told,) = grade_collected(tiny, collected, submitted, Device.CPU, submitted).results
    assert told.exercises[0].lines == (ProvedLine(line=7), ProvedLine(line=9))


def test_a_fault_of_the_graders_own_is_in_the_jobs_log(tiny, collected, submitted, make_result, monkeypatch, capsys):
    monkeypatch.setattr(grade_room, "SteadyJudge", judges([], make_result(), "values: x"))
    grade_collected(tiny, collected, submitted, Device.CPU, submitted)
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
        result = make_result(outcome).model_copy(update={"student": "ada-codes"})
        write_artifact(tmp_path / "artifacts" / run, Artifact(results=(result,)))
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


Forge = Callable[[Path], object]


def artifact_of(results: list[Result], started: dict[str, str], device: Device = Device.CPU) -> Artifact:
    return Artifact(student="ada", head="a" * 40, device=device, results=tuple(results), started=started)


@pytest.fixture
def folder(collected: Collected, make_result: MakeResult, tmp_path: Path) -> Path:
    """The artifact of a graded pull request."""
    write_artifact(tmp_path / "results", artifact_of([make_result("failed", evidence="no")], STARTED))
    return tmp_path / "results"


def on_a_gpu(result: Result) -> Result:
    """The same with a check more, for which the course gives no points."""
    (exercise,) = result.exercises
    more = exercise.checks[0].model_copy(update={"id": "autocast", "score": 2.0, "max_score": 2.0})
    exercise = exercise.model_copy(update={"checks": (*exercise.checks, more), "score": 6.0, "max_score": 6.0})
    return result.model_copy(update={"exercises": (exercise,), "score": 6.0, "max_score": 6.0, "device": "cuda"})


@pytest.mark.parametrize(("results", "started", "device"), [
    pytest.param(lambda make: [make("failed", evidence="no")], STARTED, Device.CPU, id="what is wrong"),
    pytest.param(lambda make: [make("skipped")], STARTED, Device.CPU, id="what is not graded"),
    pytest.param(lambda make: [], {}, Device.CPU, id="nothing started"),
    pytest.param(lambda make: [on_a_gpu(make())], STARTED, Device.CUDA, id="more than the course gives points for"),
])  # fmt: skip
def test_what_was_written_is_read(tiny, collected, make_result, tmp_path, results, started, device):
    written = artifact_of(results(make_result), started, device)
    write_artifact(tmp_path / "results", written)
    assert read_artifact(tmp_path / "results", tiny, collected.student, collected.head) == written


def result(change: Callable[[dict[str, Any]], object]) -> Forge:
    return about(lambda data: change(data["results"][0]))


def about(change: Callable[[dict[str, Any]], object]) -> Forge:
    def forge(folder: Path) -> None:
        data = json.loads((folder / "about.json").read_text())
        change(data)
        (folder / "about.json").write_text(json.dumps(data))

    return forge


def full_marks(data: dict[str, Any]) -> None:
    data["score"] = data["exercises"][0]["score"] = 4


def a_link(folder: Path) -> None:
    path = folder / "about.json"
    path.rename(folder / "real.json")
    path.symlink_to(folder / "real.json")


@pytest.mark.parametrize(("forge", "says"), [
    pytest.param(result(full_marks), "its points in running_mean", id="a score that its checks do not add up to"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(score=1)), "its points in running_mean", id="points for a check that failed"),
    pytest.param(result(lambda r: (full_marks(r), r["exercises"][0]["checks"][0].update(score=1))), "its points in running_mean", id="full marks, and a check that failed"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][1].update(score=0)), "its points in running_mean", id="a check that passed without its points"),
    pytest.param(result(lambda r: (r.update(score=2.5), r["exercises"][0].update(score=2.5), r["exercises"][0]["checks"][1].update(score=0.5))), "its points in running_mean", id="a part of a check's points"),
    pytest.param(result(lambda r: (r.update(score=39, max_score=40), r["exercises"][0].update(score=39, max_score=40), r["exercises"][0]["checks"][1].update(score=37, max_score=37))), "its points in running_mean", id="more points than the course gives"),
    pytest.param(result(lambda r: (r.update(score=None), r["exercises"][0].update(score=None))), "its points in running_mean", id="no score where every check ran"),
    pytest.param(result(lambda r: r.update(score=None)), "its points", id="no total where every exercise has points"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(outcome="skipped")), "its points in running_mean", id="points where a check was not run"),
    pytest.param(result(lambda r: r.update(score=1e400)), "its points", id="an endless score"),
    pytest.param(result(lambda r: r.update(score=float("nan"))), "schema", id="no number"),
    pytest.param(result(lambda r: r.update(student="ben")), "of another submission", id="another student's"),
    pytest.param(result(lambda r: r.update(assignment="medians")), "its assignments", id="another assignment's"),
    pytest.param(result(lambda r: r.update(device="cuda")), "of another submission", id="another device's"),
    pytest.param(result(lambda r: r.update(isolation="process")), "not graded in the box", id="graded without a box"),
    pytest.param(result(lambda r: r["exercises"].append(r["exercises"][0])), "its exercises", id="an exercise twice"),
    pytest.param(result(lambda r: r["exercises"].clear()), "its exercises", id="no exercise"),
    pytest.param(result(lambda r: r["exercises"][0].update(checks=r["exercises"][0]["checks"] + [{**r["exercises"][0]["checks"][0], "max_score": 0}] * 300)), "its points", id="three hundred checks"),
    pytest.param(result(lambda r: r.update(more=1)), "schema", id="a field that no result has"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(outcome="great")), "schema", id="an outcome that none is"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 1, "edit": "a → b"}])), "its lines", id="a line with its edit"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": n} for n in (1, 2, 3)])), "its lines", id="three lines"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 10**7}])), "its lines", id="a line that no file has"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 0}])), "schema", id="line 0 told"),
    pytest.param(result(lambda r: r["exercises"][0].update(note="x" * 2**22)), "too large", id="four megabytes of text"),
    pytest.param(lambda f: (f / "about.json").write_text("[" * 10**5), "schema", id="brackets that never close"),
    pytest.param(lambda f: (f / "about.json").write_bytes(b"\xff\0"), "schema", id="bytes that are no text"),
    pytest.param(lambda f: (f / "about.json").unlink(), "missing", id="a result that is not there"),
    pytest.param(a_link, "no regular file", id="a link"),
    pytest.param(about(lambda a: a.update(head="b" * 40)), "of another commit", id="another commit's"),
    pytest.param(about(lambda a: a.update(student="../ben")), "of another commit", id="a path in place of a student"),
    pytest.param(about(lambda a: a["results"].append(a["results"][0])), "its assignments", id="an assignment twice"),
    pytest.param(result(lambda r: r.update(assignment="../../etc/passwd")), "its assignments", id="a path in place of an assignment"),
    pytest.param(about(lambda a: a.update(started={"running_mean": "../../../etc/passwd"})), "what is started", id="a path in place of an attempt"),
    pytest.param(about(lambda a: a.update(started={"medians": "01_running_mean.py"})), "what is started", id="another exercise started"),
    pytest.param(about(lambda a: a.update(device="quantum")), "schema", id="a device that none is"),
])  # fmt: skip
def test_a_forged_artifact_is_refused(tiny, collected, folder, forge, says):
    forge(folder)
    with pytest.raises(ArtifactError, match="is not what grading writes") as error:
        read_artifact(folder, tiny, collected.student, collected.head)
    assert says in str(error.value)


Report = Callable[[], str]


def hand_on(folder: Path, results: list[Result]) -> None:
    started = {"running_mean": "01_running_mean.py"}
    write_artifact(folder / "cpu", Artifact(student="ada", head="a" * 40, results=tuple(results), started=started))


@pytest.fixture
def environment(service: Service, tmp_path: Path) -> dict[str, str]:
    """That of the step, after a CPU run that went well and with no GPU runner."""
    event = {
        "pull_request": {"number": 7, "head": {"sha": "a" * 40}, "user": {"login": "ada"}},
        "repository": {"full_name": "school/class"},
    }
    (tmp_path / "event.json").write_text(json.dumps(event))
    service.tokens["t"] = {"pull-requests": "write", "checks": "write"}
    service.heads[7] = "a" * 40
    return {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_API_URL": f"{service.address}/api",
        "GITHUB_TOKEN": "t",
        "CPU_RESULT": "success",
        "GPU_RESULT": "skipped",
    }


@pytest.fixture
def report(tiny: Course, environment: dict[str, str], submitted: Path, tmp_path: Path) -> Report:
    """What the step says that reports on the artifacts of a CPU job and a GPU job."""
    return lambda: write_report(tiny, environment, submitted, tmp_path / "cpu", tmp_path / "gpu")


def test_the_summary_the_comment_and_the_check_run_say_the_same(service, collected, make_result, tmp_path, report):
    hand_on(tmp_path, [make_result("failed", evidence="no")])
    said = report()
    assert said == "Reported 3 / 4 (failure)."
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("## Averages: 3 / 4\n")
    (comment,) = service.comments_on(7)
    assert comment.split("\n", 1)[1] == summary.rstrip("\n")
    (run,) = service.check_runs
    assert run["output"]["summary"] == summary.rstrip("\n")
    assert len(run["output"]["annotations"]) == 1


def test_an_older_commit_leaves_the_comment_to_the_newest(service, collected, make_result, tmp_path, report):
    hand_on(tmp_path, [make_result("failed", evidence="no")])
    service.heads[7] = "b" * 40
    report()
    assert service.comments_on(7) == []
    (run,) = service.check_runs
    assert run["head_sha"] == "a" * 40
    assert (tmp_path / "summary.md").read_text().startswith("## Averages: 3 / 4\n")


def test_results_that_cannot_be_are_not_shown_and_the_job_fails(service, collected, make_result, tmp_path, report):
    forged = make_result().model_copy(update={"score": 400.0, "max_score": 400.0})
    hand_on(tmp_path, [forged])
    with pytest.raises(ArtifactError, match="is not what grading writes"):
        report()
    (comment,) = service.comments_on(7)
    assert "## Not graded" in comment
    assert "a fault of the grader" in comment
    assert "400" not in comment
    assert service.check_runs[0]["conclusion"] == "neutral"


def test_a_gpus_results_that_cannot_be_leave_the_cpus(service, environment, collected, make_result, tmp_path, report):
    environment |= {"GPU_RUNNER": "gpu-box", "GPU_RESULT": "success"}
    hand_on(tmp_path, [make_result()])
    with pytest.raises(ArtifactError, match=r"about\.json is not what grading writes \(it is missing"):
        report()
    (comment,) = service.comments_on(7)
    assert "## Averages: 4 / 4" in comment
    assert "**On a GPU:** The run did not finish" in comment


def test_a_check_run_that_is_refused_does_not_cost_the_comment(service, collected, make_result, tmp_path, report):
    service.tokens["t"] = {"pull-requests": "write"}
    hand_on(tmp_path, [make_result()])
    with pytest.raises(ServiceError, match=r"check-runs was refused \(403\)"):
        report()
    assert "## Averages: 4 / 4" in service.comments_on(7)[0]


def test_where_nothing_was_collected_the_student_is_told_where_to_look(tiny, service, environment, tmp_path):
    nothing = tmp_path / "nothing"
    said = write_report(tiny, environment, nothing, nothing, nothing)
    assert said == "Reported Not graded (neutral)."
    assert "“Collect the exercise files” of job `cpu` says why" in service.comments_on(7)[0]


def test_what_a_job_that_failed_wrote_is_not_looked_at(service, environment, collected, make_result, tmp_path, report):
    hand_on(tmp_path, [make_result()])
    environment["CPU_RESULT"] = "failure"
    assert report() == ("Reported Not graded (neutral).")
    assert "4 / 4" not in service.comments_on(7)[0]


INSTALLED = "annotated_doc annotated_types click manyheads markdown_it mdurl pydantic pydantic_core pygments rich shellingham typer typing_extensions typing_inspection urllib3 yaml"
GUARD = f"""
import sys

class Guard:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and not top.startswith("_sysconfigdata") and top not in {INSTALLED.split()!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Guard())
from manyheads.cli import main
sys.argv = ["course", "ci", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("command", ["collect", "report"])
def test_the_job_that_reports_needs_no_more_than_it_installs(tiny: Course, tmp_path: Path, command: str) -> None:
    workflow = (Path(__file__).parents[2] / ".github" / "workflows" / "grade.yml").read_text()
    assert "install --quiet --constraint constraints.txt pydantic PyYAML rich typer urllib3\n" in workflow
    assert "sh tools/install-engine python\n" in workflow
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    (tmp_path / "collected.json").write_text("{}")
    arguments = [command, "--course", str(tiny.root), *(["--submitted", str(tmp_path)] if command == "report" else [])]
    done = subprocess.run(
        [sys.executable, "-c", GUARD, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("course: GITHUB_EVENT_PATH is not set")  # as far as it gets without a pull request


def test_files_of_another_commit_are_not_reported_on(service, collected, submitted, report):
    other = collected.model_copy(update={"head": "b" * 40})
    (submitted / "collected.json").write_text(other.model_dump_json())
    with pytest.raises(CourseFault, match="is of another commit"):
        report()
    assert (service.comments, service.check_runs) == ([], [])


NO_GPU = "none"
COMMIT = "0123456789abcdef" * 2 + "01234567"


MEAN = {("averages", "running_mean")}


@pytest.mark.parametrize(("cpu", "gpu", "unwritten", "says"), [
    pytest.param(["passed"], None, (), ("success", "4 / 4"), id="all right"),
    pytest.param(["failed", "error"], None, (), ("failure", "2 / 4"), id="half of it"),
    pytest.param(["missing"] * 4, None, MEAN, ("success", "0 / 4"), id="not started"),
    pytest.param(["missing"] * 4, None, {("medians", "running_mean")}, ("failure", "0 / 4"), id="of another, not started"),
    pytest.param(["passed"], ["failed"], (), ("failure", "4 / 4"), id="wrong on the GPU alone"),
])  # fmt: skip
def test_the_verdict_is_the_score_and_whether_all_that_is_started_is_right(make_result, cpu, gpu, unwritten, says):
    on_gpu = [make_result(*gpu)] if gpu else NO_GPU
    assert verdict([make_result(*cpu)], on_gpu, frozenset(unwritten)) == says


@pytest.mark.parametrize(
    ("outcome", "conclusion"),
    [("failed", "failure"), ("error", "failure"), ("skipped", "success"), ("passed", "success")],
)
def test_so_does_what_only_a_gpu_can_show_and_gives_no_points(make_result, outcome, conclusion):
    extra = CheckResult(id="memory", title="holds little", outcome=outcome, score=0, max_score=0)
    right = make_result()
    (exercise,) = right.exercises
    on_gpu = right.model_copy(
        update={"exercises": (exercise.model_copy(update={"checks": (*exercise.checks, extra)}),), "device": "cuda"}
    )
    assert verdict([right], [on_gpu], frozenset()) == (conclusion, "4 / 4")


@pytest.mark.parametrize("ended", ["failure", "cancelled", "skipped"])
def test_a_run_that_did_not_end_well_is_not_graded_and_is_not_the_students_fault(tiny: Course, ended: str) -> None:
    run = run_of("Grading", ended, None)
    assert verdict(run, NO_GPU, frozenset()) == ("neutral", "Not graded")
    said = body(tiny, run, NO_GPU, (), frozenset(), COMMIT)
    assert said == f"## Not graded\n\nGrading {ENDED[ended]}\n\n**On a GPU:** {NO_GPU}"


def test_nothing_started_says_what_is_next(tiny: Course) -> None:
    said = body(tiny, [], NO_GPU, (), frozenset(), COMMIT)
    assert said.startswith("## Nothing is started\n")
    assert "`make check`" in said
    assert "is not there under its own name" in said  # whoever renamed a file is told what to look at
    assert verdict([], NO_GPU, frozenset()) == ("neutral", "Nothing is started")


def test_files_that_were_not_taken_are_named(tiny: Course, make_result: MakeResult) -> None:
    said = body(tiny, [make_result()], NO_GPU, ("a.py is a symbolic link.",), frozenset(), COMMIT)
    assert "These files are not graded:\n\n<pre>\na.py is a symbolic link.\n</pre>" in said


def test_a_comment_that_grows_too_long_keeps_its_tables(tiny: Course, make_result: MakeResult) -> None:
    results = [make_result("failed", evidence=f"{i} " + "x " * 150) for i in range(300)]
    said = body(tiny, results, results, (), frozenset(), COMMIT)
    assert len(said.encode()) <= LONGEST
    assert said.startswith("## Averages: 900 / 1200\n")
    assert said.endswith("… (cut)")
    assert "<pre>" not in said


def test_a_comment_that_grows_too_long_takes_no_line_of_a_students_for_a_table(tiny, make_result):
    raised = "Code cell 1 did not run to its end: it raised ValueError: "
    forged = [raised.ljust(84, "a") + f" {line}" for line in ("## Averages: 4 / 4", "| ✓ | Running mean | 4 / 4 |")]
    results = [make_result("failed", evidence="x " * 150, note=forged[i % 2]) for i in range(300)]
    said = body(tiny, results, results, (), frozenset(), COMMIT)
    assert "| ✗ |" in said
    assert "✓" not in said
    assert "## Averages: 4 / 4" not in said.splitlines()


def why(outcome: str, label: str, cpu: list[Result] | str, refused: tuple[str, ...] = ()) -> str:
    run = gpu_run(outcome, label, None, cpu, refused)
    assert isinstance(run, str)
    return run


@pytest.mark.parametrize(("outcomes", "refused", "says"), [
    pytest.param(("crashed",), (), "Not run. An attempt (running_mean) crashed on the CPU.", id="a crash"),
    pytest.param(("passed", "timeout"), (), "Not run. An attempt (running_mean) ran out of time on the CPU.", id="an endless loop"),
    pytest.param(("failed",) * 4, (), "Not run. Nothing works on the CPU yet.", id="no point"),
    pytest.param(("passed",), ("a link",), "Not run. A file could not be taken.", id="a file that was refused"),
])  # fmt: skip
def test_an_attempt_that_does_not_behave_on_the_cpu_is_not_run_on_the_gpu(make_result, outcomes, refused, says):
    results = [make_result(*outcomes)]
    assert why("skipped", "gpu-box", results, refused) == says
    assert why_not_on_a_gpu(results, refused) == says.removeprefix("Not run. ")


def test_one_that_is_wrong_and_behaves_is_run_and_nothing_started_is_not(make_result: MakeResult) -> None:
    assert why_not_on_a_gpu([make_result("failed", "error", "skipped")], ()) == ""
    assert why_not_on_a_gpu([], ()) == "Nothing is started."


def test_who_has_no_runner_or_was_not_approved_and_a_run_that_broke_off_are_told(make_result: MakeResult) -> None:
    cpu = [make_result()]
    assert "the repository variable GPU_RUNNER is empty" in why("skipped", "", cpu)
    assert why("skipped", "gpu-box", cpu) == "Not run. Nobody approved it."
    assert why("failure", "gpu-box", cpu) == f"The run {ENDED['failure']}"
    assert why("success", "gpu-box", cpu) == f"The run {ENDED['failure']}"  # and its results were not believed
    assert why("skipped", "gpu-box", "none") == "Not run: grading on a CPU comes first."


def test_its_results_stand_below_those_of_the_cpu(tiny: Course, make_result: MakeResult) -> None:
    gpu = gpu_run("success", "gpu-box", Artifact(results=(make_result("failed"),)), [make_result()], ())
    said = body(tiny, [make_result()], gpu, (), frozenset(), COMMIT)
    assert said.index("## Averages: 4 / 4") < said.index("## On the GPU runner \\(cpu\\): 3 / 4")


SCRIPT = "exercises/averages/01_running_mean.py"
IN_NOTEBOOK = {"running_mean": "01_running_mean.ipynb"}
SOURCE = "import torch\n\n\ndef helper(x):\n    return x\n\n\ndef running_mean(x):\n    return helper(y)\n"


def annotate(course: Course, results: list[Result], started: dict[str, str], submitted: Path) -> list[dict]:
    return annotated(course, Artifact(results=tuple(results), started=started), submitted)


@pytest.fixture
def hand_in(tmp_path: Path) -> Callable[..., Path]:
    """Put files where `course ci collect` puts them."""

    def put(**files: str) -> Path:
        for end, text in files.items():
            path = tmp_path / "ada" / "averages" / f"01_running_mean.{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return put


def test_the_line_is_the_one_that_the_evidence_names(tiny, make_result, hand_in):
    result = make_result("error", evidence="raised NameError on line 9: a name is used that is defined nowhere")
    (found,) = annotate(tiny, [result], STARTED, hand_in(py=SOURCE))
    assert found == {
        "path": SCRIPT,
        "start_line": 9,
        "end_line": 9,
        "annotation_level": "warning",
        "title": "01 The running mean: 3 / 4",
        "message": f"{'does thing 0':<64}       0 / 1\n  raised NameError on line 9: a name is used that is defined nowhere\n"
        f"{'3 checks pass':<64}       3 / 3",
    }


def test_the_line_that_is_proved_to_be_wrong_comes_before_the_one_that_the_evidence_names(tiny, make_result, hand_in):
    result = make_result("error", evidence="raised NameError on line 9")
    exercise = result.exercises[0].model_copy(update={"lines": (ProvedLine(line=5, edit="secret → edit"),)})
    (found,) = annotate(tiny, [result.model_copy(update={"exercises": (exercise,)})], STARTED, hand_in(py=SOURCE))
    assert found["start_line"] == 5
    assert "Not right yet (line 5)." in found["message"]
    assert "secret" not in found["message"]
    exercise = result.exercises[0].model_copy(update={"lines": (ProvedLine(line=4000),)})
    (found,) = annotate(tiny, [result.model_copy(update={"exercises": (exercise,)})], STARTED, hand_in(py=SOURCE))
    assert found["start_line"] == 9, "a line beyond the end of the file is not believed"


@pytest.mark.parametrize("evidence", [
    pytest.param("position 3 differs", id="no line"),
    pytest.param("raised ValueError on line 10", id="a line beyond the end"),
    pytest.param("raised ValueError on line 0", id="line 0"),
    pytest.param("raised ValueError on line 99999999999", id="a line that is no number for long"),
    pytest.param("online 2 of them", id="a word that only ends like it"),
])  # fmt: skip
def test_without_one_it_is_the_definition_that_the_exercise_asks_for(tiny, make_result, hand_in, evidence):
    (found,) = annotate(tiny, [make_result("failed", evidence=evidence)], STARTED, hand_in(py=SOURCE))
    assert SOURCE.splitlines()[found["start_line"] - 1] == "def running_mean(x):"


def test_a_file_that_defines_nothing_is_pointed_at_from_its_first_line(tiny, make_result, hand_in):
    (found,) = annotate(tiny, [make_result("error", evidence="nothing")], STARTED, hand_in(py="x = 1\n"))
    assert found["start_line"] == 1


def test_right_attempts_and_untouched_stubs_get_none(tiny, make_result, hand_in):
    assert annotate(tiny, [make_result()], STARTED, hand_in(py=SOURCE)) == []
    assert annotate(tiny, [make_result("error")], {}, hand_in(py=SOURCE)) == []


def test_a_notebooks_line_is_the_one_of_its_file(tiny, make_result, hand_in):
    notebook = jupytext.read(tiny.root / SCRIPT.replace(".py", ".ipynb"))
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = 'def helper(x):\n    return x.means()\n\n\ndef running_mean(x):\n    y = "a \\"b\\" \\\\ ü"\n    return x.means()\n\n\nx = 1'
    text = jupytext.writes(notebook, fmt="ipynb")
    code = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    first, line = (i for i, text in enumerate(code.splitlines(), 1) if text == "    return x.means()")
    folder = hand_in(ipynb=text)
    (found,) = annotate(
        tiny, [make_result("error", evidence=f"raised AttributeError on line {line}")], IN_NOTEBOOK, folder
    )
    assert found["path"] == SCRIPT.replace(".py", ".ipynb")
    assert json.loads(text.splitlines()[found["start_line"] - 1].strip().rstrip(",")) == "    return x.means()\n"
    (earlier,) = annotate(
        tiny, [make_result("error", evidence=f"raised AttributeError on line {first}")], IN_NOTEBOOK, folder
    )
    assert earlier["start_line"] == found["start_line"] - 5
    place = proved_line(read_file(folder / "ada/averages/01_running_mean.ipynb", 400), line).place
    assert re.fullmatch(r"line 7 of code cell [1-9]", place)
    (named,) = annotate(tiny, [make_result("error", evidence=f"raised AttributeError on {place}")], IN_NOTEBOOK, folder)
    assert named["start_line"] == found["start_line"]
    (found,) = annotate(tiny, [make_result("failed", evidence="wrong")], IN_NOTEBOOK, folder)
    assert '"def running_mean(x):\\n"' in text.splitlines()[found["start_line"] - 1]


def test_a_notebook_of_brackets_alone_still_gets_its_remark(tiny, make_result, hand_in):
    """It once ended the whole report: neither a comment nor a check run was written."""
    result = make_result("error", evidence="This is not a notebook that can be read.")
    (found,) = annotate(tiny, [result], IN_NOTEBOOK, hand_in(ipynb='{"cells":\n' + "[" * 200_000))
    assert found["start_line"] == 1


def test_its_text_is_printable_and_bounded(tiny: Course, make_result: MakeResult, hand_in: Callable[..., Path]) -> None:
    result = make_result("failed", evidence="a\x1b[31m\u202eb\n::error::x" + "y" * 9000)
    (found,) = annotate(tiny, [result], STARTED, hand_in(py=SOURCE))
    message = found["message"]
    assert all(c.isprintable() or c == "\n" for c in message)
    assert message.splitlines()[1].startswith("  a [31m b ::error::xyyy")
    assert len(message) < 1000


def test_what_is_not_graded_says_that_and_no_points(tiny, make_result, hand_in):
    (found,) = annotate(tiny, [make_result("skipped", "failed")], STARTED, hand_in(py=SOURCE))
    assert found["title"] == "01 The running mean: not graded"
    assert found["message"].startswith("Not graded: the grader itself failed here. That is not your fault.")
    assert "/" not in found["message"]
