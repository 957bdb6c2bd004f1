"""What others write, with one mistake: what is told of it on both sides, and what is not, for it
would be false.
"""

import re

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from tests.diagnosis.both_sides import Sides

BY_COUNT = Bounds(seconds=60.0)  # a slow machine finds as much as a fast one


def ids(result: ExerciseResult) -> list[str]:
    return [diagnosed.id for diagnosed in result.diagnosis]


def evidence(result: ExerciseResult, function: str) -> str:
    return next(report.evidence for report in result.functions if report.name == function)


def test_a_line_that_mends_all_stands_beside_one_name(
    sides: Sides, course: Course, box: Box
) -> None:
    """Queries meet values in place of keys: that is one mistake, and one edit makes all right."""
    source = sides.source("cross_attention", {"q @ k.transpose": "q @ v.transpose"})
    judge = Judge(
        course, box, Settings(b"real code", exercises=("cross_attention",), bounds=BY_COUNT)
    )
    assert [len(result.diagnosis) for result in sides.both_results("cross_attention", source)] == [
        1,
        1,
    ]
    graded = judge.grade_attempt("somebody", sides.exercise("cross_attention"), source)
    for result in (graded, sides.home("cross_attention", source, BY_COUNT)):
        assert (ids(result), len(result.lines)) == (["scores_wrong_source"], 1)


def test_a_line_that_mends_what_is_visible_alone_takes_no_name_away(sides: Sides) -> None:
    """No visible check asks for the dropout of the weights."""
    weights = {"self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)"}
    source = sides.source("fused_qkv", {**weights, "math.sqrt(self.head_dim)": "math.sqrt(C)"})
    home = sides.home("fused_qkv", source, BY_COUNT)
    assert (ids(home), home.lines) == (["scale_sqrt_c", "dropout_before_softmax"], ())


def test_attempts_that_answer_alike_share_a_digest_however_they_are_written(sides: Sides) -> None:
    scores = "q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)"
    flipped = {"self.W_value(context)": "self.W_value(context.flip(1))"}
    by_einsum = {**flipped, scores: "torch.einsum('bhqd,bhkd->bhqk', q * self.head_dim**-0.5, k)"}
    written: list[dict[str, str]] = [
        {},
        flipped,
        by_einsum,
        {"self.W_key(context)": "self.W_key(context.flip(1))"},
    ]
    correct_digest, flipped_digest, einsum_digest, another = (
        sides.grade_attempt("cross_attention", changes).answers for changes in written
    )
    assert correct_digest == ""
    assert flipped_digest == einsum_digest != ""
    assert another not in ("", flipped_digest)


def test_a_function_that_needs_float32_is_not_blamed_on_another(sides: Sides) -> None:
    """The attempt is asked in float32 from then on; what others answered in float64 stays right."""
    weights = {
        "return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"
    }
    for result in sides.both_results("attention_scores", weights):
        assert [f.state for f in result.functions] == ["right", "right", "wrong", "waiting"]


LAYERS_IN_A_LIST = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in \
range(3))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T, k = x.shape[1], self.W_key(x)
        scores = (self.W_query(x) @ k.transpose(1, 2)).masked_fill(self.future[:T, :T], -torch.inf)
        return self.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)) @ self.W_value(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        sizes = d_in, d_out // num_heads, context_length, dropout, qkv_bias
        self.heads = [Head(*sizes) for _ in range(num_heads)]
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))
"""


def test_layers_in_a_plain_list_come_first_on_both_sides(sides: Sides) -> None:
    """No `.to` reaches them, so that dtypes and devices differ, too: that only follows."""
    for result in sides.both_results("weight_split", LAYERS_IN_A_LIST):
        assert ids(result)[0] == "params_not_registered"
        assert not {*ids(result)} & {"hard_coded_dtype", "hard_coded_device"}


@pytest.mark.parametrize(
    ("exercise", "changes", "function", "says"),
    [
        pytest.param(
            "causal_mask",
            {"mask_scores(scores, mask)": "mask_scores(scores, causal_mask)"},
            "causal_weights",
            "`causal_mask`, written on line {}, is not called there: write causal_mask(…).",
            id="a function that is not called",
        ),
        pytest.param(
            "attention_scores",
            {
                ("attend(q: torch.Tensor, k: torch.Tensor, v"): (
                    "attend(q: torch.Tensor, v: torch.Tensor, k"
                )
            },
            "attend",
            "written as attend(q, v, k), and called as attend(q, k, v)",
            id="a wrong order of arguments",
        ),
        pytest.param(
            "fused_qkv",
            {"if size not in sizes:": "if False:"},
            "gpt2_attention",
            "raised KeyError on … A refusal is expected here: a ValueError that says why",
            id="an exception of another type",
        ),
        pytest.param(
            "reshape_dance",
            {"if C % n_head != 0:": "assert (C % n_head == 0, 'does not divide')\n    if False:"},
            "split_heads",
            "The assert on line {} refuses nothing",
            id="an assert of a pair",
        ),
    ],
)
def test_a_function_is_told(
    sides: Sides, exercise: str, changes: dict[str, str], function: str, says: str
) -> None:
    (new,) = changes.values()
    lines = sides.source(exercise, changes).text.splitlines()
    line = next(
        number for number, line_text in enumerate(lines, 1) if new.split("\n")[0] in line_text
    )
    for result in sides.both_results(exercise, changes):
        assert all(
            phrase in evidence(result, function) for phrase in says.format(line).split(" … ")
        )


def test_sizes_in_an_exception_have_the_names_of_the_lesson(sides: Sides) -> None:
    home = sides.home("cross_attention", {"keep[:, None, None, :]": "keep[:, None, :, None]"})
    assert re.search(
        r"size of tensor a \((\d+)\).* Here \1 is T_k, \d+ is T_q\. Axes meet",
        home.functions[0].evidence,
    )
