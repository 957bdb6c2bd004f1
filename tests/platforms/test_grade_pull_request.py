"""Grading of a pull request: the artifact of the results, the comment, and line annotations.

The artifact is checked like a file from a stranger, because a job that runs student code writes it.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jupytext
import pytest

from manyheads.box.level_and_device_names import Device, Level
from manyheads.course import Course
from manyheads.files import CourseFault
from manyheads.judge.judge_process import Graded, GradePlan
from manyheads.platforms import grade_pull_request as grade_pull_request_module
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
from manyheads.platforms.grade_pull_request import annotate as line_annotations
from manyheads.platforms.read_pull_request import CollectedCommits, ServiceError
from manyheads.report.markdown import LONGEST
from manyheads.result import ProvedLine, Result
from manyheads.submission import Submission, proved_line, read_file
from tests.make import REPOSITORY, TINY, run
from tests.workflows.hosted.service import Service

MakeResult = Callable[..., Result]
COLLECTED = CollectedCommits(
    repository="school/class", student="ada", number=7, head="a" * 40, refused=()
)
SCRIPT = "01_running_mean.py"
NOTEBOOK = "01_running_mean.ipynb"
ATTEMPT = f"ada/averages/{SCRIPT}"


def with_exercise(result: Result, **changes: object) -> Result:
    """Return the result with these fields of its one exercise changed."""
    (exercise,) = result.exercises
    return result.model_copy(update={"exercises": (exercise.model_copy(update=changes),)})


@pytest.fixture
def collected_folder(tmp_path: Path) -> Path:
    """Return a folder as `course ci collect` writes it, with one attempt."""
    folder = tmp_path / "submitted"
    (folder / ATTEMPT).parent.mkdir(parents=True)
    (folder / ATTEMPT).write_text("x = 1\n")
    (folder / "collected.json").write_text(COLLECTED.model_dump_json())
    return folder


@pytest.fixture
def install_fake_judges(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[GradePlan]]:
    """Return a function that makes every judge return this result and these faults.

    That function returns a list, to which the plan of each later judge is added. A result of None
    means that no judge may be used.
    """

    def replace_judges(result: Result | None, *faults: str) -> list[GradePlan]:
        plans: list[GradePlan] = []

        class FakeJudge:
            def __init__(self, plan: GradePlan) -> None:
                plans.append(plan)

            def grade(self, submission: Submission, only: Sequence[str]) -> Graded:
                assert result is not None, "no judge may be used"
                return Graded(submission, result, faults)

            def close(self) -> None:
                """Do nothing, because no process was started."""

        monkeypatch.setattr(grade_pull_request_module, "SteadyJudge", FakeJudge)
        return plans

    return replace_judges


@pytest.fixture
def grade_folder(
    tiny: Course, collected_folder: Path, tmp_path: Path
) -> Callable[..., list[Result]]:
    """Return a function that grades the folder as `course ci grade` does."""

    def graded(device: Device = Device.CPU) -> list[Result]:
        out = tmp_path / "out"
        artifact = grade_collected(tiny, COLLECTED, collected_folder, device, out)
        write_artifact(out, artifact)
        return [*artifact.results]

    return graded


def test_an_untouched_stub_is_not_graded(tiny, collected_folder, grade_folder, install_fake_judges):
    plans = install_fake_judges(None)
    stub = (tiny.root / "exercises" / "averages" / SCRIPT).read_text(encoding="utf-8")
    (collected_folder / ATTEMPT).write_text(f"# read it\n{stub}", encoding="utf-8")
    assert grade_folder() == plans == []


def test_only_the_author_is_graded_and_grader_faults_are_logged(
    collected_folder, grade_folder, make_result, install_fake_judges, capsys
):
    """The results contain line numbers of proved mistakes, but not the edits that prove them."""
    other_students_file = collected_folder / ATTEMPT.replace("ada", "ben")
    other_students_file.parent.mkdir(parents=True)
    other_students_file.write_text("x = 2\n")
    lines = (ProvedLine(line=7, edit="secret → edit"), ProvedLine(line=9))
    plans = install_fake_judges(with_exercise(make_result("failed"), lines=lines), "values: x")
    (graded,) = grade_folder(Device.CUDA)
    plain_lines = (ProvedLine(line=7), ProvedLine(line=9))
    assert graded == with_exercise(make_result("failed"), lines=plain_lines)
    (plan,) = plans
    assert (plan.level, plan.device, plan.seed) == (Level.NAMESPACES, Device.CUDA, 0)
    fault = "course: a fault of the grader's own: values: x. Next: course verify\n"
    assert capsys.readouterr().err == fault


def test_an_attempt_is_graded_again_only_if_it_changed(
    collected_folder, grade_folder, make_result, install_fake_judges, tmp_path
):
    def count_judges(source: str, device: Device = Device.CPU) -> int:
        (collected_folder / ATTEMPT).write_text(source)
        old_count = len(plans)
        assert [result.score for result in grade_folder(device)] == [score]
        return len(plans) - old_count

    plans, score = install_fake_judges(make_result("failed")), 3
    assert [count_judges(f"x = {number}\n") for number in (1, 1, 2, 2)] == [1, 0, 1, 0]
    plans, score = install_fake_judges(make_result("skipped")), None
    assert [count_judges("x = 3\n") for _ in "ab"] == [1, 1], "a failure of the grader is not kept"
    assert count_judges("x = 3\n", Device.CUDA) == 1, "results of another device do not count"
    (tmp_path / "out" / "about.json").write_text("{}")
    assert count_judges("x = 3\n") == 1


def artifact_of(*results: Result, device: Device = Device.CPU) -> Artifact:
    """Return the artifact of a job that graded these results."""
    started = {"running_mean": SCRIPT} if results else {}
    return Artifact(student="ada", head="a" * 40, device=device, results=results, started=started)


@pytest.fixture
def artifact_folder(make_result: MakeResult, tmp_path: Path) -> Path:
    """Return the folder of an artifact of a graded pull request."""
    write_artifact(tmp_path / "results", artifact_of(make_result("failed", evidence="no")))
    return tmp_path / "results"


def on_a_gpu(result: Result, **check: Any) -> Result:
    """Return the result as of a GPU, with an additional check that has these fields."""
    extra_check = result.exercises[0].checks[0].model_copy(update={"id": "autocast", **check})
    checks = (*result.exercises[0].checks, extra_check)
    points = {
        "score": sum(entry.score for entry in checks),
        "max_score": sum(entry.max_score for entry in checks),
    }
    return with_exercise(result, checks=checks, **points).model_copy(
        update={"device": "cuda", **points}
    )


@pytest.mark.parametrize("outcomes", [["failed"], ["skipped"], []])
def test_an_artifact_survives_writing_and_reading(tiny, make_result, tmp_path, outcomes):
    artifact = artifact_of(*([make_result(*outcomes, evidence="no")] if outcomes else []))
    write_artifact(tmp_path / "results", artifact)
    assert read_artifact(tmp_path / "results", tiny, "ada", "a" * 40) == artifact


def test_a_gpu_artifact_may_contain_additional_checks(tiny, make_result, tmp_path):
    artifact = artifact_of(on_a_gpu(make_result()), device=Device.CUDA)
    write_artifact(tmp_path, artifact)
    assert read_artifact(tmp_path, tiny, "ada") == artifact


def forge(folder: Path, values: dict[str, Any]) -> None:
    """Change about.json: set each path to its value, or apply the function given as its value."""
    data = json.loads((folder / "about.json").read_text())
    for path, value in values.items():
        *parents, field = path.split("/")
        target = data
        for key in parents:
            target = target[int(key) if key.isdecimal() else key]
        target[field] = value(target[field]) if callable(value) else value
    (folder / "about.json").write_text(json.dumps(data))


def repeat_items(values: list[Any]) -> list[Any]:
    return values * 2


RESULT = "results/0"
EXERCISE = f"{RESULT}/exercises/0"
CHECKS = f"{EXERCISE}/checks"
SCORES, MOST = ((f"{RESULT}/{name}", f"{EXERCISE}/{name}") for name in ("score", "max_score"))
FULL_MARKS = dict.fromkeys(SCORES, 4)
PART = dict.fromkeys(SCORES, 2.5) | {f"{CHECKS}/1/score": 0.5}
DEARER = {f"{CHECKS}/1/score": 37, f"{CHECKS}/1/max_score": 37}
POINTS = "its points in running_mean"


# row: (changes by path in about.json, reason for the refusal)
FORGERIES = {
    "a score that its checks do not add up to": (FULL_MARKS, POINTS),
    "full marks, and a failed check": (FULL_MARKS | {f"{CHECKS}/0/score": 1}, POINTS),
    "a part of a check's points": (PART, POINTS),
    "more points than the course gives": (
        dict.fromkeys(SCORES, 39) | dict.fromkeys(MOST, 40) | DEARER,
        POINTS,
    ),
    "no score although every check ran": (dict.fromkeys(SCORES), POINTS),
    "points for a skipped check": ({f"{CHECKS}/0/outcome": "skipped"}, POINTS),
    "three hundred checks": (
        {CHECKS: lambda checks: checks + [{**checks[0], "max_score": 0}] * 300},
        POINTS,
    ),
    "no total": ({f"{RESULT}/score": None}, "its points"),
    "an infinite score": ({f"{RESULT}/score": 1e400}, "its points"),
    "a score that is not a number": ({f"{RESULT}/score": float("nan")}, "schema"),
    "another student": ({f"{RESULT}/student": "ben"}, "of another submission"),
    "another device": ({f"{RESULT}/device": "cuda"}, "of another submission"),
    "graded without isolation": ({f"{RESULT}/isolation": "process"}, "not graded in the box"),
    "a path as the assignment": ({f"{RESULT}/assignment": "../../x"}, "its assignments"),
    "an assignment twice": ({"results": repeat_items}, "its assignments"),
    "an exercise twice": ({f"{RESULT}/exercises": repeat_items}, "its exercises"),
    "no exercise": ({f"{RESULT}/exercises": []}, "its exercises"),
    "a field that no result has": ({f"{RESULT}/more": 1}, "schema"),
    "a line with its edit": ({f"{EXERCISE}/lines": [{"line": 1, "edit": "a → b"}]}, "its lines"),
    "three lines": ({f"{EXERCISE}/lines": [{"line": 1}] * 3}, "its lines"),
    "a line number that is too large": ({f"{EXERCISE}/lines": [{"line": 10**7}]}, "its lines"),
    "line 0": ({f"{EXERCISE}/lines": [{"line": 0}]}, "schema"),
    "four megabytes of text": ({f"{EXERCISE}/note": "x" * 2**22}, "too large"),
    "another commit": ({"head": "b" * 40}, "of another commit"),
    "a path as a student": ({"student": "../ben"}, "of another commit"),
    "a path as the started file": ({"started": {"running_mean": "../x"}}, "what is started"),
    "an unknown exercise": (
        {"started": {"medians": "01_running_mean.py"}},
        "what is started",
    ),
}


@pytest.mark.parametrize(
    ("values", "says"),
    FORGERIES.values(),
    ids=FORGERIES,
)
def test_a_forged_artifact_is_refused(tiny, artifact_folder, values, says):
    forge(artifact_folder, values)
    with pytest.raises(ArtifactError, match=f"is not what grading writes .*{says}"):
        read_artifact(artifact_folder, tiny, "ada", "a" * 40)


def make_link(path: Path) -> None:
    path.rename(path.with_name("real.json"))
    path.symlink_to("real.json")


INVALID_FILES = {
    "brackets that never close": (lambda path: path.write_text("[" * 10**5), "schema"),
    "bytes without text": (lambda path: path.write_bytes(b"\xff\0"), "schema"),
    "no file": (Path.unlink, "missing"),
    "a link": (make_link, "no regular file"),
}


@pytest.mark.parametrize(
    ("replace", "says"),
    INVALID_FILES.values(),
    ids=INVALID_FILES,
)
def test_a_file_that_is_not_an_artifact_is_refused(tiny, artifact_folder, replace, says):
    replace(artifact_folder / "about.json")
    with pytest.raises(ArtifactError, match=f"is not what grading writes .*{says}"):
        read_artifact(artifact_folder, tiny, "ada")


@pytest.fixture
def step_environment(service: Service, tmp_path: Path) -> dict[str, str]:
    """Return the environment of the report step after a successful run on the CPU alone."""
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
    tiny: Course, step_environment: dict[str, str], collected_folder: Path, tmp_path: Path
) -> Callable[..., str]:
    """Return a function that runs the report step on the results of a CPU job."""

    def report_on(*results: Result) -> str:
        write_artifact(tmp_path / "cpu", artifact_of(*results))
        return write_report(
            tiny, step_environment, collected_folder, tmp_path / "cpu", tmp_path / "gpu"
        )

    return report_on


def test_a_run_of_an_older_commit_writes_no_comment(service, make_result, tmp_path, report):
    service.heads[7] = "b" * 40
    report(make_result("failed", evidence="no"))
    assert service.comments_on(7) == []
    assert [run["head_sha"] for run in service.check_runs] == ["a" * 40]
    assert (tmp_path / "summary.md").read_text().startswith("## Averages: 3 / 4\n")


# row: (environment variables, score of the forged result, phrases in and not in the comment)
NOT_SHOWN = {
    "an impossible score": ({}, 400.0, ["## Not graded", "a fault of the grader"], "400"),
    "a missing GPU artifact": (
        {"GPU_RUNNER": "gpu-box", "GPU_RESULT": "success"},
        4.0,
        ["## Averages: 4 / 4", "**On a GPU:** The run did not finish"],
        "On the GPU runner",
    ),
}


@pytest.mark.parametrize(
    ("setting", "score", "says", "lacks"),
    NOT_SHOWN.values(),
    ids=NOT_SHOWN,
)
def test_the_comment_omits_an_invalid_artifact(
    service, step_environment, make_result, report, setting, score, says, lacks
):
    step_environment |= setting
    with pytest.raises(ArtifactError, match=r"about\.json is not what grading writes"):
        report(make_result().model_copy(update={"score": score, "max_score": score}))
    (comment,) = service.comments_on(7)
    assert [phrase for phrase in says if phrase not in comment] == []
    assert lacks not in comment
    is_neutral = service.check_runs[0]["conclusion"] == "neutral"
    assert is_neutral == ("## Not graded" in comment)


def test_the_artifact_of_a_failed_job_is_ignored(service, step_environment, make_result, report):
    step_environment["CPU_RESULT"] = "failure"
    report(make_result())
    assert "## Not graded" in service.comments_on(7)[0]
    assert service.check_runs[0]["conclusion"] == "neutral"


def test_the_comment_is_written_even_if_the_check_run_is_refused(
    service, step_environment, make_result, report
):
    service.tokens["t"] = {"pull-requests": "write"}
    with pytest.raises(ServiceError, match=r"check-runs was refused \(403\)"):
        report(make_result())
    assert "## Averages: 4 / 4" in service.comments_on(7)[0]


def test_nothing_is_reported_if_the_files_are_from_another_commit(
    service, collected_folder, report
):
    (collected_folder / "collected.json").write_text(
        COLLECTED.model_copy(update={"head": "b" * 40}).model_dump_json()
    )
    with pytest.raises(CourseFault, match="is of another commit"):
        report()
    assert (service.comments, service.check_runs) == ([], [])


# the packages that the report job may import
INSTALLED = (
    "annotated_doc annotated_types click manyheads markdown_it mdurl pydantic pydantic_core "
    "pygments rich ruamel shellingham typer typing_extensions typing_inspection urllib3 yaml"
)
# a program that runs the report command and fails at the import of any other package
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
sys.argv[:1] = ["course", "ci", "report", "--course"]
main()
"""


