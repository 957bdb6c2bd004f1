"""Claims about lessons: what they link to is released, their figures have words, and their predictions wait for a function."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from ...checks.trusted import namespace_of_source
from ...course import Course, Exercise
from ..notebook import PREDICT
from ..notebook_libraries import jupytext
from ..stub import stub_of
from .claim import Claim

LINKS = "what a lesson links to is released, and figures have words"
PREDICTIONS = "a prediction waits for its function, and then is answered"


@dataclass(frozen=True)
class _Link:
    """A file that a lesson names. words: what stands for it where it cannot be seen, of a figure."""

    target: str
    is_figure: bool
    words: str


def verify_lessons(course: Course, exercises: Sequence[Exercise]) -> Iterator[Claim]:
    """The claims about the lessons of these exercises."""
    released = {path for each in course.exercises for path in (each.script, each.notebook, *each.figures)}
    links = [(exercise, link) for exercise in exercises for link in _links(stub_of(exercise))]
    broken = [f"{exercise.stem}: {said}" for exercise, link in links if (said := _fault(exercise, link, released))]
    named = {exercise.notebook.parent / link.target for exercise, link in links}
    unseen = [path for exercise in exercises for path in exercise.figures if path not in named]
    broken += [f"{path.relative_to(course.root)} is named in no lesson" for path in unseen]
    total = len(links) + len(unseen)
    yield Claim(
        "lessons", LINKS, total - len(broken), total, tuple(broken), next="mend the lesson, then course release"
    )
    asked = [(exercise, cell) for exercise in exercises for cell in _predictions(stub_of(exercise))]
    wrong = [f"{exercise.stem}: {said}" for exercise, cell in asked if (said := _unanswered(exercise, cell))]
    mend = "catch NotImplementedError in that cell, and print one line in any case"
    yield Claim("lessons", PREDICTIONS, len(asked) - len(wrong), len(asked), tuple(wrong), next=mend)


def _links(stub: str) -> Iterator[_Link]:
    """The files beside a lesson that its Markdown names."""
    for cell in jupytext.reads(stub, fmt="py:percent").cells:
        if cell.cell_type != "markdown":
            continue
        for inline in MarkdownIt("commonmark").enable("table").parse(cell.source):
            for token in inline.children or ():
                target = token.attrGet("src" if token.type == "image" else "href")
                if isinstance(target, str) and ":" not in target and not target.startswith("#"):
                    yield _Link(target, token.type == "image", token.content)


def _fault(exercise: Exercise, link: _Link, released: set[Path]) -> str:
    """What is wrong with a link; empty if nothing is."""
    if (exercise.notebook.parent / link.target) not in released:
        return f"{link.target} is not released"
    return f"{link.target} has no words for who cannot see it" if link.is_figure and not link.words.strip() else ""


def _predictions(stub: str) -> list[str]:
    """The code of the cells that answer a prediction."""
    cells = jupytext.reads(stub, fmt="py:percent").cells
    return [str(cell.source) for cell in cells if PREDICT in cell.metadata.get("tags", [])]


def _unanswered(exercise: Exercise, cell: str) -> str:
    """What goes wrong when a prediction is run with the stub, or with the solution; empty if nothing does."""
    first = cell.strip().splitlines()[0] if cell.strip() else ""
    for whose, source in (("stub", stub_of(exercise)), ("solution", exercise.solution.read_text(encoding="utf-8"))):
        namespace = dict(namespace_of_source(source, exercise.solution)) | {"__name__": "__main__"}
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                exec(compile(cell, str(exercise.solution), "exec", dont_inherit=True), namespace)
        except Exception as error:
            return f"with the {whose}, {first!r} raises {type(error).__name__}: {error}"
        if not printed.getvalue().strip():
            return f"with the {whose}, {first!r} prints nothing"
    return ""
