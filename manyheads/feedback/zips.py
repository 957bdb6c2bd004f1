"""Feedback as Moodle and Canvas take it back: under the names that they gave when the submissions were downloaded.

Moodle (mod/assign/feedback/file/importziplib.php, is_valid_filename_for_import) reads
fullname_number_plugintype_plugin of a folder, and attaches what is in it to the participant of that number. Canvas
(app/models/abstract_assignment.rb, infer_comment_context_from_filename) takes the first two numbers between
underscores for the user and the attachment (after `anon` a word and a number), ignores what is no attachment of that
submission, and shows the file under the attachment's own name. So what goes back there is the student's own file,
with the feedback at its top.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..collect.memory import Memory, Origin
from ..course import Course
from ..report.labels import Labels, labels_of
from ..report.pages import student_page
from ..result import Result
from ..submission import Unreadable, read_text
from .markdown import feedback_markdown, one_exercise

MOODLE, CANVAS = "Moodle", "Canvas"
_IMPORTABLE = re.compile(r"[^_/\\]*_\d+_[a-z]+_[a-z]+(_.*)?")
_WHEN = (2000, 1, 1, 0, 0, 0)  # the same bytes every time


@dataclass
class Zips:
    """The archives by their names, and a sentence for whoever is in none of a platform's."""

    files: dict[str, bytes] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def zips(course: Course, results: Sequence[Result], submitted: Path, memory: Memory) -> Zips:
    """An archive for each platform and assignment from which anything was collected."""
    done = Zips()
    contents: dict[str, dict[str, bytes]] = {}
    labels = labels_of(course)
    for result in results:
        origins = _origins(course, result, memory)
        found = {**_for_moodle(result, origins, labels), **_for_canvas(result, origins, submitted, labels)}
        for (platform, name), content in found.items():
            contents.setdefault(f"{platform.lower()}-{result.assignment}.zip", {})[name] = content
        come_from = {origin.platform for origin in origins.values()} & {MOODLE, CANVAS}
        for platform in sorted(come_from - {platform for platform, _ in found}):
            said = f"{result.student}: {platform} cannot find this student by what was collected"
            done.said.append(f"{said}. Next: course collect the download again, then course feedback")
    done.files = {name: _zipped(files) for name, files in sorted(contents.items())}
    return done


def _origins(course: Course, result: Result, memory: Memory) -> dict[str, Origin]:
    """Where the student's files of this assignment came from, by their names."""
    start = f"{result.student}/{result.assignment}/"
    return {path.removeprefix(start): each for path, each in memory.files.items() if path.startswith(start)}


def _for_moodle(result: Result, origins: Mapping[str, Origin], labels: Labels) -> dict[tuple[str, str], bytes]:
    folders = {each.named for each in origins.values() if each.platform == MOODLE and _IMPORTABLE.fullmatch(each.named)}
    whole = list(_whole(result, labels)) if folders else []
    return {(MOODLE, f"{folder}/{name}"): content for folder in sorted(folders) for name, content in whole}


def _for_canvas(
    result: Result, origins: Mapping[str, Origin], submitted: Path, labels: Labels
) -> dict[tuple[str, str], bytes]:
    ids = {exercise.id for exercise in result.exercises}
    found: dict[tuple[str, str], bytes] = {}
    for name, origin in sorted(origins.items()):
        if origin.platform != CANVAS or not origin.named:
            continue
        id_ = PurePosixPath(name).stem.partition("_")[2]
        own = one_exercise(result, id_) if id_ in ids else result
        if origin.named.lower().endswith(".zip"):
            found[CANVAS, origin.named] = _zipped(dict(_whole(result, labels)))
        else:
            found[CANVAS, origin.named] = _marked(submitted / result.student / result.assignment / name, own, labels)
    return found


def _whole(result: Result, labels: Labels) -> Iterator[tuple[str, bytes]]:
    yield f"{result.assignment}_feedback.html", student_page(result.student, [result], labels).encode()
    yield f"{result.assignment}_feedback.md", feedback_markdown(result, labels).encode()


def _marked(path: Path, result: Result, labels: Labels) -> bytes:
    """The student's file with the feedback at its top: as comments of a script, or a cell of a notebook."""
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
    """The notebook with one more cell at its beginning; of what is no notebook, a notebook with that cell alone."""
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


def _zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
