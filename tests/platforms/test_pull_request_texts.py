"""The words of a report: what it says in each case, and when the GPU is not asked."""

from collections.abc import Callable

import pytest

from manyheads.course import Course
from manyheads.platforms.grade_pull_request import why_not_on_a_gpu
from manyheads.platforms.report_pull_request import ENDINGS, Run, body, cpu_run, gpu_run, verdict
from manyheads.report.markdown import LONGEST
from manyheads.result import CheckResult, Result

MakeResult = Callable[..., Result]
NO_GPU = Run(None, "none")
COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(("outcomes", "says"), [
    pytest.param(("passed",), ("success", "4 / 4"), id="all right"),
    pytest.param(("failed", "error"), ("failure", "2 / 4"), id="half of it"),
])  # fmt: skip
def test_the_verdict_is_the_score_and_whether_all_is_right(make_result, outcomes, says):
    assert verdict(Run([make_result(*outcomes)]), NO_GPU, frozenset()) == says


def test_what_is_not_started_does_not_fail_a_pull_request(make_result: MakeResult) -> None:
    missing = make_result("missing", "missing", "missing", "missing")
    assert verdict(Run([missing]), NO_GPU, {("averages", "running_mean")})[0] == "success"
    assert verdict(Run([missing]), NO_GPU, {("medians", "running_mean")})[0] == "failure"


def test_what_fails_on_the_gpu_alone_fails_the_pull_request(make_result: MakeResult) -> None:
    assert verdict(Run([make_result()]), Run([make_result("failed")]), frozenset()) == ("failure", "4 / 4")


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
    assert verdict(Run([right]), Run([on_gpu]), frozenset()) == (conclusion, "4 / 4")


@pytest.mark.parametrize("ended", ["failure", "cancelled", "skipped"])
def test_a_run_that_did_not_end_well_is_not_graded_and_is_not_the_students_fault(tiny: Course, ended: str) -> None:
    run = cpu_run(ended, None)
    assert verdict(run, NO_GPU, frozenset()) == ("neutral", "Not graded")
    said = body(tiny, run, NO_GPU, (), frozenset(), COMMIT)
    assert said == f"## Not graded\n\nGrading {ENDINGS[ended]}\n\n**On a GPU:** {NO_GPU.instead}"


def test_results_that_were_not_believed_are_not_graded(tiny: Course) -> None:
    assert "a fault of the grader" in body(tiny, cpu_run("success", None), NO_GPU, (), frozenset(), COMMIT)


def test_nothing_started_says_what_is_next(tiny: Course) -> None:
    said = body(tiny, Run([]), NO_GPU, (), frozenset(), COMMIT)
    assert said.startswith("## Nothing is started\n")
    assert "`make check`" in said
    assert "is not there under its own name" in said  # whoever renamed a file is told what to look at
    assert verdict(Run([]), NO_GPU, frozenset()) == ("neutral", "Nothing is started")


def test_files_that_were_not_taken_are_named(tiny: Course, make_result: MakeResult) -> None:
    said = body(tiny, Run([make_result()]), NO_GPU, ("a.py is a symbolic link.",), frozenset(), COMMIT)
    assert "These files are not graded:\n\n<pre>\na.py is a symbolic link.\n</pre>" in said


def test_a_comment_that_grows_too_long_keeps_its_tables(tiny: Course, make_result: MakeResult) -> None:
    results = [make_result("failed", evidence=f"{i} " + "x " * 150) for i in range(300)]
    said = body(tiny, Run(results), Run(results), (), frozenset(), COMMIT)
    assert len(said.encode()) <= LONGEST
    assert said.startswith("## Averages: 900 / 1200\n")
    assert said.endswith("… (cut)")
    assert "<pre>" not in said


def test_a_comment_that_grows_too_long_takes_no_line_of_a_students_for_a_table(tiny, make_result):
    raised = "Code cell 1 did not run to its end: it raised ValueError: "
    forged = [raised.ljust(84, "a") + f" {line}" for line in ("## Averages: 4 / 4", "| ✓ | Running mean | 4 / 4 |")]
    results = [make_result("failed", evidence="x " * 150, note=forged[i % 2]) for i in range(300)]
    said = body(tiny, Run(results), Run(results), (), frozenset(), COMMIT)
    assert "| ✗ |" in said
    assert "✓" not in said
    assert "## Averages: 4 / 4" not in said.splitlines()


def why(outcome: str, label: str, cpu: Run, refused: tuple[str, ...] = ()) -> str:
    run = gpu_run(outcome, label, None, cpu, refused)
    assert run.results is None
    return run.instead


@pytest.mark.parametrize(("outcomes", "refused", "says"), [
    pytest.param(("crashed",), (), "Not run. An attempt (running_mean) crashed on the CPU.", id="a crash"),
    pytest.param(("passed", "timeout"), (), "Not run. An attempt (running_mean) ran out of time on the CPU.", id="an endless loop"),
    pytest.param(("failed",) * 4, (), "Not run. Nothing works on the CPU yet.", id="no point"),
    pytest.param(("passed",), ("a link",), "Not run. A file could not be taken.", id="a file that was refused"),
])  # fmt: skip
def test_an_attempt_that_does_not_behave_on_the_cpu_is_not_run_on_the_gpu(make_result, outcomes, refused, says):
    results = [make_result(*outcomes)]
    assert why("skipped", "gpu-box", Run(results), refused) == says
    assert why_not_on_a_gpu(results, refused) == says.removeprefix("Not run. ")


def test_one_that_is_wrong_and_behaves_is_run_and_nothing_started_is_not(make_result: MakeResult) -> None:
    assert why_not_on_a_gpu([make_result("failed", "error", "skipped")], ()) == ""
    assert why_not_on_a_gpu([], ()) == "Nothing is started."


def test_who_has_no_runner_or_was_not_approved_and_a_run_that_broke_off_are_told(make_result: MakeResult) -> None:
    cpu = Run([make_result()])
    assert "the repository variable GPU_RUNNER is empty" in why("skipped", "", cpu)
    assert why("skipped", "gpu-box", cpu) == "Not run. Nobody approved it."
    assert why("failure", "gpu-box", cpu) == f"The run {ENDINGS['failure']}"
    assert why("success", "gpu-box", cpu) == f"The run {ENDINGS['failure']}"  # and its results were not believed
    assert why("skipped", "gpu-box", Run(None)) == "Not run: grading on a CPU comes first."


def test_its_results_stand_below_those_of_the_cpu(tiny: Course, make_result: MakeResult) -> None:
    gpu = gpu_run("success", "gpu-box", [make_result("failed")], Run([make_result()]), ())
    said = body(tiny, Run([make_result()]), gpu, (), frozenset(), COMMIT)
    assert said.index("## Averages: 4 / 4") < said.index("## On the GPU runner \\(cpu\\): 3 / 4")
