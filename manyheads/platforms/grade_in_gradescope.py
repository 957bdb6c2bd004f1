"""Grade inside Gradescope's container, from /autograder/submission to results/results.json.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ and …/submission_metadata/ describe
these files.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ValidationError

from ..box.level_and_device_names import BoxUnavailable, Level
from ..course import Assignment, Course, load_course
from ..course.final_scores import Decisions, final
from ..course.model import FOLDER, assignment_named, course_secret
from ..files import write_whole
from ..judge.judge_process import Graded, GradePlan, SteadyJudge
from ..report.report_content import labels_of
from ..report.score_exports import gradescope_result
from ..result import HandedIn, Result, with_not_readable, with_total
from ..submission import Submission
from ..submission.collect_downloads import collect
from ..submission.find_submitted_files import Exercises
from ..submission.intake_journal import State, read_journal

COURSE = Path("source") / "course"  # part of the autograder's zip
RESULTS = Path("results") / "results.json"  # the file that Gradescope reads
STUDENT = "student"  # a placeholder, because results.json has no names
MAX_MESSAGES = 20  # sentences about files that are not graded
_SAYS = {
    Level.NAMESPACES: (
        "Your code ran in a box of its own: without network, and with nothing of the grader "
        "to read."
    ),
    Level.USER: (
        "Your code ran as a user of its own, which can neither read the grader's files nor "
        "write this result."
    ),
}
_FAILED = (
    "Nothing was graded. The grader itself failed; your code is not the reason. Tell your "
    "instructor."
)
_ELSEWHERE = (
    "Nothing was graded, for no file is of this assignment: hand in where the files belong, "
    "and here what belongs here."
)


class _Metadata(BaseModel):
    """The fields of submission_metadata.json that are used."""

    created_at: AwareDatetime | None = None


def grade_for_gradescope(root: Path, assignment: str) -> Result:
    """Grade the hand-in, write results.json, and return the result.

    If grading fails, results.json has no score, and Gradescope enters no points. The folders of the
    course, the results and the secret are closed to all other users.

    Args:
        root: the folder of the autograder: /autograder, except in tests.
        assignment: the id of the assignment.

    Raises:
        CourseFault: the course or the hand-in cannot be read, or no box can be opened here.
    """
    started = time.monotonic()
    try:
        _close(root)
        course = load_course(root / COURSE)
        result, content = _grade_files(course, assignment_named(course, assignment), root)
    except BaseException:
        # Without a score, Gradescope says that the autograder failed, and enters no points.
        _write(root, {"output": _FAILED, "output_format": "text"}, started)
        raise
    _write(root, content, started)
    return result


def _grade_files(
    course: Course, assignment: Assignment, root: Path
) -> tuple[Result, dict[str, object]]:
    """Grade the attempts in the hand-in, and return the result and the content of results.json.

    An attempt may lie in any folder or archive. The content names files that are not graded, at
    most MAX_MESSAGES. If all attempts belong to other assignments, the result has no scores. Faults
    of the grader are printed.
    """
    labels = labels_of(course)
    with tempfile.TemporaryDirectory(prefix="course-gradescope-") as directory:
        collected = collect(course, [root / "submission"], Path(directory), student=STUDENT)
        folder = Path(directory) / STUDENT / assignment.id
        folder.mkdir(parents=True, exist_ok=True)
        names = read_journal(Path(directory)).not_readable.get(STUDENT, {}).get(assignment.id, ())
        graded = _grade_isolated(course, Submission(STUDENT, assignment, folder))
    for fault in graded.faults:
        print(f"course: a fault of the grader's own: {fault}. Next: course verify")
    graded_result = with_not_readable(graded.result, tuple(names)).model_copy(
        update={"handed_in": _handed_in(root)}
    )
    result = final(graded_result, Decisions.of_course(course))
    content = gradescope_result(result, labels)
    exercises = Exercises(course)
    attempts = [refusal for refusal in collected.refusals if exercises.may_be_work(refusal[0])]
    lines = [f"not graded: {path} {why}" for path, why in attempts]
    counts = "is not graded: another file is of the same exercise"
    lines += [
        f"not graded: {e.origin.path} {counts}"
        for e in collected.candidates
        if e.state is State.OLDER
    ]
    misplaced = [
        candidate for candidate in collected.candidates if candidate.assignment != assignment
    ]
    lines += [
        f"not graded: {e.origin.path} is of {labels.assignment(e.assignment.id)}, not of this one"
        for e in misplaced
    ]
    if len(lines) > MAX_MESSAGES:
        lines[MAX_MESSAGES:] = [f"and {len(lines) - MAX_MESSAGES} more files"]
    if other_count := len(collected.refusals) - len(attempts):
        lines.append(
            f"{other_count} other {'file is' if other_count == 1 else 'files are'} no script and "
            "no notebook"
        )
    lines += collected.notes
    # Without this, work for another assignment would get 0 points here.
    if misplaced and len(misplaced) == len(collected.candidates):
        result = with_total(
            result, [e.model_copy(update={"score": None}) for e in result.exercises]
        )
        return result, {"output": "\n".join((_ELSEWHERE, *lines)), "output_format": "text"}
    isolation = _SAYS[Level(result.isolation)]
    content["output"] = "\n".join((*lines, str(content["output"]), isolation))
    return result, content


def _grade_isolated(course: Course, submission: Submission) -> Graded:
    """Grade at the strongest level of isolation that works here. The result names the level.

    Print why a stronger level does not work. Raises BoxUnavailable if no level works.
    """
    reasons = []
    for level in _SAYS:
        plan = GradePlan(course_secret(course.root), course=course.root, level=level)
        with closing(SteadyJudge(plan)) as judge:
            try:
                return judge.grade(submission)
            except BoxUnavailable as error:
                print(f"level {level}: {error}")
                reasons.append(str(error).partition(" Next: ")[0].rstrip("."))
    raise BoxUnavailable(
        f"{'; '.join(reasons)}. Next: docs/gradescope.md says what the container has to allow"
    )


def _close(root: Path) -> None:
    """Close the course, the results and the secret to all other users.

    Unpacking the zip may have set other permissions.
    """
    for folder in (root / "source", (root / RESULTS).parent, root / COURSE / FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    for secret in (root / COURSE / FOLDER).iterdir():
        secret.chmod(0o600)


def _handed_in(root: Path) -> HandedIn | None:
    """Return the time of the hand-in in Gradescope's metadata, or None if there is none.

    If the metadata cannot be read, print the reason, and return None.
    """
    try:
        created = _Metadata.model_validate_json(
            (root / "submission_metadata.json").read_bytes()
        ).created_at
    except (OSError, ValidationError) as error:
        print(f"no time from submission_metadata.json: {type(error).__name__}")
        return None
    return None if created is None else HandedIn(source="Gradescope", time=created)


def _write(root: Path, content: dict[str, object], started: float) -> None:
    """Write results.json. Students see only this file, and not the output of the grader."""
    seconds = round(time.monotonic() - started, 1)
    report = {
        **content,
        "execution_time": seconds,
        "visibility": "visible",
        "stdout_visibility": "hidden",
    }
    write_whole(root / RESULTS, (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode())
    os.chmod(root / RESULTS, 0o600)
