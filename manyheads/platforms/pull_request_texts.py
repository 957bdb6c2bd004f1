"""Write the texts of a pull request: the comment, the summary, the check run and its annotations."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Course, Exercise
from ..report.labels import IDS, Labels, label_of, labels_of
from ..report.markdown import CUT, LONGEST, attempt_text, results_section, text_block
from ..report.result_evidence import ExerciseEvidence, evidence_of
from ..report.words import attempt_words, out_of, out_of_all
from ..result import ExerciseResult, Result
from ..submission import AttemptSource, lines_of, read_file
from .grade_pull_request import Started, why_not_on_a_gpu

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
    """Return the run on a CPU, from how the job ended (`needs.cpu.result`)."""
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


def verdict(cpu: Run, gpu: Run, not_started: NotStarted) -> Conclusion:
    """Return the conclusion: failure if anything that is started fails, success if all of it passes, else neutral."""
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
    """Return whether no check fails, including checks without points, such as those for a GPU."""
    every = all(check.outcome in ("passed", "skipped") for check in exercise.checks)
    return exercise.score == exercise.max_score and every


def body(
    course: Course, cpu: Run, gpu: Run | None, refused: Sequence[str], not_started: NotStarted, commit: str
) -> str:
    """Return the report as Markdown, in which a student's text is shown literally. Without `gpu`, a GPU is not mentioned."""
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
    """Return the tables only, for a text that is too long for a comment. What stands in a block is no table, however it begins."""
    lines = [line for line in _BLOCK.sub("", text).splitlines() if line.startswith(("## ", "### ", "| ", "|---"))]
    return "\n".join([*lines, "", CUT]).encode()[:LONGEST].decode(errors="ignore")


# The annotations of a check run: remarks on lines of the student's files.

AT_MOST = 50  # annotations in one request to the service
LONGEST_EVIDENCE = 64_000  # bytes of an annotation's details: the service takes 64 KB
# In the grader's evidence: "… on line 12", or of a notebook "… on line 3 of code cell 2".
_LINE = re.compile(r"\bline ([0-9]{1,7})\b(?: of code cell ([0-9]{1,7})\b)?")
_DEFINITION = re.compile(r"(?:def|class) ([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Annotation:
    """A remark on one line of a file of the pull request. evidence: the same as data, as `course check --json` gives it."""

    path: str
    line: int
    title: str
    message: str
    evidence: str = ""


def annotate(course: Course, results: Sequence[Result], started: Started, submitted: Path) -> list[Annotation]:
    """Return an annotation for each exercise that is started and not right."""
    found = []
    known = {a.id: a for a in course.assignments}
    for result in results:
        assignment = known[result.assignment]
        folder = submitted / result.student / assignment.id
        for exercise, graded in zip(assignment.exercises, result.exercises, strict=True):
            name = started.get((exercise.assignment.id, exercise.id))
            if name and not attempt_words(graded).passed:
                found.append(_annotation(course, exercise, graded, folder / name))
    return found[:AT_MOST]


def _annotation(course: Course, exercise: Exercise, result: ExerciseResult, file: Path) -> Annotation:
    source = read_file(file, course.limits.source_kib)
    stub = exercise.script.read_text(encoding="utf-8")
    line = _line(source, result, {m[1] for m in map(_DEFINITION.match, stub.splitlines()) if m})
    if file.suffix == ".ipynb":
        line = _line_of_notebook(file.read_bytes(), source.source, line)
    path = f"exercises/{exercise.assignment.id}/{file.name}"
    title = f"{label_of(exercise)}: {out_of(result)}"
    return Annotation(path, line, title, attempt_text(result)[:4000], _evidence(exercise, result, source, path))


def _evidence(exercise: Exercise, result: ExerciseResult, source: AttemptSource, path: str) -> str:
    """Return the exercise's evidence as JSON; "" where it is longer than the service takes."""
    functions, checks = evidence_of(result, source)
    told = ExerciseEvidence(
        id=exercise.id,
        title=exercise.title,
        assignment=exercise.assignment.id,
        file=path,
        state="in progress",
        score=result.score or 0.0,
        max_score=result.max_score,
        functions=functions,
        checks=checks,
        note=result.note,
    )
    text = told.model_dump_json(indent=1)
    return text if len(text.encode()) <= LONGEST_EVIDENCE else ""


def _line(source: AttemptSource, result: ExerciseResult, asked_for: set[str]) -> int:
    """Return the line for an annotation.

    It is the line that is proved to be wrong, else the one in the evidence of the first failed check, else that of the first
    definition that the exercise asks for.
    """
    lines = lines_of(source.source)
    for proved in result.lines:
        if proved.line <= len(lines):
            return proved.line
    first = attempt_words(result).first
    named = _line_named(first.evidence, source) if first is not None else 0
    if 1 <= named <= len(lines):
        return named
    definitions = ((i, _DEFINITION.match(line)) for i, line in enumerate(lines, 1))
    return next((i for i, match in definitions if match and match[1] in asked_for), 1)


def _line_named(evidence: str, source: AttemptSource) -> int:
    """Return the line of the attempt's text that the evidence names first; 0 where it names none."""
    named = _LINE.search(evidence)
    if named is None:
        return 0
    cell = int(named[2] or 0)
    return int(named[1]) + (source.cells[cell - 1] - 1 if 1 <= cell <= len(source.cells) else 0)


def _line_of_notebook(content: bytes, source: str, line: int) -> int:
    """Return the line of the .ipynb file that contains this line of code: Jupyter writes one line of code on each line."""
    places: dict[str, list[int]] = {}
    for number, shown in _strings(lines_of(content.decode("utf-8-sig", "replace"))):
        places.setdefault(shown, []).append(number)
    place = 0
    for text in filter(str.strip, lines_of(source)[:line]):
        found = places.get(text, [])
        after = bisect_right(found, place)
        place = found[after] if after < len(found) else place
    return max(place, 1)


def _strings(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        try:
            text = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):  # somebody else's file: it may be brackets alone
            continue
        if isinstance(text, str):
            yield number, text.rstrip("\n")


def titled(annotation: Annotation) -> dict[str, object]:
    """Return the annotation in the form of the service's API, which shows its text literally."""
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": "warning",
        "title": annotation.title,
        "message": annotation.message,
        **({"raw_details": annotation.evidence} if annotation.evidence else {}),
    }
