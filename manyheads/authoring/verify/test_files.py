"""Claims about files and lessons.

exercises/ agrees with its sources and contains nothing hidden, and links in lessons have a target.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ...checks.runner import DoesNotEnd, must_end, namespace_of_source
from ...course import Exercise
from ...diagnosis import load_bank
from ...diagnosis.bank import MisconceptionText
from ...diagnosis.recording_file import read
from ...judge.collect_checks import points_fault
from ...report.markdown import LONGEST_LINE
from ...student.choose_example_calls import examples
from ..class_repository import linked_pages
from ..make_stub import CHECK, LOCKED, PREDICT, NotebookNode, jupytext, leaks, stub_of
from ..new_course import FILL
from ..release_exercises import is_current, recorded_files, stray_files
from .plugin import NOTHING, Report, Verified

claim = pytest.mark.claim
# Two lines of a terminal with 80 columns for a title, and three for a hint. The comment on a pull
# request cuts an explanation that is longer than its limit.
MOST_CHARACTERS = {"title": 150, "hint": 230, "explanation": LONGEST_LINE}
MEND_POINTS = (
    "mend the file of checks (a check's name begins with test_), or `points` in course.yaml"
)


@claim(f"{MEND_POINTS}. No claim about answers was tried", about="points")
def test_points(verified_course: Verified, exercise: Exercise) -> None:
    """The checks' points sum to course.yaml's."""
    fault = points_fault(exercise, verified_course.catalogue.checks(exercise))
    assert not fault, fault


@claim("give one of them another name, then mend `points` in course.yaml", about="points")
def test_check_names(exercise: Exercise) -> None:
    """No check replaces another one of its name."""
    repeated = _repeated_checks(exercise.checks)
    assert not repeated, "; ".join(repeated)


def _repeated_checks(file: Path) -> list[str]:
    """Return a sentence for every check that a later one of the same name replaces.

    Such a check never runs.
    """
    sentences, line_of = list[str](), dict[str, int]()
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        for name in _names_defined(statement):
            if name.startswith("test_") and name in line_of:
                lines = f"on lines {line_of[name]} and {statement.lineno}"
                sentences.append(
                    f"{file.name} has two checks {name}, {lines}: the first never runs"
                )
            line_of[name] = statement.lineno
    return sentences


def _names_defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


@claim("give it a row in course.yaml, rename it, or remove it", about="files")
def test_strays(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """Every file of solutions/ and grader/ is of an exercise."""
    exercises = verified_course.course.exercises
    if exercise is not exercises[-1] or len(verified_course.exercises) != len(exercises):
        pytest.skip(NOTHING)  # one case covers all exercises
    expected_paths = {
        path for peer in exercises for path in (peer.solution, peer.checks, peer.misconceptions)
    }
    expected_paths |= {
        path.parent
        for peer in exercises
        for path in (*peer.right_attempts(), *peer.wrong_attempts())
    }
    patterns = (
        "solutions/*/*.py",
        "grader/checks/test_*.py",
        "grader/misconceptions/*.py",
        "grader/right/*",
        "grader/wrong/*",
    )
    paths = [
        path
        for pattern in patterns
        for path in sorted(exercise.root.glob(pattern))
        if not path.name.startswith(("_", "."))
    ]
    strays = [path for path in paths if path not in expected_paths]
    report(
        len(paths),
        [f"{path.relative_to(exercise.root)} is of no exercise in course.yaml" for path in strays],
    )


@claim("save it as a script (jupytext --to py NOTEBOOK), or remove it", about="files")
def test_attempts_are_scripts(exercise: Exercise) -> None:
    """Every file of grader/right/ and grader/wrong/ is a script."""
    unread = []
    for folder in (exercise.right_folder, exercise.wrong_folder):
        for path in sorted(folder.glob("*")):
            is_noise = path.name.startswith(("_", "."))
            if path.suffix != ".py" and not is_noise:
                unread.append(f"{path.relative_to(exercise.root)} is no .py file, and never run")
    assert not unread, "; ".join(unread)


@claim("shorten it, then course release", about="words")
def test_lengths(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """No title, explanation or hint is longer than there is room for."""
    bank, checks = load_bank(exercise), verified_course.catalogue.checks(exercise)
    measured = [(exercise.id, "hint in course.yaml", exercise.hint)]
    measured += [(check.id, "hint", check.hint) for check in checks]
    for id_, text in bank.texts.items():
        if not any(mutant.id == id_ for mutant in bank.mutants):
            continue
        measured += [(id_, "title", text.title), (id_, "explanation", text.explanation)]
        measured += [(id_, "hint", hint) for hint in text.hints]
    too_long = []
    for name, label, words in measured:
        limit = MOST_CHARACTERS[label.split()[0]]
        if len(words) > limit:
            too_long.append(
                f"{name}: its {label} has {len(words)} characters, and at most {limit} fit"
            )
    report(len(measured), too_long)


@claim("write them, then course release", about="words")
def test_words(exercise: Exercise, report: Report) -> None:
    """Every misconception has its words."""
    bank = load_bank(exercise)
    ids = dict.fromkeys(mutant.id for mutant in bank.mutants)
    missing = {id_: _missing_words(bank.texts.get(id_)) for id_ in ids}
    says = "{}: {} has no {} in texts.yaml"
    report(
        len(ids), [says.format(exercise.id, id_, words) for id_, words in missing.items() if words]
    )


def _missing_words(text: MisconceptionText | None) -> str:
    """Return the missing parts of a text, for example "title and three hints", or ""."""
    if text is None:
        return "title, explanation and three hints"
    fields = {"title": text.title, "explanation": text.explanation, "three hints": all(text.hints)}
    missing = [name for name, is_there in fields.items() if not is_there]
    if len(missing) < 2:
        return "".join(missing)
    return f"{', '.join(missing[:-1])} and {missing[-1]}"


@claim("write what each asks for, in its place", about="fill")
def test_filled(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """Nothing is left to fill."""
    paths = [*exercise.recorded_from(), exercise.root / "course.yaml", verified_course.course.texts]
    existing = [path for path in dict.fromkeys(paths) if path.exists()]
    report(
        len(existing),
        [sentence for path in existing if (sentence := _place_to_fill(path, exercise.root))],
    )


def _place_to_fill(path: Path, root: Path) -> str:
    """Return a text with the first line of a file that has FILL in it, or "" without such a line.

    The text also has the number of further lines.
    """
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    unfilled = [
        f"{number} says: {line[line.index(FILL) :].strip()}"
        for number, line in lines
        if FILL in line
    ]
    suffix = f" (and on {len(unfilled) - 1} more lines)" if unfilled[1:] else ""
    return f"{path.relative_to(root)}:{unfilled[0]}{suffix}" if unfilled else ""


MEND_LESSON = "mend the lesson, then course release"


@claim(MEND_LESSON, about="lessons")
def test_links(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """What a lesson links to is released, and figures have words."""
    lesson_files = (
        path
        for peer in verified_course.course.exercises
        for path in (peer.script, peer.notebook, *peer.figures)
    )
    released = {*lesson_files, *linked_pages(verified_course.course)}
    links, folder, broken = list(_links(exercise)), exercise.notebook.parent, []
    for token, target in links:
        if Path(normpath(folder / target)) not in released:
            broken.append(f"{exercise.stem}: {target} is not released")
        elif token.type == "image" and not token.content.strip():
            broken.append(f"{exercise.stem}: {target} has no words for who cannot see it")
    linked = {folder / target for _, target in links}
    unseen = [path for path in exercise.figures if path not in linked]
    broken += [f"{path.relative_to(exercise.root)} is named in no lesson" for path in unseen]
    report(len(links) + len(unseen), broken)


def _links(exercise: Exercise) -> Iterator[tuple[Token, str]]:
    """Yield the files beside a lesson that its Markdown names."""
    for cell in (cell for cell in _cells(exercise) if cell.cell_type == "markdown"):
        for inline in MarkdownIt("commonmark").enable("table").parse(cell.source):
            for token in inline.children or ():
                target = token.attrGet("src" if token.type == "image" else "href")
                if isinstance(target, str) and ":" not in target and not target.startswith("#"):
                    yield token, target


def _cells(exercise: Exercise) -> list[NotebookNode]:
    return list(jupytext.reads(stub_of(exercise), fmt="py:percent").cells)


@claim("catch NotImplementedError in that cell, and print one line in any case", about="lessons")
def test_predictions(exercise: Exercise, report: Report) -> None:
    """A prediction waits for its function, and then is answered."""
    broken, cells = list[str](), _cell_runs(exercise, PREDICT)
    for runs in cells:
        for run in runs:
            if run.error is not None:
                broken.append(f"{run.label} {run.exception_text}")
            elif not run.printed.strip():
                broken.append(f"{run.label} prints nothing")
    report(len(cells), broken)


@claim("mend that cell or the solution, then course release", about="lessons")
def test_visible_checks(exercise: Exercise, report: Report) -> None:
    """A lesson's own checks pass with the solution, and fail with the stub."""
    broken, cells = list[str](), _cell_runs(exercise, CHECK)
    for with_stub, with_solution in cells:
        if with_solution.error is not None:
            broken.append(f"{with_solution.label} {with_solution.exception_text}")
        elif with_stub.error is None and with_stub.printed == with_solution.printed:
            broken.append(f"{with_stub.label} passes")
    report(len(cells), broken)


