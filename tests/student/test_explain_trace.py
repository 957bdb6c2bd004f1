"""What is said about a followed call: its lines, its loops, views that are doubted, and where each
number came from.
"""

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


def lines(explanation: Explained) -> list[TraceLine]:
    return [entry for entry in explanation.entries if isinstance(entry, TraceLine)]


def test_each_operation_stands_below_its_line_with_named_shapes(explain):
    split, merge = explain("reshape_dance")
    (view,), (transpose,) = (line.operations for line in lines(split))
    assert split.title == "split_heads(x, n_head=5)"
    assert lines(split)[0].code == "x = x.view(B, T, n_head, C // n_head)  # (B, T, nh, hd)"
    assert (view.name, view.takes, view.gives, view.data) == (
        "view",
        "(B, T, C)",
        "(B, T, nh, hd)",
        "view",
    )
    assert (transpose.gives, transpose.data) == ("(B, nh, T, hd)", "view, not contiguous")
    assert [op.data for op in lines(merge)[0].operations] == [
        "view, not contiguous",
        "copy",
        "view",
    ]
    assert merge.returned == "returns (B, T, C): the right numbers"


def test_a_wrong_view_is_doubted_and_its_answer_is_not_right(explain):
    split, _ = explain("reshape_dance", WRONG_VIEW)
    assert (
        lines(split)[0].operations[0].warning
        == "T is no longer T: a step along it was C numbers, here it is hd"
    )
    assert (split.is_right, split.returned) == (
        False,
        "returns (B, nh, T, hd): the right shape, other numbers",
    )


@pytest.mark.parametrize(
    ("count", "gives"),
    [
        ("mha.n_head", "(B, T, C)"),
        ("mha.head_dim", r"\(B, T, \d+\)"),
        ("mha.head_dim - 1", r"\(B, T, \d+\)"),
        ("mha.n_head - 1", r"\(B, T, \d+\)"),
    ],
)
def test_what_a_loop_joins_has_a_name_only_where_a_call_of_other_sizes_agrees(
    explain, count, gives
):
    """The twin's loop goes round another number of times, so `cat` takes another number of tensors
    there.
    """
    (explanation,) = explain("mha_by_loop", LOOPS.replace("range(mha.n_head)", f"range({count})"))
    (cat,) = (op for line in lines(explanation) for op in line.operations if op.name == "cat")
    assert cat.gives == gives or re.fullmatch(gives, cat.gives), (explanation.sizes, cat)


def test_an_exception_is_told_with_its_line_after_what_led_to_it(explain):
    _, merge = explain("reshape_dance", WRONG_VIEW)
    transpose, view = lines(merge)[0].operations
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
    ("by", "takes"),
    [
        ("math.sqrt(C)", "(B, T, T) / 5.477 (√C)"),
        ("torch.tensor(C / mha.n_head).sqrt()", "(B, T, T), 2.449 (√hd)"),
        ("1", "(B, T, T) / 1"),
    ],
)
def test_what_scores_are_divided_by_is_named(explain, by, takes):
    (explanation,) = explain("mha_by_loop", LOOPS.replace("math.sqrt(C)", by))
    assert [
        op.takes for line in lines(explanation) for op in line.operations if op.name == "div"
    ] == [takes]


def test_a_size_that_is_an_axis_by_chance_has_no_name(explain):
    gives = [
        op.gives
        for explanation in explain("rotary")
        for line in lines(explanation)
        for op in line.operations
    ]
    assert "(B, T, 7, 2)" in gives  # and B = 2
    assert "(B, T, 7, B)" not in gives


def test_heads_one_after_the_other_are_folded(explain):
    (explanation,) = explain("mha_by_loop", LOOPS)
    again = [entry for entry in explanation.entries if isinstance(entry, Repeated)]
    assert [(entry.first, entry.last, entry.repeats, entry.alike) for entry in again] == [
        ("10", "11", 4, True)
    ]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        pytest.param(
            "i * mha.head_dim",
            "axis 2, round by round: 0–5, 6–11, 12–17, 18–23, 24–29",
            id="every head its own channels",
        ),
        pytest.param(
            "i",
            "axis 2, round by round: 0–5, 1–6, 2–7, 3–8, 4–9; these overlap",
            id="heads that begin one channel apart",
        ),
        pytest.param("0", "", id="the same channels for every head"),
    ],
)
def test_what_each_head_reads_is_told_once_for_all_rounds(explain, start, words):
    at = "slice(i * mha.head_dim, (i + 1) * mha.head_dim)"
    (call,) = explain("mha_by_loop", LOOPS.replace(at, f"slice({start}, {start} + mha.head_dim)"))
    read = [op for line in lines(call) for op in line.operations if op.name == "index"]
    assert [op.slices for op in read] == [words] * 3


