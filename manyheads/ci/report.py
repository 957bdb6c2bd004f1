"""Write the report on a pull request. Only this job may write to the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Course
from ..errors import CourseFault
from ..report.labels import labels_of
from .annotations import Annotation, annotate
from .artifact import Artifact, ArtifactError, read_artifact
from .collect import Collected, read_collected
from .comment import NOT_COLLECTED, Conclusion, body, cpu_run, gpu_run, verdict
from .github_api import Service, ServiceError
from .runner import Environment, PullRequest, RunnerError, add_summary, needed, pull_request
from .started import not_started


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
    course: Course, environment: Environment, asked: PullRequest, submitted: Path, cpu: Path, gpu: Path
) -> PullRequestReport:
    try:
        collected = read_collected(submitted)
    except CourseFault:  # collecting failed here, so it failed in the grading job too
        return PullRequestReport(Conclusion("neutral", "Not graded"), NOT_COLLECTED)
    if (asked.head, asked.student) != (collected.head, collected.student):
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
    text = body(course, on_cpu, on_gpu, collected.refused, spared, asked.head)
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


def _write(service: Service, asked: PullRequest, report: PullRequestReport) -> Iterator[ServiceError]:
    """Write the check run and the comment, each even if the other fails. Yields their errors."""

    def comment() -> None:
        if service.head() == asked.head:
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
