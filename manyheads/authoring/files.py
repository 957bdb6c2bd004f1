"""Make the files of one exercise as students get them.

Text is the same bytes every time. A recording is the same numbers; if the one on disk is equivalent, it is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..checks.outcome import CheckOutcome
from ..course import Exercise
from ..judge.catalogue import Catalogue
from .compare_recordings import same_fingerprints
from .stub_notebook import Group, stub_notebook


@dataclass(frozen=True)
class Released:
    """A file of exercises/ as it must be. alike: whether what lies there is equivalent; a recording may differ by rounding."""

    path: Path
    content: bytes
    alike: Callable[[bytes, bytes], bool] = operator.eq

    def is_in_step(self) -> bool:
        """Return whether the file on disk is as it must be."""
        return self.path.exists() and self.alike(self.path.read_bytes(), self.content)


def files_of(catalogue: Catalogue, exercise: Exercise, stub: str, new: bytes) -> Iterator[Released]:
    """Yield the files of an exercise. new: its fingerprint file, as it is recorded now."""
    yield Released(exercise.script, stub.encode())
    notebook = stub_notebook(stub, exercise.id, groups(catalogue, exercise))
    yield Released(exercise.notebook, notebook.encode())
    for source, figure in zip(exercise.figure_sources, exercise.figures, strict=True):
        yield Released(figure, source.read_bytes())
    yield Released(exercise.fingerprints, new, same_fingerprints)
    curve = exercise.curve
    if exercise.train is not None and curve.exists():  # kept as it is: recording it takes minutes (`--curves`)
        yield Released(curve, curve.read_bytes())


def groups(catalogue: Catalogue, exercise: Exercise) -> list[Group]:
    """Return the hidden checks of an exercise, grouped by layer."""
    layers: dict[str, list[CheckOutcome]] = {}
    for check in sorted(catalogue.checks(exercise), key=lambda c: c.layer):
        layers.setdefault(check.layer.name.lower(), []).append(check)
    return [
        Group(name, sum(c.points for c in checks), tuple(c.title for c in checks), tuple(c.id for c in checks))
        for name, checks in layers.items()
    ]
