"""Report on a pull request: one comment, one check run with remarks on lines, the job's summary. Only this job may write."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..course import Course, Exercise
from ..errors import CourseFault
from ..report.labels import IDS, Labels, label_of, labels_of
from ..report.markdown import CUT, LONGEST, attempt_text, results_section, text_block
from ..report.words import attempt_words, out_of, out_of_all
from ..result import ExerciseResult, Result
from ..submission import lines_of, read_file
from ..submission.read import asked_of
from ..submission.source_text import DEFINITIONS, statements_of
from ..submission.standing import named_line
from .github import (
    Api,
    Environment,
    PullRequest,
    ServiceError,
    add_summary,
    api_of,
    needed,
    pull_request,
    read_collected,
)
from .grade_pull_request import Artifact, ArtifactError, Started, not_started, read_artifact, why_not_on_a_gpu

NotStarted = Collection[tuple[str, str]]  # ids (assignment, exercise)

OURSELVES, NAME = "github-actions[bot]", "grade"  # the account of the workflow's token, and the check run's name
MARK = "<!-- many-heads: grade -->"  # identifies the comment for the next push
ENDINGS = {  # how a job ended that did not succeed
    "failure": "did not finish: a fault of the grader or of this repository's set-up, not yours. Your instructor can see why.",
    "cancelled": "was stopped. Push again, or ask your instructor to run it again.",
    "skipped": "was skipped.",
}
NOT_COLLECTED = (
    "## Not graded\n\nThe files of this pull request could not be read. The step “Collect the exercise files” of job "
    "`cpu` says why. Push again, or ask your instructor."
)
NOTHING_STARTED = (
    "## Nothing is started\n\nEvery exercise is as it was handed out, or is not there under its own name. "
    "Fill one, `make check`, push again."
)
AT_MOST = 50  # annotations in one request to the service
_BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)  # `text_block` lets no text end it early


@dataclass(frozen=True)
class Run:
    """The results of a grading job. `results`: None if there are none; then `instead` says why."""

    results: Sequence[Result] | None
    instead: str = ""


def write_report(course: Course, environment: Environment, submitted: Path, cpu: Path, gpu: Path) -> str:
    """Write the comment, the check run and the summary of this run. Returns a line about them.

    The comment is about the newest commit: the run of an older commit does not change it.
    Raises CourseFault; after writing everything that can be written, also ServiceError, or ArtifactError for an
    invalid artifact.
    """
    asked, faults = pull_request(environment), list[CourseFault]()
    found: Sequence[Mapping[str, Any]] = ()
    try:
        collected = read_collected(submitted)
    except CourseFault:  # collecting failed here, so it failed in the grading job too
        conclusion, title, text = "neutral", "Not graded", NOT_COLLECTED
    else:
        if (asked.head, asked.student) != (collected.head, collected.student):
            raise CourseFault(f"{submitted} is of another commit. Next: course ci collect --out {submitted}")
        ended, artifacts = [needed(environment, name) for name in ("CPU_RESULT", "GPU_RESULT")], list[Artifact | None]()
        for how, folder in zip(ended, (cpu, gpu), strict=True):
            try:
                artifacts.append(read_artifact(folder, course, collected) if how == "success" else None)
            except ArtifactError as error:
                artifacts.append(None)
                faults.append(error)
        from_cpu, (on_a_cpu, on_a_gpu) = (
            artifacts[0] or Artifact(),
            (each.results if each else None for each in artifacts),
        )
        on_cpu, label = cpu_run(ended[0], on_a_cpu), environment.get("GPU_RUNNER", "")
        on_gpu = gpu_run(ended[1], label, on_a_gpu, on_cpu, collected.refused, labels_of(course))
        spared = not_started(course, from_cpu.started)
        conclusion, title = verdict(on_cpu, on_gpu, spared)
        text = body(course, on_cpu, on_gpu, collected.refused, spared, asked.head)
        found = annotate(course, from_cpu.results, from_cpu.started, submitted)
    add_summary(environment, text)
    api = api_of(environment, asked.repository)
    output = {"title": title, "summary": text, "annotations": found}
    about = {"name": NAME, "head_sha": asked.head, "status": "completed", "conclusion": conclusion, "output": output}
    for write in (lambda: api.call("POST", "check-runs", about), lambda: write_comment(api, asked, text)):
        try:
            write()
        except ServiceError as error:  # the other one is written all the same
            faults.insert(0, error)
    for fault in faults:
        raise fault
    return f"Reported {title} ({conclusion})."


def write_comment(api: Api, request: PullRequest, text: str) -> None:
    """Update our comment, or write it if there is none; nothing where another commit is the head by now. Raises ServiceError."""
    if str(api.call("GET", f"pulls/{request.number}")["head"]["sha"]) != request.head:
        return
    marked = {"body": f"{MARK}\n{text}"}
    for comment in api.pages(f"issues/{request.number}/comments"):
        # A comment of another account, or of one that is deleted, is not ours, even with our mark.
        if comment["user"] and comment["user"]["login"] == OURSELVES and str(comment["body"]).startswith(MARK):
            api.call("PATCH", f"issues/comments/{int(comment['id'])}", marked)
            return
    api.call("POST", f"issues/{request.number}/comments", marked)


# What is said.


def cpu_run(outcome: str, results: Sequence[Result] | None) -> Run:
    """Return the run on a CPU, from how the job ended (`needs.cpu.result`)."""
    if outcome == "success" and results is not None:
        return Run(results)
    return Run(None, f"Grading {ENDINGS.get(outcome, ENDINGS['failure'])}")


def gpu_run(
    outcome: str, label: str, results: Sequence[Result] | None, cpu: Run, refused: Sequence[str], labels: Labels = IDS
) -> Run:
    """Return the run on a GPU, or the reason why there is none."""
    if not label:
        return Run(None, "Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty).")
    if cpu.results is None:
        return Run(None, "Not run: grading on a CPU comes first.")
    if outcome == "skipped":
        return Run(None, f"Not run. {why_not_on_a_gpu(cpu.results, refused, labels) or 'Nobody approved it.'}")
    if outcome == "success" and results is not None:
        return Run(results)
    return Run(None, f"The run {ENDINGS.get(outcome, ENDINGS['failure'])}")


def verdict(cpu: Run, gpu: Run, not_started: NotStarted) -> tuple[str, str]:
    """Return the check run's conclusion and title: failure if anything started fails, success if all passes, else neutral."""
    if not cpu.results:
        return "neutral", "Not graded" if cpu.results is None else "Nothing is started"
    results = [*cpu.results, *(gpu.results or ())]
    started = [e for r in results for e in r.exercises if (r.assignment, e.id) not in not_started]
    graded = [e for e in started if e.is_graded]
    # Also a check without points, such as those for a GPU, is not to fail.
    ended = {check.outcome for e in graded for check in e.checks}
    right = all(e.score == e.max_score for e in graded) and ended <= {"passed", "skipped"}
    return ("success" if graded == started else "neutral") if right else "failure", out_of_all(cpu.results)


