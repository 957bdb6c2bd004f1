"""A course as the rest of the engine uses it: assignments, exercises, where each keeps its files,
and what a name means.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from ..box.worker.form import Form
from ..errors import CourseFault
from .file import AssignmentRow, CourseFile, ExerciseRow
from .shapes import Signature, parse_signature

FIGURES = "figures"  # a folder beside the lessons


def with_neighbours(path: Path) -> list[Path]:
    """Return the file, and those beside it that it imports by `from ._name import …`, directly or
    through another.

    A file that cannot be parsed imports nothing: whoever runs it says why.
    """
    files, todo = {path}, [path]
    while todo:
        try:
            tree = ast.parse(todo.pop().read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        imports = [
            node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1
        ]
        names = {node.module or alias.name for node in imports for alias in node.names}
        neighbours = {path.with_name(f"{name.split('.')[0]}.py") for name in names} - files
        todo += [neighbour for neighbour in neighbours if neighbour.exists()]
        files.update(todo)
    return [path, *sorted(files - {path})]


@dataclass(unsafe_hash=True)
class Exercise:
    """One gradable unit. It knows its assignment, its row in course.yaml, and its files."""

    assignment: Assignment
    number: int  # in the assignment, from 1
    row: ExerciseRow = field(hash=False)

    def __post_init__(self) -> None:
        assignment, number, row = self.assignment, self.number, self.row
        self.root = root = assignment.root  # the course's folder
        self.id, self.title, self.points, self.train = row.id, row.title, row.points, row.train
        # for a check that has no hint; once every check passes, or ""
        self.hint, self.why = row.hint, row.why
        # the names of the functions and classes whose shapes course.yaml gives
        self.shapes = tuple(row.shapes)
        self.stem = stem = f"{number:02d}_{row.id}"  # the file name without its suffix
        earlier = (name if name[:2].isdigit() else f"{number:02d}_{name}" for name in row.was)
        self.stems = (stem, *earlier)  # the names that its file may have, without suffix
        # the single source of the exercise
        self.solution = root / "solutions" / assignment.id / f"{stem}.py"
        self.script = assignment.exercises_folder / f"{stem}.py"  # the stub that a student gets
        self.notebook = self.script.with_suffix(".ipynb")  # the stub as a notebook
        recorded = f"{stem}.safetensors"
        # what students' machines know about answers
        self.fingerprints = self.script.parent / "fingerprints" / recorded
        # the attention of a small model of the reference
        self.trained = self.script.parent / "trained" / recorded
        self.checks = root / "grader" / "checks" / f"test_{row.id}.py"  # the hidden checks
        self.misconceptions = root / "grader" / "misconceptions" / f"{row.id}.py"  # the mutants

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """Return the signatures that course.yaml lists for the function or class of that name."""
        listed = self.row.shapes.get(name, ())
        return tuple(
            parse_signature(text) for text in ((listed,) if isinstance(listed, str) else listed)
        )

    @cached_property
    def forms(self) -> dict[str, Form]:
        """What each function and class returns, where course.yaml says that it is not one
        tensor.
        """
        return {
            name: form
            for name in self.shapes
            if (form := self.signatures(name)[0].form) is not None
        }

    @property
    def figure_sources(self) -> list[Path]:
        """The pictures of its lesson, beside its source: figures/04_reshape_dance.svg."""
        return sorted((self.solution.parent / FIGURES).glob(f"{self.stem}*"))

    @property
    def figures(self) -> tuple[Path, ...]:
        """The same pictures, where students get them: beside the notebook, which names them by
        their paths.
        """
        return tuple(self.script.parent / FIGURES / path.name for path in self.figure_sources)

    @property
    def right_folder(self) -> Path:
        """The folder of the attempts that must earn all points."""
        return self.root / "grader" / "right" / self.id

    @property
    def wrong_folder(self) -> Path:
        """The folder of the attempts that must lose points."""
        return self.root / "grader" / "wrong" / self.id

    def right_attempts(self) -> list[Path]:
        """Return the attempts that must earn all points."""
        return sorted(self.right_folder.glob("*.py"))

    def wrong_attempts(self) -> list[Path]:
        """Return the attempts that must lose points, and that no mutant reproduces."""
        return sorted(self.wrong_folder.glob("*.py"))

    def recorded_from(self) -> list[Path]:
        """Return every file from which its recording is made, with the neighbours that they import;
        some may be missing.
        """
        graders = (self.checks, self.checks.with_name("conftest.py"), self.misconceptions)
        attempts = (self.solution, *self.right_attempts(), *self.wrong_attempts())
        return [path for file in (*graders, *attempts) for path in with_neighbours(file)]


@dataclass(unsafe_hash=True)
class Assignment:
    """Exercises, in the order in which students do them."""

    root: Path  # the course's folder
    row: AssignmentRow = field(hash=False)

    def __post_init__(self) -> None:
        self.id, self.title = self.row.id, self.row.title
        self.exercises_folder = self.root / "exercises" / self.id  # what students get
        # the most that a submission can earn
        self.points = sum(exercise.points for exercise in self.row.exercises)
        self.exercises = tuple(
            Exercise(self, number, row) for number, row in enumerate(self.row.exercises, 1)
        )


@dataclass(unsafe_hash=True)
class Course:
    """A course, and the folder that holds it."""

    root: Path
    file: CourseFile = field(hash=False)

    def __post_init__(self) -> None:
        self.title, self.limits = self.file.title, self.file.limits  # limits: of one attempt
        self.texts = self.root / "grader" / "texts.yaml"  # of every misconception
        self.assignments = tuple(Assignment(self.root, row) for row in self.file.assignments)
        self.exercises = tuple(
            exercise for assignment in self.assignments for exercise in assignment.exercises
        )

    def hidden_files(self) -> list[Path]:
        """Return what no student may see: every file of solutions/ and grader/ that says
        something.
        """
        paths = (path for name in ("solutions", "grader") for path in (self.root / name).rglob("*"))
        return sorted(
            p
            for p in paths
            if p.is_file() and "__pycache__" not in p.parts and p.read_bytes().strip()
        )


def exercises_called(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return the exercises of this name; several where a number stands in several assignments."""
    plain_name = _plain(Path(name).stem)
    return [
        e for e in exercises if plain_name in (e.id, _plain(e.stem), _plain(e.stem.split("_")[0]))
    ]