def test_the_report_job_imports_only_packages_that_it_installs() -> None:
    workflow = (REPOSITORY / ".github" / "workflows" / "grade.yml").read_text()
    assert (
        "install --quiet --constraint constraints.txt pydantic PyYAML rich ruamel.yaml typer "
        "urllib3\n"
    ) in workflow
    assert "sh tools/install-engine python\n" in workflow
    completed = run(sys.executable, "-c", GUARD, TINY, PATH="")
    assert completed.returncode == 2
    # the command starts, and stops because there is no pull request
    assert completed.stderr.startswith("course: GITHUB_EVENT_PATH is not set")


NO_GPU = "none"
ONLY_EXERCISE = frozenset({("averages", "running_mean")})
RAISED = "Code cell 1 did not run to its end: it raised ValueError: ".ljust(84, "a")
# student text that imitates the heading or a table row of the comment
FORGED = [f"{RAISED} ## Averages: 4 / 4", f"{RAISED} | ✓ | Running mean | 4 / 4 |"]


# row: (CPU outcomes, outcome of the GPU's additional check, (conclusion, title))
VERDICTS = {
    "all right": (["passed"], None, ("success", "4 / 4")),
    "half of it": (["failed", "error"], None, ("failure", "2 / 4")),
    "wrong on the GPU alone": (["passed"], "failed", ("failure", "4 / 4")),
    "skipped on the GPU": (["passed"], "skipped", ("success", "4 / 4")),
}


