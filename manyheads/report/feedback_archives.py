"""Pack feedback as nbgrader, Moodle and Canvas take it back."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

from ..course import Course
from ..result import Result
from ..submission import Unreadable, read_bytes, read_text
from ..submission.lay_out import Memory, Origin
from ..submission.roster import folded
from .labels import Labels, labels_of
from .markdown import feedback_markdown, one_exercise
from .pages import student_page

# Feedback as Moodle and Canvas take it back: under the names that they gave when the submissions were downloaded.
#
# Moodle (mod/assign/feedback/file/importziplib.php, is_valid_filename_for_import) reads
# fullname_number_plugintype_plugin of a folder, and attaches what is in it to the participant of that number. Canvas
# (app/models/abstract_assignment.rb, infer_comment_context_from_filename) takes the first two numbers between
# underscores for the user and the attachment (after `anon` a word and a number), ignores what is no attachment of that
# submission, and shows the file under the attachment's own name. So what goes back there is the student's own file,
# with the feedback at its top.

MOODLE, CANVAS = "Moodle", "Canvas"
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")
_WHEN = (2000, 1, 1, 0, 0, 0)  # the same bytes every time


@dataclass
class Zips:
    """The archives by their names, and a sentence for whoever is in none of a platform's."""

    files: dict[str, bytes] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def zips(course: Course, results: Sequence[Result], submitted: Path, memory: Memory) -> Zips:
    """Return an archive for each platform and assignment from which anything was collected."""
    done = Zips()
    contents: dict[str, dict[str, bytes]] = {}
    labels = labels_of(course)
    for result in results:
        origins = _origins(result, memory)
        found = {**_for_moodle(result, origins, labels), **_for_canvas(result, origins, submitted, labels)}
        for (platform, name), content in found.items():
            contents.setdefault(f"{platform.lower()}-{result.assignment}.zip", {})[name] = content
        come_from = {origin.platform for origin in origins.values()} & {MOODLE, CANVAS}
        for platform in sorted(come_from - {platform for platform, _ in found}):
            said = f"{result.student}: {platform} cannot find this student by what was collected"
            done.said.append(f"{said}. Next: course collect the download again, then course feedback")
    done.files = {name: zipped(files) for name, files in sorted(contents.items())}
    return done


def _origins(result: Result, memory: Memory) -> dict[str, Origin]:
    """Return where the student's files of this assignment came from, by their names."""
    start = f"{result.student}/{result.assignment}/"
    return {path.removeprefix(start): each for path, each in memory.files.items() if path.startswith(start)}


def _for_moodle(result: Result, origins: Mapping[str, Origin], labels: Labels) -> dict[tuple[str, str], bytes]:
    folders = {
        origin.named for origin in origins.values() if origin.platform == MOODLE and _IMPORTABLE.fullmatch(origin.named)
    }
    whole = list(_whole(result, labels)) if folders else []
    return {(MOODLE, f"{folder}/{name}"): content for folder in sorted(folders) for name, content in whole}


def _for_canvas(
    result: Result, origins: Mapping[str, Origin], submitted: Path, labels: Labels
) -> dict[tuple[str, str], bytes]:
    ids = {exercise.id for exercise in result.exercises}
    files: dict[tuple[str, str], bytes] = {}
    for name, origin in sorted(origins.items()):
        if origin.platform != CANVAS or not origin.named:
            continue
        id_ = PurePosixPath(name).stem.partition("_")[2]
        own = one_exercise(result, id_) if id_ in ids else result
        if origin.named.lower().endswith(".zip"):
            files[CANVAS, origin.named] = zipped(dict(_whole(result, labels)))
        else:
            files[CANVAS, origin.named] = _marked(submitted / result.student / result.assignment / name, own, labels)
    return files


def _whole(result: Result, labels: Labels) -> Iterator[tuple[str, bytes]]:
    yield f"{result.assignment}_feedback.html", student_page(result.student, [result], labels).encode()
    yield f"{result.assignment}_feedback.md", feedback_markdown(result, labels).encode()


def _marked(path: Path, result: Result, labels: Labels) -> bytes:
    """Return the student's file with the feedback at its top: as comments of a script, or a cell of a notebook."""
    said = feedback_markdown(result, labels)
    try:
        text = read_text(path, 64 * 1024)
    except Unreadable:
        text = ""
    if path.suffix == ".ipynb":
        return _with_cell(text, said)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in said.splitlines())
    return f"{comment}\n{text}".encode("utf-8", "surrogatepass")


def _with_cell(text: str, said: str) -> bytes:
    """Return the notebook with one more cell at its beginning; of what is no notebook, a notebook with that cell alone."""
    try:
        return _on_top(json.loads(text), said)
    except (ValueError, LookupError, TypeError, RecursionError):  # also what can be read, and is too deep to be written
        return _on_top({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, said)


def _on_top(notebook: Mapping[str, Any], said: str) -> bytes:
    cell = {"cell_type": "markdown", "metadata": {}, "source": said}
    cells = notebook["cells"]
    if not isinstance(cells, list):
        raise TypeError
    if "nbformat_minor" in notebook and notebook["nbformat_minor"] >= 5:
        cell["id"] = "feedback"
    return json.dumps({**notebook, "cells": [cell, *cells]}, indent=1).encode()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files, the same bytes every time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


# The folder as nbgrader names it: feedback/<student>/<assignment>/, with a page for each notebook.
#
# `nbgrader release_feedback` hands out <notebook>.html, and wants timestamp.txt and submission_secret.txt of the
# submission beside it.

FOLDER = "feedback"
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")


def folder_files(
    course: Course, result: Result, submitted: Path | None = None
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of one result, by their paths: the whole as page and Markdown, and a page for each exercise."""
    labels = labels_of(course)
    folder = PurePosixPath(FOLDER, result.student, result.assignment)
    yield folder / f"{result.assignment}.html", student_page(result.student, [result], labels).encode()
    yield folder / f"{result.assignment}.md", feedback_markdown(result, labels).encode()
    stems = {other.id: other.stem for other in course.exercises if other.assignment.id == result.assignment}
    for exercise in result.exercises:
        if exercise.id in stems:
            page = student_page(result.student, [one_exercise(result, exercise.id)], labels)
            yield folder / f"{stems[exercise.id]}.html", page.encode()
    if submitted is not None:
        yield from _of_nbgrader(folder, submitted / result.student / result.assignment)


def folded_together(folder: Path, students: Collection[str]) -> tuple[str, str] | None:
    """Return two students whose names are one folder here, where upper and lower case, or forms of a letter, are the same."""
    alike: dict[str, list[str]] = {}
    for student in sorted(set(students)):
        alike.setdefault(folded(student), []).append(student)
    for names in alike.values():
        for first, second in combinations(names, 2):
            (folder / first).mkdir(parents=True, exist_ok=True)
            if (folder / second).exists() and (folder / first).samefile(folder / second):
                return first, second
    return None


def _of_nbgrader(folder: PurePosixPath, handed_in: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    for name in OF_NBGRADER:
        try:
            yield folder / name, read_bytes(handed_in / name, 1)
        except Unreadable:
            continue
