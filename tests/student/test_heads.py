"""The weights of each head are found however they are computed; of a sequence of calls the table
grows to the right.
"""

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
HEAD = """
import torch, math
def f(q):
    B, nh, T, hd = q.shape
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
"""
WAYS = {
    "all heads at once": "return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1) @ q",
    "batch and heads in one": (
        "q = q.flatten(0, 1)\n    return torch.bmm(q, q.mT).masked_fill(hidden, "
        "-math.inf).softmax(-1)"
    ),
    "a loop over heads": (
        "return [(q[:, h] @ q[:, h].mT).masked_fill(hidden, -math.inf).softmax(-1) for h in "
        "range(nh)]"
    ),
    "a loop over sequences and heads": (
        "return [[(s @ s.mT).masked_fill(hidden, -math.inf).softmax(-1) for s in b] for b in q]"
    ),
    "scores that sum to one": (
        "s = q @ q.mT\n    s = s / s.sum(-1, keepdim=True)\n"
        "    return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1)"
    ),
    "a softmax by hand": (
        "e = (q @ q.mT).masked_fill(hidden, -math.inf).exp()\n"
        "    return e / e.sum(-1, keepdim=True)"
    ),
}
Q = torch.randn(B, NH, T, HD, generator=torch.Generator().manual_seed(4))


def weights_of(body: str) -> Tensor | None:
    namespace: dict[str, object] = {}
    exec(compile(f"{HEAD}    {body}\n", "a.py", "exec"), namespace)
    call = Call("f", (Q,))
    traced = trace(namespace, TraceCall(call, TABLES, TIMES), "a.py")
    return weights_by_call(Example(call, Q, True, None, AXES), traced)[0]


def expected_weights() -> Tensor:
    past = torch.arange(T)[:, None] >= torch.arange(T)
    return (Q[0] @ Q[0].mT).masked_fill(~past, float("-inf")).softmax(-1)


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_of_the_first_sequence_head_by_head(way):
    weights = weights_of(WAYS[way])
    assert weights.shape == (NH, T, T)
    assert torch.allclose(weights, expected_weights(), atol=1e-5)


def test_a_mask_after_the_softmax_is_part_of_the_weights():
    weights = weights_of("return (q @ q.mT).softmax(-1).masked_fill(hidden, 0) @ q")
    assert not weights.triu(1).any()


def test_a_softmax_over_the_wrong_axis_is_shown_as_it_is():
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
def test_where_no_weights_are_computed_none_are_shown(body):
    assert weights_of(body) is None


