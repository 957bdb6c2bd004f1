"""`course trace` explains a call: its lines, its operations, its loops and its result."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.box.worker.messages import Step, TensorInfo
from manyheads.judge.redact_hidden_inputs import Axes
from manyheads.student.trace import (
    Explained,
    Item,
    Loop,
    Operation,
    Repeated,
    TraceLine,
    fold,
    view_warning,
)

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


MERGED = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"


def lines(explanation: Explained) -> list[TraceLine]:
    """Return the lines of the explanation, without loops that are shown once."""
    return [entry for entry in explanation.entries if isinstance(entry, TraceLine)]


def operations(explanation: Explained, name: str = "") -> list[Operation]:
    """Return the operations of all lines, or only those with this name."""
    every_line = [operation for line in lines(explanation) for operation in line.operations]
    return [operation for operation in every_line if name in ("", operation.name)]


def test_each_line_lists_its_operations_with_named_shapes(explain):
    split, merge = explain("reshape_dance")
    (view,), (transpose,) = (line.operations for line in lines(split))
    assert split.title == "split_heads(x, n_head=5)"
    assert lines(split)[0].code == "x = x.view(B, T, n_head, C // n_head)  # (B, T, nh, hd)"
    assert (view.name, view.takes, view.gives) == ("view", "(B, T, C)", "(B, T, nh, hd)")
    assert (transpose.gives, transpose.data) == ("(B, nh, T, hd)", "view, not contiguous")
    data = [operation.data for operation in lines(merge)[0].operations]
    assert data == ["view, not contiguous", "copy", "view"]
    assert merge.returned == "returns (B, T, C): the right numbers"


def test_a_wrong_view_gets_a_warning_and_the_later_exception_an_explanation(explain):
    split, merge = explain("reshape_dance", WRONG_VIEW)
    warning = "T is no longer T: a step along it was C numbers, here it is hd"
    assert operations(split)[0].warning == warning
    assert not split.is_right
    assert split.returned == "returns (B, nh, T, hd): the right shape, other numbers"
    transpose, view = operations(merge)
    assert (transpose.raised, view.raised, view.takes) == (False, True, "(B, T, nh, hd)")
    assert merge.raised.startswith(
        "It raised RuntimeError on line 8: a .view of a tensor whose memory is in another"
    )
    assert "Python says: view size is not compatible" in merge.raised
    assert merge.raised.endswith(
        "Use .reshape(...) instead. After a transpose write .reshape(…), which copies where it "
        "must, for .view(…)."
    )
    assert merge.returned == ""


@pytest.mark.parametrize(
    ("count", "shape"),
    [
        ("mha.n_head", r"\(B, T, C\)"),
        ("mha.head_dim", r"\(B, T, \d+\)"),
        ("mha.n_head - 1", r"\(B, T, \d+\)"),
    ],
)
def test_an_axis_built_in_a_loop_is_named_only_if_the_name_fits_other_sizes_too(
    explain, count, shape
):
    (explanation,) = explain("mha_by_loop", LOOPS.replace("range(mha.n_head)", f"range({count})"))
    (cat,) = operations(explanation, "cat")
    assert re.fullmatch(shape, cat.gives)


@pytest.mark.parametrize(
    ("divisor", "operands"),
    [
        ("math.sqrt(C)", "(B, T, T) / 5.477 (√C)"),
        ("torch.tensor(C / mha.n_head).sqrt()", "(B, T, T), 2.449 (√hd)"),
        ("1", "(B, T, T) / 1"),
    ],
)
def test_the_divisor_of_the_scores_is_explained(explain, divisor, operands):
    (explanation,) = explain("mha_by_loop", LOOPS.replace("math.sqrt(C)", divisor))
    assert [operation.takes for operation in operations(explanation, "div")] == [operands]


def test_a_size_that_equals_an_axis_by_chance_has_no_name(explain):
    shapes = set()
    for explanation in explain("rotary"):
        shapes |= {operation.gives for operation in operations(explanation)}
    assert "(B, T, 7, 2)" in shapes  # although B = 2
    assert "(B, T, 7, B)" not in shapes


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ("i * mha.head_dim", "axis 2, round by round: 0–5, 6–11, 12–17, 18–23, 24–29"),
        ("i", "axis 2, round by round: 0–5, 1–6, 2–7, 3–8, 4–9; these overlap"),
        ("0", ""),
    ],
)
def test_a_loop_over_heads_is_shown_once_with_the_slice_of_each_round(explain, start, text):
    old = "slice(i * mha.head_dim, (i + 1) * mha.head_dim)"
    (call,) = explain("mha_by_loop", LOOPS.replace(old, f"slice({start}, {start} + mha.head_dim)"))
    assert [operation.slices for operation in operations(call, "index")] == [text] * 3
    (repeated,) = (entry for entry in call.entries if isinstance(entry, Repeated))
    assert (repeated.first, repeated.last, repeated.repeats) == ("10", "11", 4)
    assert repeated.alike


def test_a_helper_is_indented_below_the_line_that_calls_it(explain):
    depths = [(line.depth, bool(line.operations)) for line in lines(explain("causal_mask")[2])]
    assert depths == [(0, False), (1, True), (0, False), (1, True), (0, True)]


@pytest.mark.parametrize(
    ("id_", "source", "result"),
    [
        (
            "reshape_dance",
            f"def split_heads(x, n_head): return x\n{MERGED}",
            "returns (B, T, C); (B, nh, T, hd) is asked",
        ),
        (
            "reshape_dance",
            f"def split_heads(x, n_head): return [x]\n{MERGED}",
            "returns list, not a tensor",
        ),
        (
            "causal_mask",
            "import torch\ndef causal_mask(T, device=None): return torch.ones(T, T).tril()\n",
            "returns (T, T) of float32; bool is asked",
        ),
    ],
)
def test_a_wrong_result_is_described_with_named_axes(explain, id_, source, result):
    explanation = explain(id_, source)[0]
    assert (explanation.is_right, explanation.tables) == (False, ())
    assert explanation.returned.endswith(result)


def test_a_stub_is_described_as_not_written_yet(explain):
    source = f"def split_heads(x, n_head):\n    raise NotImplementedError\n{MERGED}"
    split, _ = explain("reshape_dance", source)
    assert "raised NotImplementedError on line 2: nothing is written here yet." in split.raised


def test_the_lowest_float_counts_as_minus_infinity(explain):
    source = """
