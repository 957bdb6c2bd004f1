"""What others write, with one mistake: both sides give it the same name, or none where a name would be false."""

import re

import pytest

from manyheads.box.level import Box
from manyheads.course import Course
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.lines.find_lines import Bounds
from manyheads.result import ExerciseResult
from tests.diagnosis.both_sides import Sides

BY_COUNT = Bounds(seconds=60.0)  # a slow machine finds as much as a fast one


def ids(result: ExerciseResult) -> list[str]:
    return [diagnosed.id for diagnosed in result.diagnosis]


def evidence(result: ExerciseResult, function: str) -> str:
    return next(each.evidence for each in result.functions if each.name == function)


SWAPPED = {"self.num_heads, self.head_dim).transpose(1, 2)": "self.head_dim, self.num_heads).transpose(1, 2)"}
ON_THE_MODULE = {
    "past = 0 if cache is None else cache[0].shape[2]": "cache = getattr(self, 'kept', None)\n"
    "        past = 0 if cache is None or cache[0].shape[0] != B else cache[0].shape[2]",
    "if cache is not None:": "if past:",
    "query = torch.arange": "self.kept = (k.detach(), v.detach())\n        query = torch.arange",
}
NAMED = [
    pytest.param("attention_scores",
        {"attend(q: torch.Tensor, k: torch.Tensor, v": "attend(q: torch.Tensor, v: torch.Tensor, k"}, ["interface"],
        id="the arguments in another order"),
    pytest.param("cross_attention", {"keep[:, None, None, :]": "keep[:, None, :, None]"}, ["keep_on_queries"],
                 id="keep along the rows of the scores"),
    pytest.param("grouped_query_attention",
                 {"2 * n_layer * n_kv_head * head_dim * T  #": "2 * n_layer * n_head * (n_head // head_dim) * T  #"},
                 ["cache_bytes"], id="a count that is right where two sizes happen to fit"),
    pytest.param("kv_cache", ON_THE_MODULE, ["cache_shared"], id="keys and values kept on the module"),
    pytest.param("weight_split",
        {"scores.softmax(": "(scores * 0).masked_fill(self.future[:T, :T], float('-inf')).softmax("},
        ["scores_ignored"], id="weights that are the same whatever the scores are"),
    pytest.param("weight_split", SWAPPED, ["heads_and_width_swapped"], id="the count of heads taken for their width"),
    pytest.param("kv_cache", {"v = torch.cat([cache[1], v], dim=2)": "v = torch.cat([cache[0], v], dim=2)"},
                 ["values_wrong_source"], id="past keys as past values"),
    pytest.param("reshape_dance", {"if C % n_head != 0": "if C % n_head == 0"}, ["refuses_allowed"],
                 id="a refusal the wrong way round"),
    pytest.param("self_attention", {"T = x.shape[1]\n": "T = x.shape[1]\n        x = x.to('cuda')\n"},
                 ["hard_coded_device"], id="a device that this machine has not"),
    pytest.param("attention_scores",
        {"return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"}, ["hard_coded_dtype"],
        id="weights in float32 alone"),
    pytest.param("attention_scores", {"q @ k.transpose(-2, -1)": "q @ k.T", "x @ x.transpose(-2, -1)": "x @ x.T"},
        ["axes_turned"], id="`.T` of three axes"),
    pytest.param("grouped_query_attention", {"q @ k.transpose(-2, -1)": "q @ k"}, ["keys_not_transposed"],
        id="no transpose"),
    pytest.param("self_attention", {"nn.Dropout(dropout)": "nn.Dropout(dropout, inplace=True)"}, ["dropout_in_place"],
                 id="weights that are dropped in place"),
    pytest.param("mha_by_loop", {"    return mha.proj": "        return mha.proj"}, ["heads_not_joined"],
        id="a return inside the loop"),
    pytest.param("fused_qkv", {"scores = scores.masked_fill(": "scores.masked_fill(",
        "math.sqrt(self.head_dim)": "math.sqrt(C)", "self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)"},
        ["scale_sqrt_c", "mask_missing", "dropout_before_softmax"], id="three mistakes in one layer"),
    pytest.param("sliding_window", {"key > query - window)": "key >= query - window // 2)"}, ["window_halved"],
        id="half a window"),
    # An exception that many mistakes end in names none.
    pytest.param("causal_mask", {"mask_scores(scores, mask)": "mask_scores(scores, causal_mask)"}, [],
                 id="a function that is not called"),
    pytest.param("weight_split", {"B, T, _ = x.shape": "B, _, T = x.shape"}, [],
                 id="a number read off the wrong axis, which a guard refuses here and a view there"),
    pytest.param("weight_split", {"return self.out_proj(context)":
                 "return nn.functional.layer_norm(self.out_proj(context), (self.out_proj.out_features,))"}, [],
                 id="a norm without parameters of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "changes", "names"), NAMED)
def test_one_mistake_has_its_name_on_both_sides(sides: Sides, exercise: str, changes: dict[str, str], names: list[str]):
    assert [ids(result) for result in sides.told(exercise, changes)] == [names, names]


def test_a_line_that_mends_all_speaks_against_two_names(sides: Sides, course: Course, box: Box) -> None:
    """Queries meet values in place of keys: two mutants together give the same numbers, and one edit makes all right."""
    source = sides.source("cross_attention", {"q @ k.transpose": "q @ v.transpose"})
    judge = Judge(course, box, Settings(b"real code", exercises=("cross_attention",), bounds=BY_COUNT))
    assert [len(result.diagnosis) for result in sides.told("cross_attention", source)] == [2, 2]
    graded = judge.grade_attempt("somebody", sides.exercise("cross_attention"), source)
    for result in (graded, sides.home("cross_attention", source, BY_COUNT)):
        assert (ids(result), len(result.lines)) == ([], 1)


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
    written: list[dict[str, str]] = [{}, flipped, by_einsum, {"self.W_key(context)": "self.W_key(context.flip(1))"}]
    right, one, other, another = (sides.graded("cross_attention", changes).answers for changes in written)
    assert right == ""
    assert one == other != ""
    assert another not in ("", one)


def test_a_function_that_needs_float32_is_not_blamed_on_another(sides: Sides) -> None:
    """The attempt is asked in float32 from then on; what others answered in float64 stays right."""
    weights = {"return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"}
    for result in sides.told("attention_scores", weights):
        assert [f.state for f in result.functions] == ["right", "right", "wrong", "waiting"]


LAYERS_IN_A_LIST = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
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
    for result in sides.told("weight_split", LAYERS_IN_A_LIST):
        assert ids(result)[0] == "params_not_registered"
        assert not {*ids(result)} & {"hard_coded_dtype", "hard_coded_device"}


@pytest.mark.parametrize(("exercise", "changes", "function", "says"), [
    pytest.param("causal_mask", {"mask_scores(scores, mask)": "mask_scores(scores, causal_mask)"}, "causal_weights",
        "`causal_mask`, written on line {}, is not called there: write causal_mask(…).",
        id="a function that is not called"),
    pytest.param("attention_scores",
        {"attend(q: torch.Tensor, k: torch.Tensor, v": "attend(q: torch.Tensor, v: torch.Tensor, k"},
        "attend", "written as attend(q, v, k), and called as attend(q, k, v)", id="a wrong order of arguments"),
    pytest.param("fused_qkv", {"if size not in sizes:": "if False:"}, "gpt2_attention",
        "raised KeyError on … What is due here is a refusal: a ValueError that says why",
        id="an exception of another type"),
    pytest.param("reshape_dance", {"if C % n_head != 0:": "assert (C % n_head == 0, 'does not divide')\n    if False:"},
        "split_heads", "The assert on line {} refuses nothing", id="an assert of a pair"),
])  # fmt: skip
def test_a_function_is_told(sides: Sides, exercise: str, changes: dict[str, str], function: str, says: str) -> None:
    (new,) = changes.values()
    lines = sides.source(exercise, changes).source.splitlines()
    line = next(number for number, each in enumerate(lines, 1) if new.split("\n")[0] in each)
    for result in sides.told(exercise, changes):
        assert all(part in evidence(result, function) for part in says.format(line).split(" … "))


def test_sizes_in_an_exception_have_the_names_of_the_lesson(sides: Sides) -> None:
    home = sides.home("cross_attention", {"keep[:, None, None, :]": "keep[:, None, :, None]"})
    assert re.search(r"size of tensor a \((\d+)\).* Here \1 is T_k, \d+ is T_q\. Axes meet", home.functions[0].evidence)
