"""Choose the content of a report about an attempt, and label assignments and exercises.

Terminal, page, notebook and editor show the same content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..course import Course, Exercise
from ..result import (
    Adjustment,
    CheckResult,
    Diagnosed,
    ExerciseResult,
    FunctionResult,
    Outcome,
    Result,
    names_and_reason,
    total_of,
)
from ..student.hints import which_of
from ..student.own_attempt import Own
from ..submission import AttemptSource, is_reserved, lines_of
from ..submission.roster import folded
from ..submission.source import DEFINITIONS, UNTOUCHED, named_line, statements_of


@dataclass(frozen=True)
class Labels:
    """The course's titles, by ids and in the course's order.

    What it does not know is called by its id.

    exercises: the number, as in the name of its file, and the title. course: the title of the
        whole.
    """

    assignments: Mapping[str, str] = field(default_factory=dict)
    exercises: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    course: str = ""

    def assignment(self, id_: str) -> str:
        """Multi-head attention."""
        return self.assignments.get(id_, id_)

    def numbered(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the number and the title of these exercises, in the course's order; of an unknown
        one its place and its id.
        """
        return {
            id_: self.exercises.get(id_, (str(i), id_))
            for i, id_ in enumerate(self.in_order(ids), 1)
        }

    def exercise(self, id_: str) -> str:
        """04 The reshape dance."""
        return " ".join(self.exercises[id_]) if id_ in self.exercises else id_

    def in_order(self, ids: Sequence[str]) -> list[str]:
        """Ids of assignments or of exercises, each once, in the course's order; then those that it
        does not know.
        """
        order = {id_: index for index, id_ in enumerate((*self.assignments, *self.exercises))}
        return sorted(dict.fromkeys(ids), key=lambda id_: order.get(id_, len(order)))

    def by_assignment(self, results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
        """Return those of each assignment, in the course's order of assignments, and as they come
        within one.
        """
        ids = self.in_order([result.assignment for result in results])
        return [(id_, [result for result in results if result.assignment == id_]) for id_ in ids]


IDS = Labels()


def labels_of(course: Course | None) -> Labels:
    """Return the course's titles; without a course the ids."""
    if course is None:
        return IDS
    exercises = {exercise.id: (_number(exercise), exercise.title) for exercise in course.exercises}
    return Labels(
        {assignment.id: assignment.title for assignment in course.assignments},
        exercises,
        course.title,
    )


def label_of(exercise: Exercise) -> str:
    """04 The reshape dance."""
    return f"{_number(exercise)} {exercise.title}"


def _number(exercise: Exercise) -> str:
    return exercise.stem.partition("_")[0]


_PLAIN = re.compile(r"\w[\w @+.-]{0,50}")
# what ends the name of one who cannot have the own one
_DIGEST = re.compile(r"-[0-9a-f]{12}", re.IGNORECASE)


def file_stems(students: Collection[str]) -> Callable[[str], str]:
    """Make the name of a file, without its ending, for each of these students.

    It is the student's name, if every system accepts that, and if no other differs from it in
    case alone: their files would overwrite one another where case does not count.
    """
    alike = Counter(folded(student) for student in students)

    def stem(student: str) -> str:
        is_unsafe = (
            is_reserved(student) or student.endswith((" ", ".")) or _DIGEST.fullmatch(student[-13:])
        )
        if _PLAIN.fullmatch(student) and not is_unsafe and alike[folded(student)] < 2:
            return student
        digest = hashlib.sha256(student.encode()).hexdigest()[:12]
        return f"{re.sub(r'[^a-zA-Z0-9]+', '_', student)[:40]}-{digest}"

    return stem


RIGHT, WRONG, LATER, PROGRESS = "✓", "✗", "·", "…"
_ENDED = {"timeout", "crashed"}  # the process, and not by an answer
_STOPPED = {*_ENDED, "missing", "skipped"}  # nothing can be traced where all checks end so
_WHOLE = {*_STOPPED, "error"}  # the same for a whole file
_NOT_THERE = {
    "unwritten": "which is not written yet",
    "undefined": "which the file does not define",
    "unrun": "whose cell has not run",
}
# what a trace of ordinary calls does not show
_NOT_TRACED = re.compile(r"\b(gradients?|refused|refusal)\b")
Kind = Literal["check", "evidence", "also", "hint", "next"]


@dataclass(frozen=True)
class FunctionReport:
    """One function or class; a class is one function here.

    The name is "" where it is about the whole file.

    says: what stands beside the name: "not written yet", or what the student did, and on which
        line.
    check, evidence: what was seen: the title of the first check that failed here, and what it saw.
    also: what is proved here besides, and does not explain what was seen.
    hint: the one hint, "" where no misconception fits. next: the command that shows more, where
        there is no hint.
    failed: the checks that failed here, the first of them the one above if it is among them.
    line: the first that is proved to be wrong, 0 where none is.
    """

    name: str
    mark: str
    says: str = ""
    check: str = ""
    evidence: str = ""
    also: str = ""
    hint: str = ""
    next: str = ""
    failed: tuple[CheckResult, ...] = ()
    line: int = 0

    @property
    def head(self) -> str:
        """attention_scores: You did not scale (line 88). Below it, a line each, what it lists."""
        return ": ".join(filter(None, (self.name, self.says)))

    @property
    def further_checks(self) -> tuple[CheckResult, ...]:
        """The checks that failed here, without the one whose evidence is shown."""
        return self.failed[any(check.title == self.check for check in self.failed[:1]) :]

    @property
    def details(self) -> Iterator[tuple[Kind, str, tuple[CheckResult, ...]]]:
        """What stands below its own line, in this order: each text, with the checks whose points
        stand beside it.

        Several others are one line, for what is mended first may be their cause.
        """
        texts: dict[Kind, str] = {
            "check": self.check,
            "evidence": self.evidence,
            "also": self.also,
            "hint": self.hint,
            "next": self.next and f"Next: {self.next}",
        }
        evidence_checks = self.failed[: len(self.failed) - len(self.further_checks)]
        yield from (
            (role, text, evidence_checks if role == "check" else ())
            for role, text in texts.items()
            if text
        )
        if len(self.further_checks) > 1:
            count_text = (
                f"and {len(self.further_checks)} other checks"
                if self.check
                else f"{len(self.further_checks)} checks"
            )
            yield "check", f"{count_text} fail here", self.further_checks
        else:
            yield from (("check", check.title, (check,)) for check in self.further_checks)


def function_reports(result: ExerciseResult) -> Iterator[FunctionReport]:
    """Yield every function, in the order of the file; what is about the whole file comes first."""
    failed = [check for check in result.checks if check.outcome != "passed"]
    names = [function.name for function in result.functions]
    about_all = [d for d in result.diagnosis if d.function not in names and d.id != UNTOUCHED]
    if failed and (about_all or not names):
        failed_here = [
            check for check in failed if check.function not in names and check.outcome != "skipped"
        ]
        observation = next(((check.title, check.evidence) for check in failed_here), ("", ""))
        yield _mistake_report("", result, about_all, observation, failed_here, has_lines=not names)
    has_lines = True  # of which the first that is wrong is told
    for function_result in result.functions:
        if function_result.state != "wrong":
            yield _unless_wrong(function_result, {f.name: f.state for f in result.functions})
            continue
        named = [d for d in result.diagnosis if function_result.name in (d.function, *d.also_in)]
        by = (
            function_result
            if function_result.check
            else next(
                (f for f in result.functions if f.waits_for == function_result.name),
                function_result,
            )
        )
        failed_here = [check for check in failed if check.function == function_result.name]
        yield _mistake_report(
            function_result.name,
            result,
            named,
            (by.check, by.evidence),
            failed_here,
            has_lines=has_lines,
        )
        has_lines = False


def _unless_wrong(function: FunctionResult, states: dict[str, str]) -> FunctionReport:
    waits, why = function.waits_for, _NOT_THERE.get(states.get(function.waits_for, ""))
    if function.state == "undefined":
        near = f"; is {function.near} meant?" if function.near else ". Was it renamed, or deleted?"
        near += " Capital letters count." if function.near.lower() == function.name.lower() else ""
        stands = function.evidence.removeprefix(function.name)
        return FunctionReport(
            function.name, WRONG, f"it{stands}" if stands else f"the file has no such name{near}"
        )
    message = {
        "unwritten": function.evidence or "not written yet",
        "unrun": "its cell has not run yet",
        "unseen": "nothing has asked it yet",
        "so_far": f"right so far; another check of it waits for {waits}",
        "waiting": f"waits for {waits}, {why or 'which it uses'}",
    }.get(function.state, "")
    return FunctionReport(function.name, LATER if message else RIGHT, message)


def _mistake_report(
    name: str,
    result: ExerciseResult,
    named: Sequence[Diagnosed],
    observation: tuple[str, str],
    failed: Sequence[CheckResult],
    *,
    has_lines: bool,
) -> FunctionReport:
    """Return what is wrong: what the student did and where, what was seen, and one hint that
    belongs to it or none.
    """
    lines = result.lines if has_lines else ()
    if lines and not named and failed and failed[0].title != observation[0]:
        # the other was chosen for names that the line has refuted
        observation = (failed[0].title, failed[0].evidence)
    lines = tuple(sorted(lines, key=lambda proved: f"on {proved.place}" not in observation[1]))
    location = ", or ".join(proved.place for proved in lines)
    besides = [d for d in result.also if name in (d.function, "")]
    if name and any(check.title == observation[0] and check.outcome in _ENDED for check in failed):
        # no mistake that has a name lets a function run on for ever
        named, besides = [], [*named, *besides]
    named = [which_of(diagnosed, result) for diagnosed in named]
    did = _titles(named) or [
        *filter(None, ["not right yet" if name else "Not right yet" if location else ""])
    ]
    hint = next((diagnosed.hint for diagnosed in named if diagnosed.hint), "")
    also = (
        f"Also: {' '.join(_titles(besides))} That may not be the only mistake." if besides else ""
    )
    ended = {check.outcome for check in failed} <= (_STOPPED if name else _WHOLE)
    is_traced = not failed or not all(_NOT_TRACED.search(check.evidence) for check in failed)
    next_step = "" if named or ended or not is_traced else f"course trace {result.id}"
    ordered = sorted(failed, key=lambda check: check.title != observation[0])
    if (
        any(check.title == observation[0] and check.outcome == "error" for check in ordered[:1])
        and len(ordered) > 1
    ):
        observation = ("", observation[1])  # what it asks for is not what is wrong
    where = location and f" ({location})"
    says = f"{did[0].removesuffix('.')}{where}." if where else "".join(did)
    if len(did) > 1:
        says = "\n".join(
            [f"{len(did)} mistakes{where}:", *(f"{i}. {title}" for i, title in enumerate(did, 1))]
        )
    line = next((proved.line for proved in lines), 0)
    return FunctionReport(
        name, WRONG, says, *observation, also, hint, next_step, tuple(ordered), line
    )


def _titles(named: Sequence[Diagnosed]) -> list[str]:
    """Return the titles, each with those of the misconceptions that give the same numbers.

    None is said twice.
    """
    titles = {diagnosed.title for diagnosed in named}
    return [
        " Or: ".join([d.title, *(title for title in d.alternative_titles if title not in titles)])
        for d in named
    ]


OUTCOMES: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "raised an error",
    "timeout": "ran out of time",
    "crashed": "crashed",
    "skipped": "not run",
    "missing": "not handed in",
}
MARKS = dict(zip(OUTCOMES, "✓✗e∞!·–", strict=True))
# beside a score that a date or a human changed; in place of one that counts for nothing
DECIDED, EXCUSED = "*", "ex"
NOT_GRADED = "?"  # in place of a score that there is not


