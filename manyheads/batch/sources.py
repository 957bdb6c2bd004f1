"""Which files of a course the grading of one exercise reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ..course import Exercise
from ..course.neighbours import with_neighbours
from ..submission.parsed import parsed

SOURCES = ("solutions", "exercises", "grader")
# Modules with which a source can read files that no import names.
_READERS = frozenset(
    "builtins codecs ctypes fileinput glob importlib inspect io linecache mmap os pathlib pkgutil runpy shutil sqlite3 "
    "subprocess sys tarfile tempfile zipfile zipimport".split()
)
_ENGINE = "manyheads"
_NAMES = frozenset("open exec eval compile __import__ __file__ __path__ __spec__ __loader__ __builtins__".split())
_READS = re.compile(
    r"(read|load|open)(_|$)(?!state_dict)|\w*(file|txt|csv)|memmap"
)  # torch.load, numpy.loadtxt, read_csv


def graded_from(exercise: Exercise) -> list[Path]:
    """Every file that grading an attempt reads, beside the words of grader/texts.yaml; some may be missing.

    Where a source may read further files, these are all files of the course.
    """
    packages = [path.with_name("__init__.py") for path in (exercise.checks, exercise.misconceptions)]
    beside = [*packages, exercise.checks.with_name("conftest.py")]
    sources = [path for each in (exercise.solution, *beside) for path in with_neighbours(each)]
    sources += [*exercise.check_sources(), *exercise.mutant_sources()]
    files = {*sources, exercise.script, exercise.fingerprints}
    if any(map(reads_beyond, sources)):
        files.update(path for name in SOURCES for path in files_below(exercise.root / name))
    return sorted(files)


def files_below(root: Path) -> Iterator[Path]:
    """Every file below a folder but what Python caches."""
    return (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def reads_beyond(path: Path) -> bool:
    """Whether this source may read more of the course than itself and its neighbours. In doubt it may."""
    try:
        tree = parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, SyntaxError):
        return True
    return any(_is_beyond(node, path) for node in ast.walk(tree))


def _is_beyond(node: ast.AST, path: Path) -> bool:
    match node:
        case ast.Import(names=names):
            return not all(_is_outside(alias.name, path) for alias in names)
        case ast.ImportFrom(level=0, module=str(module), names=names):
            return not _is_outside(module, path) or any(_READS.match(alias.name) for alias in names)
        case ast.ImportFrom(level=1, module=module, names=names):
            beside = [module.split(".")[0]] if module else [alias.name for alias in names]
            return not all(path.with_name(f"{name}.py").exists() for name in beside)
        case ast.ImportFrom():
            return True
        case ast.Name(id=name):
            return name in _NAMES
        case ast.Attribute(attr=name):
            return bool(_READS.match(name))
    return False


def _is_outside(module: str, path: Path) -> bool:
    """Whether no file of the course is this module, nor one with which to read files."""
    name = module.split(".")[0]
    above = path.parents[:3]  # the folder, the one that holds it, and the course's, from which commands are run
    in_course = any((folder / name).is_dir() or (folder / f"{name}.py").exists() for folder in above)
    return name == _ENGINE or (name not in _READERS and not in_course)
