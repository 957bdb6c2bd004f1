"""The texts of the pull request's comment, of the summary and of the check run."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..course import Course
from ..report.labels import IDS, Labels, labels_of
from ..report.markdown import CUT, LONGEST, results_section, text_block
from ..report.words import out_of_all
from ..result import ExerciseResult, Result
from .gpu_gate import why_not_on_a_gpu

NotStarted = Collection[tuple[str, str]]  # ids (assignment, exercise)

MARK = "<!-- many-heads: grade -->"  # identifies the comment for the next push
ENDINGS = {  # how a job ended that did not succeed
    "failure": "did not finish: a fault of the grader or of this repository's set-up, not yours. Your instructor can see why.",
    "cancelled": "was stopped. Push again, or ask your instructor to run it again.",
    "skipped": "was skipped.",
}
_BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)  # `text_block` lets no text end it early
NOT_COLLECTED = (
    "## Not graded\n\nThe files of this pull request could not be read. The step “Collect the exercise files” of job "
    "`cpu` says why. Push again, or ask your instructor."
)


@dataclass(frozen=True)
class Run:
    """The results of a grading job. `results`: None if there are none; then `instead` says why."""

    results: Sequence[Result] | None
    instead: str = ""


@dataclass(frozen=True)
class Conclusion:
    """The conclusion and title of the check run."""

    conclusion: str  # the service's term: success, failure, neutral
    title: str


def cpu_run(outcome: str, results: Sequence[Result] | None) -> Run:
    """The run on a CPU, from how the job ended (`needs.cpu.result`)."""
    if outcome == "success" and results is not None:
        return Run(results)
    return Run(None, f"Grading {ENDINGS.get(outcome, ENDINGS['failure'])}")


def gpu_run(
    outcome: str,
    label: str,
    results: Sequence[Result] | None,
    cpu: Run,
    refused: Sequence[str],
    labels: Labels = IDS,
) -> Run:
    """The run on a GPU, or the reason why there is none."""
    if not label:
        return Run(None, "Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty).")
    if cpu.results is None:
        return Run(None, "Not run: grading on a CPU comes first.")
    if outcome == "skipped":
        return Run(None, f"Not run. {why_not_on_a_gpu(cpu.results, refused, labels) or 'Nobody approved it.'}")
    if outcome == "success" and results is not None:
        return Run(results)
    return Run(None, f"The run {ENDINGS.get(outcome, ENDINGS['failure'])}")


def verdict(cpu: Run, gpu: Run, not_started: NotStarted) -> Conclusion:
    """The conclusion: failure if anything that is started fails, success if all of it passes, else neutral."""
    if cpu.results is None:
        return Conclusion("neutral", "Not graded")
    if not cpu.results:
        return Conclusion("neutral", "Nothing is started")
    results = [*cpu.results, *(gpu.results or ())]
    started = [e for r in results for e in r.exercises if (r.assignment, e.id) not in not_started]
    right = all(_is_right(e) for e in started if e.is_graded)
    graded = all(e.is_graded for e in started)
    return Conclusion(("success" if graded else "neutral") if right else "failure", out_of_all(cpu.results))


def _is_right(exercise: ExerciseResult) -> bool:
    """Whether no check fails, including checks without points, such as those for a GPU."""
    every = all(check.outcome in ("passed", "skipped") for check in exercise.checks)
    return exercise.score == exercise.max_score and every


def body(
    course: Course, cpu: Run, gpu: Run | None, refused: Sequence[str], not_started: NotStarted, commit: str
) -> str:
    """The report as Markdown, in which a student's text is shown literally. Without `gpu`, a GPU is not mentioned."""
    labels = labels_of(course)
    parts = [_cpu_part(course, cpu, not_started, labels)]
    if refused:
        parts.append("These files are not graded:\n\n" + text_block("\n".join(refused)))
    if gpu is not None:
        parts.append(_gpu_part(gpu, not_started, labels))
    if cpu.results:
        versions = cpu.results[0].versions.get("torch", "?")
        parts.append(text_block(f"commit {commit[:10]}, isolation: {cpu.results[0].isolation}, torch {versions}"))
    text = "\n\n".join(parts)
    return text if len(text.encode()) <= LONGEST else _without_blocks(text)


def _cpu_part(course: Course, cpu: Run, not_started: NotStarted, labels: Labels) -> str:
    if cpu.results is None:
        return f"## Not graded\n\n{cpu.instead}"
    if not cpu.results:
        return (
            "## Nothing is started\n\nEvery exercise is as it was handed out, or is not there under its own name. "
            "Fill one, `make check`, push again."
        )
    return results_section(course.title, cpu.results, not_started, labels)


def _gpu_part(gpu: Run, not_started: NotStarted, labels: Labels) -> str:
    if gpu.results is None:
        return f"**On a GPU:** {gpu.instead}"
    devices = ", ".join(sorted({result.device for result in gpu.results}))
    return results_section(f"On the GPU runner ({devices})", gpu.results, not_started, labels)


def _without_blocks(text: str) -> str:
    """The tables only, for a text that is too long for a comment. What stands in a block is no table, however it begins."""
    lines = [line for line in _BLOCK.sub("", text).splitlines() if line.startswith(("## ", "### ", "| ", "|---"))]
    return "\n".join([*lines, "", CUT]).encode()[:LONGEST].decode(errors="ignore")
