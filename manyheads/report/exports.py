"""Write scores and feedback as other systems import them: CSV, gradebooks of learning platforms,
Gradescope's JSON, archives.

Canvas' gradebook (canvas-lms, lib/gradebook_importer.rb) wants Student and ID first, then SIS User
ID and SIS Login ID, then Section last before the assignments. It finds a student by ID, else by SIS
User ID, else by SIS Login ID, else by name, and makes a new one where none fits. A grade of EX
excuses the student from the assignment. A row whose first cell has “Points Possible” in it is about
the assignments; a column whose title has the name of a computed one in it is passed over, and (12)
at its end is Canvas' own id. Moodle (docs.moodle.org, Grade import) lets the instructor say which
column identifies the user.

Feedback goes back under the names that the platforms gave when submissions were downloaded. Moodle
(mod/assign/feedback/file/importziplib.php, is_valid_filename_for_import) reads
fullname_number_plugintype_plugin of a folder, and attaches what is in it to the participant of that
number. Canvas (app/models/abstract_assignment.rb, infer_comment_context_from_filename) takes the
first two numbers between underscores for the user and the attachment (after `anon` a word and a
number), ignores what is no attachment of that submission, and shows the file under the attachment's
own
name: so the feedback has the form of that file. `nbgrader release_feedback` hands out
feedback/<student>/<assignment>/<notebook>.html, and wants timestamp.txt and submission_secret.txt
of the submission beside it.
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
from ..submission.roster import Student, letters
from .class_view import (
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
    csv.writer(out, lineterminator="\n").writerows([[cell(value) for value in row] for row in rows])
    return out.getvalue()


def number(value: float | None) -> str:
    """4 for 4.0, with as many digits as a gradebook keeps; a blank where there is no number."""
    return "" if value is None else f"{value:.10g}"


def cell(value: str) -> str:
    """Return the visible text of a cell, with a quote before whatever a spreadsheet would take for
    a formula.

    Some take blanks before the sign away, and some know its full-width form, as 〃＝〃 on East
    Asian keyboards. One that separates cells by another sign than the comma, as in most of Europe,
    begins a new cell within a text. A line break would begin a new row for whoever reads line by
    line.
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
    """Canvas' gradebook import: a column for each assignment, a row of points possible, then a row
    for each student.
    """
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(view, _OF_CANVAS)]
    most = [
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
    return table([head, most, *rows])


def to_moodle(view: ClassView) -> str:
    """Moodle's grade import: a column for each way to find a student, and one for each
    assignment.
    """
    head = ["Username", "ID number", "Email address", *_columns(view, _OF_MOODLE)]
    return table(
        [
            head,
            *([row.login or row.id, row.sis_id, row.email, *cells] for row, cells in _scores(view)),
        ]
    )


def _columns(view: ClassView, reserved: re.Pattern[str]) -> Iterator[str]:
    """Yield what stands above each column: the assignment's title, with its id where the title
    alone would be ambiguous.

    reserved: titles that have another meaning there; of such an assignment it is the id.
    """
    folded = [assignment.title.strip().casefold() for assignment in view.assignments]
    for assignment, own_title in zip(view.assignments, folded, strict=True):
        ambiguous = folded.count(own_title) > 1 or _ENDS_LIKE_AN_ID.search(assignment.title)
        yield (
            assignment.id
            if reserved.search(assignment.title)
            else f"{assignment.title} [{assignment.id}]"
            if ambiguous
            else assignment.title
        )


def _scores(view: ClassView, excused: str = "") -> Iterator[tuple[Student, list[str]]]:
    """Yield each student, with the cell of each assignment.

    Those who handed in nothing come last, and who is not on the roster is left out: who has dropped
    the course would be entered anew. An assignment has the same points for everybody there: of one
    that is excused in part, the rest stands for the whole. excused: the cell of one that is excused
    as a whole. The cell of one without a total is blank.
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
        nothing = number(0) if members.zero and name in members.by_name else ""
        yield (
            members.row_of(name),
            [scores.get((name, assignment.id), nothing) for assignment in view.assignments],
        )


def to_csv(view: ClassView) -> str:
    """CSV with a row for every student and exercise, assignment by assignment: ids for programs,
    titles for people.
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
        nothing = number(0) if view.members.zero else ""
        missing = [
            (column.id, nothing, number(column.max_score), "", "", "", "")
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
    """Yield of each exercise what stands in its row.

    Why it shows no misconception a gradebook does not hold.
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
    """Return a results.json for every submission, by its path in a folder."""
    stem_of, files = file_stems(view.by_student), {}
    for result in view.results:
        value = gradescope_result(result, view.labels)
        path = Path(stem_of(result.student), result.assignment, "results.json")
        files[path] = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return files


FORMATS = {"csv": to_csv, "canvas": to_canvas, "moodle": to_moodle}
TELLS_NOTHING = ("canvas", "moodle")  # formats without a place for words
# What an excuse is in formats that have no word for it, and what an instructor can do in that
# system.
_WITHOUT_EXCUSES = {
    "moodle": (MOODLE, "its cell is blank. Next: exclude that grade in Moodle's grader report"),
    "gradescope": ("Gradescope", "no score is entered. Next: leave it out where you add up"),
}


def excuses_without_a_word(view: ClassView, format_: str) -> Iterator[str]:
    """Yield a sentence for each assignment that is excused as a whole, where the format has no word
    for that.
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
    """Gradescope's results.json of one submission, as a value.

    Of one that is not graded in part, or is excused as a whole, it has no score at all, neither its
    own nor a test's, of which Gradescope would make a total: then Gradescope says that the
    autograder failed, and enters no points.
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
            named = (
                (report.says, report.also, report.hint and f"hint: {report.hint}") if report else ()
            )
            test = {
                "name": visible_line(f"{labels.exercise(exercise.id)}: {check.title}"),
                "name_format": "text",
                "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
                "score": check.score,
                "max_score": check.max_score,
                "status": "passed" if check.outcome == "passed" else "failed",
                "output": visible("\n".join(filter(None, (check.evidence, *named)))),
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
    """Return an archive for each platform and assignment from which anything was collected, by its
    name.

    Beside them stands a sentence for whoever is in none of a platform's. What goes to a group has
    nothing of one member alone.
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
    """Yield a sentence for whoever handed in nothing that can be read: then there is no name for
    feedback to go back under.
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
    """Return the members of the group that handed a file in as one, by the file's path in the
    submitted folder.
    """
    handed_in: dict[tuple[str, str, str], list[str]] = {}
    for path, origin in memory.files.items():
        if origin.named:
            handed_in.setdefault((origin.platform, path.split("/")[1], origin.named), []).append(
                path
            )
    of_groups = dict[str, tuple[str, ...]]()
    for (_, _, named), paths in handed_in.items():
        students = tuple(sorted({path.split("/")[0] for path in paths}))
        if len(students) > 1 or _is_named_after_group(view, students[0], named):
            of_groups |= dict.fromkeys(paths, students)
    return of_groups


def _is_named_after_group(view: ClassView, student: str, named: str) -> bool:
    """Return whether a platform's name begins with that of the student's group, and not with the
    student's own.
    """
    row, prefix = view.members.row_of(student), letters(named.partition("_")[0])
    return bool(row.group) and prefix == letters(row.group) and prefix != letters(row.name)


def _shared_result(view: ClassView, members: Sequence[Result | None]) -> Result | None:
    """Return what all members have alike, under their group's name; None where one has something
    else, or is not shown.
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
    named = {origin.named for origin in origins.values() if origin.platform == MOODLE}
    for folder in sorted(filter(_IMPORTABLE.fullmatch, named)):
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
        elif is_archive(origin.named):  # which nobody opens as what its name says
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
    """Return the feedback as a notebook of one cell, or as a script of comments, as the name
    asks.
    """
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
    """Yield every student's files, by their paths: of each assignment the whole as page and
    Markdown, and a page for each exercise.

    The student's folder has the student's name, if no other's would be the same folder on some
    system.
    """
    stem_of, stems = (
        file_stems(view.by_student),
        {exercise.id: exercise.stem for exercise in course.exercises},
    )
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
