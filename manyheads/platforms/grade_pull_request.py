"""Grade the collected files of one pull request in a box at level `namespaces`, and decide whether the GPU may run them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from ..box.names import Device, Level
from ..course import Course
from ..course.load import course_secret
from ..judge.judge_process import GradePlan, SteadyJudge
from ..report.labels import IDS, Labels
from ..result import Result
from ..submission import code_digest, find_submissions, read_attempt
from .pull_request_files import Collected

# Decide whether attempts may run on the GPU, from their results on a CPU.

CLEAN = "clean"
EXCLUDED = {"crashed": "crashed", "timeout": "ran out of time"}


def why_not_on_a_gpu(results: Sequence[Result], refused: Sequence[str], labels: Labels = IDS) -> str:
    """Return one sentence that says why not; empty if they may."""
    if not results:
        return "Nothing is started."
    if refused:
        return "A file could not be taken."
    for result in results:
        for exercise in result.exercises:
            for check in exercise.checks:
                if check.outcome in EXCLUDED:
                    return f"An attempt ({labels.exercise(exercise.id)}) {EXCLUDED[check.outcome]} on the CPU."
    if not any(check.score for result in results for exercise in result.exercises for check in exercise.checks):
        return "Nothing works on the CPU yet."
    return ""


Started = Mapping[tuple[str, str], str]  # ids (assignment, exercise): the name of the file that counts


def started_in(course: Course, handed_in: Path) -> Started:
    """Return the attempts in a student's folder that differ from their stubs."""
    started = {}
    for exercise in course.exercises:
        stub = code_digest(exercise.script.read_text(encoding="utf-8"))
        folder, stem = handed_in / exercise.assignment.id, exercise.stem
        source = read_attempt(folder, stem, stub, course.limits.source_kib)
        if not source.missing and (source.problem or code_digest(source.source) != stub):
            started[exercise.assignment.id, exercise.id] = source.name
    return started


def not_started(course: Course, started: Started) -> frozenset[tuple[str, str]]:
    """Return the ids (assignment, exercise) of all other exercises."""
    return frozenset((e.assignment.id, e.id) for e in course.exercises) - started.keys()


def grade_collected(
    course: Course, collected: Collected, submitted: Path, device: Device, started: Started
) -> list[Result]:
    """Return a result for each assignment with an exercise that is started.

    Where a judge dies or a check fails by itself, that exercise is not graded. Raises BoxUnavailable if this machine cannot
    provide the box, GraderFault if nothing can be graded.
    """
    worked_on = {assignment for assignment, _ in started}
    submissions, _ = find_submissions(course, submitted)
    wanted = [s for s in submissions if s.student == collected.student and s.assignment.id in worked_on]
    if not wanted:
        return []  # without starting a box
    plan = GradePlan(course_secret(course.root), device=device, course=course.root, level=Level.NAMESPACES)
    with closing(SteadyJudge(plan)) as judge:
        graded = [judge.grade(submission) for submission in wanted]
    for fault in (fault for result in graded for fault in result.faults):  # the instructor can read the job's log
        print(f"course: a fault of the grader's own: {fault}. Next: course verify", file=sys.stderr)
    return [result.result for result in graded]
