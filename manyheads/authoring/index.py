"""What a release knows of the files that lie there: what each exercise's were made from, and that nobody changed them.

`course release` makes what it does not hold current, and `course verify` asks it of recordings; text is made anew and compared.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ..course import Course, Exercise
from ..course.model import with_neighbours
from ..diagnosis.bank import load_bank
from ..errors import CourseFault
from ..submission.source_text import code_digest
from ..whole import write_whole
from .fingerprints import words_of

ENGINE = Path(__file__).parents[1]
DATA = ("*.yaml", "*.txt")  # read by the modules beside them


@cache  # the code that runs is what was imported, and reading it takes an eighth of a second
def engine_digest(*modules: str) -> str:
    """Return the digest of these modules, named as in `authoring.release_exercises`."""
    found: set[Path] = set()
    todo = [_path(f"{ENGINE.name}.{name}") for name in modules]
    while todo:
        path = todo.pop()
        if path is None or path in found:
            continue
        found.add(path)
        todo += [_path(name) for name in imports_of(path)]
    data = {file for folder in {path.parent for path in found} for kind in DATA for file in folder.glob(kind)}
    parts = [code_digest(path.read_text(encoding="utf-8")) for path in data]
    parts += [part for path in found for part in statements_of(path)]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def statements_of(path: Path) -> Iterator[str]:
    """Yield a digest of each statement of a module's top level that is no import, without its docstrings."""
    source = path.read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            first, last = node.body[0].lineno, node.body[0].end_lineno or 0
            lines[first - 1 : last] = [""] * (last - first + 1)
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            yield code_digest("\n".join(lines[first - 1 : node.end_lineno]))


def imports_of(path: Path) -> set[str]:
    """Return the names of what a module imports, also within a function: modules, and what may be modules."""
    parts = path.relative_to(ENGINE.parent).with_suffix("").parts
    package = ".".join(parts[:-1])
    imports = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package if node.level else None)
            imports |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return imports


def _path(name: str) -> Path | None:
    """Return the file of a module of the engine; None for anything else."""
    parts = name.split(".")
    if parts[0] != ENGINE.name:
        return None
    place = ENGINE.joinpath(*parts[1:])
    package = place / "__init__.py"
    file = place.with_suffix(".py") if len(parts) > 1 else package
    return file if file.exists() else package if package.exists() else None


NAME = "grader/released.json"


class Entry(BaseModel):
    """made_from: a digest of all that an exercise's files are made from. files: the digest of each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    made_from: str
    files: dict[str, str]


class Index:
    """The entries of a course's exercises, by id."""

    def __init__(self, course: Course) -> None:
        """Read the index. Where it is missing or cannot be read, nothing is known."""
        self._root, self._engine = course.root, engine_digest("authoring.workers")
        try:
            self._entries = _FILE.validate_json((course.root / NAME).read_bytes())
        except (OSError, ValidationError):
            self._entries = {}

    def is_current(self, exercise: Exercise, path: Path | None = None) -> bool:
        """Return whether the exercise's files, or this one, were made from what is there now, and lie there as they were left."""
        entry, files = self._entries.get(exercise.id), self._files(exercise)
        names = [self._name(path)] if path else files
        if entry is None or any(entry.files.get(name) != files[name] for name in names):
            return False
        try:
            return entry.made_from == self._made_from(exercise)
        except CourseFault:  # the bank cannot be loaded: who makes the files says why
            return False

    def note(self, exercise: Exercise, made: Iterable[Path]) -> None:
        """Take down that these files for students are current as they lie there."""
        known = {self._name(path) for path in made}
        files = {name: digest if name in known else "" for name, digest in self._files(exercise).items()}
        self._entries[exercise.id] = Entry(made_from=self._made_from(exercise), files=files)

    def files(self, exercise: Exercise) -> list[Path]:
        """Return the files for students that were noted last."""
        known = self._entries[exercise.id].files
        return [path for path in for_students(exercise) if known.get(self._name(path))]

    def write(self, exercises: Iterable[Exercise]) -> None:
        """Write the entries of the course's exercises, and of no other, if they have changed."""
        entries = {e.id: self._entries[e.id].model_dump() for e in exercises if e.id in self._entries}
        write_changed(self._root / NAME, (json.dumps(entries, indent=1) + "\n").encode())

    def _files(self, exercise: Exercise) -> dict[str, str]:
        """Return the digest of every file that a release makes of the exercise, empty where there is none."""
        return {self._name(path): _digest(path) for path in for_students(exercise)}

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _made_from(self, exercise: Exercise) -> str:
        """Return a digest of everything that is read to make the files."""
        sources = [*exercise.check_sources(), exercise.checks.with_name("conftest.py"), *exercise.mutant_sources()]
        for path in (exercise.solution, *exercise.right_attempts(), *exercise.wrong_attempts()):
            sources += with_neighbours(path)
        sources += exercise.figure_sources
        words = {id_: each.model_dump() for id_, each in words_of(load_bank(exercise)).items()}
        row: Mapping[str, object] = exercise.row.model_dump(mode="json", exclude={"why"})
        parts = [self._engine, exercise.assignment.id, exercise.stem, json.dumps([row, words], sort_keys=True)]
        parts += [f"{self._name(path)} {_digest(path)}" for path in sources]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def for_students(exercise: Exercise) -> tuple[Path, ...]:
    """Return where the files of an exercise stand that students get, as far as it has them."""
    return (exercise.script, exercise.notebook, *exercise.figures, exercise.fingerprints, exercise.trained)


def write_changed(path: Path, content: bytes) -> bool:
    """Write a file whole where it is missing or another one. Returns whether it was written."""
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


_FILE = TypeAdapter(dict[str, Entry])