def test_a_helper_is_one_deeper_than_the_line_that_calls_it(explain):
    explanation = explain("causal_mask")[2]
    assert [(line.depth, bool(line.operations)) for line in lines(explanation)] == [
        (0, False),
        (1, True),
        (0, False),
        (1, True),
        (0, True),
    ]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param("return x", "returns (B, T, C); (B, nh, T, hd) is asked", id="another shape"),
        pytest.param("return [x]", "returns list, not a tensor", id="no tensor"),
    ],
)
def test_what_came_back_is_said_in_the_lessons_words(explain, body, says):
    split, _ = explain(
        "reshape_dance", f"def split_heads(x, n_head):\n    {body}\ndef merge_heads(y): ...\n"
    )
    assert not split.is_right
    assert split.returned.endswith(says)


@pytest.mark.parametrize(("makes", "kind"), [(".tril()", "float32"), (".tril().long()", "int64")])
def test_numbers_are_not_right_where_a_mask_of_bool_is_asked(explain, makes, kind):
    source = f"import torch\ndef causal_mask(T, device=None): return torch.ones(T, T){makes}\n"
    assert explain("causal_mask", source)[0].returned == f"returns (T, T) of {kind}; bool is asked"


def test_what_is_not_written_yet_is_said_to_be_so(explain):
    source = "def split_heads(x, n_head):\n    raise NotImplementedError\ndef merge_heads(y): ...\n"
    split, _ = explain("reshape_dance", source)
    assert "raised NotImplementedError on line 2: nothing is written here yet." in split.raised


def test_a_minimum_in_place_of_minus_infinity_is_right(explain):
    source = """
import torch
def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()
def mask_scores(scores, mask): return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
    assert [explanation.is_right for explanation in explain("causal_mask", source)] == [
        True,
        True,
        True,
    ]


def test_nothing_of_the_students_moves_the_cursor(explain):
    source = """
