"""Write scores and feedback in the formats of other systems.

These are CSV, the gradebooks of Canvas and Moodle, Gradescope's JSON, and archives of feedback.

Canvas' gradebook (canvas-lms, lib/gradebook_importer.rb) needs the columns Student and ID first,
then SIS User ID and SIS Login ID, then Section as the last one before the assignments. Canvas looks
for a student by ID, then by SIS User ID, then by SIS Login ID, then by name. If no student fits, it
creates one. A grade of EX excuses the student from the assignment. A row whose first cell contains
“Points Possible” is about the assignments. Canvas skips a column whose title contains the name of a
computed column, and it reads (12) at the end of a title as its own id. In Moodle (docs.moodle.org,
Grade import) the instructor chooses the column that identifies the user.

Feedback goes back under the names that the platforms gave the submissions on download. Moodle
(mod/assign/feedback/file/importziplib.php, is_valid_filename_for_import) expects folder names of
the form fullname_number_plugintype_plugin, and attaches the files of a folder to the participant
with that number. Canvas (app/models/abstract_assignment.rb, infer_comment_context_from_filename)
takes the first two numbers between underscores as the user and the attachment; after `anon`, it
takes a word and a number. It ignores a file that is no attachment of that submission. It shows the
file under the name of the attachment, so the feedback has the format of the attachment. `nbgrader
release_feedback` hands out feedback/<student>/<assignment>/<notebook>.html, and needs timestamp.txt
and submission_secret.txt of the submission beside it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ..course import Course
from ..printable_text import visible, visible_line
from ..result import Result
from ..submission import Unreadable, is_archive, read_bytes
from ..submission.intake_journal import IntakeJournal, Origin
from ..submission.roster_and_times import Student, letters
from .class_summary import (
    NOT_HELD,
    UNEXPLAINED,
    ClassView,
    group_of,
    misconceptions_of,
    not_graded,
    sentences,
)
from .markdown import feedback_markdown, one_exercise
from .pages import student_page
from .report_content import (
    IDS,
    Labels,
    adjustment_text,
    attempt_words,
    exercise_adjustments,
    file_stems,
)

_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = re.compile(r"([;\t|])")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_POINTS, _NO_POINTS = "    Points Possible", "Points\u00a0Possible"
_ENDS_LIKE_AN_ID = re.compile(r"\(\d+\)\s*$")
_OF_CANVAS = re.compile(
    r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)|^\s*(Student|LastName|"
    r"FirstName|ID|SIS User ID|SIS Login ID|Section|Integration ID|Root Account)\s*$"
)
_OF_MOODLE = re.compile(r"^\s*(Username|ID number|Email address)\s*$", re.IGNORECASE)
MOODLE, CANVAS = "Moodle", "Canvas"
FOLDER = "feedback"
_GroupKey = tuple[str, str, tuple[str, ...]]  # the platform, the assignment, the members' names
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")
_WHEN = (2000, 1, 1, 0, 0, 0)  # the same bytes every time


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([cell(value) for value in row])
    return out.getvalue()


def number(value: float | None) -> str:
    """Return a number with as many digits as a gradebook keeps: "4" for 4.0.

    "" if there is no number.
    """
    return "" if value is None else f"{value:.10g}"


def cell(value: str) -> str:
    """Return the visible text of a cell, with a quote before text that a spreadsheet would compute.

    Some spreadsheets ignore blanks before the sign, and some accept its full-width form, such as
    ＝ on East Asian keyboards. A spreadsheet that separates cells by another sign than the comma,
    as in most of Europe, begins a new cell within a text. A program that reads line by line would
    begin a new row at a line break.
    """
    value = visible(_LINE_BREAKS.sub(" ", value))
    head, *tail = _SEPARATORS.split(value)
    fragments = [head] + [
        f"'{fragment}" if index % 2 and _is_formula(fragment) else fragment
        for index, fragment in enumerate(tail)
    ]
    starts = _is_formula(value) or value.startswith("\t")
    return ("'" if starts else "") + "".join(fragments)


def _is_formula(text: str) -> bool:
    visible = "".join(
        letter
        for letter in text
        if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp")
    )
    return unicodedata.normalize("NFKC", visible[:1]).startswith(_FORMULA)


def to_canvas(view: ClassView) -> str:
    """Return Canvas' gradebook import.

    It has a column for each assignment, a row of points possible, and a row for each student.
    """
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(view, _OF_CANVAS)]
    max_scores = [
        _POINTS,
        "",
        "",
        "",
        "",
        *(number(assignment.max_score) for assignment in view.assignments),
    ]
    rows = (
        [
            (row.name or row.id).replace(_POINTS.strip(), _NO_POINTS),
            row.canvas_id,
            row.sis_id,
            row.login or row.id,
            row.section,
            *cells,
        ]
        for row, cells in _scores(view, "EX")
    )
    return table([head, max_scores, *rows])


def to_moodle(view: ClassView) -> str:
    """Return Moodle's grade import.

    It has a column for each way to find a student, and a column for each assignment.
    """
    head = ["Username", "ID number", "Email address", *_columns(view, _OF_MOODLE)]
    return table(
        [
            head,
            *([row.login or row.id, row.sis_id, row.email, *cells] for row, cells in _scores(view)),
        ]
    )


def _columns(view: ClassView, reserved: re.Pattern[str]) -> Iterator[str]:
    """Yield the title of each assignment's column.

    It has the id too, if the title alone would be ambiguous.

    Args:
        view: The class.
        reserved: Titles with another meaning in that system. The column of an assignment with such
            a title is called by its id.
    """
    folded = [assignment.title.strip().casefold() for assignment in view.assignments]
    for assignment, own_title in zip(view.assignments, folded, strict=True):
        ambiguous = folded.count(own_title) > 1 or _ENDS_LIKE_AN_ID.search(assignment.title)
        if reserved.search(assignment.title):
            yield assignment.id
        else:
            yield f"{assignment.title} [{assignment.id}]" if ambiguous else assignment.title


def _scores(view: ClassView, excused: str = "") -> Iterator[tuple[Student, list[str]]]:
    """Yield each student with the cell of each assignment.

    Students who handed in nothing come last. Students missing from the roster are left out: an
    import would add students who have dropped the course again. An assignment has the same points
    for every student, so the graded part of a partly excused assignment is scaled to the whole. The
    cell of an assignment without a total is blank.

    Args:
        view: The class.
        excused: The cell of an assignment that is excused as a whole.
    """
    scores = {
        (result.student, assignment.id): excused
        if result.is_excused
        else number(result.scaled_score)
        for assignment in view.assignments
        for result in assignment.results
    }
    members = view.members
    submitters = [
        name for name in view.by_student if name in members.by_name or not members.by_name
    ]
    for name in (*submitters, *members.absent(submitters)):
        empty_cell = number(0) if members.zero and name in members.by_name else ""
        yield (
            members.row_of(name),
            [scores.get((name, assignment.id), empty_cell) for assignment in view.assignments],
        )


def to_csv(view: ClassView) -> str:
    """Return CSV with a row for every student and exercise, assignment by assignment.

    It has ids for programs and titles for people.
    """
    header = (
        "student",
        "assignment",
        "exercise",
        "score",
        "max_score",
        "misconceptions",
        "isolation",
        "decided",
        "assignment_title",
        "exercise_title",
        "name",
        "section",
        "group",
    )
    rows: list[Sequence[str]] = [header]
    for assignment in view.assignments:
        score_of_missing = number(0) if view.members.zero else ""
        missing = [
            (column.id, score_of_missing, number(column.max_score), "", "", "", "")
            for column in assignment.columns
        ]
        for row in assignment.rows:
            student = view.members.row_of(row.student)
            person = ("" if student.name == row.student else student.name, student.section)
            for id_, *cells, group in _exercise_rows(row.result) if row.result else missing:
                titles = (assignment.title, view.labels.exercise(id_))
                rows.append((row.student, assignment.id, id_, *cells, *titles, *person, group))
    return table(rows)


def _exercise_rows(result: Result) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each exercise: its id, points, misconceptions, isolation, rules and group.

    A gradebook does not hold why an attempt shows no misconception.
    """
    for exercise in result.exercises:
        points = (
            ("", "") if exercise.excused else (number(exercise.score), number(exercise.max_score))
        )
        names = " ".join(diagnosed.id for diagnosed in misconceptions_of(exercise))
        rules = "; ".join(
            adjustment_text(adjustment)
            for adjustment in (*result.adjustments, *exercise_adjustments(exercise, result))
        )
        group = group_of(exercise)
        group_cell = NOT_HELD if group == UNEXPLAINED and result.isolation == NOT_HELD else group
        yield exercise.id, *points, names, result.isolation, rules, group_cell


