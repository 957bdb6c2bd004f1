"""Make the files of one exercise as students get them, with the recorded attention of the reference's heads."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from ..box.worker.answers import Traced
from ..box.worker.tracing import trace
from ..checks.local import namespace_of
from ..checks.outcome import CheckOutcome
from ..course import Exercise
from ..diagnosis.recording import Fingerprints
from ..diagnosis.recording_file import loaded
from ..judge.catalogue import Catalogue
from ..student.choose_example import examples
from ..student.crops import TABLES, TIMES
from ..student.example import Example, trace_call
from ..student.growing_tables import heads_by_call
from ..student.heads import Heads, Recorded, Tiles, key_of, save
from ..student.sentence import sentence_examples
from ..student.tiles import visits_of
from .compare_recordings import in_step, same_fingerprints
from .stub_notebook import Group, stub_notebook

# Record the attention of the reference's heads, and its tiles, for `course plot` on machines that have no reference.


def record_heads(exercise: Exercise, fingerprints: Fingerprints) -> bytes:
    """Make the file of this exercise: what `course plot` shows of the reference's attention; empty if there is nothing."""
    path = exercise.solution
    namespace = namespace_of(path)

    def traced(example: Example) -> Traced:
        return trace(namespace, trace_call(example, TABLES, TIMES), str(path))

    heads: dict[str, Heads] = {}
    chosen = examples(exercise, fingerprints, by_head=True)
    sentence = sentence_examples(exercise) if exercise.curve.exists() else []
    for example in (*chosen, *sentence):
        if example.has_heads:
            found = heads_by_call(example, traced(example))
            heads |= {key_of(each.expected): known for each, known in found if known is not None}
    tiled = [candidate for example in chosen if example.tiled is not None for candidate in (example, *example.instead)]
    tiles = {key_of(each.expected): known for each in tiled if (known := _tiles(each, traced(each))) is not None}
    return save(Recorded(heads, tiles))


def _tiles(example: Example, traced: Traced) -> Tiles | None:
    visits = visits_of(example, traced)
    if visits is None or visits.cut:
        return None
    boxes = torch.tensor([visit.box for visit in visits.visits], dtype=torch.float32)
    return Tiles(boxes, torch.where(visits.counts, visits.scores, -math.inf).float())


# The files of one exercise as students get them.
#
# Text is the same bytes every time. A recording is the same numbers; if the one on disk is equivalent, it is kept.


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
    fingerprints = Released(exercise.fingerprints, new, same_fingerprints)
    yield fingerprints
    # The key of recorded heads is an answer in the fingerprint file, so take the file that is kept.
    kept = fingerprints.path.read_bytes() if fingerprints.is_in_step() else new
    if heads := record_heads(exercise, loaded(kept)):
        yield Released(exercise.heads, heads, in_step)
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
