"""Choose the content of a report about an attempt, and label assignments and exercises.

`attempt_words` turns a result into a report for each function (`FunctionReport`). Terminal, page,
notebook and editor show this same content.
"""

from __future__ import annotations

import ast
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
from ..student.check_and_keep_result import OwnAttempt
from ..student.hints import which_of
from ..submission import Source, is_reserved
from ..submission.roster_and_times import fold_case
from ..submission.source import DEFINITIONS, UNTOUCHED, named_line


@dataclass(frozen=True)
class Labels:
    """Titles of the course, its assignments and its exercises, in the course's order.

    An id that the course does not have is its own title.

    Attributes:
        assignments: The title of each assignment, by id.
        exercises: The number and the title of each exercise, by id. The number is as in the name of
            the exercise's file.
        course: The title of the course.
    """

    assignments: Mapping[str, str] = field(default_factory=dict)
    exercises: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    course: str = ""

    def assignment(self, id_: str) -> str:
        """Return the title of an assignment, for example "Multi-head attention"."""
        return self.assignments.get(id_, id_)

    def numbers_and_titles(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the number and the title of these exercises, in the course's order.

        An exercise that the course does not have gets its position as number and its id as title.
        """
        return {
            id_: self.exercises.get(id_, (str(i), id_))
            for i, id_ in enumerate(self.in_order(ids), 1)
        }

    def exercise(self, id_: str) -> str:
        """Return number and title of an exercise, for example "04 The reshape dance"."""
        return " ".join(self.exercises[id_]) if id_ in self.exercises else id_

    def in_order(self, ids: Sequence[str]) -> list[str]:
        """Return these ids of assignments or exercises, each once, in the course's order.

        Ids that the course does not have come last.
        """
        order = {id_: index for index, id_ in enumerate((*self.assignments, *self.exercises))}
        return sorted(dict.fromkeys(ids), key=lambda id_: order.get(id_, len(order)))

    def by_assignment(self, results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
        """Return the results of each assignment, in the course's order of assignments.

        The results of one assignment keep their order.
        """
        ids = self.in_order([result.assignment for result in results])
        results_by_id: dict[str, list[Result]] = {id_: [] for id_ in ids}
        for result in results:
            results_by_id[result.assignment].append(result)
        return list(results_by_id.items())


IDS = Labels()


def labels_of(course: Course | None) -> Labels:
    """Return the titles of a course; without a course, labels that show the ids."""
    if course is None:
        return IDS
    exercises = {exercise.id: (_number(exercise), exercise.title) for exercise in course.exercises}
    return Labels(
        {assignment.id: assignment.title for assignment in course.assignments},
        exercises,
        course.title,
    )


def label_of(exercise: Exercise) -> str:
    """Return number and title of an exercise, for example "04 The reshape dance"."""
    return f"{_number(exercise)} {exercise.title}"


def _number(exercise: Exercise) -> str:
    return exercise.stem.partition("_")[0]


# At most 51 characters, because most file systems allow a name of 255 bytes: a character can take
# 4 bytes, and `write_whole` appends a number and a suffix to the name.
_PLAIN = re.compile(r"\w[\w @+.-]{0,50}")
# If a student's name cannot be a stem, the stem is a shortened form and a digest.
_SHORT_LENGTH = 40  # characters, from which an instructor still recognises the student
# hexadecimal digits: two of 1,000 students get the same ones in one of 500 million classes
_DIGEST_LENGTH = 12
_DIGEST = re.compile(rf"-[0-9a-f]{{{_DIGEST_LENGTH}}}", re.IGNORECASE)


def file_stems(students: Collection[str]) -> Callable[[str], str]:
    """Return a function that maps each of these students to a file name without suffix.

    The stem is the student's name if every operating system accepts that name and if no other
    student's name differs from it in case alone. On a file system that ignores case, the files of
    two such students would overwrite each other. Otherwise the stem is a shortened form of the name
    with a digest.
    """
    alike = Counter(fold_case(student) for student in students)

    def stem(student: str) -> str:
        looks_shortened = _DIGEST.fullmatch(student[-1 - _DIGEST_LENGTH :])
        is_unsafe = is_reserved(student) or student.endswith((" ", ".")) or looks_shortened
        if _PLAIN.fullmatch(student) and not is_unsafe and alike[fold_case(student)] < 2:
            return student
        short_name = re.sub(r"[^a-zA-Z0-9]+", "_", student)[:_SHORT_LENGTH]
        digest = hashlib.sha256(student.encode()).hexdigest()[:_DIGEST_LENGTH]
        return f"{short_name}-{digest}"

    return stem


RIGHT, WRONG, LATER, PROGRESS = "✓", "✗", "·", "…"
_ENDED = {"timeout", "crashed"}  # the process ended without a reply
_STOPPED = {*_ENDED, "missing", "skipped"}  # if all checks end so, nothing can be traced
_STOPPED_FILE = {*_STOPPED, "error"}  # the same for a mistake that concerns the whole file
_NOT_THERE = {
    "unwritten": "which is not written yet",
    "undefined": "which the file does not define",
    "unrun": "whose cell has not run",
}
# evidence about gradients and refusals, which a trace of ordinary calls does not show
_NOT_TRACED = re.compile(r"\b(gradients?|refused|refusal)\b")
Role = Literal["check", "evidence", "also", "hint", "next"]


class DetailLine(NamedTuple):
    """A text below the first line of a report, with the checks whose points stand beside it."""

    role: Role
    text: str
    checks: tuple[CheckResult, ...]


class Failure(NamedTuple):
    """The title of the failed check that a report shows, and its evidence; "" if there is none."""

    title: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class FunctionReport:
    """The report on one function, on one class as a whole, or on the whole file.

    Attributes:
        name: The function or class; "" for the whole file.
        says: The text beside the name: "not written yet", or the student's mistake and its line.
        check: The title of the first check that failed on this function.
        evidence: The observation of that check.
        also: Another mistake that is proved in this function but does not explain the evidence.
        hint: The only hint; "" if no misconception fits.
        next: The command that shows more, if there is no hint.
        failed: The failed checks of this function. If `check` is among them, it is the first.
        line: The first line that is proved to be wrong; 0 if there is none.
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
        """The text of the first line, for example "attention_scores: You did not scale (line 88)".

        If there are several mistakes, they follow as a list, one per line.
        """
        return ": ".join(filter(None, (self.name, self.says)))

    @property
    def further_checks(self) -> tuple[CheckResult, ...]:
        """The checks that failed here, without the one whose evidence is shown."""
        is_shown = bool(self.failed) and self.failed[0].title == self.check
        return self.failed[1:] if is_shown else self.failed

    @property
    def details(self) -> Iterator[DetailLine]:
        """The texts below the first line.

        If several further checks failed, they share one line, because one mistake may be the
        cause.
        """
        texts: dict[Role, str] = {
            "check": self.check,
            "evidence": self.evidence,
            "also": self.also,
            "hint": self.hint,
            "next": self.next and f"Next: {self.next}",
        }
        evidence_checks = self.failed[: len(self.failed) - len(self.further_checks)]
        yield from (
            DetailLine(role, text, evidence_checks if role == "check" else ())
            for role, text in texts.items()
            if text
        )
        if len(self.further_checks) > 1:
            count_text = (
                f"and {len(self.further_checks)} other checks"
                if self.check
                else f"{len(self.further_checks)} checks"
            )
            yield DetailLine("check", f"{count_text} fail here", self.further_checks)
        else:
            for check in self.further_checks:
                yield DetailLine("check", check.title, (check,))


def function_reports(result: ExerciseResult) -> Iterator[FunctionReport]:
    """Yield a report for the whole file if any mistake concerns it, then one for each function.

    The functions are in the order of the file. Only the first report on a mistake of a function
    names the lines that are proved to be wrong.
    """
    failed = [check for check in result.checks if check.outcome != "passed"]
    names = [function.name for function in result.functions]
    about_all = [d for d in result.diagnosis if d.function not in names and d.id != UNTOUCHED]
    if failed and (about_all or not names):
        failed_here = [
            check for check in failed if check.function not in names and check.outcome != "skipped"
        ]
        failure = _failure_of(failed_here[0]) if failed_here else Failure()
        yield _mistake_report("", result, about_all, failure, failed_here, has_lines=not names)
    has_lines = True  # only the report on the first wrong function names the proved lines
    for function_result in result.functions:
        if function_result.state != "wrong":
            yield _unless_wrong(function_result, {f.name: f.state for f in result.functions})
            continue
        misconceptions = [
            d for d in result.diagnosis if function_result.name in (d.function, *d.also_in)
        ]
        source = function_result
        if not source.check:
            waiting = (f for f in result.functions if f.waits_for == function_result.name)
            source = next(waiting, function_result)
        failed_here = [check for check in failed if check.function == function_result.name]
        yield _mistake_report(
            function_result.name,
            result,
            misconceptions,
            Failure(source.check, source.evidence),
            failed_here,
            has_lines=has_lines,
        )
        has_lines = False


def _failure_of(check: CheckResult) -> Failure:
    return Failure(check.title, check.evidence)


def _unless_wrong(function: FunctionResult, states: dict[str, str]) -> FunctionReport:
    """Return the report on a function whose state is not "wrong".

    Args:
        function: The function.
        states: The state of each function of the file, by name.
    """
    if function.state == "undefined":
        return FunctionReport(function.name, WRONG, _why_undefined(function))
    awaited = function.waits_for
    why = _NOT_THERE.get(states.get(awaited, ""), "which it uses")
    message = {
        "unwritten": function.evidence or "not written yet",
        "unrun": "its cell has not run yet",
        "unseen": "nothing has asked it yet",
        "so_far": f"right so far; another check of it waits for {awaited}",
        "waiting": f"waits for {awaited}, {why}",
    }.get(function.state, "")
    return FunctionReport(function.name, LATER if message else RIGHT, message)


def _why_undefined(function: FunctionResult) -> str:
    """Return where the file has the name, or which name of the file may be meant."""
    location = function.evidence.removeprefix(function.name)
    if location:
        return f"it{location}"
    if not function.near:
        return "the file has no such name. Was it renamed, or deleted?"
    is_same_word = function.near.lower() == function.name.lower()
    rule = " Capital letters count." if is_same_word else ""
    return f"the file has no such name; is {function.near} meant?{rule}"


def _mistake_report(
    name: str,
    result: ExerciseResult,
    misconceptions: Sequence[Diagnosed],
    failure: Failure,
    failed: Sequence[CheckResult],
    *,
    has_lines: bool,
) -> FunctionReport:
    """Return the report on a mistake: its title, its location, the evidence, and one hint.

    Args:
        name: The function; "" for the whole file.
        result: The result of the exercise.
        misconceptions: The misconceptions that explain this mistake.
        failure: The failed check to show, if it still fits.
        failed: The failed checks of this function, or of the whole file.
        has_lines: Whether the report names the proved lines.
    """
    lines = result.lines if has_lines else ()
    if lines and not misconceptions and failed and failed[0].title != failure.title:
        # The check was chosen for misconceptions that the proved line has refuted.
        failure = _failure_of(failed[0])
    lines = tuple(sorted(lines, key=lambda proved: f"on {proved.place}" not in failure.evidence))
    location = ", or ".join(proved.place for proved in lines)
    also_proved = [d for d in result.also if name in (d.function, "")]
    if name and any(check.title == failure.title and check.outcome in _ENDED for check in failed):
        # No misconception of the bank makes a function run for ever.
        also_proved = [*misconceptions, *also_proved]
        misconceptions = []
    misconceptions = [which_of(diagnosed, result) for diagnosed in misconceptions]
    titles = _titles(misconceptions)
    if not titles and name:
        titles = ["not right yet"]
    elif not titles and location:
        titles = ["Not right yet"]
    also = ""
    if also_proved:
        also = f"Also: {' '.join(_titles(also_proved))} That may not be the only mistake."
    is_stopped = {check.outcome for check in failed} <= (_STOPPED if name else _STOPPED_FILE)
    is_traced = not failed or not all(_NOT_TRACED.search(check.evidence) for check in failed)
    needs_trace = not misconceptions and not is_stopped and is_traced
    ordered = sorted(failed, key=lambda check: check.title != failure.title)
    is_shown = len(ordered) > 1 and ordered[0].title == failure.title
    if is_shown and ordered[0].outcome == "error":
        failure = failure._replace(title="")  # it does not name the mistake: the check raised
    next_step = f"course trace {result.id}" if needs_trace else ""
    return FunctionReport(
        name,
        WRONG,
        says=_says(titles, location),
        check=failure.title,
        evidence=failure.evidence,
        also=also,
        hint=next((diagnosed.hint for diagnosed in misconceptions if diagnosed.hint), ""),
        next=next_step,
        failed=tuple(ordered),
        line=lines[0].line if lines else 0,
    )


def _says(titles: Sequence[str], location: str) -> str:
    """Return the titles of mistakes with their location: one sentence, or a list of several."""
    place = f" ({location})" if location else ""
    if len(titles) > 1:
        items = (f"{i}. {title}" for i, title in enumerate(titles, 1))
        return "\n".join([f"{len(titles)} mistakes{place}:", *items])
    return f"{titles[0].removesuffix('.')}{place}." if place else "".join(titles)


def _titles(misconceptions: Sequence[Diagnosed]) -> list[str]:
    """Return the title of each misconception, with the titles of the alternatives that fit as well.

    No title appears twice.
    """
    titles = {diagnosed.title for diagnosed in misconceptions}
    lines = []
    for diagnosed in misconceptions:
        others = (title for title in diagnosed.alternative_titles if title not in titles)
        lines.append(" Or: ".join([diagnosed.title, *others]))
    return lines


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
# beside a score that a rule changed; in place of the score of an excused exercise
DECIDED, EXCUSED = "*", "ex"
NOT_GRADED = "?"  # in place of the score of an exercise that is not graded


class FoldedLine(NamedTuple):
    """A line that stands for several checks."""

    text: str = ""
    checks: Sequence[CheckResult] = ()


@dataclass(frozen=True)
class AttemptWords:
    """The report on one attempt, function by function.

    Attributes:
        mark: ✓ if the attempt is done, … if everything that is written is right, ? if the attempt
            is not graded, otherwise ✗.
        passed: Whether every check passed and every function is written.
        functions: The functions of the file, in order. A report without a name is about the whole
            file.
        folded: Two lines: the failed checks that wait for an unwritten or wrong function, and the
            checks that pass.
        hint: How to start, if nothing is written.
    """

    mark: str
    passed: bool
    functions: tuple[FunctionReport, ...]
    folded: tuple[FoldedLine, ...] = (FoldedLine(), FoldedLine())
    hint: str = ""

    @property
    def first_wrong(self) -> FunctionReport | None:
        """The first report that shows a mistake, or None if there is no mistake."""
        return next((function for function in self.functions if function.mark == WRONG), None)

    @property
    def next_command(self) -> str:
        """The command that shows more about the first mistake.

        "" if there is no mistake, or if any function has a hint.
        """
        if not self.first_wrong or any(function.hint for function in self.functions):
            return ""
        return self.first_wrong.next


def attempt_words(result: ExerciseResult) -> AttemptWords:
    """Return the report on an attempt.

    If the attempt is not graded, the report has only the reason.
    """
    if not result.is_graded:
        report = FunctionReport("", NOT_GRADED, reason_not_graded(result))
        return AttemptWords(NOT_GRADED, passed=False, functions=(report,))
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
        f"{count_with_noun(len(waiting), 'check waits', 'checks wait')} for what is not right or "
        "written yet"
    )
    folded = (
        FoldedLine(wait, waiting),
        FoldedLine(count_with_noun(len(passed), "check passes", "checks pass"), passed),
    )
    mark = WRONG if has_mistake or not functions else PROGRESS
    mark = RIGHT if result.is_done else mark
    hint = ""
    if not passed and not has_mistake:
        hint = next((d.hint for d in result.diagnosis if d.id == UNTOUCHED), "")
    return AttemptWords(mark, result.is_done, functions, folded, hint)