CACHED = parse_signature(
    "(width: nh * hd)(x: (B, T, C), cache: opaque) -> (y: (B, T, C), cache: opaque)"
)
X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(4))
PAST = Returned(0, (1,))
# Three tokens, then two, then the same past continued in another way, then one more after that.
CALL = Call(
    Build("Cached", (8,)),
    (X[:, :3],),
    returns=CACHED.form,
    then=(
        FollowUp((X[:, 3:5], PAST)),
        FollowUp((X[:, 5:7], PAST)),
        FollowUp((X[:, 6:7], Returned(2, (1,)))),
    ),
)
KEEPS = """
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
AGAIN = KEEPS.replace("(x, seen))", "(seen, seen))").replace(
    "new, keys = x.shape", "new, keys = seen.shape"
)
AGAIN = AGAIN.replace("flatten(2), seen", "flatten(2)[:, -x.shape[1]:], seen")
FUSED = KEEPS.replace("return (weights @ k)", "return (visible.to(q) @ k)").replace(
    "weights = ", "# "
)


def follow_calls(source: str) -> Traced:
    namespace: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(CALL, TABLES, TIMES), "a.py")


@pytest.fixture(scope="module")
def example() -> Example:
    """The sequence, with the outputs of the right attempt."""
    reference = follow_calls(KEEPS)
    outputs = [
        y for index in range(0, 8, 2) if (y := reference.reply.outputs[index].tensor) is not None
    ]
    axes = Axes({"B": 2, "T": 3, "C": 8, "nh": 2, "hd": 4}, packed=frozenset({"C"}))
    examples = [
        Example(CALL, y, True, CACHED, axes, output_index=2 * i, label=f"y of call {i + 1}")
        for i, y in enumerate(outputs)
    ]
    return replace(examples[0], further_outputs=tuple(examples[1:]))


def call_pictures(example: Example, source: str) -> list[Picture]:
    return [
        picture
        for picture in pictures_of(example, follow_calls(source))
        if ", call " in picture.title
    ]


def test_the_keys_are_those_of_the_past_that_is_continued(example):
    assert sides_of(example) == [(3, 3), (2, 5), (2, 5), (1, 6)]


def test_a_table_for_each_call_with_the_triangle_at_the_lower_right(example):
    call_weights = [
        weights for weights in weights_by_call(example, follow_calls(KEEPS)) if weights is not None
    ]
    assert [weights.shape for weights in call_weights] == [
        (2, 3, 3),
        (2, 2, 5),
        (2, 2, 5),
        (2, 1, 6),
    ]
    for weights in call_weights:
        new, keys = weights.shape[1:]
        hidden = torch.ones(new, keys, dtype=torch.bool).triu(keys - new + 1)
        assert torch.equal(weights[0] == 0, hidden)
    assert not torch.equal(call_weights[1], call_weights[2])  # two futures of one past


@pytest.mark.parametrize(
    "source", [KEEPS, AGAIN], ids=["keys are kept", "all rows are computed again"]
)
def test_the_weights_of_each_call_are_drawn(example, source):
    pictures = call_pictures(example, source)
    assert [picture.title for picture in pictures] == [
        f"your weights in Cached, call {n}" for n in range(1, 5)
    ]
    assert {(picture.rows, picture.columns) for picture in pictures} == {
        ("new query", "key so far")
    }
    for picture, weights in zip(
        pictures, weights_by_call(example, follow_calls(KEEPS)), strict=True
    ):
        assert [panel.title for panel in picture.panels] == ["head 0", "head 1"]
        assert weights is not None
        torch.testing.assert_close(
            torch.stack([p.values for p in picture.panels if p.values is not None]), weights
        )


def with_shares(example: Example) -> Example:
    """The example, with the weights of the right attempt as the expected ones."""
    return replace(example, shares=weights_by_call(example, follow_calls(KEEPS)))


def test_right_weights_of_a_recorded_call_are_shown_alone(example):
    pictures = call_pictures(with_shares(example), KEEPS)
    assert [picture.words for picture in pictures] == ["2 heads, as expected"] * 4
    assert not any(picture.differs for picture in pictures)


def test_wrong_weights_of_a_recorded_call_stand_beside_the_expected_ones(example):
    wrong_source = KEEPS.replace("tril(keys - new)", "tril()")
    with_expected = with_shares(example)
    without_past, *with_past = call_pictures(with_expected, wrong_source)
    assert without_past.words == "2 heads, as expected", "without a past both masks are equal"
    for picture, expected in zip(with_past, with_expected.shares[1:], strict=True):
        assert picture.words == "the weights of 2 of 2 heads are not as expected"
        assert (picture.differs, picture.rows, picture.columns) == (
            True,
            "new query",
            "key so far",
        )
        titles = [f"head {h}, {side}" for h in (0, 1) for side in ("expected", "yours")]
        assert [panel.title for panel in picture.panels] == titles
        assert expected is not None
        for panel, table in zip(picture.panels[::2], expected, strict=True):
            assert torch.equal(panel.values, table)


def test_weights_that_a_right_attempt_computes_in_another_way_are_not_called_wrong(
    example,
):
    with_expected = with_shares(example)
    mirrored = tuple(None if table is None else table.flip(-1) for table in with_expected.shares)
    assert {
        picture.words for picture in call_pictures(replace(with_expected, shares=mirrored), KEEPS)
    } == {"2 heads"}


ONE_CALL = parse_signature("(q: (B, nh, T, hd)) -> (B, nh, T, hd)")


@pytest.mark.parametrize(
    ("heads", "words"),
    [
        (NH, "the weights of 2 of 3 heads are not as expected"),
        (7, "among the first 3 of 7 heads, the weights of 2 are not as expected"),
    ],
)
def test_a_head_that_was_not_computed_is_expected(heads, words):
    axes = replace(AXES, sizes={**AXES.sizes, "nh": heads, "C": 12}, packed=frozenset({"C"}))
    namespace: dict[str, object] = {}
    body = "return (q[:, 0] @ q[:, 0].mT).masked_fill(hidden, -math.inf).softmax(-1) @ q[:, 0]"
    exec(compile(f"{HEAD}    {body}\n", "a.py", "exec"), namespace)
    traced = trace(namespace, TraceCall(Call("f", (Q,)), TABLES, TIMES), "a.py")
    with_expected = Example(Call("f", (Q,)), Q, True, ONE_CALL, axes, shares=(expected_weights(),))
    picture = pictures_of(with_expected, traced)[0]
    assert picture.words == words
    titles = [f"head {h}, expected, and none of yours" for h in (1, 2)]
    assert [panel.title for panel in picture.panels] == titles


def sequence(*sizes: int) -> Example:
    """Chunks of these sizes, one after the other."""
    x = torch.zeros(2, sum(sizes), 8)
    then = tuple(FollowUp((x[:, :n], Returned(i, (1,)))) for i, n in enumerate(sizes[1:]))
    call = Call(Build("Cached", (8,)), (x[:, : sizes[0]],), returns=CACHED.form, then=then)
    return Example(call, x, True, CACHED, Axes({"B": 2, "T": sizes[0], "C": 8, "nh": 2, "hd": 4}))


@pytest.mark.parametrize(("sizes", "shows"), [((3, 2), True), ((5, 1, 1), False), ((3,), False)])
def test_sequences_are_chosen_that_show_the_triangle(sizes, shows):
    assert shows_a_triangle(sequence(*sizes)) is shows


def test_where_no_weights_are_seen_nothing_is_drawn(example):
    assert call_pictures(example, FUSED) == []


def test_keys_as_many_as_channels_are_not_taken_for_weights(example):
    alike = replace(example, axes=replace(example.axes, sizes={**example.axes.sizes, "hd": 5}))
    assert [weights is None for weights in weights_by_call(alike, follow_calls(KEEPS))] == [
        False,
        True,
        True,
        False,
    ]


def test_an_argument_with_no_axis_but_the_batch_has_no_addresses():
    x = torch.rand(4)
    signature = parse_signature("(x: (B)) -> (1, B)")
    example = Example(Call("shown", (x,)), x[None], True, signature, Axes({"B": 4}))
    assert addresses(example, x[None]) is None