import torch
def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()
def mask_scores(scores, mask): return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
    assert all(explanation.is_right for explanation in explain("causal_mask", source))


def test_control_characters_of_a_student_are_not_printed(explain):
    source = f"""
import torch
layer = type("\\x1b[2Jgone", (torch.nn.Tanh,), {{}})()
def split_heads(x, n_head): return layer(x)  # \x1b[2J
{MERGED}"""
    split, _ = explain("reshape_dance", source)
    names = [operation.name for operation in operations(split)]
    assert names == [" [2Jgone"]
    codes = [line.code for line in lines(split)]
    assert "".join(names + codes).isprintable()


def test_numbers_are_kept_only_if_a_crop_is_given(explain):
    (explanation,) = explain("fused_qkv", crop=(2, 3))
    assert {operation.crop.shape for operation in operations(explanation)} == {(2, 3)}
    (explanation,) = explain("fused_qkv")
    assert {operation.crop for operation in operations(explanation)} == {None}
    assert explanation.tables == ()  # no tables: this function computes new numbers


@pytest.mark.parametrize(
    ("order", "folded"),
    [
        pytest.param([9, *[1, 2] * 50, 8], (9, Loop((1, 2), 50, True), 8), id="a loop"),
        pytest.param(
            [0, *[*[1] * 4, 2] * 3, 5],
            (0, Loop((Loop((1,), 4, True), 2), 3, True), 5),
            id="a loop in a loop",
        ),
        pytest.param(
            [1, 2, 1, 2, 3] * 3,
            (Loop((Loop((1, 2), 2, True), 3), 3, True),),
            id="a loop of two steps in a loop of two",
        ),
        pytest.param(
            [10, 1, 11, 1, 12, 1], (Loop((10, 1), 3, False),), id="a loop whose shapes grow"
        ),
        pytest.param(
            [10, 1, 10, 10, 1, 10, 10, 10, 1],
            (Loop((10, 1), 3, False),),
            id="a first round of a single step",
        ),
        pytest.param(
            [*range(10, 15), 1] * 3,
            (Loop((Loop((10,), 5, False), 1), 3, True),),
            id="a growing loop inside one that repeats",
        ),
    ],
)
def test_repeated_steps_are_folded_into_a_loop(order, folded):
    """order: the steps in the order in which they ran; from 10 on, all belong to one line."""
    assert fold(order, lambda step: min(step, 10)) == folded