def reason_not_graded(result: ExerciseResult) -> str:
    """Return the sentences that a student reads in place of points: the reason and what to do."""
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


def count_with_noun(number: int, singular: str, plural: str) -> str:
    """Return a number and its noun: "1 check passes", "2 checks pass"."""
    return f"{number} {singular if number == 1 else plural}"


def points(value: float) -> str:
    """Return points as text: "4" for 4.0, "2.5" for 2.5."""
    return f"{value:g}"


def score_words(score: float | None) -> str:
    """Return a score as text; "?" for None, which means that it is not graded."""
    return NOT_GRADED if score is None else points(score)


def out_of(scored: CheckResult | ExerciseResult | Result) -> str:
    """Return a score as "2 / 6", or else "excused", "not run" or "not graded".

    For a `Result` that is not graded, also return how many exercises are not graded.
    """
    if isinstance(scored, Result):
        return out_of_all([scored])
    if isinstance(scored, ExerciseResult) and scored.excused:
        return "excused"
    if isinstance(scored, CheckResult) and was_not_run(scored):
        return "not run"
    return (
        "not graded"
        if scored.score is None
        else f"{points(scored.score)} / {points(scored.max_score)}"
    )


def out_of_all(results: Sequence[Result]) -> str:
    """Return the total of the results as "31 / 40"; "excused" if all results are excused.

    If any exercise is not graded, there is no total: return how many are not graded.
    """
    if results and all(result.is_excused for result in results):
        return "excused"
    score = total_of(result.score for result in results)
    if score is not None:
        return f"{points(score)} / {points(sum(result.max_score for result in results))}"
    counting = [
        exercise for result in results for exercise in result.exercises if not exercise.excused
    ]
    return f"not graded: {sum(not exercise.is_graded for exercise in counting)} of {len(counting)}"


