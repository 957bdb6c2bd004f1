"""`course ask --for`: a sheet of questions for each student of a class; and `--answers`: what was answered, into the results."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from ..box.names import Level
from ..course import Course
from ..errors import CourseFault
from ..report.exports import cell, table
from ..report.labels import Labels, labels_of
from ..report.words import counted
from ..report.writing import told_where
from ..result import Answered, read_answered, read_results, write_answered
from ..submission import Submission, find_submissions
from ..submission.csv_rows import csv_rows, mend
from ..submission.not_readable import not_readable
from ..submission.pseudonyms import read_pseudonyms
from ..whole import write_whole
from .options import Console
from .progress import progress

if TYPE_CHECKING:
    from ..student.sheet_questions import Sheet

KEY_FILE = "key.csv"
HANDED_OUT, WITH_ANSWERS = "pages", "quizzes"  # folders beside it, each with a folder for each student


def ask_class(
    console: Console, course: Course, submitted: Path, out: Path, seed: int | None, isolation: Level = Level.NAMESPACES
) -> None:
    """Write each student's sheet into a folder, and the key. Raises CourseFault, and Exit where a submission got no sheet."""
    from ..report.question_sheets import KEY, gift, key_rows, page, qti

    if (out / KEY_FILE).exists():
        raise CourseFault(f"{out} has the key of sheets that may be handed out. Next: give --out another folder")
    found, others = find_submissions(course, submitted)
    unread = not_readable(course, submitted, found)
    found = sorted({*found, *unread}, key=lambda each: (each.student, course.assignments.index(each.assignment)))
    with told_where(out, "give --out another folder"):  # before the minutes that the questions take
        out.mkdir(parents=True, exist_ok=True)
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    labels, sheets = labels_of(course), _drawn(console, course, found, seed, isolation)
    with told_where(out, "give --out another folder"):
        for sheet in (each for each in sheets if each.asked):
            handed_out, quiz = (out / name / sheet.student / sheet.assignment.id for name in (HANDED_OUT, WITH_ANSWERS))
            write_whole(handed_out.with_suffix(".html"), page(sheet, labels).encode())
            write_whole(quiz.with_suffix(".gift"), gift(sheet).encode())
            write_whole(quiz.with_suffix(".qti.zip"), qti(sheet))
        write_whole(out / KEY_FILE, table([KEY, *(row for sheet in sheets for row in key_rows(sheet))]).encode())
    for submission, sheet in zip(found, sheets, strict=True):
        console.say(*_told(sheet, labels, unread.get(submission, ())), style="yellow")
    console.say(*(f"no sheet: {other}" for other in others), style="yellow")
    made = sum(1 for sheet in sheets if sheet.asked)
    asked = counted(sum(len(sheet.asked) for sheet in sheets), "question", "questions")
    console.print(f"{made} of {counted(len(sheets), 'submission', 'submissions')} with a sheet: {asked}, seed: {seed}")
    yours = f"For you alone, with the answers: {out / WITH_ANSWERS}/ and {out / KEY_FILE}"
    console.say(f"To hand out: {out / HANDED_OUT}/. {yours}")
    console.say(f"Next: course ask --answers FILE --key {quote(str(out / KEY_FILE))}")
    if made < len(sheets) or others:
        raise typer.Exit(1)


def _drawn(console: Console, course: Course, found: Sequence[Submission], seed: int, isolation: Level) -> list[Sheet]:
    """Draw the sheets, in a box that has been proved. Raises BoxUnavailable."""
    from ..box.level import open_box
    from ..judge.isolation_proof import prove
    from ..student.sheet_questions import SheetQuestions

    with open_box(isolation, course.limits.for_worker(), course.root) as box:
        prove(box, course)
        questions, sheets = SheetQuestions(course, box, seed), []
        with progress(console, len(found), 0, doing="asking") as shown:
            for submission in found:
                sheets.append(questions.sheet(submission))
                shown.one_more()
    return sheets