@dataclass(frozen=True)
class AttemptWords:
    """The report on one attempt, function by function.

    mark: ✓ where it is done, … where all that is written is right, ? where it is not graded, else
        ✗.
    functions: those of the file, in its order; without a name what is about the whole file.
    folded: a line for the failed checks that wait for what is not written, or for another function,
    with these; and one for those that pass. hint: to get started, where nothing is written.
    """

    mark: str
    passed: bool
    functions: tuple[FunctionReport, ...]
    folded: tuple[tuple[str, Sequence[CheckResult]], ...] = (("", ()), ("", ()))
    hint: str = ""

    @property
    def first_wrong(self) -> FunctionReport | None:
        """The first that is wrong, None where there is none."""
        return next((function for function in self.functions if function.mark == WRONG), None)

    @property
    def next(self) -> str:
        """The command that shows more of that; "" where a function has a hint that belongs to its
        mistake.
        """
        return (
            ""
            if not self.first_wrong or any(function.hint for function in self.functions)
            else self.first_wrong.next
        )


def attempt_words(result: ExerciseResult) -> AttemptWords:
    """Return the report on an attempt."""
    if not result.is_graded:
        return AttemptWords(
            NOT_GRADED, False, (FunctionReport("", NOT_GRADED, said_of_not_graded(result)),)
        )
    functions = tuple(function_reports(result))
    has_mistake = any(function.mark == WRONG for function in functions)
    passed = [check for check in result.checks if check.outcome == "passed"]
    wrong_names = {function.name for function in result.functions if function.state == "wrong"}
    remaining_checks = [
        check
        for check in result.checks
        if check.outcome != "passed" and check.function not in wrong_names
    ]
    waiting = remaining_checks if result.functions else []
    wait = (
        f"{counted(len(waiting), 'check waits', 'checks wait')} for what is not right or "
        "written yet"
    )
    folded = ((wait, waiting), (counted(len(passed), "check passes", "checks pass"), passed))
    mark = RIGHT if result.is_done else WRONG if has_mistake or not functions else PROGRESS
    hint = next(
        (d.hint for d in result.diagnosis if d.id == UNTOUCHED and not passed and not has_mistake),
        "",
    )
    return AttemptWords(mark, result.is_done, functions, folded, hint)


