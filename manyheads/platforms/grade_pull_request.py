"""Grade the files of a pull request in the box, and report the results.

A grading job writes its results to an artifact. The job that reports them has other rights, so it
does not trust the artifact, and checks that it is possible in this course.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from math import isclose
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from ..box.level_and_device_names import Device, Level
from ..course import Assignment, Course, Exercise
from ..course.model import course_secret
from ..files import CourseFault
from ..judge.judge_process import GradePlan, SteadyJudge
from ..report.markdown import CUT, LONGEST, attempt_text, results_section, text_block
from ..report.report_content import (
    IDS,
    Labels,
    attempt_words,
    label_of,
    labels_of,
    out_of,
    out_of_all,
    without_edits,
)
from ..result import MOST_LINES, ExerciseResult, Result, with_total, write_result
from ..submission import (
    ENDINGS,
    Source,
    Unreadable,
    find_submissions,
    lines_of,
    read_attempt,
    read_bytes,
    read_file,
)
from ..submission.read import LINE_LIMIT, asked_of
from ..submission.source import DEFINITIONS, named_line
from . import read_pull_request
from .read_pull_request import Api, CollectedCommits, Environment, PullRequest, ServiceError

CLEAN = "clean"  # the output of a grading job after which attempts may run on a GPU
# outcomes of checks that keep attempts from a GPU, in words
EXCLUDED = {"crashed": "crashed", "timeout": "ran out of time"}
ABOUT = "about.json"  # the file of the artifact
LIMIT_KIB = 4096  # KiB, of the largest artifact that is read
CHECKS = 200  # most checks of one exercise
# the account of the workflow's token, and the check run's name
OURSELVES, NAME = "github-actions[bot]", "grade"
MARK = "<!-- many-heads: grade -->"  # identifies the comment for the next push
ENDED = {  # the outcome of a job that did not succeed
    "failure": (
        "did not finish: a fault of the grader or of this repository's set-up, not yours. "
        "Your instructor can see why."
    ),
    "cancelled": "was stopped. Push again, or ask your instructor to run it again.",
    "skipped": "was skipped.",
}
NOT_COLLECTED = (
    "## Not graded\n\nThe files of this pull request could not be read. The step “Collect the "
    "exercise files” of job `cpu` says why. Push again, or ask your instructor."
)
NOTHING_STARTED = (
    "## Nothing is started\n\nEvery exercise is as it was handed out, or is not there under its "
    "own name. Fill one, `make check`, push again."
)
AT_MOST = 50  # annotations in one request to the service
LONGEST_MESSAGE = 4000  # characters of an annotation: the rest is in the comment
_BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)  # `text_block` lets no text end it early

NotStarted = Collection[tuple[str, str]]  # ids (assignment, exercise)
WorkflowRun = Sequence[Result] | str  # the results of a grading job, or why there are none


class Artifact(BaseModel):
    """The results of a grading job, for the reporting job and for the next push.

    Attributes:
        head: the commit that was graded.
        started: the name of the file that counted, for each exercise that is started. The reporting
            job cannot decide this, because only the private course can.
        digests: the digest of each attempt, by exercise.
        results: a result for each assignment with an exercise that is started.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str = ""
    head: str = ""
    device: Device = Device.CPU
    started: dict[str, str] = {}
    digests: dict[str, str] = {}
    results: tuple[Result, ...] = ()


