"""Read results from nbgrader's database, with what was given by hand there."""

from __future__ import annotations

from nbgrader.api import SubmittedAssignment, SubmittedNotebook

from ..course import Assignment, Course
from ..errors import CourseFault
from ..report.aggregate import NOT_HELD
from ..result import CheckResult, ExerciseResult, Result, total_of
from .nbgrader_database import demand_points, reading


def read_gradebook(course: Course, url: str) -> list[Result]:
    """Return a result for every submission of the course's assignments, ordered by student.

    A notebook of which a cell still needs a grade by hand is not graded. Each autograded cell becomes a check, whose evidence is the notebook's comment. Raises CourseFault.
    """
    with reading(url) as book:
        results = [
            _result(assignment, submission)
            for assignment in course.assignments
            for submission in book.assignment_submissions(assignment.id)
        ]
        if not results:
            raise CourseFault("the gradebook holds no submission. Next: course grade SUBMITTED --gradebook URL")
        return sorted(results, key=lambda r: (r.student, r.assignment))


def _result(assignment: Assignment, submission: SubmittedAssignment) -> Result:
    notebooks = {notebook.name: notebook for notebook in submission.notebooks}
    for notebook in notebooks.values():
        for grade in notebook.grades:
            demand_points(submission.student_id, notebook.name, grade)
    stems = {exercise.stem: exercise.id for exercise in assignment.exercises}
    exercises = tuple(_exercise(id_, notebooks[stem]) for stem, id_ in stems.items() if stem in notebooks)
    return Result(
        student=submission.student_id,
        assignment=assignment.id,
        score=total_of(e.score for e in exercises),
        max_score=sum(e.max_score for e in exercises),
        device=NOT_HELD,
        isolation=NOT_HELD,
        seed=0,
        versions={},
        exercises=exercises,
    )


def _exercise(id_: str, notebook: SubmittedNotebook) -> ExerciseResult:
    comments = sorted(notebook.comments, key=lambda c: c.name)
    said = "\n".join(c.comment.strip() for c in comments if c.comment)
    checks = tuple(
        CheckResult(
            id=grade.name,
            title=grade.name,
            outcome="passed" if grade.score >= grade.max_score else "failed",
            score=max(0.0, grade.score),
            max_score=grade.max_score,
            evidence="" if grade.score >= grade.max_score else said,
        )
        for grade in sorted(notebook.grades, key=lambda g: g.name)
        if grade.max_score
    )
    penalty = notebook.late_submission_penalty or 0.0
    waits = any(grade.needs_manual_grade and grade.manual_score is None for grade in notebook.grades)
    return ExerciseResult(
        id=id_,
        score=None if waits else max(0.0, notebook.score - penalty),
        max_score=notebook.max_score,
        checks=checks,
        note=f"late: −{penalty:g}" if penalty else "",
    )
