"""Write the report on a pull request to the hosting service. Only this job may write there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Course
from ..errors import CourseFault
from ..report.labels import labels_of
from .artifact import Artifact, ArtifactError, read_artifact
from .github_api import Api, ServiceError
from .grade_pull_request import not_started
from .pull_request_files import Collected, Environment, PullRequest, add_summary, needed, pull_request, read_collected
from .pull_request_texts import (
    MARK,
    NOT_COLLECTED,
    Annotation,
    Conclusion,
    annotate,
    body,
    cpu_run,
    gpu_run,
    titled,
    verdict,
)

OURSELVES = "github-actions[bot]"  # the account of the workflow's token
NAME = "grade"


@dataclass(frozen=True)
class PullRequestReport:
    """What is to be written. faults: errors in the artifacts of the grading jobs."""

    verdict: Conclusion
    text: str
    annotations: Sequence[Annotation] = ()
    faults: tuple[ArtifactError, ...] = ()


def write_report(course: Course, environment: Environment, submitted: Path, cpu: Path, gpu: Path) -> str:
    """Write the comment, the check run and the summary of this run. Returns a line about them.

    The comment is about the newest commit: the run of an older commit does not change it.
    Raises CourseFault; after writing everything that can be written, also ServiceError, or ArtifactError for an
    invalid artifact.
    """
    asked = pull_request(environment)
    report = _report(course, environment, asked, submitted, cpu, gpu)
    add_summary(environment, report.text)
    api = Api(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), asked.repository)
    faults: list[CourseFault] = [*_write(api, asked, report), *report.faults]
    for fault in faults:
        raise fault
    return f"Reported {report.verdict.title} ({report.verdict.conclusion})."


def _report(
    course: Course, environment: Environment, request: PullRequest, submitted: Path, cpu: Path, gpu: Path
) -> PullRequestReport:
    try:
        collected = read_collected(submitted)
    except CourseFault:  # collecting failed here, so it failed in the grading job too
        return PullRequestReport(Conclusion("neutral", "Not graded"), NOT_COLLECTED)
    if (request.head, request.student) != (collected.head, collected.student):
        raise CourseFault(f"{submitted} is of another commit. Next: course ci collect --out {submitted}")
    faults: list[ArtifactError] = []
    cpu_ended, gpu_ended = needed(environment, "CPU_RESULT"), needed(environment, "GPU_RESULT")
    from_cpu = _artifact(course, collected, cpu, cpu_ended, faults)
    from_gpu = _artifact(course, collected, gpu, gpu_ended, faults)
    on_cpu = cpu_run(cpu_ended, from_cpu.results if from_cpu else None)
    label, results = environment.get("GPU_RUNNER", ""), from_gpu.results if from_gpu else None
    on_gpu = gpu_run(gpu_ended, label, results, on_cpu, collected.refused, labels_of(course))
    started = from_cpu.started if from_cpu else {}
    spared = not_started(course, started)
    text = body(course, on_cpu, on_gpu, collected.refused, spared, request.head)
    found = annotate(course, [*(on_cpu.results or ())], started, submitted)
    return PullRequestReport(verdict(on_cpu, on_gpu, spared), text, found, tuple(faults))


def _artifact(
    course: Course, collected: Collected, folder: Path, ended: str, faults: list[ArtifactError]
) -> Artifact | None:
    """Read the artifact of a job; None if the job did not succeed or its artifact is invalid."""
    if ended != "success":
        return None
    try:
        return read_artifact(folder, course, collected)
    except ArtifactError as error:
        faults.append(error)
        return None


def _write(api: Api, request: PullRequest, report: PullRequestReport) -> Iterator[ServiceError]:
    """Write the check run and the comment, each even if the other fails. Yields their errors."""
    for write in (write_check_run, write_comment):
        try:
            write(api, request, report)
        except ServiceError as error:
            yield error


def write_check_run(api: Api, request: PullRequest, report: PullRequestReport) -> None:
    """Write a check run for the commit that was graded. Raises ServiceError."""
    about = {"name": NAME, "head_sha": request.head, "status": "completed", "conclusion": report.verdict.conclusion}
    found = [titled(annotation) for annotation in report.annotations]
    output = {"title": report.verdict.title, "summary": report.text, "annotations": found}
    api.call("POST", "check-runs", {**about, "output": output})


def write_comment(api: Api, request: PullRequest, report: PullRequestReport) -> None:
    """Update our comment, or write it if there is none; nothing where another commit is the head by now. Raises ServiceError."""
    if str(api.call("GET", f"pulls/{request.number}")["head"]["sha"]) != request.head:
        return
    marked = {"body": f"{MARK}\n{report.text}"}
    for comment in api.pages(f"issues/{request.number}/comments"):
        # A comment of another account, or of one that is deleted, is not ours, even with our mark.
        if comment["user"] and comment["user"]["login"] == OURSELVES and str(comment["body"]).startswith(MARK):
            api.call("PATCH", f"issues/comments/{int(comment['id'])}", marked)
            return
    api.call("POST", f"issues/{request.number}/comments", marked)