def gradescope_files(view: ClassView) -> dict[Path, str]:
    """Return the results.json of every submission, by its path in a folder."""
    stem_of, files = file_stems(view.by_student), {}
    for result in view.results:
        value = gradescope_result(result, view.labels)
        path = Path(stem_of(result.student), result.assignment, "results.json")
        files[path] = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return files


FORMATS = {"csv": to_csv, "canvas": to_canvas, "moodle": to_moodle}
TELLS_NOTHING = ("canvas", "moodle")  # formats that have no cell for an explanation
# For formats without a word for an excuse: the effect, and the instructor's next step there
_WITHOUT_EXCUSES = {
    "moodle": (MOODLE, "its cell is blank. Next: exclude that grade in Moodle's grader report"),
    "gradescope": ("Gradescope", "no score is entered. Next: leave it out where you add up"),
}


def excuses_without_a_word(view: ClassView, format_: str) -> Iterator[str]:
    """Yield a sentence for each assignment that is excused as a whole.

    If the format has a word for an excuse, yield nothing.
    """
    if format_ in _WITHOUT_EXCUSES:
        system, instead = _WITHOUT_EXCUSES[format_]
        for result in (result for result in view.results if result.is_excused):
            title = view.labels.assignment(result.assignment)
            yield (
                f"{result.student}: {title} is excused, and {system} has no word for that: "
                f"{instead}"
            )