def unroll(items: tuple[Item, ...], rounds: int | None = None) -> list[int]:
    """Return the steps, with this number of rounds for each loop, by default all."""
    steps: list[int] = []
    for item in items:
        if isinstance(item, Loop):
            steps += unroll(item.body, rounds) * (rounds or item.times)
        else:
            steps.append(item)
    return steps


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=60))
def test_folding_keeps_the_order_and_loses_no_step(order):
    folded = fold(order, lambda step: step)
    remaining = iter(order)
    assert all(step in remaining for step in unroll(folded, 1))
    assert set(unroll(folded)) == set(order)
    if "False" not in repr(folded):  # each loop has equal rounds
        assert unroll(folded) == order


AXES = Axes({"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4})
B, T, C, NH, HD = AXES.sizes.values()
WARNING_START = "T is no longer T: a step along it was "


@pytest.mark.parametrize(
    ("name", "shape", "new_shape", "warning_start"),
    [
        pytest.param(
            "reshape", (B, T, 3 * C), (B, NH, T, 3 * HD), WARNING_START, id="q, k and v at once"
        ),
        pytest.param(
            "view", (B, T, C), (B * NH, T, HD), WARNING_START, id="batch and heads in one axis"
        ),
        pytest.param("view", (B, NH, T, HD), (B, T, C), WARNING_START, id="the wrong merge"),
        pytest.param("view", (B, NH, T, HD), (B * NH, T, HD), "", id="batch and heads joined"),
        pytest.param("view", (B, T, C), (B * T, C), "", id="the tokens of all sequences joined"),
        pytest.param("transpose", (B, T, NH, HD), (B, NH, T, HD), "", id="a transpose"),
        # here the first axis has size 3 as well: it may be the batch
        pytest.param("view", (3, T, 3 * C), (T * 3, 3, C), "", id="another axis than the tokens"),
    ],
)
def test_a_view_that_mixes_tokens_gets_a_warning(name, shape, new_shape, warning_start):
    tensors = [(TensorInfo(size, "float32", True),) for size in (shape, new_shape)]
    axes = Axes({**AXES.sizes, "B": shape[0]})
    warning = view_warning(Step(name, (1,), (0,), *tensors), axes)
    assert warning.startswith(warning_start)
    assert bool(warning) == bool(warning_start)


def test_the_table_of_a_right_split_shows_the_channels_of_each_head(explain):
    tables = explain("reshape_dance")[0].tables
    assert [(table.title, table.wrong_rows) for table in tables] == [("head 0", ()), ("head 1", ())]
    assert "by its address in x," in tables[0].legend
    assert [row[1] for row in tables[1].rows[:2]] == [list(range(6, 12)), list(range(106, 112))]
    assert [row[0] for row in tables[0].rows[:2]] == ["token 0", "token 1"]


def test_the_table_of_a_wrong_view_marks_the_wrong_rows(explain):
    table, *_ = explain("reshape_dance", WRONG_VIEW)[0].tables
    actual = [row[1] for row in table.rows]
    assert actual[:3] == [list(range(6)), list(range(6, 12)), list(range(12, 18))]
    assert actual[5] == list(range(100, 106))
    assert len(table.wrong_rows) == 8
    assert table.rows[1][2] == list(range(100, 106))
