"""At the real course: every function has its own verdict, and a misconception stands where it was found."""

import pytest

from manyheads.result import ExerciseResult
from tests.diagnosis.both_sides import Sides

SCORES, WEIGHTS = "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])", "return torch.softmax(scores, dim=-1)"
ATTEND = "return attention_weights(attention_scores(q, k)) @ v"
SIMPLE = "weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)\n    return weights @ x"
STUB = "raise NotImplementedError"


def states(result: ExerciseResult) -> dict[str, str]:
    return {f.name: f"{f.state} {f.waits_for}".strip() for f in result.functions}


def places(result: ExerciseResult) -> set[tuple[str, str]]:
    return {(d.id, name) for d in result.diagnosis for name in (d.function, *d.also_in) if name}


@pytest.mark.parametrize(("exercise", "changes", "told", "found"), [
    pytest.param("attention_scores", {SCORES: "return q @ k.transpose(-2, -1)", WEIGHTS: STUB},
        ["right", "wrong", "unwritten", "waiting attention_scores"],
        {("scale_missing", "attention_scores")}, id="a mistake, a stub, and what waits for both"),
    pytest.param("attention_scores", {SCORES: "return q @ k.transpose(-2, -1)", WEIGHTS: "return scores.softmax(-2)"},
        ["right", "wrong", "wrong", "waiting attention_scores"],
        {("scale_missing", "attention_scores"), ("softmax_query_axis", "attention_weights")},
        id="two mistakes in two functions"),
    pytest.param("attention_scores", {ATTEND: "return attention_weights(attention_scores(q, k)) @ k"},
        ["right", "right", "right", "wrong"], {("values_wrong_source", "attend")}, id="the last function alone"),
    pytest.param("attention_scores", {SIMPLE: STUB},
        ["unwritten", "right", "right", "right"], set(), id="one stub before three that are right"),
    pytest.param("attention_scores", {"def attend(": "def attends("},
        ["right", "right", "right", "undefined"], {("interface", "attend")}, id="a name that is renamed"),
    pytest.param("reshape_dance", {"return y.transpose(1, 2).contiguous()": "return y"},
        ["right", "wrong"], {("merge_no_transpose", "merge_heads")}, id="a merge after a right split"),
    pytest.param("reshape_dance", {"return x.transpose(1, 2)": "return x.float().transpose(1, 2)",
            "return y.transpose(1, 2).contiguous()": "return y.float().transpose(1, 2).contiguous()"},
        ["wrong", "wrong"], {("hard_coded_dtype", "split_heads"), ("hard_coded_dtype", "merge_heads")},
        id="one mistake in two functions, which one check asks"),
    pytest.param("fused_qkv", {"(1280, 20)": "(1280, 10)", "math.sqrt(self.head_dim)": "math.sqrt(C)"},
        ["wrong", "wrong"], {("scale_sqrt_c", "CausalSelfAttention"), ("gpt2_sizes", "gpt2_attention")},
        id="two mistakes, and a check that compares the two functions"),
    pytest.param("causal_mask", {"device=device).tril()": "device=device).tril(-1)"},
        ["wrong", "so_far causal_mask", "waiting causal_mask"], {("mask_excludes_self", "causal_mask")},
        id="a mistake that another function uses"),
    pytest.param("fused_qkv", {"self.resid_dropout(self.proj(y))": "self.proj(y)", "if size not in sizes:": "if False:"},
        ["wrong", "wrong"], {("dropout_output_missing", "CausalSelfAttention")},
        id="a factory that raises before it makes what is wrong"),
    pytest.param("tiled_attention", {"return torch.cat(parts, dim=-1)": "return torch.cat(parts, dim=-1) * math.nan"},
        ["wrong", "right"], set(), id="NaN from the first of two that a check asks"),
])  # fmt: skip
def test_each_function_has_its_verdict_when_graded_and_at_home(sides: Sides, exercise, changes, told, found):
    graded, at_home = sides.told(exercise, changes)
    assert list(states(graded).values()) == told
    assert states(at_home) == states(graded)
    assert places(at_home) == places(graded) == found
    assert not sides.faults(exercise)


def test_a_factory_whose_sizes_the_class_refuses_is_wrong_and_not_the_class(sides: Sides) -> None:
    graded = sides.graded("fused_qkv", {"(1024, 16)": "(1024, 24)", "if size not in sizes:": "if False:"})
    assert list(states(graded).values()) == ["right", "wrong"]
    assert places(graded) == {("gpt2_sizes", "gpt2_attention")}


def test_points_at_home_are_out_of_the_same_total(sides: Sides) -> None:
    result = sides.home("mha_by_loop", {})
    assert (result.score, result.unseen, result.max_score, result.is_done) == (3.75, 0.25, 4, True)