@pytest.mark.parametrize(
    ("cpu", "gpu", "expected"),
    VERDICTS.values(),
    ids=VERDICTS,
)
def test_the_verdict_contains_the_score_and_whether_all_checks_pass(
    make_result, cpu, gpu, expected
):
    """A check that only a GPU runs gives no points, but if it fails, the verdict is a failure."""
    on_gpu = [on_a_gpu(make_result(), outcome=gpu, score=0, max_score=0)] if gpu else NO_GPU
    assert verdict([make_result(*cpu)], on_gpu, frozenset()) == expected


def test_an_exercise_that_was_not_started_does_not_fail_the_verdict(make_result):
    results = [make_result(*["missing"] * 4)]
    assert verdict(results, NO_GPU, ONLY_EXERCISE) == ("success", "0 / 4")
    assert verdict(results, NO_GPU, {("medians", "running_mean")}) == ("failure", "0 / 4")


NOTHING_STARTED_TEXT = (
    "## Nothing is started\n\nEvery exercise is as it was handed out, or is not there under its "
    "own name. Fill one, `make check`, push again."
)


@pytest.mark.parametrize(
    ("job_result", "text", "title"),
    [
        *[(end, f"## Not graded\n\nGrading {ENDED[end]}", "Not graded") for end in ENDED],
        ("success", NOTHING_STARTED_TEXT, "Nothing is started"),
    ],
)
def test_a_run_without_results_is_neutral_and_explains_why(tiny, job_result, text, title):
    run = run_of("Grading", job_result, Artifact() if job_result == "success" else None)
    assert verdict(run, NO_GPU, frozenset()) == ("neutral", title)
    report_text = body(tiny, run, NO_GPU, (), frozenset(), "0" * 40)
    assert report_text == f"{text}\n\n**On a GPU:** {NO_GPU}"