def said_of_not_graded(result: ExerciseResult) -> str:
    """Return what a student reads in place of points."""
    if result.not_readable:
        names, reason = names_and_reason(result.not_readable)
        cannot = "cannot be read" if reason == "not readable" else "cannot be graded as it is"
        why = (
            f"what you handed in {cannot}: {names}. Next: hand in the file itself, or ask "
            "your instructor"
        )
    else:
        why = (
            "the grader itself failed here. That is not your fault. Your instructor can have "
            "it graded again."
        )
    return f"Not graded: {why}"


def counted(number: int, singular: str, plural: str) -> str:
    """1 check passes, 2 checks pass."""
    return f"{number} {singular if number == 1 else plural}"


def points(value: float) -> str:
    """4 for 4.0, 2.5 for 2.5."""
    return f"{value:g}"


def score_words(score: float | None) -> str:
    """2, or ? where it is not graded."""
    return NOT_GRADED if score is None else points(score)


def out_of(scored: CheckResult | ExerciseResult | Result) -> str:
    """2 / 6, or that it is not graded."""
    if isinstance(scored, Result):
        return out_of_all([scored])
    if isinstance(scored, CheckResult) and was_not_run(scored):
        return "not run"
    return (
        "not graded"
        if scored.score is None
        else f"{points(scored.score)} / {points(scored.max_score)}"
    )


