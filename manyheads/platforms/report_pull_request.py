"""Write the report on a pull request to the hosting service. Only this job may write there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Course
from ..errors import CourseFault
from ..report.labels import labels_of
from .artifact import Artifact, ArtifactError, read_artifact
from .github_api import Api, ServiceError
from .grade_pull_request import not_started
from .pull_request_files import (
    Collected,
    Environment,
    PullRequest,
    RunnerError,
    add_summary,
    needed,
    pull_request,
    read_collected,
)
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

# The part of the hosting service's API that a report needs: one comment, one check run.

OURSELVES = "github-actions[bot]"  # the account of the workflow's token
NAME = "grade"


class Service:
    """Writes the comment and the check run of one pull request."""

    def __init__(self, address: str, token: str, request: PullRequest) -> None:
        self._api, self._asked = Api(address, token, request.repository), request

    def comment(self, body: str) -> None:
        """Update the comment of this pull request, or write it if there is none. Raises ServiceError."""
        marked = {"body": f"{MARK}\n{body}"}
        there = self._our_comment()
        if there is None:
            self._api.call("POST", f"issues/{self._asked.number}/comments", marked)
        else:
            self._api.call("PATCH", f"issues/comments/{there}", marked)

    def check_run(self, verdict: Conclusion, summary: str, found: Sequence[Annotation]) -> None:
        """Write a check run for the commit that was graded. Raises ServiceError."""
        output = {"title": verdict.title, "summary": summary, "annotations": [titled(file) for file in found]}
        about = {"name": NAME, "head_sha": self._asked.head, "status": "completed", "conclusion": verdict.conclusion}
        self._api.call("POST", "check-runs", {**about, "output": output})

    def head(self) -> str:
        """Return the current head commit of the pull request. Raises ServiceError."""
        return str(self._api.call("GET", f"pulls/{self._asked.number}")["head"]["sha"])

    def _our_comment(self) -> int | None:
        """Return the id of our comment, None if there is none. A comment of another account is not ours, even with our mark."""
        for comment in self._api.pages(f"issues/{self._asked.number}/comments"):
            if comment["user"]["login"] == OURSELVES and str(comment["body"]).startswith(MARK):
                return int(comment["id"])
        return None


# Write the report on a pull request. Only this job may write to the service.


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
    Raises RunnerError; after writing everything that can be written, also ServiceError, or ArtifactError for an
    invalid artifact.
    """
    asked = pull_request(environment)
    report = _report(course, environment, asked, submitted, cpu, gpu)
    add_summary(environment, report.text)
    service = Service(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), asked)
    faults: list[CourseFault] = [*_write(service, asked, report), *report.faults]
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
        raise RunnerError(f"{submitted} is of another commit. Next: course ci collect --out {submitted}")
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


def _write(service: Service, request: PullRequest, report: PullRequestReport) -> Iterator[ServiceError]:
    """Write the check run and the comment, each even if the other fails. Yields their errors."""

    def comment() -> None:
        if service.head() == request.head:
            service.comment(report.text)

    writes: tuple[Callable[[], None], ...] = (
        lambda: service.check_run(report.verdict, report.text, report.annotations),
        comment,
    )
    for write in writes:
        try:
            write()
        except ServiceError as error:
            yield error
