"""Access to a notebook's kernel: the names that the student has defined, and the cells that define them.

Nothing is hidden here and nothing is graded: the student's own code runs in the student's own kernel.
"""

from __future__ import annotations

import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import torch

from ..box.worker.answers import Traced
from ..box.worker.tracing import trace
from ..checks.implementation import LocalRunner
from ..course import Course, Exercise, find_course, load_course
from ..course.named import exercises_called, unknown
from ..course.secret import FOLDER
from ..diagnosis.recording import Fingerprints
from ..diagnosis.recording_file import read
from ..errors import CourseFault
from ..student.example import Example, trace_call
from ..student.follow import Source, most_telling

CellName = Callable[[str], str | None]


@dataclass(frozen=True)
class NotebookExercise:
    """The exercise of a notebook, and its course."""

    course: Course
    exercise: Exercise
    fingerprints: Fingerprints

    @property
    def id(self) -> str:
        """The id of the exercise."""
        return self.exercise.id

    @property
    def notes(self) -> Path:
        """The folder for the engine's own files."""
        return self.course.root / FOLDER


def find_exercise(name: str, namespace: Mapping[str, object]) -> NotebookExercise:
    """Return the exercise of this name; if it is empty, the one whose functions are defined, or some of them.

    Raises CourseFault.
    """
    course = load_course(find_course(Path.cwd()))
    every = list(course.exercises)
    if name:
        found = exercises_called(every, name)
    else:
        defined = {e: [target in namespace for target in e.shapes] for e in every if e.shapes}
        found = [e for e in defined if all(defined[e])] or [e for e in defined if any(defined[e])]
    if len(found) != 1:
        known = ", ".join(exercise.id for exercise in every)
        what = f"it is not clear which exercise this notebook is; there are: {known}."
        raise CourseFault(f"{unknown(every, name) if name and not found else what} Next: %check {every[0].id}")
    exercise = found[0]
    return NotebookExercise(course, exercise, read(exercise.fingerprints))


@contextmanager
def preserved_rng_state() -> Iterator[None]:
    """Restore the state of the random numbers afterwards, because executing a call sets the seed."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


class Cells:
    """Numbers the lines of cells, in the order in which they first run."""

    def __init__(self, name_of: CellName) -> None:
        self._name_of = name_of
        self._numbers: dict[tuple[str, int], int] = {}

    def line_of(self, file: str, line: int) -> int | None:
        """Return the number of a line in a cell; None for a line elsewhere."""
        if self._name_of(file) is None:
            return None
        return self._numbers.setdefault((file, line), len(self._numbers) + 1)

    def source(self) -> Source:
        """Return the numbered lines, with labels such as In[3] 12."""
        lines = tuple(linecache.getline(file, line).rstrip("\n") for file, line in self._numbers)
        return Source(lines, tuple(f"{self._name_of(file)} {line}" for file, line in self._numbers))


def source_of(namespace: Mapping[str, object]) -> str:
    """Return the text of the functions and classes that are defined in this kernel; of what has none, nothing."""
    texts = []
    for value in dict(namespace).values():
        if inspect.isfunction(value) or inspect.isclass(value):
            with suppress(OSError, TypeError):
                texts.append(textwrap.dedent(inspect.getsource(value)) if value.__module__ == "__main__" else "")
    return "\n".join(texts)


def traced_in_kernel(
    namespace: Mapping[str, object],
    wanted: Sequence[Example],
    cells: Cells,
    crop: tuple[int, ...] = (),
    times: int = 1,
) -> list[tuple[Example, Traced]]:
    """Trace each example, or one in its place that is wrong, with the names that are defined in this kernel."""
    runner = LocalRunner(namespace)
    with preserved_rng_state():
        with redirect_stdout(StringIO()):  # a function is called several times until a call is wrong
            telling = [most_telling(example, runner.execute) for example in wanted]
        return [
            (
                example,
                trace(
                    namespace,
                    trace_call(example, crop, times),
                    _file_of(namespace.get(example.target)),
                    cells.line_of,
                ),
            )
            for example in telling
        ]


def _file_of(target: object) -> str:
    """Return the file name of the cell that defines a function or a class's forward."""
    code = getattr(getattr(target, "forward", target), "__code__", None)
    return str(getattr(code, "co_filename", ""))