@dataclass(frozen=True)
class CellRun:
    """A run of one cell of a lesson: its printed text, and the exception that ended it, if any.

    Attributes:
        label: The exercise, whether its stub or its solution ran, and the cell's first line.
        printed: The printed text.
        error: The exception.
    """

    label: str
    printed: str
    error: Exception | None

    @property
    def exception_text(self) -> str:
        """The exception, as the end of a sentence about the cell."""
        if isinstance(self.error, DoesNotEnd):
            return self.error.observation
        return f"raises {type(self.error).__name__}: {self.error}"


def _cell_runs(exercise: Exercise, tag: str) -> list[tuple[CellRun, CellRun]]:
    """Return both runs, with the stub and with the solution, of each cell with this tag."""
    with_stub = _run_cells(exercise, "stub", stub_of(exercise), tag)
    with_solution = _run_cells(
        exercise, "solution", exercise.solution.read_text(encoding="utf-8"), tag
    )
    return list(zip(with_stub, with_solution, strict=True))


def _run_cells(exercise: Exercise, origin: str, written_text: str, tag: str) -> list[CellRun]:
    """Run the check and prediction cells (LOCKED) in their order; return the runs with this tag.

    As in a notebook, a cell may use the names that earlier cells define.

    Args:
        exercise: The exercise.
        origin: "stub" or "solution", for the label.
        written_text: The text of the stub or the solution. The cells may use its names.
        tag: The tag.
    """
    namespace = dict(namespace_of_source(written_text, exercise.solution)) | {
        "__name__": "__main__"
    }
    runs = []
    for cell in _cells(exercise):
        tags = cell.metadata.get("tags", [])
        if not LOCKED.isdisjoint(tags):
            run = _run_cell(exercise, origin, str(cell.source), namespace)
            if tag in tags:
                runs.append(run)
    return runs


