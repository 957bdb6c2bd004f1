"""The annotations of a check run: remarks on lines of the student's files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Course, Exercise
from ..report.labels import label_of
from ..report.markdown import attempt_text
from ..report.words import attempt_words, out_of
from ..result import ExerciseResult, Result
from ..submission import AttemptSource, lines_of, read_file
from .started import Started

AT_MOST = 50  # annotations in one request to the service
# In the grader's evidence: "… on line 12", or of a notebook "… on line 3 of code cell 2".
_LINE = re.compile(r"\bline ([0-9]{1,7})\b(?: of code cell ([0-9]{1,7})\b)?")
_DEFINITION = re.compile(r"(?:def|class) ([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Annotation:
    """A remark on one line of a file of the pull request."""

    path: str
    line: int
    title: str
    message: str


def annotate(course: Course, results: Sequence[Result], started: Started, submitted: Path) -> list[Annotation]:
    """An annotation for each exercise that is started and not right."""
    found = []
    known = {a.id: a for a in course.assignments}
    for result in results:
        assignment = known[result.assignment]
        folder = submitted / result.student / assignment.id
        for exercise, graded in zip(assignment.exercises, result.exercises, strict=True):
            name = started.get((exercise.assignment.id, exercise.id))
            if name and not attempt_words(graded).passed:
                found.append(_annotation(course, exercise, graded, folder / name))
    return found[:AT_MOST]


def _annotation(course: Course, exercise: Exercise, result: ExerciseResult, file: Path) -> Annotation:
    source = read_file(file, course.limits.source_kib)
    stub = exercise.script.read_text(encoding="utf-8")
    line = _line(source, result, {m[1] for m in map(_DEFINITION.match, stub.splitlines()) if m})
    if file.suffix == ".ipynb":
        line = _line_of_notebook(file.read_bytes(), source.source, line)
    path = f"exercises/{exercise.assignment.id}/{file.name}"
    return Annotation(path, line, f"{label_of(exercise)}: {out_of(result)}", attempt_text(result)[:4000])


def _line(source: AttemptSource, result: ExerciseResult, asked_for: set[str]) -> int:
    """The line that is proved to be wrong, else the one in the evidence of the first failed check, else that of the first
    definition the exercise asks for."""
    lines = lines_of(source.source)
    for proved in result.lines:
        if proved.line <= len(lines):
            return proved.line
    first = attempt_words(result).first
    named = _line_named(first.evidence, source) if first is not None else 0
    if 1 <= named <= len(lines):
        return named
    definitions = ((i, _DEFINITION.match(line)) for i, line in enumerate(lines, 1))
    return next((i for i, match in definitions if match and match[1] in asked_for), 1)


def _line_named(evidence: str, source: AttemptSource) -> int:
    """Return the line of the attempt's text that the evidence names first; 0 where it names none."""
    named = _LINE.search(evidence)
    if named is None:
        return 0
    cell = int(named[2] or 0)
    return int(named[1]) + (source.cells[cell - 1] - 1 if 1 <= cell <= len(source.cells) else 0)


def _line_of_notebook(content: bytes, source: str, line: int) -> int:
    """The line of the .ipynb file that contains this line of code: Jupyter writes one line of code on each line."""
    places: dict[str, list[int]] = {}
    for number, shown in _strings(lines_of(content.decode("utf-8-sig", "replace"))):
        places.setdefault(shown, []).append(number)
    place = 0
    for text in filter(str.strip, lines_of(source)[:line]):
        found = places.get(text, [])
        after = bisect_right(found, place)
        place = found[after] if after < len(found) else place
    return max(place, 1)


def _strings(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        try:
            text = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):  # somebody else's file: it may be brackets alone
            continue
        if isinstance(text, str):
            yield number, text.rstrip("\n")


def titled(annotation: Annotation) -> dict[str, object]:
    """The annotation in the form of the service's API, which shows its text literally."""
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": "warning",
        "title": annotation.title,
        "message": annotation.message,
    }