def test_a_long_comment_keeps_its_tables_and_drops_student_text(tiny, make_result):
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


# row: (CPU outcomes, refused files, reason not to use the GPU)
MISBEHAVIOURS = {
    "crash": (["crashed"], (), "An attempt (running_mean) crashed on the CPU."),
    "endless loop": (
        ["passed", "timeout"],
        (),
        "An attempt (running_mean) ran out of time on the CPU.",
    ),
    "no check passed": (["failed"] * 4, (), "Nothing works on the CPU yet."),
    "file refused": (["passed"], ("a link",), "A file could not be taken."),
    "wrong, but not misbehaving": (["failed", "error", "skipped"], (), ""),
    "nothing started": ([], (), "Nothing is started."),
}


@pytest.mark.parametrize(
    ("outcomes", "refused", "says"),
    MISBEHAVIOURS.values(),
    ids=MISBEHAVIOURS,
)
def test_an_attempt_that_misbehaves_on_the_cpu_does_not_run_on_the_gpu(
    make_result, outcomes, refused, says
):
    results = [make_result(*outcomes)] if outcomes else []
    assert why_not_on_a_gpu(results, refused) == says
    run = gpu_run("skipped", "gpu-box", None, results, refused)
    assert run == f"Not run. {says or 'Nobody approved it.'}"


