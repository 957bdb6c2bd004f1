"""The result of grading one submission: the contract between the judge and everything that reads
results.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from .errors import CourseFault
from .files import write_whole

Outcome = Literal["passed", "failed", "error", "timeout", "crashed", "skipped", "missing"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


State = Literal["right", "so_far", "wrong", "waiting", "unwritten", "undefined", "unrun", "unseen"]


class CheckResult(_Model):
    """The outcome of one check for one attempt.

    outcome: "skipped" where the grader itself could not run it; if it has points, its exercise is
        not graded. At home: not asked yet.
    function: the function or class that the check asks; of several the one where it failed, ""
        where it passed.
    """

    id: str
    title: str
    outcome: Outcome
    score: float = Field(ge=0)
    max_score: float = Field(ge=0)
    evidence: str = ""
    hint: str = ""
    function: str = ""


class Diagnosed(_Model):
    """A misconception that explains an attempt's answers.

    alternatives: ids of others that give the same answers; alternative_titles: their titles, which
        a student reads.
    function: the function or class where it was found; "" where it is about the whole file.
    also_in: other functions that have the same mistake and no other.
    """

    id: str
    title: str
    hint: str
    alternatives: tuple[str, ...] = ()
    alternative_titles: tuple[str, ...] = ()
    function: str = ""
    also_in: tuple[str, ...] = ()


class FunctionResult(_Model):
    """One of the functions and classes that an exercise asks for.

    state: "waiting" where it fails and uses a function that is wrong or not written; "so_far" where
    it is right in what was asked, and a check that asks it, too, stopped at another function;
    "undefined" where the file has no such name; "unrun" where the notebook's cell has not run;
    "unseen" where no check has asked it.
    waits_for: of one that is waiting or right so far, that other function.
    check, evidence: of one that is wrong, the title of the first check that saw it, and what it
    saw; of one that is unwritten, what the stub has left beside what is written there; of one that
    is undefined, where it stands and why it is not seen.
    near: of one that is undefined, a name of the file that may be meant.
    """

    name: str
    state: State
    waits_for: str = ""
    check: str = ""
    evidence: str = ""
    near: str = ""


MOST_LINES = 2  # where more lines than these could be mended, none of them is told


class ProvedLine(_Model):
    """A line of the attempt where one small edit makes every check pass.

    cell, line_in_cell: of a notebook, the code cell, counted from 1, and the line within it;
        else 0.
    edit: for the instructor alone: the line before and after. What students get holds none.
    """

    line: int = Field(ge=1)
    cell: int = Field(default=0, ge=0)
    line_in_cell: int = Field(default=0, ge=0)
    edit: str = ""

    @property
    def place(self) -> str:
        """The place in words: line 23, or line 5 of code cell 3."""
        return (
            f"line {self.line_in_cell} of code cell {self.cell}"
            if self.cell
            else f"line {self.line}"
        )


Rule = Literal["unknown time", "due", "late", "score", "excused", "comment"]


class Adjustment(_Model):
    """What a date of the course, or a human's decision, has made of what the machine found.

    before, after: the points; the same where the rule changes none.
    words: the rule, as the student reads it.
    """

    rule: Rule
    words: str
    before: float = 0.0
    after: float = 0.0


class HandedIn(_Model):
    """When a submission was handed in, and who says so.

    late: the platform says that it was late, and not when. Where there is neither, it says that it
        was in time.
    """

    source: str
    time: AwareDatetime | None = None
    late: bool = False


class ExerciseResult(_Model):
    """The result of one attempt.

    Attributes:
        score: None where it is not graded, because the grader itself failed, or nobody can read
            what was handed in.
        diagnosis: the misconceptions that explain it, most likely first.
        also: misconceptions that are proved, but do not explain why the values are wrong, which
            nothing does.
        lines: where it goes wrong, as far as that is proved.
        note: which file counts, where more than one was handed in.
        functions: what is asked for, in the order of the file; empty where the attempt could not be
            asked anything.
        unseen: how many of the points only grading asks, for `course check` cannot see them.
        unseen_checks: titles of these.
        adjustments: what decisions changed, in their order; never in what `course grade` writes.
        excused: whether it counts for nothing, by a decision.
        not_readable: names of what was handed in and cannot be read, where nothing else was.
        answers: a digest of the wrong answers to public calls: who shares it made the same mistake,
            named or not.
        digest: of the file that was graded, by which a question about it finds it again.
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
        """Whether it has points. If not, nothing that reads results shows any, and never a 0."""
        return self.score is not None

    @property
    def is_done(self) -> bool:
        """Whether every check passed and every function is written."""
        return all(c.outcome == "passed" for c in self.checks) and not self.unwritten

    @property
    def unwritten(self) -> tuple[str, ...]:
        """The functions that are not written yet."""
        return tuple(
            function.name
            for function in self.functions
            if function.state in ("unwritten", "undefined", "unrun")
        )