def body(
    course: Course, cpu: Run, gpu: Run | None, refused: Sequence[str], not_started: NotStarted, commit: str
) -> str:
    """Return the report as Markdown, in which a student's text is shown literally. Without `gpu`, a GPU is not mentioned."""
    labels = labels_of(course)
    parts = [NOTHING_STARTED if cpu.results is not None else f"## Not graded\n\n{cpu.instead}"]
    if cpu.results:
        parts = [results_section(course.title, cpu.results, not_started, labels)]
    if refused:
        parts.append("These files are not graded:\n\n" + text_block("\n".join(refused)))
    if gpu is not None and gpu.results is None:
        parts.append(f"**On a GPU:** {gpu.instead}")
    elif gpu is not None and gpu.results is not None:
        devices = ", ".join(sorted({result.device for result in gpu.results}))
        parts.append(results_section(f"On the GPU runner ({devices})", gpu.results, not_started, labels))
    if cpu.results:
        versions = cpu.results[0].versions.get("torch", "?")
        parts.append(text_block(f"commit {commit[:10]}, isolation: {cpu.results[0].isolation}, torch {versions}"))
    text = "\n\n".join(parts)
    if len(text.encode()) <= LONGEST:
        return text
    # Too long for a comment: the tables only. What stands in a block is no table, however it begins.
    lines = [line for line in _BLOCK.sub("", text).splitlines() if line.startswith(("## ", "### ", "| ", "|---"))]
    return "\n".join([*lines, "", CUT]).encode()[:LONGEST].decode(errors="ignore")


# Remarks on lines of the student's files.


def annotate(course: Course, results: Sequence[Result], started: Started, submitted: Path) -> list[dict[str, Any]]:
    """Return an annotation for each exercise that is started and not right, as the API takes it, which shows its text literally."""
    found = []
    known = {each.id: each for each in course.exercises}
    for result in results:
        for graded in result.exercises:
            name, exercise = started.get((result.assignment, graded.id)), known[graded.id]
            if name and not attempt_words(graded).passed:
                line = _line(course, exercise, graded, submitted / result.student / result.assignment / name)
                about = {"path": f"exercises/{result.assignment}/{name}", "start_line": line, "end_line": line}
                said = {"title": f"{label_of(exercise)}: {out_of(graded)}", "message": attempt_text(graded)[:4000]}
                found.append({**about, "annotation_level": "warning", **said})
    return found[:AT_MOST]


def _line(course: Course, exercise: Exercise, result: ExerciseResult, file: Path) -> int:
    """Return the line that is proved to be wrong, else that in the first failed check's evidence, else that of a definition."""
    source = read_file(file, course.limits.source_kib)
    lines, first, asked = lines_of(source.source), attempt_words(result).first, asked_of(exercise)
    found = [proved.line for proved in result.lines] + [named_line(first.evidence, source) if first else 0]
    parts = statements_of(source.source)
    found += [part.lineno for part in parts if isinstance(part, DEFINITIONS) and part.name in asked]
    line = next((line for line in found if 1 <= line <= len(lines)), 1)
    return _line_of_notebook(file.read_bytes(), lines[:line]) if file.suffix == ".ipynb" else line


def _line_of_notebook(content: bytes, code: Sequence[str]) -> int:
    """Return the line of the .ipynb file that the last of these lines stands on: Jupyter writes one line of code on each."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines_of(content.decode("utf-8-sig", "replace")), 1):
        try:
            text = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):  # somebody else's file: it may be brackets alone
            continue
        if isinstance(text, str):
            places.setdefault(text.rstrip("\n"), []).append(number)
    place = 0
    for text in filter(str.strip, code):
        found = places.get(text, [])
        after = bisect_right(found, place)
        place = found[after] if after < len(found) else place
    return max(place, 1)
