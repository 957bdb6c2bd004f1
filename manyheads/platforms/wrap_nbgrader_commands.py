"""Make nbgrader's own commands work on this course.

`generate_assignment` first writes its source, and `autograde` grades attempts in the box instead of
in a kernel. nbgrader has no hook before it lists files, so the method `start` of the two converters
is wrapped. The buttons of the formgrader call the same method. Other assignments are processed as
usual.
"""

from __future__ import annotations

import inspect
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from fnmatch import filter as matching
from fnmatch import fnmatchcase
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.exchange.default import ExchangeCollect

from ..authoring.make_stub import stub_notebook
from ..authoring.release_exercises import write_release
from ..box.level_and_device_names import Level
from ..course import Assignment, Course, CourseError
from ..course.final_scores import Decisions, final, of_the_absent
from ..course.model import course_secret
from ..files import CourseFault, write_whole
from ..judge.judge_process import GradePlan, SteadyJudge, usable_cpu_count
from ..judge.run_hidden_checks import Catalogue
from ..result import Result, with_not_readable
from ..submission import Unreadable, read_text
from ..submission.intake_journal import ToGrade, to_grade
from ..submission.roster_and_times import Student, read_roster
from .nbgrader_gradebook import (
    NO_EXCUSES,
    GradebookWriter,
    attempt_notebook,
    group_report,
    read_released,
)

# nbgrader's name of the folder: formgrader links to it, and it may hold other assignments
SOURCE = Path("source")
# files that `nbgrader submit` adds to a submission
TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
_OURS = re.compile(r"[0-9]{2}_\w+\.(py|ipynb)|(fingerprints|trained|figures)/[0-9]{2}_[^/]+")


def prepare(course: Course) -> None:
    """Replace the `start` of nbgrader's two converters for this course's assignments.

    Also create the folder source/<assignment> of each assignment, if possible. A second call
    changes nothing.
    """
    # formgrader lists the assignments that have a folder here, and its button fills the folder
    for assignment in course.assignments:
        with suppress(OSError):
            (course.root / SOURCE / assignment.id).mkdir(parents=True, exist_ok=True)
    for converter, begin in ((GenerateAssignment, _generate), (Autograde, _autograde)):
        original = inspect.unwrap(converter.start)
        converter.start = _start_with(course, begin, original)


def _start_with(
    course: Course, begin: Callable[..., None], original: Callable[[Any], None]
) -> Callable[[Any], None]:
    """Return a method `start` that calls `begin` for an assignment of this course.

    For another assignment the method calls nbgrader's original one. If `begin` raises CourseFault,
    or the id is a pattern for an assignment of this course, the method logs the message and raises
    NbGraderException.
    """

    @wraps(original)
    def start(converter: Any) -> None:
        pattern = converter.coursedir.assignment_id
        try:
            for assignment in course.assignments:
                if assignment.id == pattern:
                    return begin(course, assignment, converter, partial(original, converter))
                if fnmatchcase(assignment.id, pattern):
                    raise CourseError(
                        f"{pattern} may name several assignments. Next: the same with "
                        f"{assignment.id}"
                    )
        except CourseFault as fault:
            converter.log.error(str(fault))
            raise NbGraderException(str(fault)) from None
        return original(converter)

    return start


def _generate(
    course: Course, assignment: Assignment, converter: Any, start: Callable[[], None]
) -> None:
    """Update exercises/, write source/ from it, and let nbgrader process source/.

    The notebooks in source/ keep their solutions. Files there of exercises that no longer exist are
    removed. Other files that an instructor put there stay.
    """
    folder, exercises = course.root / SOURCE / assignment.id, assignment.exercises_folder
    # source/ is made from solutions/, so git need not track it
    write_whole(folder / ".gitignore", b"*\n")
    catalogue = Catalogue(course)

    def log_stale(stale: int) -> AbstractContextManager[Callable[[], None]]:
        if stale:
            changed = f"what changed in solutions/ and grader/: {stale} exercises"
            converter.log.info(f"recording {changed}, maybe minutes")
        return nullcontext(lambda: None)

    jobs = usable_cpu_count()
    released = write_release(course, catalogue, assignment.exercises, jobs, log_stale)
    files = {folder / path.relative_to(exercises): path.read_bytes() for path in released}
    for exercise in assignment.exercises:
        source = exercise.solution.read_text(encoding="utf-8")
        notebook = stub_notebook(source, exercise.id, catalogue.checks(exercise))
        files[folder / exercise.notebook.relative_to(exercises)] = notebook.encode()
    for path, content in files.items():
        write_whole(path, content)
    for path in folder.rglob("*"):
        # files of an exercise that no longer exists
        if path not in files and _OURS.fullmatch(path.relative_to(folder).as_posix()):
            path.unlink()
    start()


