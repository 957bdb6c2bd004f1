"""`nbgrader autograde` in the box: preprocessors that replace nbgrader's execution of the notebook.

`BoxGrade` reads the student's file as data, has a judge process grade it as `course grade` does, and writes
the outcome of each autograded cell as a cell output, which nbgrader's own SaveAutoGrades
reads as points. `SaveComments` writes the same comment as `course grade --gradebook`.
No kernel is started. Of what the grader itself could not judge, nbgrader gets no score.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from ..authoring.stub_notebook import LOCKED, MAGICS
from ..box.names import Level
from ..course import Assignment, Course, Exercise
from ..course.decisions import Decisions, final
from ..course.load import course_secret
from ..errors import CourseFault
from ..judge.judge_process import GradePlan, SteadyJudge
from ..result import ExerciseResult, HandedIn, Result, total_of
from ..submission import Submission, find_submissions
from ..submission.lay_out import handed_in, read_memory
from .nbgrader_feedback import comment, group_report
from .nbgrader_writer import GradebookWriter, KnownCell, NotebookCells, leave_to_a_human, notebook_cells

LEVEL = Level.NAMESPACES
RESULT = "manyheads"  # the key of a result in nbconvert's resources

Resources = dict[str, Any]


@dataclass
class Decide:
    """Enters what counts, notebook by notebook: a command that is killed leaves whole notebooks."""

    assignment: Assignment
    decisions: Decisions
    times: dict[str, HandedIn]
    writer: GradebookWriter
    _graded: dict[str, dict[str, ExerciseResult]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, student: str, exercise: ExerciseResult, isolation: str) -> None:
        """Enter the student's exercises that are graded so far: an excuse of one changes what the others mean."""
        graded = self._graded[student]
        graded[exercise.id] = exercise
        exercises = tuple(graded[other.id] for other in self.assignment.exercises if other.id in graded)
        result = Result(
            student=student,
            assignment=self.assignment.id,
            score=total_of(other.score for other in exercises),
            max_score=sum(other.max_score for other in exercises),
            device="cpu",
            isolation=isolation,
            seed=0,
            versions={},
            exercises=exercises,
            handed_in=self.times.get(student),
        )
        self.writer.write(final(result, self.decisions))


@contextmanager
def deciding(
    course: Course, submitted: Path, assignment: Assignment, url: str, log: logging.Logger
) -> Iterator[Decide | None]:
    """Give what enters decisions about this assignment; None where there are none. Raises CourseFault."""
    decisions = Decisions.of_course(course)
    submissions, _ = find_submissions(course, submitted)
    own = [submission for submission in submissions if submission.assignment.id == assignment.id]
    for problem in decisions.of_nobody({each.student for each in own}, {assignment.id}):
        log.warning(problem)
    rows = [row for row in decisions.rows if row.assignment == assignment.id]
    if assignment.id not in decisions.dates and not rows:
        yield None
        return
    times = {each.student: time for each, time in handed_in(own, read_memory(submitted)).items()}
    with GradebookWriter(course, url, [assignment]) as writer:
        yield Decide(assignment, decisions, times, writer)


@dataclass(frozen=True)
class Grading:
    """The judge of one command, and the folder of submitted files.

    faults: what the grader itself failed at. not_graded: student and exercise, where that left no points.
    """

    course: Course
    judge: SteadyJudge
    submitted: Path
    decide: Decide | None = None
    faults: list[str] = field(default_factory=list)
    not_graded: list[str] = field(default_factory=list)

    def grade(self, student: str, exercise: Exercise) -> ExerciseResult:
        """Grade one attempt."""
        folder = self.submitted / student / exercise.assignment.id
        graded = self.judge.grade(Submission(student, exercise.assignment, folder), (exercise.id,))
        (result,) = graded.result.exercises
        self.faults.extend(graded.faults)
        if not result.is_graded:
            self.not_graded.append(f"{student}: {exercise.stem}")
        return result

    def demand_all(self) -> None:
        """Raise CourseFault where something is not graded."""
        if self.not_graded:
            raise CourseFault(
                f"not graded, because the grader itself failed: {', '.join(self.not_graded)}. formgrader shows that they need "
                "a grade by hand. Next: course verify, then the same command again with --force"
            )


_grading: list[Grading] = []  # of the running command: nbconvert constructs preprocessors without arguments of ours


@contextmanager
def grading(course: Course, submitted: Path, decide: Decide | None = None) -> Iterator[Grading]:
    """Start one judge for the whole command. decide: where anything is decided. Raises CourseFault.

    nbgrader grades a student now and another one later, so all of them have the same inputs: those of seed 0.
    """
    with closing(SteadyJudge(GradePlan(course_secret(course.root), course=course.root, level=LEVEL))) as judge:
        judge.wait()
        _grading.append(Grading(course, judge, submitted, decide))
        try:
            yield _grading[-1]
        finally:
            _grading.pop()


class BoxGrade(NbGraderPreprocessor):  # type: ignore[misc]
    """Grades the submitted file in the box, in place of executing the notebook."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the outcomes into the autograded cells."""
        exercise = _exercise_of(resources)
        result = _grading[-1].grade(str(resources["nbgrader"]["student"]), exercise)
        resources[RESULT] = result
        graded = {cell.grade_id: cell for cell in notebook_cells(exercise).graded}
        for cell in nb.cells:
            about = graded.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if about is not None and about.checks:
                said = new_output("stream", name="stdout", text=group_report(result, about.checks))
                score = new_output("execute_result", {"text/plain": repr(about.score(result))}, execution_count=None)
                cell.outputs = [said, score] if result.is_graded else [said]
        return nb, resources


