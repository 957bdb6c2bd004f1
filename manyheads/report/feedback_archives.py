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

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..course import Course
from ..files import zip_files
from ..result import Result
from ..submission import Unreadable, is_archive, read_bytes
from ..submission.intake_journal import NBGRADER_KIB, TIMESTAMP, IntakeJournal, Origin
from ..submission.roster_and_times import CANVAS, MOODLE, letters
from .class_summary import ClassView
from .markdown import feedback_markdown, one_exercise
from .pages import student_page
from .report_content import file_stems

FOLDER = "feedback"
OF_NBGRADER = (TIMESTAMP, "submission_secret.txt")
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")


class FeedbackArchives(NamedTuple):
    """The feedback archives of a class.

    Attributes:
        contents: The bytes of each archive, by its file name.
        left_out: Sentences about students whose feedback is in no archive.
    """

    contents: dict[str, bytes]
    left_out: list[str]


class _Group(NamedTuple):
    """The names of the students who handed in an assignment together."""

    platform: str
    assignment: str
    members: tuple[str, ...]


class _UploadedFile(NamedTuple):
    """A file as the platform names it. The members of a group have the same one."""

    platform: str
    assignment: str
    name: str


def feedback_archives(view: ClassView, journal: IntakeJournal) -> FeedbackArchives:
    """Return the feedback archives, and sentences about students without feedback in them.

    There is an archive for each platform and assignment, such as canvas-averages.zip. The feedback
    of a group contains nothing that only one member may read, so a group is left out if the results
    of its members differ. Moodle cannot take the feedback of a group at all.

    Args:
        view: The class.
        journal: The journal of the collected files.
    """
    left_out = list[str]()
    files_by_archive = defaultdict[str, dict[str, bytes]](dict)
    members_by_path = _group_members(view, journal)
    groups = defaultdict[_Group, dict[str, Origin]](dict)
    for result in view.results:
        start = f"{result.student}/{result.assignment}/"
        collected = {
            path: origin for path, origin in journal.files.items() if path.startswith(start)
        }
        for platform, files_for in _FILES_FOR.items():
            alone = dict[str, Origin]()
            for path, origin in collected.items():
                if origin.platform != platform:
                    continue
                origins = alone
                if path in members_by_path:
                    origins = groups[_Group(platform, result.assignment, members_by_path[path])]
                origins[path.removeprefix(start)] = origin
            if files := dict(files_for(view, result, alone)):
                files_by_archive[_archive_name(platform, result.assignment)].update(files)
            elif alone:
                cannot = (
                    f"{result.student}: {platform} cannot find this student by what was collected"
                )
                left_out.append(
                    f"{cannot}. Next: course collect the download again, then course feedback"
                )
    for group, origins in groups.items():
        shared = _shared_result(view, group)
        if group.platform == CANVAS and shared is not None:
            files_by_archive[_archive_name(CANVAS, group.assignment)].update(
                _for_canvas(view, shared, origins)
            )
        else:
            next_step = f"Next: give each member the page in {FOLDER}/STUDENT/{group.assignment}/"
            left_out.append(
                f"{', '.join(group.members)}: {_WHY_NO_GROUP[group.platform]}. {next_step}"
            )
    left_out += _unread_alone(view, journal)
    contents = {
        name: zip_files(dict(sorted(files.items())))
        for name, files in sorted(files_by_archive.items())
    }
    return FeedbackArchives(contents, left_out)


def _archive_name(platform: str, assignment: str) -> str:
    return f"{platform.lower()}-{assignment}.zip"


def _unread_alone(view: ClassView, journal: IntakeJournal) -> Iterator[str]:
    """Yield a sentence for each student without any readable file, if there is an archive.

    The feedback of such a student has no file name under which it could go back.
    """
    if not any(origin.platform in _FILES_FOR for origin in journal.files.values()):
        return  # there is no archive
    for result in view.results:
        unread = journal.not_readable.get(result.student, {}).get(result.assignment)
        if unread and not any(
            path.startswith(f"{result.student}/{result.assignment}/") for path in journal.files
        ):
            next_step = f"Next: give this student the page in {FOLDER}/STUDENT/{result.assignment}/"
            yield (
                f"{result.student}: no file could be read, and feedback goes back under a "
                f"file's name. {next_step}"
            )


def _group_members(view: ClassView, journal: IntakeJournal) -> dict[str, tuple[str, ...]]:
    """Return the members of the group that handed in a file, by the file's path.

    The path is relative to the folder of submissions. A file belongs to a group if several students
    have one with the same name of the platform, or if that name begins with the group's name. Other
    files are not in the result.
    """
    paths_by_file = defaultdict[_UploadedFile, list[str]](list)
    for path, origin in journal.files.items():
        if origin.named:
            assignment = path.split("/")[1]
            paths_by_file[_UploadedFile(origin.platform, assignment, origin.named)].append(path)
    members_by_path = dict[str, tuple[str, ...]]()
    for file, paths in paths_by_file.items():
        students = tuple(sorted({path.split("/")[0] for path in paths}))
        if len(students) > 1 or _is_named_after_group(view, students[0], file.name):
            members_by_path |= dict.fromkeys(paths, students)
    return members_by_path


def _is_named_after_group(view: ClassView, student: str, platform_name: str) -> bool:
    """Return whether a platform's file name begins with the name of the student's group.

    False if it begins with the student's name.
    """
    row = view.members.row_of(student)
    prefix = letters(platform_name.partition("_")[0])
    return bool(row.group) and prefix == letters(row.group) and prefix != letters(row.name)


def _shared_result(view: ClassView, group: _Group) -> Result | None:
    """Return the result that all members have, under the name of their group.

    Return None if the results differ, or if a member has none.
    """
    result_of = {
        result.student: result for result in view.results if result.assignment == group.assignment
    }
    if not result_of.keys() >= {*group.members}:
        return None
    results = [result_of[member] for member in group.members]
    without_names = [result.model_copy(update={"student": ""}) for result in results]
    if any(result != without_names[0] for result in without_names):
        return None
    group_name = view.members.row_of(group.members[0]).group or "Your group"
    return results[0].model_copy(update={"student": group_name})


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


def feedback_folders(
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
                    read_bytes(submitted / result.student / result.assignment / name, NBGRADER_KIB),
                )
