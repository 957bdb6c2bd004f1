"""Everything that is written about a pull request, put together."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.names import Device
from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.platforms.github import ServiceError
from manyheads.platforms.grade_pull_request import Artifact, ArtifactError, write_artifact
from manyheads.platforms.report_pull_request import write_report
from manyheads.result import Result
from tests.workflows.hosted.service import Service

MakeResult = Callable[..., Result]
Report = Callable[[], str]
STARTED = {("averages", "running_mean"): "01_running_mean.py"}


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
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([make_result("failed", evidence="no")], STARTED))
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
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([make_result("failed", evidence="no")], STARTED))
    service.heads[7] = "b" * 40
    report()
    assert service.comments_on(7) == []
    (run,) = service.check_runs
    assert run["head_sha"] == "a" * 40
    assert (tmp_path / "summary.md").read_text().startswith("## Averages: 3 / 4\n")


def test_results_that_cannot_be_are_not_shown_and_the_job_fails(service, collected, make_result, tmp_path, report):
    forged = make_result().model_copy(update={"score": 400.0, "max_score": 400.0})
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([forged], STARTED))
    with pytest.raises(ArtifactError, match="is not what grading writes"):
        report()
    (comment,) = service.comments_on(7)
    assert "## Not graded" in comment
    assert "400" not in comment
    assert service.check_runs[0]["conclusion"] == "neutral"


def test_a_gpus_results_that_cannot_be_leave_the_cpus(service, environment, collected, make_result, tmp_path, report):
    environment |= {"GPU_RUNNER": "gpu-box", "GPU_RESULT": "success"}
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([make_result()], STARTED))
    with pytest.raises(ArtifactError, match=r"about\.json is not what grading writes \(it is missing"):
        report()
    (comment,) = service.comments_on(7)
    assert "## Averages: 4 / 4" in comment
    assert "**On a GPU:** The run did not finish" in comment


def test_a_check_run_that_is_refused_does_not_cost_the_comment(service, collected, make_result, tmp_path, report):
    service.tokens["t"] = {"pull-requests": "write"}
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([make_result()], STARTED))
    with pytest.raises(ServiceError, match=r"check-runs was refused \(403\)"):
        report()
    assert "## Averages: 4 / 4" in service.comments_on(7)[0]


def test_where_nothing_was_collected_the_student_is_told_where_to_look(tiny, service, environment, tmp_path):
    nothing = tmp_path / "nothing"
    said = write_report(tiny, environment, nothing, nothing, nothing)
    assert said == "Reported Not graded (neutral)."
    assert "“Collect the exercise files” of job `cpu` says why" in service.comments_on(7)[0]


def test_what_a_job_that_failed_wrote_is_not_looked_at(service, environment, collected, make_result, tmp_path, report):
    write_artifact(tmp_path / "cpu", collected, Device.CPU, Artifact([make_result()], STARTED))
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
    (tmp_path / "collected.json").write_text('{"student": "ada", "number": 7, "head": "a", "refused": []}')
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
