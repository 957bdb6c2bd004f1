"""The result of grading one submission.

It is the contract between the judge and all code that reads results.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from .files import CourseFault, write_whole

Outcome = Literal["passed", "failed", "error", "timeout", "crashed", "skipped", "missing"]


class _ResultModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


State = Literal["right", "so_far", "wrong", "waiting", "unwritten", "undefined", "unrun", "unseen"]


class CheckResult(_ResultModel):
    """The outcome of one check for one attempt.

    Attributes:
        outcome: "skipped" if the grader itself could not run the check. If the check has points,
            its exercise is then not graded. On a student's machine, "skipped" means: not run yet.
        function: the function or class that the check calls. If it calls several, the one in which
            it failed, or "" if it passed.
    """

    id: str
    title: str
    outcome: Outcome
    score: float = Field(ge=0)
    max_score: float = Field(ge=0)
    evidence: str = ""
    hint: str = ""
    function: str = ""


class Diagnosed(_ResultModel):
    """A misconception that explains an attempt's answers.

    Attributes:
        alternatives: ids of other misconceptions that give the same answers.
        alternative_titles: the titles of the alternatives, which a student reads.
        function: the function or class with the mistake, or "" if it is about the whole file.
        also_in: other functions that have this mistake and no other.
    """

    id: str
    title: str
    hint: str
    alternatives: tuple[str, ...] = ()
    alternative_titles: tuple[str, ...] = ()
    function: str = ""
    also_in: tuple[str, ...] = ()


class FunctionResult(_ResultModel):
    """One of the functions and classes that an exercise requires.

    Attributes:
        state: "waiting" if it fails and uses a function that is wrong or not written. "so_far" if
            it is right in all calls that were made, but a check that would also call it stopped at
            another function. "undefined" if the file has no such name. "unrun" if the notebook's
            cell has not run. "unseen" if no check has called it.
        waits_for: the other function, if the state is "waiting" or "so_far".
        check: the title of the first check that failed, if the state is "wrong" or "waiting".
        evidence: the evidence of this check. If the state is "unwritten", the parts of the stub
            that are left beside the student's code. If it is "undefined", the line that has the
            name, and why it does not count.
        near: a name in the file that may be meant, if the state is "undefined".
    """

    name: str
    state: State
    waits_for: str = ""
    check: str = ""
    evidence: str = ""
    near: str = ""


MOST_LINES = 2  # no line is shown if more lines than this are proved


class ProvedLine(_ResultModel):
    """A line of the attempt where one small edit makes every check pass.

    Attributes:
        cell: the code cell of a notebook, counted from 1, or 0 for a script.
        line_in_cell: the line within this cell, or 0 for a script.
        edit: the line before and after the edit, for the instructor. Results for students have
            none.
    """

    line: int = Field(ge=1)
    cell: int = Field(default=0, ge=0)
    line_in_cell: int = Field(default=0, ge=0)
    edit: str = ""

    @property
    def place(self) -> str:
        """The line in words: line 23, or line 5 of code cell 3."""
        if self.cell:
            return f"line {self.line_in_cell} of code cell {self.cell}"
        return f"line {self.line}"


Rule = Literal["unknown time", "due", "late", "score", "excused", "comment"]


class Adjustment(_ResultModel):
    """A change of a machine's result by a date of the course or a human's decision.

    Attributes:
        words: the rule, as the student reads it.
        before: the points before the change.
        after: the points after the change. A rule may leave them the same.
    """

    rule: Rule
    words: str
    before: float = 0.0
    after: float = 0.0


class HandedIn(_ResultModel):
    """When a submission was handed in, according to a source.

    If there is no time and `late` is False, the source only reports that it was in time.

    Attributes:
        source: the origin of this information.
        late: the source only reports that the submission was late, without a time.
    """

    source: str
    time: AwareDatetime | None = None
    late: bool = False


class ExerciseResult(_ResultModel):
    """The result of one attempt.

    Attributes:
        score: None if the attempt is not graded, because the grader itself failed or the submitted
            file cannot be read.
        diagnosis: the misconceptions that explain the answers, most likely first.
        also: misconceptions that are proved but do not explain the wrong values. Then nothing
            explains them.
        lines: the wrong lines, as far as that is proved.
        note: which file counts, if more than one was handed in.
        functions: the required functions, in the order of the file; empty if no call could be made.
        unseen: the points of checks that only grading runs, not `course check`.
        unseen_checks: the titles of these checks.
        adjustments: changes by decisions, in their order. Files of `course grade` never have any.
        excused: whether a decision says that the exercise does not count.
        not_readable: names of submitted files that cannot be read, if there are no others.
        answers: a digest of the wrong answers to public calls. Attempts with the same digest have
            the same mistake, even if it has no name.
        digest: a digest of the graded file, with which a question about it finds the file again.
    """

    id: str
    score: float | None = Field(ge=0)
    max_score: float = Field(ge=0)
    checks: tuple[CheckResult, ...]
    diagnosis: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    lines: tuple[ProvedLine, ...] = ()
    note: str = ""
    functions: tuple[FunctionResult, ...] = ()
    unseen: float = Field(default=0.0, ge=0)
    unseen_checks: tuple[str, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    excused: bool = False
    not_readable: tuple[str, ...] = ()
    answers: str = ""
    digest: str = ""

    @property
    def is_graded(self) -> bool:
        """Whether it has points. If not, reports and gradebooks show none, and never a 0."""
        return self.score is not None

    @property
    def is_done(self) -> bool:
        """Whether every check passed and every function is written."""
        return all(c.outcome == "passed" for c in self.checks) and not self.unwritten_functions

    @property
    def unwritten_functions(self) -> tuple[str, ...]:
        """The functions that are not written yet."""
        return tuple(
            function.name
            for function in self.functions
            if function.state in ("unwritten", "undefined", "unrun")
        )


class Result(_ResultModel):
    """The result of one submission.

    Attributes:
        score: None if an exercise that counts is not graded: then there is no total.
        handed_in: the time, if a source reports one.
        adjustments: changes by decisions about the whole submission. Files of `course grade` never
            have any.
    """

    student: str
    assignment: str
    score: float | None = Field(ge=0)
    max_score: float = Field(ge=0)
    device: str
    isolation: str
    seed: int
    versions: dict[str, str]
    exercises: tuple[ExerciseResult, ...]
    handed_in: HandedIn | None = None
    adjustments: tuple[Adjustment, ...] = ()

    @property
    def possible(self) -> float:
        """The points of all exercises, including excused ones, which max_score leaves out."""
        return self.max_score + sum(
            exercise.max_score for exercise in self.exercises if exercise.excused
        )

    @property
    def not_graded(self) -> tuple[str, ...]:
        """The ids of the exercises that count and are not graded."""
        return tuple(
            exercise.id
            for exercise in self.exercises
            if not exercise.is_graded and not exercise.excused
        )

    @property
    def is_excused(self) -> bool:
        """Whether every exercise is excused."""
        return bool(self.exercises) and all(exercise.excused for exercise in self.exercises)

    @property
    def scaled_score(self) -> float | None:
        """The score out of `possible`.

        It is for gradebooks in which an assignment has the same points for everybody.
        """
        if self.score is None or self.possible == self.max_score:
            return self.score
        return round(self.score / self.max_score * self.possible, 6) if self.max_score else 0.0


# This follows the name of a file that can be read, if neither its name nor its folder shows for
# which exercise it is an attempt.
NOT_AS_IT_IS = ", which is not graded as it is"


def names_and_reason(not_readable: Iterable[str]) -> tuple[str, str]:
    """Return the names of submitted files without points, as one text, and the reason.

    If all names end with NOT_AS_IT_IS, this end is removed and is the reason. Otherwise the reason
    is "not readable".
    """
    names = list(not_readable)
    if names and all(name.endswith(NOT_AS_IT_IS) for name in names):
        return ", ".join(name.removesuffix(NOT_AS_IT_IS) for name in names), "not graded as it is"
    return ", ".join(names), "not readable"


def with_not_readable(result: Result, names: tuple[str, ...]) -> Result:
    """Return the result without points for missing exercises, if some files cannot be read.

    The missing exercises may be in these files, so their score is None and not 0. Their checks are
    "skipped". Without such files, the same object is returned.

    Args:
        result: the result.
        names: the names of the files that cannot be read.
    """
    if not names:
        return result
    listed, reason = names_and_reason(names)
    evidence = f"What was handed in is {reason}: {listed}."
    exercises = []
    for exercise in result.exercises:
        if all(check.outcome == "missing" for check in exercise.checks):
            checks = [
                c.model_copy(update={"outcome": "skipped", "evidence": evidence})
                for c in exercise.checks
            ]
            changed = {
                "score": None,
                "checks": tuple(checks),
                "diagnosis": (),
                "not_readable": names,
            }
            exercise = exercise.model_copy(update=changed)
        exercises.append(exercise)
    return with_total(result, exercises)


def total_of(scores: Iterable[float | None]) -> float | None:
    """Return the sum of the scores, or None if a score is None."""
    score_list = list(scores)
    return None if None in score_list else sum(score for score in score_list if score is not None)


def with_total(result: Result, exercises: Iterable[ExerciseResult]) -> Result:
    """Return the result with these exercises, and with totals of those that are not excused."""
    all_exercises = tuple(exercises)
    counting = [exercise for exercise in all_exercises if not exercise.excused]
    totals = {
        "score": total_of(exercise.score for exercise in counting),
        "max_score": sum(exercise.max_score for exercise in counting),
    }
    return result.model_copy(update={"exercises": all_exercises, **totals})


class ResultsError(CourseFault):
    """A folder holds no results, or one of its files is not a result.

    The text ends with the next step.
    """


def read_results(folder: Path) -> list[Result]:
    """Return every result in a folder, ordered by student and assignment.

    Raises ResultsError if there is no file, or if a file is not a result.
    """
    results, broken = read_results_and_errors(folder)
    if broken:
        raise broken[0]
    return results


def read_results_and_errors(folder: Path) -> tuple[list[Result], list[ResultsError]]:
    """Return every result that can be read, and an error for every file that is not a result.

    Both are ordered by student and assignment. Raises ResultsError if there are no files.
    """
    paths = sorted(folder.glob("*/*.json"))
    if not paths:
        raise ResultsError(
            f"{folder} holds no results. Next: course grade SUBMITTED --out {quote(str(folder))}"
        )
    results: list[Result] = []
    broken: list[ResultsError] = []
    for path in paths:
        try:
            results.append(Result.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            broken.append(
                ResultsError(
                    f"{path} is no result of this version. Next: course grade again, or remove it"
                )
            )
    return results, broken


def students_in(folder: Path) -> list[str]:
    """Return the names of the students whose results the folder holds, in order."""
    return sorted({path.parent.name for path in folder.glob("*/*.json")})


def result_path(folder: Path, student: str, assignment: str) -> Path:
    """Return the path FOLDER/<student>/<assignment>.json."""
    return folder / student / f"{assignment}.json"


def write_result(result: Result, folder: Path) -> Path:
    """Write FOLDER/<student>/<assignment>.json, and return its path.

    If the write is interrupted, even by a power cut, the old file is unchanged. Raises OSError.
    """
    path = result_path(folder, result.student, result.assignment)
    write_whole(path, f"{result.model_dump_json(indent=1)}\n".encode(), durable=True)
    return path
