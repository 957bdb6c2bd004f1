"""Claims about files and lessons: exercises/ is what the sources yield, nothing hidden is in it, and lessons link to what exists."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path

from markdown_it import MarkdownIt

from ...checks.local import namespace_of_source
from ...course import Course, Exercise
from ...diagnosis import load_bank
from ...diagnosis.recording_file import read
from ...judge.run_checks import Catalogue, points_fault
from ...student.choose_example import examples
from ..class_repository import linked_pages
from ..leaks import leaks
from ..release_exercises import Exercises, is_current, recorded_files, stray_files, texts_of
from ..skeletons import FILL
from ..stub import stub_of
from ..stub_notebook import PREDICT, jupytext
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
    """Yield the claims about the lessons of these exercises."""
    released = {path for other in course.exercises for path in (other.script, other.notebook, *other.figures)}
    released |= linked_pages(course)
    links = [(exercise, link) for exercise in exercises for link in _links(stub_of(exercise))]
    broken = [f"{exercise.stem}: {said}" for exercise, link in links if (said := _fault(exercise, link, released))]
    named = {exercise.notebook.parent / link.target for exercise, link in links}
    unseen = [path for exercise in exercises for path in exercise.figures if path not in named]
    broken += [f"{path.relative_to(course.root)} is named in no lesson" for path in unseen]
    mend = "mend the lesson, then course release"
    yield Claim.but_for(broken, "lessons", LINKS, len(links) + len(unseen), mend)
    asked = [(exercise, cell) for exercise in exercises for cell in _predictions(stub_of(exercise))]
    wrong = [f"{exercise.stem}: {said}" for exercise, cell in asked if (said := _unanswered(exercise, cell))]
    mend = "catch NotImplementedError in that cell, and print one line in any case"
    yield Claim.but_for(wrong, "lessons", PREDICTIONS, len(asked), mend)


def _links(stub: str) -> Iterator[_Link]:
    """Yield the files beside a lesson that its Markdown names."""
    for cell in jupytext.reads(stub, fmt="py:percent").cells:
        if cell.cell_type != "markdown":
            continue
        for inline in MarkdownIt("commonmark").enable("table").parse(cell.source):
            for token in inline.children or ():
                target = token.attrGet("src" if token.type == "image" else "href")
                if isinstance(target, str) and ":" not in target and not target.startswith("#"):
                    yield _Link(target, token.type == "image", token.content)


def _fault(exercise: Exercise, link: _Link, released: set[Path]) -> str:
    """Return what is wrong with a link; empty if nothing is."""
    if Path(normpath(exercise.notebook.parent / link.target)) not in released:
        return f"{link.target} is not released"
    return f"{link.target} has no words for who cannot see it" if link.is_figure and not link.words.strip() else ""


def _predictions(stub: str) -> list[str]:
    """Return the code of the cells that answer a prediction."""
    cells = jupytext.reads(stub, fmt="py:percent").cells
    return [str(cell.source) for cell in cells if PREDICT in cell.metadata.get("tags", [])]


def _unanswered(exercise: Exercise, cell: str) -> str:
    """Return what goes wrong when a prediction is run with the stub, or with the solution; empty if nothing does."""
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


POINTS = "points"
RELEASE = "course release"
FILL_IN = "write what each asks for, in its place"


def verify_sources(course: Course, catalogue: Catalogue, named: Exercises) -> Iterator[Claim]:
    """Yield the claims about what these exercises are made from.

    Where points do not add up, nothing is graded, so no other claim is tested.
    """
    points = _points(catalogue, named)
    yield points
    if not points.kept:
        return
    yield _words(named)
    yield _filled(course, named)
    yield from verify_lessons(course, named)


def verify_released(course: Course, catalogue: Catalogue, exercises: Exercises | None = None) -> Iterator[Claim]:
    """Yield the claims about the whole course, or about these exercises, without the claim about stray files.

    All is made anew and compared but for recordings, which takes minutes: they hold while they are of what is there.
    """
    named = course.exercises if exercises is None else exercises
    recorded = [exercise for exercise in named if is_current(exercise)]
    files = {path: text for exercise in named for path, text in texts_of(catalogue, exercise).items()}
    made = {path: path.read_bytes() for exercise in recorded for path in recorded_files(exercise)}
    wrong = [path for path, text in files.items() if not path.exists() or path.read_bytes() != text]
    wrong += [exercise.fingerprints for exercise in named if exercise not in recorded]
    stale = [f"{path.relative_to(course.root)} is not what solutions/ yields" for path in wrong]
    there = [*files, *(path for exercise in named for path in recorded_files(exercise))]
    strays = stray_files(course, there) if exercises is None else []
    stale += [f"{path.relative_to(course.root)} has no source" for path in strays]
    says = "exercises/ is exactly what solutions/ yields"
    yield Claim.but_for(stale, "release", says, len(there), RELEASE)
    yield _shapes(recorded)
    found = leaks(course, {str(path.relative_to(course.root)): content for path, content in {**files, **made}.items()})
    says, aside = "no line of a solution is released", "take that line out of its source"
    yield Claim.but_for(found, "release", says, len(there), f"{aside}, then {RELEASE}")


def _filled(course: Course, exercises: Exercises) -> Claim:
    """Return the claim that every place is filled in the skeletons that `course new` made."""
    files = [path for exercise in exercises for path in exercise.recorded_from()]
    files += [course.root / "course.yaml", course.texts]
    there = [path for path in dict.fromkeys(files) if path.exists()]
    left = [
        f"{path.relative_to(course.root)}:{number} says: {line[line.index(FILL) :].strip()}"
        for path in there
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FILL in line
    ]
    unfilled = len({sentence.partition(":")[0] for sentence in left})
    return Claim("fill", "nothing is left to fill", len(there) - unfilled, len(there), tuple(left), next=FILL_IN)


def _shapes(exercises: Exercises) -> Claim:
    """Return the claim that every shape fits a recorded call, which `course trace` and `course plot` need."""
    without_call, total = [], 0
    for exercise in exercises:
        shown = {example.target for example in examples(exercise, read(exercise.fingerprints))}
        total += len(exercise.shapes)
        without_call += [
            f"{exercise.id}: the shapes of {name} fit no recorded call" for name in exercise.shapes if name not in shown
        ]
    says, mend = "course.yaml's shapes fit the recorded calls", "mend them in course.yaml"
    return Claim.but_for(without_call, "shapes", says, total, mend)


def _points(catalogue: Catalogue, exercises: Exercises) -> Claim:
    wrong = [fault for exercise in exercises if (fault := points_fault(exercise, catalogue.checks(exercise)))]
    says = "the checks' points sum to course.yaml's"
    mend = "mend the file of checks (a check's name begins with test_), or `points` in course.yaml. No other claim was tried"
    return Claim.but_for(wrong, POINTS, says, len(exercises), mend)


def _words(exercises: Exercises) -> Claim:
    wrong, total = [], 0
    for exercise in exercises:
        bank = load_bank(exercise)
        for id_ in dict.fromkeys(m.id for m in bank.mutants):
            total += 1
            text = bank.texts.get(id_)
            if text is None or not (text.title and text.explanation and all(text.hints)):
                wrong.append(f"{exercise.id}: {id_} has no title, explanation and three hints in texts.yaml")
    says, mend = "every misconception has its words", f"write them, then {RELEASE}"
    return Claim.but_for(wrong, "words", says, total, mend)