class ArtifactError(CourseFault):
    """The artifact cannot come from grading this pull request.

    The message ends with the next step.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"{ABOUT} is not what grading writes ({problem}). Next: run the workflow again"
        )


def why_not_on_a_gpu(
    results: Sequence[Result], refused: Sequence[str], labels: Labels = IDS
) -> str:
    """Return the reason why attempts may not run on the GPU, as one sentence; "" if they may.

    They may if something is started, no file was refused, nothing crashed or ran out of time on the
    CPU, and at least one check has points.

    Args:
        results: the results on a CPU.
        refused: sentences about refused files.
        labels: the course's titles.
    """
    if not results:
        return "Nothing is started."
    if refused:
        return "A file could not be taken."
    checks = [
        (exercise.id, check)
        for result in results
        for exercise in result.exercises
        for check in exercise.checks
    ]
    for id_, check in checks:
        if check.outcome in EXCLUDED:
            return f"An attempt ({labels.exercise(id_)}) {EXCLUDED[check.outcome]} on the CPU."
    return "" if any(check.score for _, check in checks) else "Nothing works on the CPU yet."


def not_started(course: Course, started: Mapping[str, str]) -> NotStarted:
    """Return the ids (assignment, exercise) of exercises that still are stubs, or missing."""
    return frozenset((e.assignment.id, e.id) for e in course.exercises if e.id not in started)


def grade_collected(
    course: Course, collected: CollectedCommits, submitted: Path, device: Device, out: Path
) -> Artifact:
    """Grade the assignments with an exercise that is started, and return the artifact.

    Attempts that have not changed since an earlier push, and were graded on the same device, are
    not graded again. Nothing is written. Faults of the grader at an exercise are printed to stderr.
    The results have no edits of lines.

    Args:
        course: the course.
        collected: the pull request.
        submitted: the folder with its files.
        device: the device on which attempts compute.
        out: a folder that may hold the artifact of an earlier push.

    Raises:
        BoxUnavailable: no box can be opened here.
        GraderFault: the grader itself failed.
    """
    previous, assignment_ids = Artifact(), set[str]()
    started, digests = dict[str, str](), dict[str, str]()
    with suppress(ArtifactError):
        artifact = read_artifact(out, course, collected.student)
        previous = artifact if artifact.device is device else previous
    for exercise in course.exercises:
        stub = Source("", exercise.script.read_text(encoding="utf-8")).code_digest
        folder = submitted / collected.student / exercise.assignment.id
        attempt = read_attempt(folder, exercise.stem, stub, course.limits.source_kib)
        digests[exercise.id] = attempt.digest
        if not attempt.missing and (attempt.problem or attempt.code_digest != stub):
            started[exercise.id] = attempt.name
            assignment_ids.add(exercise.assignment.id)
    earlier = {result.assignment: result for result in previous.results}
    unchanged = {
        exercise.id: exercise
        for result in previous.results
        for exercise in result.exercises
        if exercise.is_graded and previous.digests.get(exercise.id) == digests[exercise.id]
    }
    plan = GradePlan(
        course_secret(course.root), device=device, course=course.root, level=Level.NAMESPACES
    )
    results = []
    with ExitStack() as stack:
        judge: SteadyJudge | None = None  # started only if there is anything to grade
        for submission in find_submissions(course, submitted)[0]:
            id_, exercises = submission.assignment.id, submission.assignment.exercises
            if submission.student != collected.student or id_ not in assignment_ids:
                continue
            todo = [exercise.id for exercise in exercises if exercise.id not in unchanged]
            if not todo:
                results.append(earlier[id_])
                continue
            judge = judge or stack.enter_context(closing(SteadyJudge(plan)))
            graded = judge.grade(submission, todo)
            for fault in graded.faults:  # the instructor can read the job's log
                message = f"course: a fault of the grader's own: {fault}. Next: course verify"
                print(message, file=sys.stderr)
            by_id = {exercise.id: exercise for exercise in graded.result.exercises} | unchanged
            all_exercises = [without_edits(by_id[exercise.id]) for exercise in exercises]
            results.append(with_total(graded.result, all_exercises))
    return Artifact(
        student=collected.student,
        head=collected.head,
        device=device,
        started=started,
        digests=digests,
        results=tuple(results),
    )


def write_artifact(folder: Path, artifact: Artifact) -> None:
    """Write the artifact, and FOLDER/<student>/<assignment>.json for every result.

    Such files of an earlier push are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*/*.json"):  # files of an earlier push
        path.unlink()
    for result in artifact.results:
        write_result(result, folder)
    (folder / ABOUT).write_text(artifact.model_dump_json() + "\n", encoding="utf-8")


def read_artifact(folder: Path, course: Course, student: str, head: str = "") -> Artifact:
    """Return the artifact in a folder, if grading this student can have written it.

    Args:
        folder: the folder.
        course: the course.
        student: the student that it must have.
        head: the commit that it must have; "" allows any.

    Raises:
        ArtifactError: the artifact is missing, or not possible in this course.
    """
    try:
        artifact = Artifact.model_validate_json(read_bytes(folder / ABOUT, LIMIT_KIB))
    except Unreadable:
        raise ArtifactError("it is missing, no regular file, or too large") from None
    except ValidationError:
        raise ArtifactError("it does not follow the schema") from None
    assignments = {assignment.id: assignment for assignment in course.assignments}
    ids = [result.assignment for result in artifact.results]
    possible = {(e.id, f"{e.stem}{end}") for e in course.exercises for end in ENDINGS}
    _demand("it is of another commit", artifact.student == student and head in ("", artifact.head))
    _demand("its assignments", ids == [id_ for id_ in assignments if id_ in ids])
    _demand("what is started", possible.issuperset(artifact.started.items()))
    for result in artifact.results:
        _demand_possible(result, assignments[result.assignment], artifact)
    return artifact


def _demand(problem: str, holds: bool) -> None:
    if not holds:
        raise ArtifactError(problem)


def _demand_possible(result: Result, assignment: Assignment, artifact: Artifact) -> None:
    """Raise ArtifactError if the grader cannot have written the result, for example its points.

    The student, the device, the isolation, the exercises, the points and the lines are checked.
    """
    is_own = (result.student, result.device) == (artifact.student, artifact.device)
    _demand("it is of another submission", is_own)
    _demand("it was not graded in the box", result.isolation == Level.NAMESPACES)
    ids = [exercise.id for exercise in assignment.exercises]
    _demand("its exercises", [exercise.id for exercise in result.exercises] == ids)
    for exercise, course_exercise in zip(result.exercises, assignment.exercises, strict=True):
        checks = exercise.checks
        earned = [check.max_score if check.outcome == "passed" else 0.0 for check in checks]
        ran = not any(check.outcome == "skipped" and check.max_score for check in checks)
        max_score = sum(check.max_score for check in checks)
        adds_up = (
            len(checks) <= CHECKS
            and [check.score for check in checks] == earned
            and _close(exercise.score, sum(earned) if ran else None)
            and _close(exercise.max_score, max_score)
            # A GPU has additional checks.
            and (artifact.device is not Device.CPU or _close(max_score, course_exercise.points))
        )
        _demand(f"its points in {course_exercise.id}", adds_up)
        allowed = len(exercise.lines) <= MOST_LINES and not (exercise.lines and exercise.is_done)
        are_plain = all(line.line <= LINE_LIMIT and not line.edit for line in exercise.lines)
        _demand(f"its lines in {course_exercise.id}", allowed and are_plain)
    total = with_total(result, result.exercises)
    adds_up = _close(total.score, result.score) and _close(total.max_score, result.max_score)
    _demand("its points", adds_up)


def _close(a: float | None, b: float | None) -> bool:
    """Return whether both are the same number of points, or both are None."""
    return a is b if a is None or b is None else isclose(a, b, abs_tol=1e-6)


def write_report(
    course: Course, environment: Environment, submitted: Path, cpu: Path, gpu: Path
) -> str:
    """Write the comment, the check run and the summary of this run, and return a line about them.

    If nothing was collected, or an artifact is not valid, the report says so.

    Args:
        course: the course.
        environment: the variables of the runner and of the workflow.
        submitted: the folder with the collected files.
        cpu: the artifact of the job on a CPU.
        gpu: the artifact of the job on a GPU.

    Raises:
        CourseFault: a variable is not set, or `submitted` is of another commit: then nothing is
            written. An error of the service or of an artifact is raised last, after everything that
            can be written is written.
    """
    request = read_pull_request.pull_request(environment)
    faults = list[CourseFault]()
    line_annotations = list[dict[str, Any]]()
    try:
        collected = read_pull_request.read_collected(submitted)
    except CourseFault:  # collecting failed here, so it failed in the grading job too
        conclusion, title, text = "neutral", "Not graded", NOT_COLLECTED
    else:
        if (request.head, request.student) != (collected.head, collected.student):
            raise CourseFault(
                f"{submitted} is of another commit. Next: course ci collect --out {submitted}"
            )
        cpu_outcome = read_pull_request.required_variable(environment, "CPU_RESULT")
        gpu_outcome = read_pull_request.required_variable(environment, "GPU_RESULT")
        artifacts = list[Artifact | None]()
        for outcome, folder in ((cpu_outcome, cpu), (gpu_outcome, gpu)):
            artifact = None
            try:
                if outcome == "success":
                    artifact = read_artifact(folder, course, request.student, request.head)
            except ArtifactError as error:
                faults.append(error)
            artifacts.append(artifact)
        from_cpu, from_gpu = artifacts
        label, labels = environment.get("GPU_RUNNER", ""), labels_of(course)
        on_cpu = run_of("Grading", cpu_outcome, from_cpu)
        on_gpu = gpu_run(gpu_outcome, label, from_gpu, on_cpu, collected.refused, labels)
        graded = from_cpu or Artifact()
        spared = not_started(course, graded.started)
        conclusion, title = verdict(on_cpu, on_gpu, spared)
        text = body(course, on_cpu, on_gpu, collected.refused, spared, request.head)
        line_annotations = annotate(course, graded, submitted)
    read_pull_request.tell(environment, "GITHUB_STEP_SUMMARY", text)
    api = read_pull_request.api_of(environment, request.repository)
    check_run = {
        "name": NAME,
        "head_sha": request.head,
        "status": "completed",
        "conclusion": conclusion,
        "output": {"title": title, "summary": text, "annotations": line_annotations},
    }
    try:
        api.call("POST", "check-runs", check_run)
    except ServiceError as error:  # the comment is written nevertheless
        faults.insert(0, error)
    write_comment(api, request, text)
    for fault in faults:
        raise fault
    return f"Reported {title} ({conclusion})."


def write_comment(api: Api, request: PullRequest, text: str) -> None:
    """Update our comment on the pull request, or write it if there is none.

    The comment is about the newest commit. A run for an older commit does not change it.

    Raises:
        ServiceError: the service refuses.
    """
    if str(api.call("GET", f"pulls/{request.number}")["head"]["sha"]) != request.head:
        return
    marked = {"body": f"{MARK}\n{text}"}
    for comment in api.pages(f"issues/{request.number}/comments"):
        # A comment with our mark may come from another account, or from a deleted one.
        is_ours = comment["user"] and comment["user"]["login"] == OURSELVES
        if is_ours and str(comment["body"]).startswith(MARK):
            api.call("PATCH", f"issues/comments/{int(comment['id'])}", marked)
            return
    api.call("POST", f"issues/{request.number}/comments", marked)


def run_of(job: str, outcome: str, artifact: Artifact | None) -> WorkflowRun:
    """Return the results of a job, or a sentence about its end.

    Args:
        job: the subject of the sentence.
        outcome: the result of the job, such as `needs.cpu.result`.
        artifact: the artifact of the job, if it can be read.
    """
    return artifact.results if artifact else f"{job} {ENDED.get(outcome, ENDED['failure'])}"


def gpu_run(
    outcome: str,
    label: str,
    artifact: Artifact | None,
    cpu: WorkflowRun,
    refused: Sequence[str],
    labels: Labels = IDS,
) -> WorkflowRun:
    """Return the results on a GPU, or a sentence with the reason why there are none.

    Args:
        outcome: the result of the job, such as `needs.gpu.result`.
        label: the label of the GPU runner; "" if the class has none.
        artifact: the artifact of the job, if it can be read.
        cpu: the results on a CPU.
        refused: sentences about refused files.
        labels: the course's titles.
    """
    if not label:
        return (
            "Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty)."
        )
    if isinstance(cpu, str):
        return "Not run: grading on a CPU comes first."
    if outcome == "skipped":
        return f"Not run. {why_not_on_a_gpu(cpu, refused, labels) or 'Nobody approved it.'}"
    return run_of("The run", outcome, artifact)


class Verdict(NamedTuple):
    """The conclusion and the title of a check run.

    Attributes:
        conclusion: "neutral" if there are no results on a CPU. Otherwise "failure" if a started
            exercise fails, "neutral" if one is not graded, and "success" if all pass.
        title: The points on the CPU, or why there are none.
    """

    conclusion: Literal["neutral", "failure", "success"]
    title: str


def verdict(cpu: WorkflowRun, gpu: WorkflowRun, not_started: NotStarted) -> Verdict:
    """Return the verdict on a run, from the results on both devices."""
    if isinstance(cpu, str) or not cpu:
        return Verdict("neutral", "Not graded" if cpu else "Nothing is started")
    results = [*cpu, *(() if isinstance(gpu, str) else gpu)]
    started = [e for r in results for e in r.exercises if (r.assignment, e.id) not in not_started]
    graded = [e for e in started if e.is_graded]
    # A check without points, such as one for a GPU, must not fail either.
    ended = {check.outcome for e in graded for check in e.checks}
    all_passed = all(e.score == e.max_score for e in graded) and ended <= {"passed", "skipped"}
    if not all_passed:
        return Verdict("failure", out_of_all(cpu))
    return Verdict("success" if graded == started else "neutral", out_of_all(cpu))


def body(
    course: Course,
    cpu: WorkflowRun,
    gpu: WorkflowRun | None,
    refused: Sequence[str],
    not_started: NotStarted,
    commit: str,
) -> str:
    """Return the report as Markdown, in which a student's text is shown literally.

    If the report has more than LONGEST bytes, return only its headings and tables, with a remark.

    Args:
        course: the course.
        cpu: the results on a CPU, or why there are none.
        gpu: the results on a GPU, or why there are none. None leaves the GPU out of the report.
        refused: sentences about refused files.
        not_started: the exercises that are not started.
        commit: the commit that was graded.
    """
    labels = labels_of(course)
    sections = [f"## Not graded\n\n{cpu}" if isinstance(cpu, str) else NOTHING_STARTED]
    if cpu and not isinstance(cpu, str):
        sections = [results_section(course.title, cpu, not_started, labels)]
    if refused:
        sections.append("These files are not graded:\n\n" + text_block("\n".join(refused)))
    if isinstance(gpu, str):
        sections.append(f"**On a GPU:** {gpu}")
    elif gpu is not None:
        devices = ", ".join(sorted({result.device for result in gpu}))
        sections.append(results_section(f"On the GPU runner ({devices})", gpu, not_started, labels))
    if cpu and not isinstance(cpu, str):
        by = f"isolation: {cpu[0].isolation}, torch {cpu[0].versions.get('torch', '?')}"
        sections.append(text_block(f"commit {commit[:10]}, {by}"))
    text = "\n\n".join(sections)
    if len(text.encode()) <= LONGEST:
        return text
    # The text is too long for a comment, so only its tables remain. A line within a block may look
    # like a table, but is none.
    lines = [
        line
        for line in _BLOCK.sub("", text).splitlines()
        if line.startswith(("## ", "### ", "| ", "|---"))
    ]
    return "\n".join([*lines, "", CUT]).encode()[:LONGEST].decode(errors="ignore")


def annotate(course: Course, artifact: Artifact, submitted: Path) -> list[dict[str, Any]]:
    """Return an annotation for each exercise that is started and not right, at most AT_MOST.

    An annotation has the form that the API expects, and GitHub shows its text literally.
    """
    line_annotations, exercises = [], {exercise.id: exercise for exercise in course.exercises}
    for result in artifact.results:
        for graded in result.exercises:
            name, exercise = artifact.started.get(graded.id), exercises[graded.id]
            if name and not attempt_words(graded).passed:
                path = submitted / result.student / result.assignment / name
                line = _line(course, exercise, graded, path)
                annotation = {
                    "path": f"exercises/{result.assignment}/{name}",
                    "start_line": line,
                    "end_line": line,
                    "annotation_level": "warning",
                    "title": f"{label_of(exercise)}: {out_of(graded)}",
                    "message": attempt_text(graded)[:LONGEST_MESSAGE],
                }
                line_annotations.append(annotation)
    return line_annotations[:AT_MOST]


def _line(course: Course, exercise: Exercise, result: ExerciseResult, file: Path) -> int:
    """Return the line of the file for an annotation.

    The line is the first that exists of: the lines that are proved to be wrong, the line that the
    evidence of the first wrong function names, the lines of the definitions, and line 1.
    """
    source = read_file(file, course.limits.source_kib)
    lines = source.lines
    first_failure = attempt_words(result).first_wrong
    names = asked_of(exercise)
    candidate_lines = [proved.line for proved in result.lines]
    if first_failure:
        candidate_lines.append(named_line(first_failure.evidence, source))
    candidate_lines += [
        statement.lineno
        for statement in source.statements
        if isinstance(statement, DEFINITIONS) and statement.name in names
    ]
    line = next((line for line in candidate_lines if 1 <= line <= len(lines)), 1)
    return _line_of_notebook(file.read_bytes(), lines[:line]) if file.suffix == ".ipynb" else line


def _line_of_notebook(content: bytes, code: Sequence[str]) -> int:
    """Return the line of the .ipynb file that holds the last of these lines of code.

    Jupyter writes each line of code on a separate line of the file. A line of code that is not
    found is skipped. If none is found, return 1.
    """
    numbers_by_text: dict[str, list[int]] = {}
    for number, line in enumerate(lines_of(content.decode("utf-8-sig", "replace")), 1):
        try:
            text = json.loads(line.strip().rstrip(","))
        # no string of JSON, or a hostile line, such as one of brackets only
        except (ValueError, RecursionError):
            continue
        if isinstance(text, str):
            numbers_by_text.setdefault(text.rstrip("\n"), []).append(number)
    position = 0
    for text in filter(str.strip, code):
        line_numbers = numbers_by_text.get(text, [])
        after = bisect_right(line_numbers, position)
        position = line_numbers[after] if after < len(line_numbers) else position
    return max(position, 1)