import torch
layer = type("\\x1b[2Jgone", (torch.nn.Tanh,), {})()
def split_heads(x, n_head): return layer(x)  # \x1b[2J
def merge_heads(y): return y
"""
    rows = []
    for line in lines(explain("reshape_dance", source)[0]):
        rows.append((line.code, *(op.name for op in line.operations)))
    assert [name for _, *names in rows for name in names] == [" [2Jgone"]
    assert all(text.isprintable() for texts in rows for text in texts)


def test_numbers_are_kept_on_demand(explain):
    (explanation,) = explain("fused_qkv", crop=(2, 3))
    crops = [op.crop for line in lines(explanation) for op in line.operations]
    assert all(crop is not None and crop.shape == (2, 3) for crop in crops)
    assert all(op.crop is None for line in lines(explain("fused_qkv")[0]) for op in line.operations)


def unroll_steps(items: tuple[Item, ...]) -> list[int]:
    steps: list[int] = []
    for item in items:
        steps += unroll_steps(item.body) * item.times if isinstance(item, Loop) else [item]
    return steps


# steps 10, 11, 12 … are one line with growing shapes
GROWS = [step for t in range(6) for step in (10 + t, 1)]


@pytest.mark.parametrize(
    ("order", "folded"),
    [
        pytest.param([0, 1, 2, 1], (0, 1, 2, 1), id="what runs once stays"),
        pytest.param(
            [9, *[1, 2] * 50, 8],
            (9, Loop((1, 2), 50, True), 8),
            id="a loop, and what stands around it",
        ),
        pytest.param(
            [0, *[*[1] * 4, 2] * 3, 5],
            (0, Loop((Loop((1,), 4, True), 2), 3, True), 5),
            id="a loop in a loop",
        ),
        pytest.param(
            [1, 2, 1, 2, 3] * 3,
            (Loop((Loop((1, 2), 2, True), 3), 3, True),),
            id="of two steps in a loop of two",
        ),
        pytest.param(
            GROWS,
            (Loop((10, 1), 6, False),),
            id="rounds whose shapes grow are rounds of the same lines",
        ),
        pytest.param(
            [10, 1, 10, 10, 1, 10, 10, 10, 1],
            (Loop((10, 1), 3, False),),
            id="a first round may be a single step",
        ),
        pytest.param(
            [step for _ in range(3) for step in (*range(10, 15), 1)],
            (Loop((Loop((10,), 5, False), 1), 3, True),),
            id="a growing loop inside one that repeats",
        ),
    ],
)
def test_rounds_of_the_same_lines_are_a_loop(order, folded):
    assert fold(order, lambda i: 10 if 10 <= i < 20 else i) == folded


def first_rounds(items: tuple[Item, ...]) -> list[int]:
    return [
        step
        for item in items
        for step in (first_rounds(item.body) if isinstance(item, Loop) else [item])
    ]


def all_alike(items: tuple[Item, ...]) -> bool:
    return all(item.alike and all_alike(item.body) for item in items if isinstance(item, Loop))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=60))
def test_nothing_is_lost_and_nothing_added(order):
    folded = fold(order, lambda i: i)
    visible_steps, remaining = first_rounds(folded), iter(order)
    assert all(step in remaining for step in visible_steps)  # in their order
    assert set(visible_steps) == set(order)
    if all_alike(folded):
        assert unroll_steps(folded) == order


AXES = Axes({"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4})
B, T, C, NH, HD = AXES.sizes.values()


def step(name: str, before: tuple[int, ...], after: tuple[int, ...]) -> Step:
    return Step(
        name,
        (1,),
        (0,),
        (TensorInfo(before, "float32", True),),
        (TensorInfo(after, "float32", True),),
    )


MOVED = "T is no longer T: a step along it was "


@pytest.mark.parametrize(
    ("name", "before", "after", "says"),
    [
        pytest.param(
            "view",
            (B, T, C),
            (B, NH, T, HD),
            f"{MOVED}C numbers, here it is hd",
            id="the wrong view",
        ),
        pytest.param(
            "reshape",
            (B, T, 3 * C),
            (B, NH, T, 3 * HD),
            MOVED,
            id="the wrong view of q, k and v at once",
        ),
        pytest.param(
            "view",
            (B, T, C),
            (B * NH, T, HD),
            MOVED,
            id="the wrong view with batch and heads in one",
        ),
        pytest.param("view", (B, NH, T, HD), (B, T, C), MOVED, id="the wrong merge"),
        pytest.param("view", (B, T, C), (B, T, NH, HD), "", id="the right view"),
        pytest.param("reshape", (B, T, NH, HD), (B, T, C), "", id="the right merge"),
        pytest.param("view", (B, NH, T, HD), (B * NH, T, HD), "", id="batch and heads in one"),
        pytest.param("view", (B, T, C), (B * T, C), "", id="tokens of all sequences in one"),
        pytest.param(
            "transpose", (B, T, NH, HD), (B, NH, T, HD), "", id="a transpose, which does move"
        ),
        pytest.param("unflatten", (B, T, 3 * C), (B, T, 3, NH, HD), "", id="q, k and v apart"),
        pytest.param("view", (T, T), (1, 1, T, T), "", id="a mask"),
    ],
)
def test_a_view_that_moves_tokens_is_doubted(name, before, after, says):
    warning = view_warning(step(name, before, after), AXES)
    assert (warning.startswith(says), bool(warning)) == (True, bool(says))


def test_only_tokens_are_doubted_for_three_of_a_kind_may_be_as_many_as_the_batch():
    axes = Axes({"B": 3, "T": 5, "C": 12})
    assert view_warning(step("view", (3, 5, 36), (15, 3, 12)), axes) == ""


MERGED = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"


def test_the_right_split_gives_a_head_its_channels_of_every_token(explain):
    first, second = explain("reshape_dance")[0].tables
    assert (first.wrong_rows, second.wrong_rows, first.title, second.title) == (
        (),
        (),
        "head 0",
        "head 1",
    )
    assert "by its address in x," in first.legend
    assert [row[1] for row in second.rows[:2]] == [list(range(6, 12)), list(range(106, 112))]
    assert [row[0] for row in first.rows[:2]] == ["token 0", "token 1"]


def test_the_wrong_view_is_seen(explain):
    source = (
        f"def split_heads(x, n_head): B, T, C = x.shape; return x.view(B, n_head, T, -1)\n{MERGED}"
    )
    table, *_ = explain("reshape_dance", source)[0].tables
    yours = [row[1] for row in table.rows]
    assert yours[:3] == [list(range(6)), list(range(6, 12)), list(range(12, 18))]
    assert yours[5] == list(range(100, 106))
    assert len(table.wrong_rows) == 8
    assert table.rows[1][2] == list(range(100, 106))


@pytest.mark.parametrize(
    ("id_", "source"),
    [
        ("attention_scores", ""),
        ("fused_qkv", ""),
        ("reshape_dance", f"def split_heads(x, n_head): return x\n{MERGED}"),
    ],
)
def test_what_computes_new_numbers_or_another_shape_has_no_tables(explain, id_, source):
    explanations = explain(id_, *[source] * bool(source))
    assert [
        explanation.tables
        for explanation in (explanations[:1] if source else explanations)
        if explanation.tables
    ] == []