def gradescope_result(result: Result, labels: Labels = IDS) -> dict[str, object]:
    """Return Gradescope's results.json of one submission, as a value.

    If an exercise is not graded, or the submission is excused as a whole, the value has no scores:
    Gradescope would add the scores of the tests to a total. Without scores, Gradescope reports that
    the autograder failed, and enters no points.
    """
    numbered, tests = labels.numbered([exercise.id for exercise in result.exercises]), []
    for exercise in result.exercises:
        check_reports = {
            check.id: function
            for function in reversed(attempt_words(exercise).functions)
            for check in function.failed
        }
        for j, check in enumerate(exercise.checks, 1):
            report = check_reports.get(check.id)
            texts = [check.evidence]
            if report:
                texts += [report.says, report.also, report.hint and f"hint: {report.hint}"]
            test = {
                "name": visible_line(f"{labels.exercise(exercise.id)}: {check.title}"),
                "name_format": "text",
                "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
                "score": check.score,
                "max_score": check.max_score,
                "status": "passed" if check.outcome == "passed" else "failed",
                "output": visible("\n".join(filter(None, texts))),
                "output_format": "text",
            }
            tests.append(test)
    notes = [f"{labels.exercise(e.id)}: {e.note}" for e in result.exercises if e.note]
    notes += [*sentences(result, labels), f"isolation: {result.isolation}"]
    if result.score is None or result.is_excused:
        output = [*(f"not graded: {reason}" for reason in not_graded(result, labels)), *notes]
        return {"output": visible("\n".join(output)), "output_format": "text"}
    output_text = visible("\n".join(notes))
    return {
        "score": result.scaled_score,
        "output": output_text,
        "output_format": "text",
        "tests": tests,
    }


