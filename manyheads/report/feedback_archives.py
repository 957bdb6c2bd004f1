"""Write feedback as folders, and as archives in which Canvas and Moodle find each student.

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

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ..course import Course
from ..result import Result
from ..submission import Unreadable, is_archive, read_bytes
from ..submission.intake_journal import IntakeJournal, Origin
from ..submission.roster_and_times import letters
from .class_summary import ClassView
from .markdown import feedback_markdown, one_exercise
from .pages import student_page
from .report_content import file_stems

MOODLE, CANVAS = "Moodle", "Canvas"
FOLDER = "feedback"
_GroupKey = tuple[str, str, tuple[str, ...]]  # the platform, the assignment, the members' names
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")
_WHEN = (2000, 1, 1, 0, 0, 0)  # the same bytes every time


def zips(view: ClassView, memory: IntakeJournal) -> tuple[dict[str, bytes], list[str]]:
    """Return the feedback archives by file name, and sentences about students without feedback.

    There is an archive for each platform and assignment, such as canvas-averages.zip. The feedback
    of a group contains nothing that only one member may read, so a group is left out if the results
    of its members differ. Moodle cannot take the feedback of a group at all.

    Args:
        view: The class.
        memory: The journal of the collected files.
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
    return {name: zip_files(files) for name, files in sorted(contents.items())}, messages


def _unread_alone(view: ClassView, memory: IntakeJournal) -> Iterator[str]:
    """Yield a sentence for each student without any readable file, if there is an archive.

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

    The path is relative to the folder of submissions. A file belongs to a group if several students
    have one with the same name of the platform, or if that name begins with the group's name. Other
    files are not in the result.
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

    Return None if the results differ, or if a member has none.
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
    """Yield the page and the Markdown for each folder of Moodle, by path in the archive.

    A folder with a name that Moodle does not import is left out.
    """
    names = {origin.named for origin in origins.values() if origin.platform == MOODLE}
    for folder in sorted(filter(_IMPORTABLE.fullmatch, names)):
        for name, content in _feedback_files(view, result, f"{result.assignment}_feedback"):
            yield f"{folder}/{name}", content


def _for_canvas(
    view: ClassView, result: Result, origins: Mapping[str, Origin]
) -> Iterator[tuple[str, bytes]]:
    """Yield the feedback for each file of Canvas, by the file's name and in its format.

    A file of one exercise gets the feedback on that exercise, any other file that on the whole
    assignment.
    """
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
                zip_files(dict(_feedback_files(view, result, f"{result.assignment}_feedback"))),
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
    """Yield the feedback on a result as page and as Markdown, by file name."""
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


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files, the same bytes every time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def folders(
    view: ClassView, course: Course, submitted: Path
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield every student's files, each with its path: feedback/<student>/<assignment>/….

    Each assignment has the whole feedback as page and as Markdown, a page for each exercise, and
    nbgrader's two files from `submitted`, if it has them. The student's folder has the student's
    name, unless another student's folder would be the same one on some system (`file_stems`).
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