def out_of_all(results: Sequence[Result]) -> str:
    """31 / 40, or how many exercises are not graded: then there is no total."""
    score = total_of(result.score for result in results)
    if score is not None:
        return f"{points(score)} / {points(sum(result.max_score for result in results))}"
    counting = [
        exercise for result in results for exercise in result.exercises if not exercise.excused
    ]
    return f"not graded: {sum(not exercise.is_graded for exercise in counting)} of {len(counting)}"


def was_not_run(check: CheckResult) -> bool:
    """Return whether the grader itself could not run this check, and nobody has given its points
    since.
    """
    return check.outcome == "skipped" and not check.score


ASK = (
    "Send this line to your instructor, who can have this grading alone repeated on the same "
    "inputs:"
)


def question_about(result: Result, exercise: ExerciseResult) -> str:
    """Return the line by which an instructor finds a result again; "" where there is nothing to ask
    about.
    """
    failed = next(
        (check.id for check in exercise.checks if check.outcome not in ("passed", "missing")), ""
    )
    if not failed or not exercise.digest:
        return ""
    return (
        f"{result.student}/{exercise.id}, check {failed}, seed {result.seed}, file "
        f"{exercise.digest}"
    )


def adjustment_text(adjustment: Adjustment) -> str:
    """Return the words of a rule, and the points before and after where they differ."""
    before, after = adjustment.before, adjustment.after
    return adjustment.words if before == after else f"{adjustment.words} ({before:g} → {after:g})"


