"""Record the attention of the reference's heads, and its tiles, for `course plot` on machines that have no reference."""

from __future__ import annotations

import math

import torch

from ..box.worker.answers import Traced
from ..box.worker.tracing import trace
from ..checks.trusted import namespace_of
from ..course import Exercise
from ..diagnosis.recording import Fingerprints
from ..public.heads import Heads, Recorded, Tiles, key_of, save
from ..tools.calls import examples
from ..tools.crops import TABLES, TIMES
from ..tools.example import Example
from ..tools.growing import heads_by_call
from ..tools.sentence import sentence_examples
from ..tools.tiles import visits_of
from ..tools.traced_call import trace_call


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
    tiled = [each for example in chosen if example.tiled is not None for each in (example, *example.instead)]
    tiles = {key_of(each.expected): known for each in tiled if (known := _tiles(each, traced(each))) is not None}
    return save(Recorded(heads, tiles))


def _tiles(example: Example, traced: Traced) -> Tiles | None:
    found = visits_of(example, traced)
    if found is None or found.cut:
        return None
    boxes = torch.tensor([visit.box for visit in found.visits], dtype=torch.float32)
    return Tiles(boxes, torch.where(found.counts, found.scores, -math.inf).float())
