"""Pack feedback as nbgrader, Moodle and Canvas take it back, under the names that they gave when submissions were downloaded.

Moodle (mod/assign/feedback/file/importziplib.php, is_valid_filename_for_import) reads
fullname_number_plugintype_plugin of a folder, and attaches what is in it to the participant of that number. Canvas
(app/models/abstract_assignment.rb, infer_comment_context_from_filename) takes the first two numbers between
underscores for the user and the attachment (after `anon` a word and a number), ignores what is no attachment of that
submission, and shows the file under the attachment's own name. So the feedback goes back there in the form of that
file. `nbgrader release_feedback` hands out feedback/<student>/<assignment>/<notebook>.html, and
wants timestamp.txt and submission_secret.txt of the submission beside it.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ..course import Course
from ..result import Result
from ..submission import Unreadable, is_archive, read_bytes
from ..submission.lay_out import Memory, Origin
from .class_view import ClassView
from .labels import file_stems
from .markdown import feedback_markdown, one_exercise
from .pages import student_page

MOODLE, CANVAS = "Moodle", "Canvas"
FOLDER = "feedback"
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")
_WHEN = (2000, 1, 1, 0, 0, 0)  # the same bytes every time


def zips(view: ClassView, memory: Memory) -> tuple[dict[str, bytes], list[str]]:
    """Return an archive for each platform and assignment from which anything was collected, by its name.

    Beside them stands a sentence for whoever is in none of a platform's.
    """
    told, contents = list[str](), dict[str, dict[str, bytes]]()
    for result in view.results:
        start = f"{result.student}/{result.assignment}/"
        origins = {path.removeprefix(start): each for path, each in memory.files.items() if path.startswith(start)}
        come_from = {origin.platform for origin in origins.values()}
        found = {CANVAS: _for_canvas(view, result, origins), MOODLE: _for_moodle(view, result, origins)}
        for platform, files in found.items():
            if packed := dict(files):
                contents.setdefault(f"{platform.lower()}-{result.assignment}.zip", {}).update(packed)
            elif platform in come_from:
                said = f"{result.student}: {platform} cannot find this student by what was collected"
                told.append(f"{said}. Next: course collect the download again, then course feedback")
    return {name: zipped(files) for name, files in sorted(contents.items())}, told


def _for_moodle(view: ClassView, result: Result, origins: Mapping[str, Origin]) -> Iterator[tuple[str, bytes]]:
    named = {origin.named for origin in origins.values() if origin.platform == MOODLE}
    for folder in sorted(filter(_IMPORTABLE.fullmatch, named)):
        for name, content in _whole(view, result, f"{result.assignment}_feedback"):
            yield f"{folder}/{name}", content


def _for_canvas(view: ClassView, result: Result, origins: Mapping[str, Origin]) -> Iterator[tuple[str, bytes]]:
    ids = {exercise.id for exercise in result.exercises}
    for name, origin in sorted(origins.items()):
        if origin.platform != CANVAS or not origin.named:
            continue
        id_ = PurePosixPath(name).stem.partition("_")[2]
        said = feedback_markdown(one_exercise(result, id_) if id_ in ids else result, view.labels)
        if origin.named.lower().endswith(".zip"):
            yield origin.named, zipped(dict(_whole(view, result, f"{result.assignment}_feedback")))
        elif is_archive(origin.named):  # which nobody opens as what its name says
            yield f"{origin.named}.txt", said.encode()
        else:
            yield origin.named, _as_file(origin.named, said)


def _whole(view: ClassView, result: Result, stem: str) -> Iterator[tuple[str, bytes]]:
    yield f"{stem}.html", student_page(view, [result]).encode()
    yield f"{stem}.md", feedback_markdown(result, view.labels).encode()


def _as_file(name: str, said: str) -> bytes:
    """Return the feedback as a notebook of one cell, or as a script of comments, as the name asks."""
    if name.lower().endswith(".ipynb"):
        cell: dict[str, object] = {"cell_type": "markdown", "metadata": {}, "source": said}
        return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1).encode()
    return "".join(f"# {line}".rstrip() + "\n" for line in said.splitlines()).encode()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files, the same bytes every time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def folders(view: ClassView, course: Course, submitted: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield every student's files, by their paths: of each assignment the whole as page and Markdown, and a page for each exercise.

    The student's folder has the student's name, if no other's would be the same folder on some system.
    """
    stem_of, stems = file_stems(view.present), {exercise.id: exercise.stem for exercise in course.exercises}
    for result in view.results:
        folder = PurePosixPath(FOLDER, stem_of(result.student), result.assignment)
        yield from ((folder / name, content) for name, content in _whole(view, result, result.assignment))
        for exercise in result.exercises:
            if exercise.id in stems:
                page = student_page(view, [one_exercise(result, exercise.id)])
                yield folder / f"{stems[exercise.id]}.html", page.encode()
        for name in OF_NBGRADER:
            with suppress(Unreadable):
                yield folder / name, read_bytes(submitted / result.student / result.assignment / name, 1)
