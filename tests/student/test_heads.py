"""The attention weights of each head are found in the trace of an attempt and drawn.

They are found for every way of computing them, and for each call of a sequence with a cache.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call, FollowUp, Returned, TraceCall, Traced
from manyheads.box.worker.trace_operations import trace
from manyheads.course.course_yaml_schema import parse_signature
from manyheads.judge.redact_hidden_inputs import Axes
from manyheads.student.choose_example_calls import (
    Example,
    addresses,
    shows_a_triangle,
    sides_of,
    weights_by_call,
)
from manyheads.student.pictures import Picture, pictures_of
from manyheads.student.trace import TABLES, TIMES

B, NH, T, HD = 2, 3, 5, 4
AXES = Axes({"B": B, "nh": NH, "T": T, "hd": HD})
FUNCTION_HEAD = """
import torch, math
def f(q):
    B, nh, T, hd = q.shape
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    """
Q = torch.randn(B, NH, T, HD, generator=torch.Generator().manual_seed(4))
CALL = Call("f", (Q,))
PAST = torch.ones(T, T).tril().bool()
WEIGHTS = (Q[0] @ Q[0].mT).masked_fill(~PAST, float("-inf")).softmax(-1)


def traced(source: str, call: Call) -> Traced:
    """Return the trace of this call of the source."""
    namespace: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(call, TABLES, TIMES), "a.py")


def weights_of(body: str) -> Tensor | None:
    """Return the weights that are found if f has this body."""
    example = Example(CALL, Q, True, None, AXES)
    return weights_by_call(example, traced(FUNCTION_HEAD + body, CALL))[0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1) @ q",
            id="all heads at once",
        ),
        pytest.param(
            "q = q.flatten(0, 1)\n    return torch.bmm(q, q.mT).masked_fill(hidden, "
            "-math.inf).softmax(-1)",
            id="batch and heads in one",
        ),
        pytest.param(
            "return [(q[:, h] @ q[:, h].mT).masked_fill(hidden, -math.inf).softmax(-1) for h in "
            "range(nh)]",
            id="a loop over heads",
        ),
        pytest.param(
            "return [[(s @ s.mT).masked_fill(hidden, -math.inf).softmax(-1) for s in b] "
            "for b in q]",
            id="a loop over sequences and heads",
        ),
        pytest.param(
            "s = q @ q.mT\n    s = s / s.sum(-1, keepdim=True)\n"
            "    return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1)",
            id="another tensor whose rows sum to one",
        ),
        pytest.param(
            "e = (q @ q.mT).masked_fill(hidden, -math.inf).exp()\n"
            "    return e / e.sum(-1, keepdim=True)",
            id="a softmax by hand",
        ),
    ],
)
def test_weights_are_found_however_they_are_computed(body):
    torch.testing.assert_close(weights_of(body), WEIGHTS)


def test_weights_include_a_mask_applied_after_the_softmax():
    weights = weights_of("return (q @ q.mT).softmax(-1).masked_fill(hidden, 0) @ q")
    assert not weights.triu(1).any()


def test_weights_of_a_softmax_over_the_wrong_axis_are_found():
    weights = weights_of("s = q @ q.mT\n    return (s - s.amax(-2, True)).softmax(-2) @ q")
    assert torch.allclose(weights.sum(-2), torch.ones(NH, T))


@pytest.mark.parametrize(
    "body",
    [
        "return torch.nn.functional.scaled_dot_product_attention(q, q, q)",
        "return q * 2",
        # sequences where heads should be
        "q = q.transpose(0, 1)\n    return (q @ q.mT).softmax(-1) @ q",
    ],
)
def test_no_weights_are_found_if_none_are_computed_per_head(body):
    assert weights_of(body) is None


CACHED = parse_signature(
    "(width: nh * hd)(x: (B, T, C), cache: opaque) -> (y: (B, T, C), cache: opaque)"
)
X = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(4))


def sequence_call(sizes: Sequence[int], pasts: Sequence[int]) -> Call:
    """Return a sequence of calls with a cache.

    sizes: the number of tokens of each call.
    pasts: for each call after the first, the index of the call whose cache it continues.
    """
    chunks = X[:, : sum(sizes)].split([*sizes], 1)
    follow_ups = [
        FollowUp((x, Returned(past, (1,)))) for x, past in zip(chunks[1:], pasts, strict=True)
    ]
    return Call(Build("Cached", (8,)), chunks[:1], returns=CACHED.form, then=tuple(follow_ups))


# three tokens; two more; two others in their place; one more after those
SEQUENCE = sequence_call((3, 2, 2, 1), (0, 0, 2))
SHAPES = [(2, 3, 3), (2, 2, 5), (2, 2, 5), (2, 1, 6)]
WITH_CACHE = """
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
WITHOUT_KEPT_KEYS = (
    WITH_CACHE.replace("(x, seen))", "(seen, seen))")
    .replace("new, keys = x.shape", "new, keys = seen.shape")
    .replace("flatten(2), seen", "flatten(2)[:, -x.shape[1]:], seen")
)
FUSED = WITH_CACHE.replace("(weights @ k)", "(visible.to(q) @ k)").replace("weights = ", "# ")


