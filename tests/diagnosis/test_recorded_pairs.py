"""Two mistakes at once are both named on a student's machine, where no mistake alone explains the answers."""

from __future__ import annotations

import pytest

from manyheads.checks.implementation import LocalRunner
from manyheads.diagnosis.bank import load_bank
from manyheads.diagnosis.pair_answers import brief
from manyheads.diagnosis.recording_file import read
from tests.diagnosis.told_at_home import COURSE, RIGHT, checked, exercise
from tests.make import edited

QUERIES = ("softmax(-1)", "softmax(-2)")
MERGED = ("y.transpose(1, 2).flatten(2)", "y.reshape(len(x), T, -1)")
UNSCALED = (" / math.sqrt(q.shape[-1])", "")
SQUASHED = (" @ v", " @ v.tanh()")

MADE_ANEW = """import torch
from torch import nn

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.sizes, self.context, self.drop = (d_in, d_out, qkv_bias), context_length, nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context:
            raise ValueError(f"{T}, {self.context}")
        self.W_query, self.W_key, self.W_value = (nn.Linear(*self.sizes) for _ in range(3))
        scores = self.W_query(x) @ self.W_key(x).mT / self.sizes[1] ** 0.5
        future = torch.ones(T, T, device=x.device).triu(1) > 0
        return self.drop(scores.masked_fill(future, -torch.inf).softmax(-1)) @ self.W_value(x)
"""


@pytest.mark.parametrize(("edits", "named"), [
    pytest.param([QUERIES, MERGED], {"softmax_query_axis", "merge_no_transpose"}, id="both change the same numbers"),
    pytest.param([UNSCALED, MERGED], {"scale_missing", "merge_no_transpose"}, id="one that single heads show alone"),
    pytest.param([QUERIES, SQUASHED], set(), id="one that nobody listed"),
])  # fmt: skip
def test_two_mistakes_are_both_named(
    monkeypatch: pytest.MonkeyPatch, edits: list[tuple[str, str]], named: set[str]
) -> None:
    found = checked(exercise("weight_split"), edited(RIGHT, *edits), monkeypatch).diagnosis
    assert {each.id for each in found} == named


@pytest.mark.parametrize(("other", "named"), [
    pytest.param(UNSCALED, ["scale_missing", "context_unchecked"], id="scores that are not scaled"),
    pytest.param(SQUASHED, [], id="a mistake that nobody listed"),
])  # fmt: skip
def test_beside_a_context_that_nobody_checks_another_mistake_is_named(
    monkeypatch: pytest.MonkeyPatch, other: tuple[str, str], named: list[str]
) -> None:
    source = edited(RIGHT, ("if T > self.context:", "if False:"), other)
    assert [each.id for each in checked(exercise("weight_split"), source, monkeypatch).diagnosis] == named


def test_one_that_changes_numbers_and_one_that_changes_its_argument_are_both_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = exercise("causal_mask")
    right = mask.solution.read_text(encoding="utf-8")
    source = edited(right, (".tril()", ".triu()"), ("masked_fill(~mask", "masked_fill_(~mask"))
    found = checked(mask, source, monkeypatch).diagnosis
    assert {each.id for each in found} == {"mask_reversed", "input_mutated"}


@pytest.mark.parametrize(("edits", "named"), [
    pytest.param([("torch.arange(past, past + T, ", "torch.arange(T, "), ("math.sqrt(self.head_dim)", "math.sqrt(C)")],
        {"cache_mask_top_left", "scale_sqrt_c"}, id="one that shows from the second chunk on"),
    pytest.param([("weights = scores.masked_fill(key > query, -math.inf)", "weights = scores"),
        ("y = y.transpose(1, 2)", "y = y")], {"mask_missing", "merge_no_transpose"}, id="both show in each chunk"),
])  # fmt: skip
def test_of_chunks_both_mistakes_are_named_though_the_first_chunk_shows_one(
    monkeypatch: pytest.MonkeyPatch, edits: list[tuple[str, str]], named: set[str]
) -> None:
    cached = exercise("kv_cache")
    source = cached.solution.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    found = checked(cached, source, monkeypatch).diagnosis
    assert {each.id for each in found} == named


def test_what_one_mistake_answers_is_no_evidence_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    # Dropout that is paid for in eval mode is nobody's; without dropout the scores are merely not scaled.
    paid = (" @ v", " @ (v if self.training else (1 - self.p) * v)")
    found = checked(exercise("weight_split"), edited(RIGHT, UNSCALED, paid), monkeypatch)
    assert [each.id for each in found.diagnosis] == ["scale_missing"]


def test_weights_of_its_own_are_no_evidence_of_two_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(exercise("self_attention"), MADE_ANEW, monkeypatch)
    assert found.score < found.max_score
    assert {each.id for each in found.diagnosis} <= {"params_not_registered"}


def test_an_answer_that_begins_right_is_no_evidence_of_two_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled = exercise("tiled_attention")
    source = (COURSE.root / "grader/wrong/tiled_attention/lse_is_maximum.py").read_text(encoding="utf-8")
    found = checked(tiled, source, monkeypatch)
    assert found.score < found.max_score
    assert found.diagnosis == ()


@pytest.mark.parametrize(("id_", "wrong"), [
    pytest.param("grouped_query_attention", "distance_bias", id="where all answers are near the reference's"),
    pytest.param("self_attention", "dropout_on_values", id="where one token alone says as little"),
    pytest.param("weight_split", "dropout_on_queries", id="where one token says nothing"),
    pytest.param("weight_split", "dropout_on_values", id="where a part of the only head is left"),
])  # fmt: skip
def test_what_no_misconception_describes_is_seen_and_has_no_name(
    monkeypatch: pytest.MonkeyPatch, id_: str, wrong: str
) -> None:
    source = (COURSE.root / f"grader/wrong/{id_}/{wrong}.py").read_text(encoding="utf-8")
    found = checked(exercise(id_), source, monkeypatch)
    assert any(each.outcome != "passed" for each in found.checks)
    assert found.diagnosis == ()


def test_what_is_recorded_of_pairs_is_what_both_faults_together_answer() -> None:
    loop = exercise("mha_by_loop")
    recorded, bank = read(loop.fingerprints), load_bank(loop)
    pairs, tried = recorded.pairs.at(recorded.pairs.answers.numbers.abs().sum(1) > 0), 0
    for row in range(0, len(pairs.first), len(pairs.first) // 40):
        first, second, call = (int(each[row]) for each in (pairs.first, pairs.second, pairs.probe))
        assert (bank.mutants[first].id, bank.mutants[second].id) == tuple(
            recorded.mutants[m].id for m in (first, second)
        )
        together = bank.combine(bank.mutants[first], bank.mutants[second])
        if together is not None:
            reply = LocalRunner(together, only_values=True).execute(recorded.calls[call])
            tried += 1
            assert pairs.answers.at([row]).agree_with(brief(reply)).item()
    assert tried > 20