def exercise_adjustments(exercise: ExerciseResult, result: Result) -> list[Adjustment]:
    """Return the adjustments of an exercise that are not the whole assignment's, as being late
    is.
    """
    assignment_words = {adjustment.words for adjustment in result.adjustments}
    return [
        adjustment
        for adjustment in exercise.adjustments
        if adjustment.words not in assignment_words and adjustment.rule != "late"
    ]


class Problem(NamedTuple):
    """What is said of a function or of the whole file, at a line of the attempt: its first and its
    last column, from 1 on.
    """

    report: FunctionReport
    line: int
    column: int
    end_column: int

    @property
    def sentence(self) -> str:
        """What is said of it, what was seen, and the hint, on one line."""
        report = self.report
        head = ": ".join(filter(None, (report.name, report.says or report.check)))
        evidence = report.evidence[:1].upper() + report.evidence[1:]
        ended = (
            clause if clause.endswith((".", "?", "!")) else f"{clause}."
            for clause in (head, evidence)
            if clause
        )
        return " ".join(" ".join((*ended, report.hint and f"Hint: {report.hint}")).split())


def problems(result: ExerciseResult, source: AttemptSource) -> Iterator[Problem]:
    """Yield what is wrong, at the line that the report tells: proved, or of an exception; else at
    that of the function's `def`.
    """
    for report in (
        function for function in attempt_words(result).functions if function.mark == WRONG
    ):
        named = named_line(report.evidence, source) or named_line(report.says, source)
        line = report.line or named or defined_on(source.source, report.name) or 1
        text = next(iter(lines_of(source.source)[line - 1 : line]), "").rstrip()
        yield Problem(report, line, 1 + len(text) - len(text.lstrip()), 1 + len(text))


def defined_on(source: str, path: str) -> int:
    """Return the line on which this function, class, or Class.method begins, the last of several; 0
    where none does.
    """
    line, statements = 0, statements_of(source)
    for name in path.split("."):
        defined = [
            statement
            for statement in statements
            if isinstance(statement, DEFINITIONS) and statement.name == name
        ]
        line, statements = (defined[-1].lineno, tuple(defined[-1].body)) if defined else (0, ())
    return line


def without_edits(result: ExerciseResult) -> ExerciseResult:
    """Return what a student may read: the lines that are wrong, and not the edits that prove it."""
    lines = tuple(line.model_copy(update={"edit": ""}) for line in result.lines)
    return result.model_copy(update={"lines": lines})


def without_ids(result: ExerciseResult) -> ExerciseResult:
    """Return the same for a student's programs: also without misconceptions' ids, and hints with
    their misconceptions alone.
    """

    def redact_ids(named: Sequence[Diagnosed]) -> tuple[Diagnosed, ...]:
        return tuple(
            diagnosed.model_copy(update={"id": "", "alternatives": ()}) for diagnosed in named
        )

    checks = tuple(check.model_copy(update={"hint": ""}) for check in result.checks)
    bare = {
        "checks": checks,
        "diagnosis": redact_ids(result.diagnosis),
        "also": redact_ids(result.also),
    }
    return without_edits(result).model_copy(update=bare)


def as_lines(owns: Sequence[Own], results: Sequence[ExerciseResult | None]) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error:
    sentence. Of a notebook, line 1.

    results: None where there is no file.
    """
    for attempt, result in zip(owns, results, strict=True):
        if result is None:
            yield f"{attempt.path}:1:1: error: {' '.join(attempt.source.problem.split())}"
            continue
        for problem in problems(result, attempt.source):
            position = "1:1" if attempt.source.cells else f"{problem.line}:{problem.column}"
            yield f"{attempt.path}:{position}: error: {problem.sentence}"


def as_json(owns: Sequence[Own], results: Sequence[ExerciseResult | None]) -> str:
    """Return the results as one JSON object; of what was not checked there are no checks, and a
    note says why.
    """
    exercises = []
    for attempt, result in zip(owns, results, strict=True):
        id_, most, why = (
            attempt.exercise.id,
            attempt.exercise.points,
            attempt.source.problem or "not started",
        )
        nothing = ExerciseResult(id=id_, score=0, max_score=most, checks=(), note=why)
        exercises.append(without_ids(result or nothing).model_dump())
    return json.dumps({"exercises": exercises}, indent=1, ensure_ascii=False)