@pytest.fixture(scope="module")
def example():
    """Return the example of SEQUENCE with the outputs and the weights of a right attempt."""
    reference = traced(WITH_CACHE, SEQUENCE)
    axes = Axes({"B": 2, "T": 3, "C": 8, "nh": 2, "hd": 4}, packed=frozenset({"C"}))
    calls = [
        Example(SEQUENCE, output.tensor, True, CACHED, axes, output_index=i, label=f"y of {i}")
        for i, output in enumerate(reference.reply.outputs)
        if i % 2 == 0
    ]
    sequence = replace(calls[0], further_outputs=tuple(calls[1:]))
    return replace(sequence, shares=weights_by_call(sequence, reference))


def call_pictures(example: Example, source: str) -> list[Picture]:
    """Return the pictures of the weights of each call that the source computes."""
    pictures = pictures_of(example, traced(source, SEQUENCE))
    return [picture for picture in pictures if ", call " in picture.title]


def test_the_weights_of_a_call_with_a_past_are_causal(example):
    """The keys of a call are those of the past that it continues, then its own."""
    assert sides_of(example) == [shape[1:] for shape in SHAPES]
    assert [weights.shape for weights in example.shares] == SHAPES
    for weights in example.shares:
        new, keys = weights.shape[1:]
        assert torch.equal(weights[0] == 0, torch.ones(new, keys).triu(keys - new + 1) > 0)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(WITH_CACHE, id="keys are kept"),
        pytest.param(WITHOUT_KEPT_KEYS, id="all weights are computed again"),
    ],
)
def test_right_weights_are_drawn_without_the_expected_ones(example, source):
    for index, picture in enumerate(call_pictures(example, source)):
        assert picture.title == f"your weights in Cached, call {index + 1}"
        assert (picture.rows, picture.columns) == ("new query", "key so far")
        assert (picture.words, picture.differs) == ("2 heads, as expected", False)
        assert [panel.title for panel in picture.panels] == ["head 0", "head 1"]
        values = torch.stack([panel.values for panel in picture.panels])
        torch.testing.assert_close(values, example.shares[index])
    assert index == 3  # four calls


def test_wrong_weights_are_drawn_beside_the_expected_ones(example):
    wrong_source = WITH_CACHE.replace("tril(keys - new)", "tril()")
    without_past, *with_past = call_pictures(example, wrong_source)
    assert without_past.words == "2 heads, as expected", "without a past both masks are equal"
    for picture, expected in zip(with_past, example.shares[1:], strict=True):
        assert picture.words == "the weights of 2 of 2 heads are not as expected"
        assert picture.differs
        titles = [f"head {h}, {side}" for h in (0, 1) for side in ("expected", "yours")]
        assert [panel.title for panel in picture.panels] == titles
        for panel, table in zip(picture.panels[::2], expected, strict=True):
            assert torch.equal(panel.values, table)


def test_different_weights_are_not_called_wrong_if_the_output_is_right(example):
    mirrored = replace(example, shares=tuple(table.flip(-1) for table in example.shares))
    assert {picture.words for picture in call_pictures(mirrored, WITH_CACHE)} == {"2 heads"}


@pytest.mark.parametrize(
    ("heads", "text"),
    [
        (NH, "the weights of 2 of 3 heads are not as expected"),
        (7, "among the first 3 of 7 heads, the weights of 2 are not as expected"),
    ],
)
def test_a_missing_head_is_drawn_from_the_expected_weights(heads, text):
    axes = Axes({**AXES.sizes, "nh": heads, "C": 12}, packed=frozenset({"C"}))
    body = "return (q[:, 0] @ q[:, 0].mT).masked_fill(hidden, -math.inf).softmax(-1) @ q[:, 0]"
    signature = parse_signature("(q: (B, nh, T, hd)) -> (B, nh, T, hd)")
    example = Example(CALL, Q, True, signature, axes, shares=(WEIGHTS,))
    picture = pictures_of(example, traced(FUNCTION_HEAD + body, CALL))[0]
    assert picture.words == text
    titles = [f"head {h}, expected, and none of yours" for h in (1, 2)]
    assert [panel.title for panel in picture.panels] == titles


@pytest.mark.parametrize(
    ("sizes", "is_chosen"), [((3, 2), True), ((5, 1, 1), False), ((3,), False)]
)
def test_a_sequence_is_chosen_if_a_later_call_has_several_tokens(sizes, is_chosen):
    axes = Axes({"B": 2, "T": sizes[0], "C": 8, "nh": 2, "hd": 4})
    call = sequence_call(sizes, range(len(sizes) - 1))
    assert shows_a_triangle(Example(call, X, True, CACHED, axes)) is is_chosen


def test_nothing_is_drawn_if_no_weights_are_computed(example):
    assert call_pictures(example, FUSED) == []


def test_a_table_with_as_many_columns_as_channels_is_not_taken_for_weights(example):
    axes = replace(example.axes, sizes={**example.axes.sizes, "hd": 5})
    weights = weights_by_call(replace(example, axes=axes), traced(WITH_CACHE, SEQUENCE))
    assert [table is None for table in weights] == [shape[2] == 5 for shape in SHAPES]


def test_an_argument_with_only_a_batch_axis_has_no_addresses():
    x = torch.rand(4)
    signature = parse_signature("(x: (B)) -> (1, B)")
    example = Example(Call("shown", (x,)), x[None], True, signature, Axes({"B": 4}))
    assert addresses(example, x[None]) is None