def _told(sheet: Sheet, labels: Labels, unread: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each attempt that gave no question, and for a sheet that is not this student's alone."""
    what = labels.assignment(sheet.assignment.id)
    if unread:
        yield f"{sheet.student}: {what}: handed in, not readable: {', '.join(unread)}"
    for reason in dict.fromkeys(reason for _, reason in sheet.said):
        which = ", ".join(labels.exercise(exercise) for exercise, why in sheet.said if why == reason)
        yield f"{sheet.student}: {which}: {reason.rstrip('.')}"
    if not sheet.asked:
        yield f"no sheet: {sheet.student}: {what}: no exercise gives a question"
    if sheet.is_shared:
        yield f"{sheet.student}: {what}: the same sheet as somebody with other code. Next: another --seed"


def read_answers(console: Console, course: Course, file: Path, results: Path, key: Path | None = None) -> None:
    """Hold answers against the key, and write how many are right into a folder of results. Raises CourseFault.

    file: a CSV file with the columns student, assignment and answers, such as BADC- (- for none).
    key: what `ask_class` wrote; None: it lies beside the file.
    """
    key = key or file.with_name(KEY_FILE)
    right = _key_in(key)
    answers = _answers_in(file, right, key)
    called = {cell(student): name for name, student in read_pseudonyms(course.root).students.items()}
    graded = {(cell(result.student), result.assignment): result.student for result in read_results(results)}
    kept = read_answered(results)
    for (student, assignment), answered in answers.items():
        named = graded.get((student, assignment)) or graded.get((called.get(student, ""), assignment))
        if named is None:
            raise CourseFault(f"{results} has no result of {student!a} for {assignment}. Next: course grade SUBMITTED")
        kept[named, assignment] = answered
    try:
        write_answered(kept, results)
    except OSError as error:
        raise CourseFault(
            f"{results} cannot be written to ({error.strerror}). Next: mend that, then this again"
        ) from None
    missing = (pair for pair in right if pair not in answers)
    console.say(*(f"no answers: {student}: {assignment}" for student, assignment in missing), style="yellow")
    counts = course.file.questions or any(each.row.questions for each in course.assignments)
    if counts and right.keys() - answers.keys():
        console.say("Who has no row loses nothing; a row of - alone, such as -----, counts as all wrong")
    so = "counted as `questions` in course.yaml says" if counts else "count for nothing: course.yaml has no `questions`"
    console.say(f"{counted(len(answers), 'sheet', 'sheets')} with answers, {so}")
    console.say(f"Next: course report {quote(str(results))}")


def _key_in(key: Path) -> dict[tuple[str, str], str]:
    """Return the right letters, by the student and the assignment. Raises CourseFault."""
    from ..student.question import LETTERS

    right: dict[tuple[str, str], str] = {}
    for where, row in csv_rows(key, ("student", "assignment", "question", "right"), "--key"):
        pair = _pair(row)
        right[pair] = right.get(pair, "") + row.get("right", "")
        if row.get("question") != str(len(right[pair])) or right[pair][-1] not in LETTERS:
            raise CourseFault(f"{where}: the key is not as it was written. Next: bring it back from a copy")
    return right


def _answers_in(file: Path, right: Mapping[tuple[str, str], str], key: Path) -> dict[tuple[str, str], Answered]:
    """Return how many answers of each row are right. Raises CourseFault, which names the line."""
    from ..student.ask_questions import read_letters

    answers: dict[tuple[str, str], Answered] = {}
    for where, row in csv_rows(file, ("student", "assignment", "answers"), "--answers"):
        pair = _pair(row)
        if pair not in right:
            raise CourseFault(f"{where}: {key} has no sheet of {pair[0]!a} for {pair[1]!a}. {mend(file)}")
        if pair in answers:
            raise CourseFault(f"{where}: a second row of {pair[0]!a} for {pair[1]!a}. {mend(file)}")
        try:
            given = read_letters(row.get("answers", "").removeprefix("'"), len(right[pair]))
        except CourseFault as error:
            raise CourseFault(f"{where}: {str(error).partition(' Next: ')[0]} {mend(file)}") from None
        count = sum(one == other for one, other in zip(given, right[pair], strict=True))
        answers[pair] = Answered(right=count, asked=len(given))
    return answers


def _pair(row: dict[str, str]) -> tuple[str, str]:
    """Return the student, with the quotes that a table puts before what looks like a formula, and the assignment."""
    return cell(row.get("student", "")), row.get("assignment", "")