def zips(view: ClassView, memory: IntakeJournal) -> tuple[dict[str, bytes], list[str]]:
    """Return the archive of feedback for each platform and assignment, and sentences about gaps.

    A sentence names each student that a platform's archive lacks. The feedback of a group
    contains nothing that only one member may read.
    """
    messages, contents = list[str](), defaultdict[str, dict[str, bytes]](dict)
    of_groups, groups = _of_groups(view, memory), defaultdict[_GroupKey, dict[str, Origin]](dict)
    for result in view.results:
        start = f"{result.student}/{result.assignment}/"
        collected = {
            path: origin for path, origin in memory.files.items() if path.startswith(start)
        }
        for platform, files_for in _FILES_FOR.items():
            alone = dict[str, Origin]()
            for path, origin in collected.items():
                if origin.platform == platform and path in of_groups:
                    key = (platform, result.assignment, of_groups[path])
                    groups[key][path.removeprefix(start)] = origin
                elif origin.platform == platform:
                    alone[path.removeprefix(start)] = origin
            if files := dict(files_for(view, result, alone)):
                contents[f"{platform.lower()}-{result.assignment}.zip"].update(files)
            elif alone:
                cannot = (
                    f"{result.student}: {platform} cannot find this student by what was collected"
                )
                messages.append(
                    f"{cannot}. Next: course collect the download again, then course feedback"
                )
    results = {(result.student, result.assignment): result for result in view.results}
    for (platform, assignment, members), origins in groups.items():
        shared = _shared_result(view, [results.get((member, assignment)) for member in members])
        if platform == CANVAS and shared is not None:
            contents[f"{platform.lower()}-{assignment}.zip"].update(
                _for_canvas(view, shared, origins)
            )
        else:
            next_step = f"Next: give each member the page in {FOLDER}/STUDENT/{assignment}/"
            messages.append(f"{', '.join(members)}: {_WHY_NO_GROUP[platform]}. {next_step}")
    messages += _unread_alone(view, memory)
    return {name: zipped(files) for name, files in sorted(contents.items())}, messages


def _unread_alone(view: ClassView, memory: IntakeJournal) -> Iterator[str]:
    """Yield a sentence for each student without any readable file.

    The feedback of such a student has no file name under which it could go back.
    """
    if not any(origin.platform in _FILES_FOR for origin in memory.files.values()):
        return  # there is no zip
    for result in view.results:
        unread = memory.not_readable.get(result.student, {}).get(result.assignment)
        if unread and not any(
            path.startswith(f"{result.student}/{result.assignment}/") for path in memory.files
        ):
            next_step = f"Next: give this student the page in {FOLDER}/STUDENT/{result.assignment}/"
            yield (
                f"{result.student}: no file could be read, and feedback goes back under a "
                f"file's name. {next_step}"
            )


def _of_groups(view: ClassView, memory: IntakeJournal) -> dict[str, tuple[str, ...]]:
    """Return the members of the group that handed in a file, by the file's path.

    The path is relative to the folder of submissions.
    """
    handed_in: dict[tuple[str, str, str], list[str]] = {}
    for path, origin in memory.files.items():
        if origin.named:
            handed_in.setdefault((origin.platform, path.split("/")[1], origin.named), []).append(
                path
            )
    of_groups = dict[str, tuple[str, ...]]()
    for (_, _, platform_name), paths in handed_in.items():
        students = tuple(sorted({path.split("/")[0] for path in paths}))
        if len(students) > 1 or _is_named_after_group(view, students[0], platform_name):
            of_groups |= dict.fromkeys(paths, students)
    return of_groups


def _is_named_after_group(view: ClassView, student: str, platform_name: str) -> bool:
    """Return whether a platform's file name begins with the name of the student's group.

    False if it begins with the student's name.
    """
    row, prefix = view.members.row_of(student), letters(platform_name.partition("_")[0])
    return bool(row.group) and prefix == letters(row.group) and prefix != letters(row.name)


