"""Record the attention weights of the reference's heads, for `course plot` on machines that have no reference."""

from __future__ import annotations

from ..box.worker.messages import TraceCall
from ..box.worker.tracing import trace
from ..checks.cast import cast
from ..checks.trusted import namespace_of
from ..course import Exercise
from ..public.file import Fingerprints
from ..public.heads import Heads, key_of, save
from ..tools.calls import examples
from ..tools.crops import TABLES, TIMES
from ..tools.growing import heads_by_call
from ..tools.sentence import sentence_examples


def record_heads(exercise: Exercise, fingerprints: Fingerprints) -> bytes:
    """Make the file of this exercise: the heads in every call that `course plot` shows; empty if there are none."""
    path = exercise.solution
    namespace = namespace_of(path)
    recorded: dict[str, Heads] = {}
    curve = exercise.curve
    sentence = sentence_examples(exercise) if curve.exists() else []
    for example in (*examples(exercise, fingerprints, by_head=True), *sentence):
        if not example.has_heads:
            continue
        traced = trace(namespace, TraceCall(cast(example.call, "float32"), TABLES, TIMES), str(path))
        found = heads_by_call(example, traced)
        recorded |= {key_of(each.expected): heads for each, heads in found if heads is not None}
    return save(recorded) if recorded else b""
