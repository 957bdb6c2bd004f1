"""What is said about a followed call."""

import pytest

from manyheads.student.explain_trace import Explained, Repeated, TraceLine
from tests.student.real import Explain

WRONG_VIEW = """
import torch
def split_heads(x, n_head):
    B, T, C = x.shape
    return x.view(B, n_head, T, C // n_head)
def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).view(B, T, nh * hd)
"""
LOOPS = """
import torch, math
def mha_by_loop(mha, x):
    B, T, C = x.shape
    q, k, v = mha.qkv(x).split(C, dim=-1)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    heads = []
    for i in range(mha.n_head):
        at = slice(i * mha.head_dim, (i + 1) * mha.head_dim)
        scores = q[..., at] @ k[..., at].mT / math.sqrt(C)
        heads.append(scores.masked_fill(future, -math.inf).softmax(-1) @ v[..., at])
    return mha.proj(torch.cat(heads, -1))
"""


def lines(told: Explained) -> list[TraceLine]:
    return [entry for entry in told.entries if isinstance(entry, TraceLine)]


def test_each_operation_stands_below_its_line_with_named_shapes(explain: Explain) -> None:
    split, merge = explain("reshape_dance")
    (view,), (transpose,) = (line.operations for line in lines(split))
    assert split.title == "split_heads(x, n_head=5)"
    assert lines(split)[0].code == "x = x.view(B, T, n_head, C // n_head)  # (B, T, nh, hd)"
    assert (view.name, view.takes, view.gives, view.data) == ("view", "(B, T, C)", "(B, T, nh, hd)", "view")
    assert (transpose.gives, transpose.data) == ("(B, nh, T, hd)", "view, not contiguous")
    assert [op.data for op in lines(merge)[0].operations] == ["view, not contiguous", "copy", "view"]
    assert merge.returned == "returns (B, T, C): the right numbers"


def test_a_wrong_view_is_doubted_and_its_answer_is_not_right(explain: Explain) -> None:
    split, _ = explain("reshape_dance", WRONG_VIEW)
    assert lines(split)[0].operations[0].warning == "T is no longer T: a step along it was C numbers, here it is hd"
    assert (split.right, split.returned) == (False, "returns (B, nh, T, hd): the right shape, other numbers")


def test_an_exception_is_told_with_its_line_after_what_led_to_it(explain: Explain) -> None:
    _, merge = explain("reshape_dance", WRONG_VIEW)
    transpose, view = lines(merge)[0].operations
    assert (transpose.raised, view.raised, view.takes) == (False, True, "(B, T, nh, hd)")
    assert merge.raised.startswith("It raised RuntimeError on line 8: a .view of a tensor whose memory is in another")
    assert "Python says: view size is not compatible" in merge.raised
    assert merge.returned == ""


@pytest.mark.parametrize(("by", "takes"), [
    ("math.sqrt(C)", "(B, T, T) / 5.477 (√C)"),
    ("torch.tensor(6.0).sqrt()", "(B, T, T), 2.449 (√hd)"),
    ("1", "(B, T, T) / 1"),
])  # fmt: skip
def test_what_scores_are_divided_by_is_named(explain: Explain, by: str, takes: str) -> None:
    (told,) = explain("mha_by_loop", LOOPS.replace("math.sqrt(C)", by))
    assert [op.takes for line in lines(told) for op in line.operations if op.name == "div"] == [takes]


def test_heads_one_after_the_other_are_folded(explain: Explain) -> None:
    (told,) = explain("mha_by_loop", LOOPS)
    again = [entry for entry in told.entries if isinstance(entry, Repeated)]
    assert [(entry.first, entry.last, entry.more, entry.alike) for entry in again] == [("10", "11", 4, True)]


def test_a_helper_is_one_deeper_than_the_line_that_calls_it(explain: Explain) -> None:
    told = explain("causal_mask")[2]
    assert [(line.depth, bool(line.operations)) for line in lines(told)] == [
        (0, False), (1, True), (0, False), (1, True), (0, True)
    ]  # fmt: skip


@pytest.mark.parametrize(("body", "says"), [
    pytest.param("return x", "returns (B, T, C); (B, nh, T, hd) is asked", id="another shape"),
    pytest.param("return [x]", "returns list, not a tensor", id="no tensor"),
])  # fmt: skip
def test_what_came_back_is_said_in_the_lessons_words(explain: Explain, body: str, says: str) -> None:
    split, _ = explain("reshape_dance", f"def split_heads(x, n_head):\n    {body}\ndef merge_heads(y): ...\n")
    assert not split.right
    assert split.returned.endswith(says)


def test_numbers_are_not_right_where_a_mask_of_bool_is_asked(explain: Explain) -> None:
    source = "import torch\ndef causal_mask(T, device=None): return torch.ones(T, T).tril()\n"
    assert explain("causal_mask", source)[0].returned == "returns (T, T): the right shape, other numbers"


def test_what_is_not_written_yet_is_said_to_be_so(explain: Explain) -> None:
    source = "def split_heads(x, n_head):\n    raise NotImplementedError\ndef merge_heads(y): ...\n"
    assert (
        "raised NotImplementedError on line 2: nothing is written here yet."
        in explain("reshape_dance", source)[0].raised
    )


def test_a_minimum_in_place_of_minus_infinity_is_right(explain: Explain) -> None:
    source = """
import torch
def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()
def mask_scores(scores, mask): return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
    assert [told.right for told in explain("causal_mask", source)] == [True, True, True]


def test_nothing_of_the_students_moves_the_cursor(explain: Explain) -> None:
    source = """
import torch
layer = type("\\x1b[2Jgone", (torch.nn.Tanh,), {})()
def split_heads(x, n_head): return layer(x)  # \x1b[2J
def merge_heads(y): return y
"""
    shown = [(line.code, *(op.name for op in line.operations)) for line in lines(explain("reshape_dance", source)[0])]
    assert [name for _, *names in shown for name in names] == [" [2Jgone"]
    assert all(text.isprintable() for texts in shown for text in texts)


def test_numbers_are_kept_on_demand(explain: Explain) -> None:
    (told,) = explain("fused_qkv", crop=(2, 3))
    crops = [op.crop for line in lines(told) for op in line.operations]
    assert all(crop is not None and crop.shape == (2, 3) for crop in crops)
    assert all(op.crop is None for line in lines(explain("fused_qkv")[0]) for op in line.operations)
