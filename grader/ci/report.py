"""Everything that is written about a pull request, by the only job that may."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..course import Course
from ..result import Result
from .annotations import annotate
from .artifact import ArtifactError, read_artifact
from .begun import not_begun
from .collect import Collected, read_collected
from .comment import body, cpu_run, gpu_run, verdict
from .runner import Environment, RunnerError, add_summary, needed, pull_request
from .service import Service


def write_report(course: Course, environment: Environment, submitted: Path, cpu: Path, gpu: Path) -> str:
    """The comment, the check run and the summary of this run; a line about them.

    Raises RunnerError, ServiceError, and, after all is written, ArtifactError where a job handed on what it cannot have.
    """
    asked, collected = pull_request(environment), read_collected(submitted)
    if (asked.head, asked.student) != (collected.head, collected.student):
        raise RunnerError(f"{submitted} is of another commit. Next: course ci collect --out {submitted}")
    cpu_ended, gpu_ended = needed(environment, "CPU_RESULT"), needed(environment, "GPU_RESULT")
    from_cpu, problem = _results(course, collected, cpu, cpu_ended)
    from_gpu, gpu_problem = _results(course, collected, gpu, gpu_ended)
    on_cpu = cpu_run(cpu_ended, from_cpu)
    on_gpu = gpu_run(gpu_ended, environment.get("GPU_RUNNER", ""), from_gpu, on_cpu, collected.refused)
    spared = not_begun(course, submitted / collected.student)
    said, about = verdict(on_cpu, on_gpu, spared), body(course, on_cpu, on_gpu, collected.refused, spared, asked.head)
    add_summary(environment, about)
    service = Service(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), asked)
    service.check_run(said, about, annotate(course, [*(from_cpu or ())], submitted))
    service.comment(about)
    for fault in filter(None, (problem, gpu_problem)):
        raise fault
    return f"Reported {said.title} ({said.conclusion})."


def _results(
    course: Course, collected: Collected, folder: Path, ended: str
) -> tuple[Sequence[Result] | None, ArtifactError | None]:
    """What a job handed on; nothing where it did not end well, or handed on what it cannot have."""
    if ended != "success":
        return None, None
    try:
        return read_artifact(folder, course, collected), None
    except ArtifactError as error:
        return None, error