class Result(_Model):
    """The result of one submission.

    score: None where an exercise that counts is not graded: then there is no total.
    handed_in: when, as far as anything says.
    adjustments: what decisions changed for all of it; never in what `course grade` writes.
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
        """The points that there are, those of excused exercises among them, which max_score leaves
        out.
        """
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
        """The score out of `possible`, for gradebooks in which an assignment has the same points
        for everybody.
        """
        if self.score is None or self.possible == self.max_score:
            return self.score
        return round(self.score / self.max_score * self.possible, 6) if self.max_score else 0.0


# Behind the name of something that could be read, but whose name or place says of no exercise that
# it is an attempt at it.
NOT_AS_IT_IS = ", which is not graded as it is"


def names_and_reason(not_readable: Iterable[str]) -> tuple[str, str]:
    """Return the names of what was handed in and has no points, and why: "not readable" or "not
    graded as it is".
    """
    names = list(not_readable)
    if names and all(name.endswith(NOT_AS_IT_IS) for name in names):
        return ", ".join(name.removesuffix(NOT_AS_IT_IS) for name in names), "not graded as it is"
    return ", ".join(names), "not readable"


def with_not_readable(result: Result, names: tuple[str, ...]) -> Result:
    """Return the result without points for what is missing, where files of these names cannot
    be read: it may be in them.
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
    """Return their sum; None if one of them is."""
    score_list = list(scores)
    return None if None in score_list else sum(score for score in score_list if score is not None)


def with_total(result: Result, exercises: Iterable[ExerciseResult]) -> Result:
    """Return the result with these exercises, and the points of those that count."""
    all_exercises = tuple(exercises)
    counting = [exercise for exercise in all_exercises if not exercise.excused]
    score, most = (
        total_of(exercise.score for exercise in counting),
        sum(exercise.max_score for exercise in counting),
    )
    return result.model_copy(update={"exercises": all_exercises, "score": score, "max_score": most})


class ResultsError(CourseFault):
    """A folder holds no results, or one of its files is not a result.

    The text ends with what to do next.
    """


def read_results(folder: Path) -> list[Result]:
    """Return every result in a folder, ordered by student.

    Raises ResultsError where there is none or one cannot be read.
    """
    results, broken = read_results_and_errors(folder)
    if broken:
        raise broken[0]
    return results


def read_results_and_errors(folder: Path) -> tuple[list[Result], list[ResultsError]]:
    """Return every result that can be read, and an error for every file that cannot.

    Raises ResultsError if there are no files.
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
    """Whose results the folder holds."""
    return sorted({path.parent.name for path in folder.glob("*/*.json")})


def result_path(folder: Path, student: str, assignment: str) -> Path:
    """DIR/<student>/<assignment>.json."""
    return folder / student / f"{assignment}.json"


def write_result(result: Result, folder: Path) -> Path:
    """Write DIR/<student>/<assignment>.json whole or not at all, whatever happens: a crash, a power
    cut.
    """
    path = result_path(folder, result.student, result.assignment)
    write_whole(path, f"{result.model_dump_json(indent=1)}\n".encode(), durable=True)
    return path