def _shared_result(view: ClassView, members: Sequence[Result | None]) -> Result | None:
    """Return the result that all members have, under the name of their group.

    None if the results differ, or if a member has none.
    """
    results = [result for result in members if result is not None]
    without_names = [result.model_copy(update={"student": ""}) for result in results]
    if len(results) < len(members) or any(result != without_names[0] for result in without_names):
        return None
    return results[0].model_copy(
        update={"student": view.members.row_of(results[0].student).group or "Your group"}
    )


def _for_moodle(
    view: ClassView, result: Result, origins: Mapping[str, Origin]
) -> Iterator[tuple[str, bytes]]:
    names = {origin.named for origin in origins.values() if origin.platform == MOODLE}
    for folder in sorted(filter(_IMPORTABLE.fullmatch, names)):
        for name, content in _feedback_files(view, result, f"{result.assignment}_feedback"):
            yield f"{folder}/{name}", content


def _for_canvas(
    view: ClassView, result: Result, origins: Mapping[str, Origin]
) -> Iterator[tuple[str, bytes]]:
    ids = {exercise.id for exercise in result.exercises}
    for name, origin in sorted(origins.items()):
        if origin.platform != CANVAS or not origin.named:
            continue
        id_ = PurePosixPath(name).stem.partition("_")[2]
        feedback = feedback_markdown(
            one_exercise(result, id_) if id_ in ids else result, view.labels
        )
        if origin.named.lower().endswith(".zip"):
            yield (
                origin.named,
                zipped(dict(_feedback_files(view, result, f"{result.assignment}_feedback"))),
            )
        elif is_archive(origin.named):  # a text cannot be opened under an archive's name
            yield f"{origin.named}.txt", feedback.encode()
        else:
            yield origin.named, _as_file(origin.named, feedback)


_FILES_FOR = {CANVAS: _for_canvas, MOODLE: _for_moodle}
_WHY_NO_GROUP = {
    CANVAS: "Canvas gives one file to the whole group, and their feedback differs",
    MOODLE: "Moodle's folder has the number of their group, which is no participant's",
}


def _feedback_files(view: ClassView, result: Result, stem: str) -> Iterator[tuple[str, bytes]]:
    yield f"{stem}.html", student_page(view, [result]).encode()
    yield f"{stem}.md", feedback_markdown(result, view.labels).encode()


def _as_file(name: str, feedback: str) -> bytes:
    """Return the feedback as a notebook of one cell, or as a script of comments, by the suffix."""
    if name.lower().endswith(".ipynb"):
        cell: dict[str, object] = {"cell_type": "markdown", "metadata": {}, "source": feedback}
        return json.dumps(
            {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1
        ).encode()
    return "".join(f"# {line}".rstrip() + "\n" for line in feedback.splitlines()).encode()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files, the same bytes every time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def folders(
    view: ClassView, course: Course, submitted: Path
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield every student's files, by their paths.

    Each assignment has the whole feedback as page and as Markdown, and a page for each exercise.
    The student's folder has the student's name, unless another student's folder would be the same
    one on some system.
    """
    stem_of = file_stems(view.by_student)
    stems = {exercise.id: exercise.stem for exercise in course.exercises}
    for result in view.results:
        folder = PurePosixPath(FOLDER, stem_of(result.student), result.assignment)
        yield from (
            (folder / name, content)
            for name, content in _feedback_files(view, result, result.assignment)
        )
        for exercise in result.exercises:
            if exercise.id in stems:
                page = student_page(view, [one_exercise(result, exercise.id)])
                yield folder / f"{stems[exercise.id]}.html", page.encode()
        for name in OF_NBGRADER:
            with suppress(Unreadable):
                yield (
                    folder / name,
                    read_bytes(submitted / result.student / result.assignment / name, 1),
                )
