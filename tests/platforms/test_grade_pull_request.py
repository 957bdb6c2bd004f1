"""A pull request: graded in the box, handed on as data that anybody could have written, reported,
with remarks on lines.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jupytext
import pytest

from manyheads.box.level_and_device_names import Device, Level
from manyheads.course import Course
from manyheads.files import CourseFault
from manyheads.judge.judge_process import Graded, GradePlan
from manyheads.platforms import grade_pull_request as grade_room
from manyheads.platforms.grade_pull_request import (
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
from manyheads.platforms.grade_pull_request import annotate as annotated
from manyheads.platforms.read_pull_request import CollectedCommits, ServiceError
from manyheads.report.markdown import LONGEST
from manyheads.result import ProvedLine, Result
from manyheads.submission import Submission, proved_line, read_file
from tests.workflows.hosted.service import Service

MakeResult = Callable[..., Result]
COLLECTED = CollectedCommits(
    repository="school/class", student="ada", number=7, head="a" * 40, refused=()
)
SCRIPT, NOTEBOOK = (
    "exercises/averages/01_running_mean.py",
    "exercises/averages/01_running_mean.ipynb",
)
STARTED, IN_NOTEBOOK = (
    {"running_mean": "01_running_mean.py"},
    {"running_mean": "01_running_mean.ipynb"},
)


def with_exercise(result: Result, **changes: object) -> Result:
    """The result with its one exercise changed."""
    (exercise,) = result.exercises
    return result.model_copy(update={"exercises": (exercise.model_copy(update=changes),)})


@pytest.fixture
def submissions_folder(tmp_path: Path) -> Path:
    """What `course ci collect` writes, with an attempt that is started."""
    folder = tmp_path / "submitted"
    (folder / "ada" / "averages").mkdir(parents=True)
    (folder / "ada" / "averages" / "01_running_mean.py").write_text("x = 1\n")
    (folder / "collected.json").write_text(COLLECTED.model_dump_json())
    return folder


@pytest.fixture
def fake_judges(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[GradePlan]]:
    """Let every judge find this. Returns the plans that judges get from then on."""

    def finds(result: Result | None, *faults: str) -> list[GradePlan]:
        plans: list[GradePlan] = []

        class Finds:
            def __init__(self, plan: GradePlan) -> None:
                plans.append(plan)

            def grade(self, submission: Submission, only: Sequence[str]) -> Graded:
                assert result is not None, "no judge was to be asked"
                return Graded(submission, result, faults)

            def close(self) -> None:
                """There is nothing to end."""

        monkeypatch.setattr(grade_room, "SteadyJudge", Finds)
        return plans

    return finds


def test_nothing_started_needs_no_box(tiny, submissions_folder, fake_judges):
    plans, stub = fake_judges(None), (tiny.root / SCRIPT).read_text(encoding="utf-8")
    (submissions_folder / "ada" / "averages" / "01_running_mean.py").write_text(
        "# read it\n" + stub, encoding="utf-8"
    )
    assert (
        grade_collected(tiny, COLLECTED, submissions_folder, Device.CPU, submissions_folder).results
        == ()
    )
    assert plans == []


def test_the_box_is_of_namespaces_no_other_folder_is_read_and_a_fault_is_in_the_jobs_log(
    tiny, submissions_folder, make_result, fake_judges, capsys
):
    (submissions_folder / "ben" / "averages").mkdir(parents=True)
    (submissions_folder / "ben" / "averages" / "01_running_mean.py").write_text("x = 2\n")
    plans = fake_judges(make_result(), "values: x")
    assert grade_collected(
        tiny, COLLECTED, submissions_folder, Device.CUDA, submissions_folder
    ).results == (make_result(),)
    assert [(plan.level, plan.device, plan.seed) for plan in plans] == [
        (Level.NAMESPACES, Device.CUDA, 0)
    ]
    assert (
        capsys.readouterr().err
        == "course: a fault of the grader's own: values: x. Next: course verify\n"
    )


def test_what_has_not_changed_since_the_last_push_is_not_graded_again(
    tiny, submissions_folder, make_result, fake_judges, tmp_path
):
    out, attempt = tmp_path / "out", submissions_folder / "ada" / "averages" / "01_running_mean.py"

    def push(source: str, device: Device = Device.CPU) -> int:
        """How often it was graded."""
        attempt.write_text(source)
        old_count = len(plans)
        graded = grade_collected(tiny, COLLECTED, submissions_folder, device, out)
        assert [result.score for result in graded.results] == [score]
        write_artifact(out, graded)
        return len(plans) - old_count

    plans, score = fake_judges(make_result("failed")), 3
    assert [push("x = 1\n"), push("x = 1\n"), push("x = 2\n"), push("x = 2\n")] == [1, 0, 1, 0]
    plans, score = fake_judges(make_result("skipped")), None
    assert [push("x = 3\n"), push("x = 3\n")] == [1, 1], "what the grader failed at is tried again"
    assert push("x = 3\n", Device.CUDA) == 1, "what another device found is not what this one finds"
    (out / "about.json").write_text("{}")
    assert push("x = 3\n") == 1


def test_it_tells_lines_and_never_the_edits_that_prove_them(
    tiny, submissions_folder, make_result, fake_judges
):
    fake_judges(
        with_exercise(
            make_result("failed"),
            lines=(ProvedLine(line=7, edit="secret → edit"), ProvedLine(line=9)),
        )
    )
    (graded,) = grade_collected(
        tiny, COLLECTED, submissions_folder, Device.CPU, submissions_folder
    ).results
    assert graded.exercises[0].lines == (ProvedLine(line=7), ProvedLine(line=9))


Forge = Callable[[Path], object]


def artifact_of(*results: Result, device: Device = Device.CPU) -> Artifact:
    started = STARTED if results else {}
    return Artifact(student="ada", head="a" * 40, device=device, results=results, started=started)


@pytest.fixture
def folder(make_result: MakeResult, tmp_path: Path) -> Path:
    """The artifact of a graded pull request."""
    write_artifact(tmp_path / "results", artifact_of(make_result("failed", evidence="no")))
    return tmp_path / "results"


def on_a_gpu(result: Result, **check: Any) -> Result:
    """The same with a check more."""
    extra_check = result.exercises[0].checks[0].model_copy(update={"id": "autocast", **check})
    checks = (*result.exercises[0].checks, extra_check)
    points = {
        "score": sum(entry.score for entry in checks),
        "max_score": sum(entry.max_score for entry in checks),
    }
    return with_exercise(result, checks=checks, **points).model_copy(
        update={"device": "cuda", **points}
    )


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda make: artifact_of(make("failed", evidence="no")), id="what is wrong"),
        pytest.param(lambda make: artifact_of(make("skipped")), id="what is not graded"),
        pytest.param(lambda make: artifact_of(), id="nothing started"),
        pytest.param(
            lambda make: artifact_of(on_a_gpu(make()), device=Device.CUDA),
            id="more than the course gives points for",
        ),
    ],
)
def test_what_was_written_is_read(tiny, make_result, tmp_path, make):
    written = make(make_result)
    write_artifact(tmp_path / "results", written)
    assert read_artifact(tmp_path / "results", tiny, "ada", "a" * 40) == written


def edit_about(change: Callable[[dict[str, Any]], object]) -> Forge:
    def forge(folder: Path) -> None:
        data = json.loads((folder / "about.json").read_text())
        change(data)
        (folder / "about.json").write_text(json.dumps(data))

    return forge


def result(change: Callable[[dict[str, Any]], object]) -> Forge:
    return edit_about(lambda data: change(data["results"][0]))


def full_marks(data: dict[str, Any]) -> None:
    data["score"] = data["exercises"][0]["score"] = 4


def a_link(folder: Path) -> None:
    (folder / "about.json").rename(folder / "real.json")
    (folder / "about.json").symlink_to(folder / "real.json")


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        pytest.param(
            result(full_marks),
            "its points in running_mean",
            id="a score that its checks do not add up to",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0]["checks"][0].update(score=1)),
            "its points in running_mean",
            id="points for a check that failed",
        ),
        pytest.param(
            result(lambda r: (full_marks(r), r["exercises"][0]["checks"][0].update(score=1))),
            "its points in running_mean",
            id="full marks, and a check that failed",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0]["checks"][1].update(score=0)),
            "its points in running_mean",
            id="a check that passed without its points",
        ),
        pytest.param(
            result(
                lambda r: (
                    r.update(score=2.5),
                    r["exercises"][0].update(score=2.5),
                    r["exercises"][0]["checks"][1].update(score=0.5),
                )
            ),
            "its points in running_mean",
            id="a part of a check's points",
        ),
        pytest.param(
            result(
                lambda r: (
                    r.update(score=39, max_score=40),
                    r["exercises"][0].update(score=39, max_score=40),
                    r["exercises"][0]["checks"][1].update(score=37, max_score=37),
                )
            ),
            "its points in running_mean",
            id="more points than the course gives",
        ),
        pytest.param(
            result(lambda r: (r.update(score=None), r["exercises"][0].update(score=None))),
            "its points in running_mean",
            id="no score where every check ran",
        ),
        pytest.param(
            result(lambda r: r.update(score=None)),
            "its points",
            id="no total where every exercise has points",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0]["checks"][0].update(outcome="skipped")),
            "its points in running_mean",
            id="points where a check was not run",
        ),
        pytest.param(result(lambda r: r.update(score=1e400)), "its points", id="an endless score"),
        pytest.param(result(lambda r: r.update(score=float("nan"))), "schema", id="no number"),
        pytest.param(
            result(lambda r: r.update(student="ben")),
            "of another submission",
            id="another student's",
        ),
        pytest.param(
            result(lambda r: r.update(assignment="medians")),
            "its assignments",
            id="another assignment's",
        ),
        pytest.param(
            result(lambda r: r.update(device="cuda")),
            "of another submission",
            id="another device's",
        ),
        pytest.param(
            result(lambda r: r.update(isolation="process")),
            "not graded in the box",
            id="graded without a box",
        ),
        pytest.param(
            result(lambda r: r["exercises"].append(r["exercises"][0])),
            "its exercises",
            id="an exercise twice",
        ),
        pytest.param(result(lambda r: r["exercises"].clear()), "its exercises", id="no exercise"),
        pytest.param(
            result(
                lambda r: r["exercises"][0].update(
                    checks=r["exercises"][0]["checks"]
                    + [{**r["exercises"][0]["checks"][0], "max_score": 0}] * 300
                )
            ),
            "its points",
            id="three hundred checks",
        ),
        pytest.param(result(lambda r: r.update(more=1)), "schema", id="a field that no result has"),
        pytest.param(
            result(lambda r: r["exercises"][0]["checks"][0].update(outcome="great")),
            "schema",
            id="an outcome that none is",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0].update(lines=[{"line": 1, "edit": "a → b"}])),
            "its lines",
            id="a line with its edit",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0].update(lines=[{"line": n} for n in (1, 2, 3)])),
            "its lines",
            id="three lines",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0].update(lines=[{"line": 10**7}])),
            "its lines",
            id="a line that no file has",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0].update(lines=[{"line": 0}])),
            "schema",
            id="line 0 told",
        ),
        pytest.param(
            result(lambda r: r["exercises"][0].update(note="x" * 2**22)),
            "too large",
            id="four megabytes of text",
        ),
        pytest.param(
            lambda f: (f / "about.json").write_text("[" * 10**5),
            "schema",
            id="brackets that never close",
        ),
        pytest.param(
            lambda f: (f / "about.json").write_bytes(b"\xff\0"),
            "schema",
            id="bytes that are no text",
        ),
        pytest.param(
            lambda f: (f / "about.json").unlink(), "missing", id="a result that is not there"
        ),
        pytest.param(a_link, "no regular file", id="a link"),
        pytest.param(
            edit_about(lambda a: a.update(head="b" * 40)),
            "of another commit",
            id="another commit's",
        ),
        pytest.param(
            edit_about(lambda a: a.update(student="../ben")),
            "of another commit",
            id="a path in place of a student",
        ),
        pytest.param(
            edit_about(lambda a: a["results"].append(a["results"][0])),
            "its assignments",
            id="an assignment twice",
        ),
        pytest.param(
            result(lambda r: r.update(assignment="../../etc/passwd")),
            "its assignments",
            id="a path in place of an assignment",
        ),
        pytest.param(
            edit_about(lambda a: a.update(started={"running_mean": "../../../etc/passwd"})),
            "what is started",
            id="a path in place of an attempt",
        ),
        pytest.param(
            edit_about(lambda a: a.update(started={"medians": "01_running_mean.py"})),
            "what is started",
            id="another exercise started",
        ),
        pytest.param(
            edit_about(lambda a: a.update(device="quantum")), "schema", id="a device that none is"
        ),
    ],
)
def test_a_forged_artifact_is_refused(tiny, folder, forge, says):
    forge(folder)
    with pytest.raises(ArtifactError, match="is not what grading writes") as error:
        read_artifact(folder, tiny, "ada", "a" * 40)
    assert says in str(error.value)


@pytest.fixture
def environment(service: Service, tmp_path: Path) -> dict[str, str]:
    """That of the step, after a CPU run that went well and with no GPU runner."""
    details = {"number": 7, "head": {"sha": "a" * 40}, "user": {"login": "ada"}}
    event = {"pull_request": details, "repository": {"full_name": "school/class"}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    service.tokens["t"], service.heads[7] = {"pull-requests": "write", "checks": "write"}, "a" * 40
    files = {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    jobs = {"CPU_RESULT": "success", "GPU_RESULT": "skipped"}
    return {**files, **jobs, "GITHUB_API_URL": f"{service.address}/api", "GITHUB_TOKEN": "t"}


@pytest.fixture
def report(
    tiny: Course, environment: dict[str, str], submissions_folder: Path, tmp_path: Path
) -> Callable[..., str]:
    """What the step says that reports on the artifacts of a CPU job, which found this, and of a GPU
    job.
    """

    def report_on(*results: Result, folder: Path = submissions_folder) -> str:
        write_artifact(tmp_path / "cpu", artifact_of(*results))
        return write_report(tiny, environment, folder, tmp_path / "cpu", tmp_path / "gpu")

    return report_on


def test_an_older_commit_leaves_the_comment_to_the_newest(service, make_result, tmp_path, report):
    service.heads[7] = "b" * 40
    report(make_result("failed", evidence="no"))
    assert service.comments_on(7) == []
    assert [run["head_sha"] for run in service.check_runs] == ["a" * 40]
    assert (tmp_path / "summary.md").read_text().startswith("## Averages: 3 / 4\n")


FAULTS = pytest.raises(ArtifactError, match=r"about\.json is not what grading writes")


@pytest.mark.parametrize(
    ("setting", "found", "raises", "says", "silent"),
    [
        pytest.param(
            {},
            {"score": 400.0, "max_score": 400.0},
            FAULTS,
            ["## Not graded", "a fault of the grader"],
            "400",
            id="results that cannot be",
        ),
        pytest.param(
            {"GPU_RUNNER": "gpu-box", "GPU_RESULT": "success"},
            {},
            FAULTS,
            ["## Averages: 4 / 4", "**On a GPU:** The run did not finish"],
            "On the GPU runner",
            id="a GPU's artifact that is missing",
        ),
        pytest.param(
            {"CPU_RESULT": "failure"},
            {},
            nullcontext(),
            ["## Not graded"],
            "4 / 4",
            id="what a job that failed wrote",
        ),
    ],
)
def test_what_cannot_be_believed_is_not_shown(
    service, environment, make_result, report, setting, found, raises, says, silent
):
    environment |= setting
    with raises:
        report(make_result().model_copy(update=found))
    (comment,) = service.comments_on(7)
    assert [phrase for phrase in says if phrase not in comment] == []
    assert silent not in comment
    assert ("## Not graded" in comment) == (service.check_runs[0]["conclusion"] == "neutral")


def test_a_check_run_that_is_refused_does_not_cost_the_comment(
    service, environment, make_result, report
):
    service.tokens["t"] = {"pull-requests": "write"}
    with pytest.raises(ServiceError, match=r"check-runs was refused \(403\)"):
        report(make_result())
    assert "## Averages: 4 / 4" in service.comments_on(7)[0]


def test_files_of_another_commit_are_not_reported_on(service, submissions_folder, report):
    (submissions_folder / "collected.json").write_text(
        COLLECTED.model_copy(update={"head": "b" * 40}).model_dump_json()
    )
    with pytest.raises(CourseFault, match="is of another commit"):
        report()
    assert (service.comments, service.check_runs) == ([], [])


INSTALLED = (
    "annotated_doc annotated_types click manyheads markdown_it mdurl pydantic pydantic_core "
    "pygments rich ruamel shellingham typer typing_extensions typing_inspection urllib3 yaml"
)
GUARD = f"""
import sys

