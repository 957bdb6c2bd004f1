"""What was given by hand in nbgrader, as rows of overrides.yaml: scores, extra credit, comments."""

from __future__ import annotations

from collections.abc import Iterator

from nbgrader.api import SubmittedNotebook
from sqlalchemy.exc import SQLAlchemyError

from ..course import Course, Exercise
from ..decisions.overrides import Override
from .cells import notebook_cells
from .database import GradebookError, demand_file, demand_points, open_gradebook, reason

BY = "nbgrader"


def given_by_hand(course: Course, url: str) -> list[Override]:
    """A row for each, ordered by exercise and student. Raises GradebookError."""
    demand_file(url)
    book = open_gradebook(url)
    try:
        found: list[Override] = []
        for assignment in course.assignments:
            stems = {exercise.stem: exercise for exercise in assignment.exercises}
            for submission in sorted(book.assignment_submissions(assignment.id), key=lambda each: each.student_id):
                for notebook in submission.notebooks:
                    if notebook.name in stems:
                        found += _rows(submission.student_id, stems[notebook.name], notebook)
        return found
    except SQLAlchemyError as error:
        raise GradebookError(f"the gradebook cannot be read ({reason(error)}). Next: nbgrader db upgrade") from None
    finally:
        book.close()


def _rows(student: str, exercise: Exercise, notebook: SubmittedNotebook) -> Iterator[Override]:
    """Scores cell by cell: those of its checks together. What is more than a cell's points is extra credit."""
    grades = {grade.name: grade for grade in notebook.grades}
    extra = 0.0
    for cell in notebook_cells(exercise).graded:
        grade = grades.get(cell.grade_id)
        if grade is None:
            continue
        demand_points(student, notebook.name, grade)
        extra += grade.extra_credit or 0.0
        if grade.manual_score is None:
            continue
        extra += max(0.0, grade.manual_score - cell.points)
        if cell.checks:
            score = min(max(0.0, grade.manual_score), cell.points)
            yield Override(student=student, exercise=exercise.id, check=cell.checks, score=score, by=BY)
    if extra > 0:
        yield Override(student=student, exercise=exercise.id, extra_credit=extra, by=BY)
    for comment in sorted(notebook.comments, key=lambda each: each.name):
        if (comment.manual_comment or "").strip():
            yield Override(student=student, exercise=exercise.id, comment=comment.manual_comment.strip(), by=BY)