def _autograde(
    course: Course, assignment: Assignment, converter: Any, start: Callable[[], None]
) -> None:
    """Write a valid notebook for each student and exercise, and let nbgrader process them.

    The attempts are graded in the box instead of in a kernel. The notebooks are in a temporary
    folder below .course, to which nbgrader's `submitted_directory` points during this call. At the
    end, scores by hand of students who handed in nothing are entered. Files that are not graded,
    and faults of the grader, are logged.

    Raises:
        CourseFault: an exercise is not graded: everything else is entered then. Or nothing can be
            graded.
    """
    directory, log, root = converter.coursedir, converter.log, course.root
    handed_in = Path(directory.root) / directory.submitted_directory
    work = to_grade(course, handed_in, [assignment], ())
    with_submission = {submission.student for submission in work.submissions}
    selected = [s for s in work.submissions if fnmatchcase(s.student, directory.student_id)]
    work = replace(work, submissions=selected)
    _log_not_graded(work, log)
    members = _students_on_roster(course)
    decisions = Decisions.of_course(course, members)
    on_roster = {student.id for student in members}
    names = on_roster | {folder.name for folder in handed_in.iterdir()}
    for problem in decisions.of_nobody(names, {assignment.id}):
        log.warning(problem)
    converter.exclude_overwriting = {
        assignment.id: [str(path) for path in _without_use(root / SOURCE / assignment.id)]
    }
    # Always seed 0, because submissions are graded at different times.
    plan = GradePlan(course_secret(root), course=root, level=Level.NAMESPACES)
    (root / ".course").mkdir(exist_ok=True)
    with ExitStack() as stack:
        temporary = TemporaryDirectory(prefix="submitted-", dir=root / ".course")
        staged = Path(stack.enter_context(temporary))
        _stage_submissions(course, work, staged, log)
        writer = stack.enter_context(GradebookWriter(course, directory.db_url, [assignment]))
        judge = stack.enter_context(closing(SteadyJudge(plan)))
        judge.wait()
        grading = Grading(assignment, judge, writer, decisions, work)
        converter.autograde_preprocessors = _preprocessors(assignment, grading)
        stack.callback(setattr, directory, "submitted_directory", directory.submitted_directory)
        directory.submitted_directory = str(staged.relative_to(root))
        start()
        grading.enter_absent(matching(sorted(on_roster - with_submission), directory.student_id))
    _report_grading(grading, log)


def _log_not_graded(work: ToGrade, log: Any) -> None:
    """Log each file that is not graded. A whole folder that is left out is worth a warning.

    nbgrader copies other files, and warns of none.
    """
    for entry in work.not_graded:
        report = log.info if "/" in entry.path else log.warning
        report(str(entry))


def _students_on_roster(course: Course) -> tuple[Student, ...]:
    """Return the students on the course's roster, or () if it has no roster."""
    if not course.file.roster:
        return ()
    return read_roster(course.root / course.file.roster).students


def _preprocessors(assignment: Assignment, grading: Grading) -> list[Any]:
    """Return nbgrader's preprocessors in their order, with the grading in the box as the first."""
    if assignment.row.due is not None:
        return [grading, "nbgrader.preprocessors.CheckCellMetadata"]
    # nbgrader itself computes penalties
    late_penalties = "nbgrader.preprocessors.AssignLatePenalties"
    return [grading, late_penalties, "nbgrader.preprocessors.CheckCellMetadata"]


def _report_grading(grading: Grading, log: Any) -> None:
    """Log the faults of the grader. Raises CourseFault if an exercise is not graded."""
    for fault in dict.fromkeys(grading.faults):
        log.error(f"a fault of the grader's own: {fault}. Next: course verify")
    if grading.excused:
        log.warning(f"{', '.join(grading.excused)}: {NO_EXCUSES}")
    if grading.not_graded:
        raise CourseFault(
            f"not graded: {', '.join(grading.not_graded)}. formgrader shows that they need a grade "
            "by hand. Next: what stands above, then the same command again with --force"
        )


def _without_use(source: Path) -> Iterator[Path]:
    """Yield the files beside an assignment's notebooks in source/ that no feedback needs.

    Only the figures that lessons show are needed.
    """
    for path in source.rglob("*"):
        relative = path.relative_to(source)
        if path.is_file() and path.suffix != ".ipynb" and relative.parts[0] != "figures":
            yield relative