def unknown(exercises: Sequence[Exercise], name: str) -> str:
    """Return one sentence on a name that no exercise has, with what may be meant."""
    ids = {alias: e.id for e in exercises for alias in (e.id, _plain(e.stem))}
    return f"there is no exercise {name!r}; {_near(_plain(Path(name).stem), ids)}"


class UnknownAssignment(CourseFault):
    """No assignment is meant, or one of several.

    The text is one sentence, and lacks what to do next.
    """


def assignment_named(course: Course, name: str | None, *, in_part: bool = False) -> Assignment:
    """Return the assignment of this id or title; without a name the course's only one.

    Raises UnknownAssignment.

    in_part: a part of either is enough where no other assignment has it.
    """
    assignments = course.assignments
    if not name:
        if len(assignments) == 1:
            return assignments[0]
        raise UnknownAssignment(
            "of which assignment? There are:"
            f" {', '.join(assignment.id for assignment in assignments)}."
        )
    folded_name = name.casefold()
    names = {assignment: (assignment.id, assignment.title.casefold()) for assignment in assignments}
    matches = [assignment for assignment in assignments if assignment.id == name] or [
        assignment for assignment in assignments if folded_name in names[assignment]
    ]
    matches = matches or [
        assignment
        for assignment in assignments
        if in_part and any(folded_name in alias for alias in names[assignment])
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownAssignment(
            f"{name!a} may be any of these assignments: {', '.join(m.id for m in matches)}."
        )
    ids_by_name = {
        alias: assignment.id for assignment in assignments for alias in names[assignment]
    }
    raise UnknownAssignment(f"there is no assignment {name!a}; {_near(folded_name, ids_by_name)}")


def _near(name: str, ids: dict[str, str]) -> str:
    near = get_close_matches(name, ids, 1)
    return (
        f"did you mean {ids[near[0]]}?"
        if near
        else f"there are: {', '.join(dict.fromkeys(ids.values()))}."
    )


def _plain(name: str) -> str:
    return name.lstrip("0") or name  # 1_scores for 01_scores