class SaveScores(SaveAutoGrades):  # type: ignore[misc]
    """Saves nbgrader's scores, but none of what is not graded."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the scores into nbgrader's database."""
        if resources[RESULT].is_graded:
            saved: tuple[NotebookNode, Resources] = super().preprocess(nb, resources)
            return saved
        about, exercise = resources["nbgrader"], _exercise_of(resources)
        with Gradebook(about["db_url"]) as book:
            leave_to_a_human(book, notebook_cells(exercise), exercise.assignment.id, about["student"])
            book.db.commit()
        return nb, resources


class SaveComments(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes the comment on the student's first cell: evidence, diagnosis, hint. Manual comments are kept."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Write the comment into nbgrader's database."""
        exercise = _exercise_of(resources)
        result: ExerciseResult = resources[RESULT]
        cells = notebook_cells(exercise)
        with Gradebook(resources["nbgrader"]["db_url"]) as book:
            for i, cell in enumerate(cells.solutions):
                student = resources["nbgrader"]["student"]
                said = book.find_comment(cell.grade_id, cells.notebook, exercise.assignment.id, student)
                said.auto_comment = comment(result, LEVEL) if i == 0 else None
            book.db.commit()
        return nb, resources


class EnterDecisions(NbGraderPreprocessor):  # type: ignore[misc]
    """Makes of a student's scores in the database what counts: dates and decisions apply as in `course grade`."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Enter what counts of the student's notebooks that are graded so far."""
        decide, student = _grading[-1].decide, str(resources["nbgrader"]["student"])
        if decide is not None:
            decide.enter(student, resources[RESULT], LEVEL)
        return nb, resources


def _exercise_of(resources: Resources) -> Exercise:
    about = resources["nbgrader"]
    for exercise in _grading[-1].course.exercises:
        if (exercise.assignment.id, exercise.stem) == (about["assignment"], about["notebook"]):
            return exercise
    raise LookupError(f"{about['notebook']} is no exercise of course.yaml. Next: course release")


# A notebook that nbgrader can trust, from an attempt: the student's words, our metadata.
#
# Everything nbgrader reads from metadata (points, grade ids, schema versions, tags that skip a cell) comes from the
# release. So an edited, deleted, copied or mislabelled cell is put right before nbgrader sees it, and none can stop
# the class.

DELETED = "# This cell is not in what was handed in."


@dataclass(frozen=True)
class StudentCell:
    """A cell as the student left it."""

    source: str
    is_code: bool = True
    grade_id: str = ""


def cells_of_notebook(text: str) -> list[StudentCell]:
    """Return the cells of a notebook that can be read (`read_attempt` says so)."""
    return [_handed_in(cell) for cell in json.loads(text)["cells"]]


def cells_of_script(text: str, known: NotebookCells) -> list[StudentCell]:
    """Return the cells of a script: as the release has them where the student kept its marks, else one cell."""
    whole = [StudentCell(text, grade_id=known.solutions[0].grade_id if known.solutions else "")]
    try:
        parts = jupytext.reads(text, fmt="py:percent").cells
        tagged = [tag for part in parts for tag in part.metadata.get("tags", [])]
    except Exception:  # jupytext reads a student's YAML and markers: whatever it stumbles over, the text is code
        return whole
    if "solution" not in tagged:
        return whole
    solutions = iter([c.grade_id for c in known.solutions])
    others = [c for c in known.cells if not c.is_solution and not c.is_graded]
    cells = [StudentCell(c.source, grade_id=c.grade_id) for c in others if c.grade_id.endswith(f"-{MAGICS}")]
    locked = iter([c.grade_id for c in others[len(cells) :]])
    for part in parts:
        tags = part.metadata.get("tags", [])
        grade_id = next(solutions, "") if "solution" in tags else next(locked, "") if LOCKED.intersection(tags) else ""
        cells.append(StudentCell(str(part.source), part.cell_type == "code", grade_id))
    return cells


def rebuild(handed_in: Sequence[StudentCell], known: NotebookCells, problem: str = "") -> NotebookNode:
    """Return the student's cells in their order, each known cell once and with the release's metadata, none missing."""
    left = {cell.grade_id: cell for cell in known.cells}
    cells = [new_markdown_cell(problem)] if problem else []
    for cell in handed_in:
        place = left.pop(cell.grade_id, None)
        if place is not None:
            cells.append(_known(place, cell.source if place.is_solution else place.source))
        else:
            cells.append(new_code_cell(cell.source) if cell.is_code else new_markdown_cell(_text(cell.source, known)))
    cells += [_known(place, DELETED if place.is_solution else place.source) for place in left.values()]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    notebook: NotebookNode = new_notebook(cells=cells, metadata={"kernelspec": json.loads(known.kernelspec)})
    notebook.nbformat_minor = 5
    return notebook


def _text(markdown: str, known: NotebookCells) -> str:
    """Return a Markdown cell that is safe in an instructor's browser: the lesson's own as it is, a student's as plain text.

    nbgrader's pages render Markdown with the HTML, the scripts in its links and the remote images in it.
    """
    if markdown in known.texts:
        return markdown
    longest = max(map(len, re.findall("`+", markdown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{markdown}\n{fence}"


def _known(place: KnownCell, source: str) -> NotebookNode:
    cell: NotebookNode = new_code_cell(source, metadata=json.loads(json.dumps(place.metadata)))
    return cell


def _handed_in(cell: dict[str, object]) -> StudentCell:
    metadata = cell.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = about.get("grade_id") if isinstance(about, dict) else None
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    text = text.encode(errors="replace").decode()  # JSON may hold half of a surrogate pair, which no file can
    return StudentCell(text, cell.get("cell_type") == "code", grade_id if isinstance(grade_id, str) else "")