def _stage_submissions(course: Course, work: ToGrade, folder: Path, log: Any) -> None:
    """Write the folder that nbgrader reads instead of submitted/.

    From submitted/ itself, nbgrader would drop a student if one file is missing or is not JSON. A
    submission with a known time also gets timestamp.txt and submission_secret.txt. If timestamp.txt
    has no valid time, that is logged.

    Raises:
        CourseFault: the name of a student's folder has *, ? or [, or a file cannot be written. Then
            nothing is graded, because nbgrader gives 0 points for a notebook that it does not find.
    """
    for submission in work.submissions:
        student, target = submission.student, folder / submission.student / submission.assignment.id
        if re.search(r"[*?[]", student):
            raise CourseFault(
                f"{student!a}: nbgrader reads *, ? and [ as a pattern, and would leave this "
                "student out. Nobody is graded. Next: rename the folder"
            )
        try:
            target.mkdir(parents=True)
            for exercise in submission.assignment.exercises:
                text = attempt_notebook(submission, exercise, course.limits.source_kib)
                (target / exercise.notebook.name).write_text(text, encoding="utf-8")
            if (time := work.handed_in.get(submission)) and time.time is not None:
                (target / TIMESTAMP).write_text(f"{time.time:%Y-%m-%d %H:%M:%S.%f %z}")
                secret = secrets.token_hex()  # without it, release_feedback stops for all students
                with suppress(Unreadable):
                    secret = read_text(submission.folder / SECRET, 1)
                (target / SECRET).write_text(secret)
            elif os.path.lexists(submission.folder / TIMESTAMP):
                problem = f"contains no valid time, so {student} is not late"
                next_step = "mend it, then this again with --force"
                log.warning(f"{submission.folder / TIMESTAMP} {problem}. Next: {next_step}")
        except OSError as error:
            raise CourseFault(
                f"nothing was graded ({error}). Next: mend that, then the same command again"
            ) from None


@dataclass
class Grading:
    """The preprocessor of `nbgrader autograde` that grades in the box.

    It grades a student's whole submission at the first notebook, and enters the final scores.
    """

    assignment: Assignment
    judge: SteadyJudge
    writer: GradebookWriter
    decisions: Decisions
    work: ToGrade
    faults: list[str] = field(default_factory=list)  # faults of the grader itself
    not_graded: list[str] = field(default_factory=list)  # student and exercise
    excused: list[str] = field(default_factory=list)  # students, of the whole assignment
    _current: Result | None = None  # the result of the student whose notebooks are processed

    def __call__(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Write the results of the checks into the autograded cells of one notebook.

        nbgrader calls this for each notebook. The first notebook of a student grades the whole
        submission and enters its scores. Raises CourseFault if they cannot be entered.
        """
        context = resources["nbgrader"]
        if self._current is None or self._current.student != context["student"]:
            self._current = self._grade(str(context["student"]))
        exercise = next(e for e in self.assignment.exercises if e.stem == context["notebook"])
        result = next(e for e in self._current.exercises if e.id == exercise.id)
        graded_cells = {
            cell.grade_id: cell for cell in read_released(exercise).graded_cells if cell.checks
        }
        for cell in nb.cells:
            if graded_cell := graded_cells.get(cell.metadata.get("nbgrader", {}).get("grade_id")):
                text = group_report(result, graded_cell)
                cell.outputs = [new_output("stream", name="stdout", text=text)]
        return nb, resources

    def _grade(self, student: str) -> Result:
        """Grade the submission of a student, enter the final scores, and return the result."""
        submission = next(s for s in self.work.submissions if s.student == student)
        graded = self.judge.grade(submission)
        self.faults += graded.faults
        result = graded.result.model_copy(update={"handed_in": self.work.handed_in.get(submission)})
        result = with_not_readable(result, self.work.not_readable.get(submission, ()))
        result = final(result, self.decisions)
        self._enter(result)
        self.not_graded += [f"{student}: {exercise_id}" for exercise_id in result.not_graded]
        return result

    def _enter(self, result: Result) -> None:
        self.writer.write(result)
        if result.is_excused:
            self.excused.append(result.student)

    def enter_absent(self, students: Sequence[str]) -> None:
        """Enter the scores by hand and the excuses of students who handed in nothing.

        The exercises are taken from the last result. If no student was graded in this run, nothing
        is entered, because nothing has changed.
        """
        if self._current is not None:
            for result in of_the_absent(self._current, self.decisions, students):
                self._enter(result)


class Collect(ExchangeCollect):  # type: ignore[misc]
    """nbgrader's collector, which follows no links.

    Any account can put a link into the exchange, and the course's account could read solutions
    through it.
    """

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy a hand-in, with links as links, and write its time to timestamp.txt.

        Links are not followed, so no file from outside is read. The time comes from the folder's
        name in the exchange, and replaces a timestamp.txt of the student. A hand-in that is larger
        than nbgrader's limit is not copied. If only a part can be copied, that part stays. If
        nothing can be copied, there is no folder. The log says which of these happened.
        """
        if self.get_size(src) > 1000 * self.coursedir.max_dir_size:
            self.log.error(
                "%a is larger than %s kB, and is not collected", src, self.coursedir.max_dir_size
            )
            return
        try:
            shutil.copytree(
                src, dest, symlinks=True, copy_function=partial(shutil.copy2, follow_symlinks=False)
            )
        except (shutil.Error, OSError) as error:
            self.log.warning("%a: not all of it can be copied: %a", src, str(error))
            if not Path(dest).is_dir():
                return
        stamp = Path(dest) / TIMESTAMP
        if stamp.is_dir() and not stamp.is_symlink():
            shutil.rmtree(stamp)
        stamp.unlink(missing_ok=True)
        stamp.write_text(f"{self._path_to_record(src)['timestamp']:%Y-%m-%d %H:%M:%S.%f} UTC")