def was_not_run(check: CheckResult) -> bool:
    """Return whether the grader could not run this check.

    Return False if an instructor has given points for the check since.
    """
    return check.outcome == "skipped" and not check.score


ASK = (
    "Send this line to your instructor, who can have this grading alone repeated on the same "
    "inputs:"
)


def question_about(result: Result, exercise: ExerciseResult) -> str:
    """Return the line by which an instructor can find a result again.

    Return "" if no check failed, or if the result has no digest of the attempt.
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
    """Return the words of an adjustment, and its points before and after if they differ."""
    if adjustment.before == adjustment.after:
        return adjustment.words
    return f"{adjustment.words} ({adjustment.before:g} → {adjustment.after:g})"


def exercise_adjustments(exercise: ExerciseResult, result: Result) -> list[Adjustment]:
    """Return the adjustments that concern this exercise only.

    Adjustments of the whole assignment, for example for being late, are left out.
    """
    assignment_words = {adjustment.words for adjustment in result.adjustments}
    return [
        adjustment
        for adjustment in exercise.adjustments
        if adjustment.words not in assignment_words and adjustment.rule != "late"
    ]


class Problem(NamedTuple):
    """The report on a function or on the whole file, with its position in the attempt.

    Attributes:
        report: The report.
        line: The line of the attempt, from 1 on.
        column: The first column of the code on that line, from 1 on.
        end_column: The column after its last one.
    """

    report: FunctionReport
    line: int
    column: int
    end_column: int

    @property
    def sentence(self) -> str:
        """The mistake, the evidence and the hint, on one line."""
        report = self.report
        head = ": ".join(filter(None, (report.name, report.says or report.check)))
        evidence = report.evidence[:1].upper() + report.evidence[1:]
        clauses = [
            clause if clause.endswith((".", "?", "!")) else f"{clause}."
            for clause in (head, evidence)
            if clause
        ]
        if report.hint:
            clauses.append(f"Hint: {report.hint}")
        return " ".join(" ".join(clauses).split())


def problems(result: ExerciseResult, source: Source) -> Iterator[Problem]:
    """Yield each mistake with its position.

    The line is the one that the report names: a proved line, or the line of an exception. If the
    report names none, it is the line of the function's `def`.
    """
    for report in attempt_words(result).functions:
        if report.mark != WRONG:
            continue
        named_in_text = named_line(report.evidence, source) or named_line(report.says, source)
        line = report.line or named_in_text or defined_on(source, report.name) or 1
        code = next(iter(source.lines[line - 1 : line]), "").rstrip()
        indent = len(code) - len(code.lstrip())
        yield Problem(report, line, column=1 + indent, end_column=1 + len(code))


def defined_on(source: Source, path: str) -> int:
    """Return the line on which a function, class or `Class.method` begins; 0 if there is none.

    If there are several definitions, the last one counts.
    """
    line = 0
    statements: Sequence[ast.stmt] = source.statements
    for name in path.split("."):
        definitions = [
            statement
            for statement in statements
            if isinstance(statement, DEFINITIONS) and statement.name == name
        ]
        if not definitions:
            return 0
        line = definitions[-1].lineno
        statements = definitions[-1].body
    return line


def without_edits(result: ExerciseResult) -> ExerciseResult:
    """Return a result that a student may read: the proved lines, without their edits."""
    lines = tuple(line.model_copy(update={"edit": ""}) for line in result.lines)
    return result.model_copy(update={"lines": lines})


def without_ids(result: ExerciseResult) -> ExerciseResult:
    """Return a result for `--json`, without edits, misconception ids, and hints of single checks.

    The hints of misconceptions stay.
    """

    def redact_ids(misconceptions: Sequence[Diagnosed]) -> tuple[Diagnosed, ...]:
        return tuple(
            diagnosed.model_copy(update={"id": "", "alternatives": ()})
            for diagnosed in misconceptions
        )

    checks = tuple(check.model_copy(update={"hint": ""}) for check in result.checks)
    bare = {
        "checks": checks,
        "diagnosis": redact_ids(result.diagnosis),
        "also": redact_ids(result.also),
    }
    return without_edits(result).model_copy(update=bare)


def as_lines(owns: Sequence[OwnAttempt], results: Sequence[ExerciseResult | None]) -> Iterator[str]:
    """Yield a line for each mistake, as compilers do: path:line:column: error: sentence.

    In a notebook, and if there is no file, the position is always 1:1.

    Args:
        owns: The attempts.
        results: The result of each attempt, or None if there is no file.
    """
    for attempt, result in zip(owns, results, strict=True):
        if result is None:
            yield f"{attempt.path}:1:1: error: {' '.join(attempt.source.problem.split())}"
            continue
        for problem in problems(result, attempt.source):
            position = "1:1" if attempt.source.cells else f"{problem.line}:{problem.column}"
            yield f"{attempt.path}:{position}: error: {problem.sentence}"


def as_json(owns: Sequence[OwnAttempt], results: Sequence[ExerciseResult | None]) -> str:
    """Return the results as one JSON object with the key "exercises".

    An attempt without a result has 0 points and no checks, and its note gives the reason.
    """
    exercises = []
    for attempt, result in zip(owns, results, strict=True):
        if result is None:
            result = ExerciseResult(
                id=attempt.exercise.id,
                score=0,
                max_score=attempt.exercise.points,
                checks=(),
                note=attempt.source.problem or "not started",
            )
        exercises.append(without_ids(result).model_dump())
    return json.dumps({"exercises": exercises}, indent=1, ensure_ascii=False)
