"""What `course release` records of the reference's heads is what slow loops give, and what is in the repository."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from manyheads.authoring.compare_recordings import in_step
from manyheads.authoring.files import record_heads
from manyheads.box.worker.messages import Build
from manyheads.course import load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example import examples
from manyheads.student.heads import Heads, key_of
from manyheads.student.heads import read as read_heads

pytestmark = pytest.mark.recorded

COURSE = load_course(Path(__file__).parents[2])
ASSIGNMENT = COURSE.assignments[0]
EXERCISES = {exercise.id: exercise for exercise in ASSIGNMENT.exercises}


def slowly(q: Tensor, k: Tensor) -> Heads:
    """One query and one key at a time. q, k: (nh, T, hd)."""
    heads, tokens, width = q.shape
    scores = torch.full((heads, tokens, tokens), -math.inf)
    for h in range(heads):
        for i in range(tokens):
            for j in range(i + 1):
                scores[h, i, j] = sum(float(a * b) for a, b in zip(q[h, i], k[h, j], strict=True)) / width**0.5
    return Heads(torch.stack([torch.stack([row.exp() / row.exp().sum() for row in table]) for table in scores]), scores)


def test_the_recorded_heads_are_what_slow_loops_give() -> None:
    exercise = EXERCISES["fused_qkv"]
    (example,) = (
        example
        for example in examples(exercise, read(exercise.fingerprints), by_head=True)
        if isinstance(example.call.subject, Build)
    )
    recorded = read_heads(exercise.heads).heads[key_of(example.expected)]
    build, x = example.call.subject, example.call.args[0]
    assert isinstance(build, Build)
    assert isinstance(x, Tensor)
    assert build.state is not None
    queries, keys, _ = (x[0] @ build.state["qkv.weight"].mT).chunk(3, dim=-1)
    split = example.axes.sizes["nh"], example.axes.sizes["hd"]
    expected = slowly(*(part.unflatten(-1, split).movedim(1, 0) for part in (queries, keys)))
    torch.testing.assert_close(recorded.weights, expected.weights, rtol=1e-4, atol=1e-5)
    assert recorded.scores is not None
    assert expected.scores is not None
    torch.testing.assert_close(recorded.scores, expected.scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("id_", ["causal_mask", "self_attention", "sdpa_equivalence"])
def test_what_the_repository_holds_is_what_a_release_records(id_: str) -> None:
    exercise = EXERCISES[id_]
    fresh = record_heads(exercise, read(exercise.fingerprints))
    path = exercise.heads
    assert in_step(path.read_bytes(), fresh) if path.exists() else fresh == b""
    assert bool(fresh) is (id_ != "causal_mask")