NO_RUNNER = "Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty)."


# row: (result of the GPU job, label of the runner, CPU results, sentence in the report)
WITHOUT_A_GPU = {
    "no runner": ("skipped", "", [], NO_RUNNER),
    "the GPU job failed": ("failure", "gpu-box", [], f"The run {ENDED['failure']}"),
    "forged results": ("success", "gpu-box", [], f"The run {ENDED['failure']}"),
    "no CPU run": ("skipped", "gpu-box", "none", "Not run: grading on a CPU comes first."),
}


@pytest.mark.parametrize(
    ("outcome", "label", "cpu", "says"),
    WITHOUT_A_GPU.values(),
    ids=WITHOUT_A_GPU,
)
def test_the_report_says_why_nothing_ran_on_a_gpu(outcome, label, cpu, says):
    assert gpu_run(outcome, label, None, cpu, ()) == says


SOURCE = (
    "import torch\n\n\ndef helper(x):\n    return x\n\n\ndef running_mean(x):\n"
    "    return helper(y)\n"
)


@pytest.fixture
def annotate(tiny: Course, tmp_path: Path) -> Callable[..., list[dict]]:
    """Return a function that writes a collected file and returns the annotations of its result."""

    def annotations(result: Result, text: str = SOURCE, name: str = SCRIPT) -> list[dict]:
        path = tmp_path / "ada" / "averages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        artifact = Artifact(results=(result,), started={"running_mean": name})
        return line_annotations(tiny, artifact, tmp_path)

    return annotations


def test_an_annotation_contains_the_text_that_the_terminal_shows(make_result, annotate):
    evidence = "raised NameError on line 9: a name is used that has no value there"
    passes = f"{'3 checks pass':<64}       3 / 3"
    assert annotate(make_result("error", evidence=evidence)) == [
        {
            "path": f"exercises/averages/{SCRIPT}",
            "start_line": 9,
            "end_line": 9,
            "annotation_level": "warning",
            "title": "01 The running mean: 3 / 4",
            "message": f"{'does thing 0':<64}       0 / 1\n  {evidence}\n{passes}",
        }
    ]