def _run_cell(exercise: Exercise, origin: str, cell: str, namespace: dict[str, object]) -> CellRun:
    """Run one cell in this process, in the namespace, and return its run.

    Args:
        exercise: The exercise.
        origin: "stub" or "solution", for the label.
        cell: The code of the cell.
        namespace: The names that the cell may use, to which it adds its own.
    """
    lines = [line.strip() for line in cell.splitlines()]
    first_line = next(
        (line for line in lines if line and not line.startswith(("if __name__", "#"))), ""
    )
    # A message about an endless cell counts lines from the first one of the cell.
    printed, raised, compiled_as = io.StringIO(), None, Path("its cell")
    ending = must_end("the cell", compiled_as, "mend it")
    try:
        with redirect_stdout(printed), ending:
            exec(compile(cell, str(compiled_as), "exec", dont_inherit=True), namespace)
    except Exception as error:
        raised = error
    return CellRun(
        f"{exercise.stem}: with the {origin}, {first_line!r}", printed.getvalue(), raised
    )


@claim("course release", about="release")
def test_released(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """Exercises/ is exactly what solutions/ yields."""
    texts = verified_course.texts(exercise)
    outdated = [
        path for path, text in texts.items() if not path.exists() or path.read_bytes() != text
    ]
    outdated += [] if is_current(exercise) else [exercise.fingerprints]
    stale = [
        f"{path.relative_to(exercise.root)} is not what solutions/ yields" for path in outdated
    ]
    is_last = exercise is verified_course.course.exercises[-1]
    # Otherwise a stray may belong to an exercise that is not verified.
    if is_last and len(verified_course.exercises) == len(verified_course.course.exercises):
        files = [
            (e.script, e.notebook, *e.figures, *recorded_files(e))
            for e in verified_course.exercises
        ]
        strays = stray_files(verified_course.course, [path for paths in files for path in paths])
        stale += [f"{path.relative_to(exercise.root)} has no source" for path in strays]
    report(len(texts) + len(recorded_files(exercise)), stale)


@claim("mend them in course.yaml", about="shapes")
def test_shapes(exercise: Exercise, report: Report) -> None:
    """The shapes of course.yaml fit the recorded calls."""
    if not is_current(exercise):
        pytest.skip("its recording is stale")
    targets = {example.target for example in examples(exercise, read(exercise.fingerprints))}
    says = f"{exercise.id}: the shapes of {{}} fit no recorded call"
    report(
        len(exercise.shapes), [says.format(name) for name in exercise.shapes if name not in targets]
    )


@claim("take that line out of its source, then course release", about="release")
def test_no_leak(verified_course: Verified, exercise: Exercise, report: Report) -> None:
    """No line of a solution is released."""
    files = dict(verified_course.texts(exercise))
    if is_current(exercise):
        files |= {path: path.read_bytes() for path in recorded_files(exercise)}
    contents = {str(path.relative_to(exercise.root)): content for path, content in files.items()}
    report(len(contents), leaks(verified_course.course, contents))
