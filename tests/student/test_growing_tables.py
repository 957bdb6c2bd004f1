"""Of a sequence of calls, each call's table is found: it grows to the right, its triangle in the lower right corner."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from manyheads.box.worker.answers import Traced
from manyheads.box.worker.messages import Build, Call, FollowUp, Returned, TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.course.shapes import parse_signature
from manyheads.student.axes import Axes
from manyheads.student.bands import Band, summary
from manyheads.student.crops import TABLES, TIMES
from manyheads.student.example import Example, with_heads
from manyheads.student.growing_tables import chunks_of, heads_by_call, sides_of
from manyheads.student.heads import Recorded, key_of
from manyheads.student.plot_content import bands

CACHED = parse_signature("(width: nh * hd)(x: (B, T, C), cache: opaque) -> (y: (B, T, C), cache: opaque)")
X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(4))
PAST = Returned(0, (1,))
# Three tokens, then two, then the same past continued in another way, then one more after that.
CALL = Call(
    Build("Cached", (8,)),
    (X[:, :3],),
    returns=CACHED.form,
    then=(FollowUp((X[:, 3:5], PAST)), FollowUp((X[:, 5:7], PAST)), FollowUp((X[:, 6:7], Returned(2, (1,))))),
)
RIGHT = """
import math, torch
from torch import nn
class Cached(nn.Module):
    def __init__(self, width):
        super().__init__()
    def forward(self, x, cache=None):
        seen = x if cache is None else torch.cat((cache, x), dim=1)
        q, k = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (x, seen))
        new, keys = x.shape[1], seen.shape[1]
        visible = torch.ones(new, keys, dtype=torch.bool).tril(keys - new)
        weights = (q @ k.mT).masked_fill(~visible, -math.inf).softmax(-1)
        return (weights @ k).transpose(1, 2).flatten(2), seen
"""
AGAIN = RIGHT.replace("(x, seen))", "(seen, seen))").replace("new, keys = x.shape", "new, keys = seen.shape")
AGAIN = AGAIN.replace("flatten(2), seen", "flatten(2)[:, -x.shape[1]:], seen")
FUSED = RIGHT.replace("return (weights @ k)", "return (visible.to(q) @ k)").replace("weights = ", "# ")


def traced(source: str) -> Traced:
    namespace: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(CALL, TABLES, TIMES), "a.py")


@pytest.fixture(scope="module")
def example() -> Example:
    """The sequence, with the outputs and the heads of the right attempt."""
    right = traced(RIGHT)
    outputs = [y for place in range(0, 8, 2) if (y := right.reply.outputs[place].tensor) is not None]
    axes = Axes({"B": 2, "T": 3, "C": 8, "nh": 2, "hd": 4}, packed=frozenset({"C"}))
    each = [
        Example(CALL, y, True, CACHED, axes, place=2 * i, label=f"y of call {i + 1}") for i, y in enumerate(outputs)
    ]
    whole = replace(each[0], others=tuple(each[1:]))
    recorded = {key_of(one.expected): found for one, found in heads_by_call(whole, right) if found is not None}
    return with_heads(whole, Recorded(recorded))


def grown(example: Example, source: str) -> list[Band]:
    return [band for band in bands(example, traced(source)) if ", call " in band.title]


def test_the_keys_are_those_of_the_past_that_is_continued(example: Example) -> None:
    assert sides_of(example) == [(3, 3), (2, 5), (2, 5), (1, 6)]


def test_a_table_for_each_call_with_the_triangle_at_the_lower_right(example: Example) -> None:
    found = [heads for _, heads in heads_by_call(example, traced(RIGHT)) if heads is not None]
    assert [heads.weights.shape for heads in found] == [(2, 3, 3), (2, 2, 5), (2, 2, 5), (2, 1, 6)]
    for heads in found:
        new, keys = heads.weights.shape[1:]
        hidden = torch.tensor([[j > keys - new + i for j in range(keys)] for i in range(new)])
        assert torch.equal(heads.weights[0] == 0, hidden)
    assert not torch.equal(found[1].weights, found[2].weights)  # two futures of one past


@pytest.mark.parametrize("source", [RIGHT, AGAIN], ids=["keys are kept", "all rows are computed again"])
def test_a_right_attempt_is_drawn_as_expected(example: Example, source: str) -> None:
    shown = grown(example, source)
    names = [f"{what} in Cached, call {n}, head 0" for n in range(1, 5) for what in ("mask", "weights")]
    assert [band.title for band in shown] == names
    assert {(band.rows, band.columns) for band in shown} == {("new query", "key so far")}
    assert {line.rpartition(": ")[2] for line in summary(shown)} == {"as expected"}


def test_a_mask_in_the_upper_left_corner_shows_from_the_second_call_on(example: Example) -> None:
    shown = grown(example, RIGHT.replace(".tril(keys - new)", ".tril()"))
    assert [band.differs for band in shown] == [False, False, *[True] * 6]
    assert summary(shown)[2] == "mask in Cached, call 2, head 0: 6 of 10 differ"


def sequence(*sizes: int) -> Example:
    """Chunks of these sizes, one after the other."""
    x = torch.zeros(2, sum(sizes), 8)
    then = tuple(FollowUp((x[:, :n], Returned(i, (1,)))) for i, n in enumerate(sizes[1:]))
    call = Call(Build("Cached", (8,)), (x[:, : sizes[0]],), returns=CACHED.form, then=then)
    return Example(call, x, True, CACHED, Axes({"B": 2, "T": sizes[0], "C": 8, "nh": 2, "hd": 4}))


@pytest.mark.parametrize(
    ("better", "worse"),
    [((3, 2), (5, 1, 1)), ((3, 2), (1, 2)), ((3, 2), (4, 2)), ((3, 2), (2, 2))],
    ids=["one token at a time", "a single key", "as many keys as channels", "as many keys as channels at last"],
)
def test_sequences_are_chosen_that_show_the_triangle(better: tuple[int, ...], worse: tuple[int, ...]) -> None:
    assert chunks_of(sequence(*better)) < chunks_of(sequence(*worse))


def test_a_single_call_is_no_sequence() -> None:
    assert chunks_of(sequence(3)) == ()


def test_unknown_heads_leave_the_students_own(example: Example) -> None:
    unknown = with_heads(example, Recorded())
    assert [band.title for band in grown(unknown, RIGHT)][:2] == [f"your weights in Cached, call {n}" for n in (1, 2)]


def test_where_no_weights_are_seen_nothing_is_drawn(example: Example) -> None:
    assert grown(example, FUSED) == []


def test_keys_as_many_as_channels_are_not_taken_for_weights(example: Example) -> None:
    alike = replace(example, axes=replace(example.axes, sizes={**example.axes.sizes, "hd": 5}))
    assert [heads is None for _, heads in heads_by_call(alike, traced(RIGHT))] == [False, True, True, False]