class Guard:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and not top.startswith("_sysconfigdata") and top not \
in {INSTALLED.split()!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Guard())
from manyheads.cli import main
sys.argv = ["course", "ci", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("command", ["collect", "report"])
def test_the_job_that_reports_needs_no_more_than_it_installs(
    tiny: Course, tmp_path: Path, command: str
) -> None:
    workflow = (Path(__file__).parents[2] / ".github" / "workflows" / "grade.yml").read_text()
    assert (
        "install --quiet --constraint constraints.txt pydantic PyYAML rich ruamel.yaml typer "
        "urllib3\n"
    ) in workflow
    assert "sh tools/install-engine python\n" in workflow
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    (tmp_path / "collected.json").write_text("{}")
    arguments = [
        command,
        "--course",
        str(tiny.root),
        *(["--submitted", str(tmp_path)] if command == "report" else []),
    ]
    completed = subprocess.run(
        [sys.executable, "-c", GUARD, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 2
    # as far as it gets without a pull request
    assert completed.stderr.startswith("course: GITHUB_EVENT_PATH is not set")


NO_GPU = "none"
MEAN = {("averages", "running_mean")}
RAISED = "Code cell 1 did not run to its end: it raised ValueError: ".ljust(84, "a")
FORGED = [f"{RAISED} ## Averages: 4 / 4", f"{RAISED} | ✓ | Running mean | 4 / 4 |"]


@pytest.mark.parametrize(
    ("cpu", "gpu", "unwritten", "says"),
    [
        pytest.param(["passed"], None, (), ("success", "4 / 4"), id="all right"),
        pytest.param(["failed", "error"], None, (), ("failure", "2 / 4"), id="half of it"),
        pytest.param(["missing"] * 4, None, MEAN, ("success", "0 / 4"), id="not started"),
        pytest.param(
            ["missing"] * 4,
            None,
            {("medians", "running_mean")},
            ("failure", "0 / 4"),
            id="of another, not started",
        ),
        pytest.param(["passed"], ["failed"], (), ("failure", "4 / 4"), id="wrong on the GPU alone"),
    ],
)
def test_the_verdict_is_the_score_and_whether_all_that_is_started_is_right(
    make_result, cpu, gpu, unwritten, says
):
    on_gpu = [make_result(*gpu)] if gpu else NO_GPU
    assert verdict([make_result(*cpu)], on_gpu, frozenset(unwritten)) == says


@pytest.mark.parametrize(
    ("outcome", "conclusion"),
    [("failed", "failure"), ("error", "failure"), ("skipped", "success"), ("passed", "success")],
)
def test_so_does_what_only_a_gpu_can_show_and_gives_no_points(make_result, outcome, conclusion):
    on_gpu = on_a_gpu(make_result(), outcome=outcome, score=0, max_score=0)
    assert verdict([make_result()], [on_gpu], frozenset()) == (conclusion, "4 / 4")


@pytest.mark.parametrize(
    ("ended", "says", "title"),
    [
        *[
            pytest.param(
                end,
                f"## Not graded\n\nGrading {ENDED[end]}\n\n**On a GPU:** {NO_GPU}",
                "Not graded",
                id=end,
            )
            for end in ("failure", "cancelled", "skipped")
        ],
        pytest.param(
            "success",
            (
                "## Nothing is started\n\n"
                "Every exercise is as it was handed out, or is not there under its own name. "
                f"Fill one, `make check`, push again.\n\n**On a GPU:** {NO_GPU}"
            ),
            "Nothing is started",
            id="nothing is started",
        ),
    ],
)
def test_a_run_without_results_is_neutral_and_says_what_is_next(
    tiny: Course, ended: str, says: str, title: str
) -> None:
    run = run_of("Grading", ended, Artifact() if ended == "success" else None)
    assert verdict(run, NO_GPU, frozenset()) == ("neutral", title)
    assert body(tiny, run, NO_GPU, (), frozenset(), "0" * 40) == says


def test_a_comment_that_grows_too_long_keeps_its_tables_and_takes_no_line_of_a_students_for_one(
    tiny, make_result
):
    results = [
        make_result("failed", evidence=f"{i} " + "x " * 150, note=FORGED[i % 2]) for i in range(300)
    ]
    comment = body(tiny, results, results, (), frozenset(), "0" * 40)
    assert len(comment.encode()) <= LONGEST
    assert comment.startswith("## Averages: 900 / 1200\n")
    assert comment.endswith("… (cut)")
    assert "| ✗ |" in comment
    assert not {"<pre>", "✓"} & {*comment.split()}
    assert "## Averages: 4 / 4" not in comment.splitlines()


@pytest.mark.parametrize(
    ("outcomes", "refused", "says"),
    [
        pytest.param(
            ("crashed",), (), "An attempt (running_mean) crashed on the CPU.", id="a crash"
        ),
        pytest.param(
            ("passed", "timeout"),
            (),
            "An attempt (running_mean) ran out of time on the CPU.",
            id="an endless loop",
        ),
        pytest.param(("failed",) * 4, (), "Nothing works on the CPU yet.", id="no point"),
        pytest.param(
            ("passed",), ("a link",), "A file could not be taken.", id="a file that was refused"
        ),
        pytest.param(("failed", "error", "skipped"), (), "", id="one that is wrong and behaves"),
        pytest.param(None, (), "Nothing is started.", id="nothing started"),
    ],
)
def test_an_attempt_that_does_not_behave_on_the_cpu_is_not_run_on_the_gpu(
    make_result, outcomes, refused, says
):
    results = [] if outcomes is None else [make_result(*outcomes)]
    assert why_not_on_a_gpu(results, refused) == says
    run = gpu_run("skipped", "gpu-box", None, results, refused)
    assert run == f"Not run. {says or 'Nobody approved it.'}"


@pytest.mark.parametrize(
    ("outcome", "label", "cpu", "says"),
    [
        (
            "skipped",
            "",
            [],
            "Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty).",
        ),
        ("failure", "gpu-box", [], f"The run {ENDED['failure']}"),
        (
            "success",
            "gpu-box",
            [],
            f"The run {ENDED['failure']}",
        ),  # and its results were not believed
        ("skipped", "gpu-box", "none", "Not run: grading on a CPU comes first."),
    ],
    ids=["no runner", "broke off", "forged", "no CPU run"],
)
def test_why_there_is_no_run_on_a_gpu_is_told(
    outcome: str, label: str, cpu: list[Result] | str, says: str
) -> None:
    assert gpu_run(outcome, label, None, cpu, ()) == says


SOURCE = (
    "import torch\n\n\ndef helper(x):\n    return x\n\n\ndef running_mean(x):\n"
    "    return helper(y)\n"
)


@pytest.fixture
def annotate(tiny: Course, tmp_path: Path) -> Callable[..., list[dict]]:
    """The remarks on this result of a file, which is where `course ci collect` puts it."""

    def remarks(
        result: Result, text: str = SOURCE, started: dict[str, str] = STARTED
    ) -> list[dict]:
        path = tmp_path / "ada" / "averages" / next(iter(started.values()), "01_running_mean.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return annotated(tiny, Artifact(results=(result,), started=started), tmp_path)

    return remarks


def test_a_remark_has_the_place_the_title_and_what_a_terminal_says(make_result, annotate):
    evidence = "raised NameError on line 9: a name is used that has no value there"
    passes = f"{'3 checks pass':<64}       3 / 3"
    expected = {
        "path": SCRIPT,
        "start_line": 9,
        "end_line": 9,
        "annotation_level": "warning",
        "title": "01 The running mean: 3 / 4",
    }
    message = f"{'does thing 0':<64}       0 / 1\n  {evidence}\n{passes}"
    assert annotate(make_result("error", evidence=evidence)) == [{**expected, "message": message}]


DEFINED = 8
PROVED, BEYOND = ({"lines": (ProvedLine(line=line, edit="secret → edit"),)} for line in (5, 4000))


@pytest.mark.parametrize(
    ("evidence", "more", "text", "line"),
    [
        pytest.param("raised NameError on line 9", {}, SOURCE, 9, id="that the evidence names"),
        pytest.param(
            "raised NameError on line 9", PROVED, SOURCE, 5, id="that is proved to be wrong"
        ),
        pytest.param(
            "raised NameError on line 9",
            BEYOND,
            SOURCE,
            9,
            id="a proved one beyond the end is not believed",
        ),
        pytest.param(
            "position 3 differs",
            {},
            SOURCE,
            DEFINED,
            id="without one the definition that the exercise asks for",
        ),
        pytest.param(
            "raised ValueError on line 10", {}, SOURCE, DEFINED, id="a line beyond the end"
        ),
        pytest.param("raised ValueError on line 0", {}, SOURCE, DEFINED, id="line 0"),
        pytest.param(
            "raised ValueError on line 99999999999",
            {},
            SOURCE,
            DEFINED,
            id="a line that is no number for long",
        ),
        pytest.param("online 2 of them", {}, SOURCE, DEFINED, id="a word that only ends like it"),
        pytest.param(
            "nothing", {}, "x = 1\n", 1, id="a file that defines nothing from its first line"
        ),
    ],
)
def test_the_line_is_the_one(make_result, annotate, evidence, more, text, line):
    (remark,) = annotate(with_exercise(make_result("error", evidence=evidence), **more), text)
    assert remark["start_line"] == line
    assert "secret" not in remark["message"]


def test_right_attempts_and_untouched_stubs_get_none(make_result, annotate):
    assert annotate(make_result()) == annotate(make_result("error"), started={}) == []


def test_a_notebooks_line_is_the_one_of_its_file(tiny, make_result, annotate, tmp_path):
    notebook = jupytext.read(tiny.root / NOTEBOOK)
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = (
        "def helper(x):\n    return x.means()\n\n\ndef running_mean(x):\n"
        '    y = "a \\"b\\" \\\\ ü"\n    return x.means()\n\n\nx = 1'
    )
    text = jupytext.writes(notebook, fmt="ipynb")
    code = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    first_line, line = (
        i for i, text in enumerate(code.splitlines(), 1) if text == "    return x.means()"
    )

    def line_of(evidence: str) -> int:
        (remark,) = annotate(make_result("error", evidence=evidence), text, IN_NOTEBOOK)
        assert remark["path"] == NOTEBOOK
        return int(remark["start_line"])

    at = line_of(f"raised AttributeError on line {line}")
    assert json.loads(text.splitlines()[at - 1].strip().rstrip(",")) == "    return x.means()\n"
    assert line_of(f"raised AttributeError on line {first_line}") == at - 5
    named = proved_line(read_file(tmp_path / "ada/averages/01_running_mean.ipynb", 400), line).place
    assert re.fullmatch(r"line 7 of code cell [1-9]", named)
    assert line_of(f"raised AttributeError on {named}") == at
    assert '"def running_mean(x):\\n"' in text.splitlines()[line_of("wrong") - 1]


def test_a_notebook_of_brackets_alone_still_gets_its_remark(make_result, annotate):
    """It once ended the whole report: neither a comment nor a check run was written."""
    result = make_result("error", evidence="This is not a notebook that can be read.")
    (remark,) = annotate(result, '{"cells":\n' + "[" * 200_000, IN_NOTEBOOK)
    assert remark["start_line"] == 1


def test_its_text_is_printable_and_bounded_and_what_is_not_graded_has_no_points(
    make_result, annotate
):
    (remark,) = annotate(
        make_result("failed", evidence="a\x1b[31m\u202eb\n::error::x" + "y" * 9000)
    )
    message = remark["message"]
    assert all(c.isprintable() or c == "\n" for c in message)
    assert message.splitlines()[1].startswith("  a [31m b ::error::xyyy")
    assert len(message) < 1000
    (remark,) = annotate(make_result("skipped", "failed"))
    assert remark["title"] == "01 The running mean: not graded"
    assert remark["message"].startswith(
        "Not graded: the grader itself failed here. That is not your fault."
    )
    assert "/" not in remark["message"]