ERROR_ON_LINE_9 = "raised NameError on line 9"


# row: (evidence, proved line or 0, source code, line of the annotation)
LINES = {
    "the line in the evidence": (ERROR_ON_LINE_9, 0, SOURCE, 9),
    "the line that is proved to be wrong": (ERROR_ON_LINE_9, 5, SOURCE, 5),
    "a proved line beyond the end": (ERROR_ON_LINE_9, 4000, SOURCE, 9),
    "line 0": ("raised ValueError on line 0", 0, SOURCE, 8),
    "a line beyond the end": (f"{ERROR_ON_LINE_9}9999999999", 0, SOURCE, 8),
    "a word that ends like “line”": ("online 2 of them", 0, SOURCE, 8),
    "a file without the definition": ("nothing", 0, "x = 1\n", 1),
}


@pytest.mark.parametrize(
    ("evidence", "proved", "text", "line"),
    LINES.values(),
    ids=LINES,
)
def test_an_annotation_is_placed_on_the_wrong_line(
    make_result, annotate, evidence, proved, text, line
):
    """If no line is known to be wrong, it is the line of the function's definition."""
    lines = (ProvedLine(line=proved, edit="secret → edit"),) if proved else ()
    graded = with_exercise(make_result("error", evidence=evidence), lines=lines)
    (annotation,) = annotate(graded, text)
    assert annotation["start_line"] == line
    assert "secret" not in annotation["message"]


def test_right_attempts_and_untouched_stubs_have_no_annotation(tiny, make_result, annotate):
    assert annotate(make_result()) == []
    assert line_annotations(tiny, Artifact(results=(make_result("error"),)), Path()) == []


def test_a_notebook_annotation_points_to_a_line_of_the_ipynb_file(
    tiny, make_result, annotate, tmp_path
):
    notebook = jupytext.read(tiny.root / "exercises" / "averages" / NOTEBOOK)
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = (
        "def helper(x):\n    return x.means()\n\n\ndef running_mean(x):\n"
        '    y = "a \\"b\\" \\\\ ü"\n    return x.means()\n\n\nx = 1'
    )
    text = jupytext.writes(notebook, fmt="ipynb")
    code = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    wrong_text = "    return x.means()"
    first_line, line = (i for i, text in enumerate(code.splitlines(), 1) if text == wrong_text)

    def line_of(evidence: str) -> int:
        (annotation,) = annotate(make_result("error", evidence=evidence), text, NOTEBOOK)
        assert annotation["path"] == f"exercises/averages/{NOTEBOOK}"
        return int(annotation["start_line"])

    expected = line_of(f"raised AttributeError on line {line}")
    assert json.loads(text.splitlines()[expected - 1].strip(" ,")) == f"{wrong_text}\n"
    assert line_of(f"raised AttributeError on line {first_line}") == expected - 5
    location = proved_line(read_file(tmp_path / "ada" / "averages" / NOTEBOOK, 400), line).place
    assert re.fullmatch(r"line 7 of code cell [1-9]", location)
    assert line_of(f"raised AttributeError on {location}") == expected
    assert '"def running_mean(x):\\n"' in text.splitlines()[line_of("wrong") - 1]


def test_an_unreadable_notebook_still_has_an_annotation(make_result, annotate):
    """Deeply nested brackets once stopped the report before its comment was written."""
    result = make_result("error", evidence="This is not a notebook that can be read.")
    (annotation,) = annotate(result, '{"cells":\n' + "[" * 200_000, NOTEBOOK)
    assert annotation["start_line"] == 1


def test_an_annotation_is_printable_and_short(make_result, annotate):
    evidence = "a\x1b[31m\u202eb\n::error::x" + "y" * 9000
    (annotation,) = annotate(make_result("failed", evidence=evidence))
    message = annotation["message"]
    assert message.replace("\n", "").isprintable()
    assert message.splitlines()[1].startswith("  a [31m b ::error::xyyy")
    assert len(message) < 1000
    (annotation,) = annotate(make_result("skipped", "failed"))
    assert annotation["title"] == "01 The running mean: not graded"
    assert annotation["message"].startswith(
        "Not graded: the grader itself failed here. That is not your fault."
    )
    # a result that is not graded shows no points, such as 3 / 4
    assert "/" not in annotation["message"]
