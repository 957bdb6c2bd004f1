"""The titles of misconceptions are true of all their mutants, as far as numbers can show it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from manyheads.checks.runner import namespace_of
from manyheads.course import load_course
from manyheads.diagnosis.bank import Bank, BuiltMutant, load_bank

# tokens, channels and heads of the input; seven tokens are more than one tile of three
T, WIDTH, HEADS = 7, 12, 3
Banks = Mapping[str, Bank]
AttentionCall = Callable[[dict[str, Any], torch.Tensor], torch.Tensor]


def call_loop(namespace: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    """Call mha_by_loop with a container whose layers are the same in every call."""
    torch.manual_seed(0)
    layers = {
        "qkv": nn.Linear(WIDTH, 3 * WIDTH, bias=False),
        "proj": nn.Linear(WIDTH, WIDTH, bias=False),
    }
    container = SimpleNamespace(**layers, n_head=HEADS, head_dim=WIDTH // HEADS)
    return namespace["mha_by_loop"](container, x)


def module_caller(name: str, *sizes: int) -> AttentionCall:
    """Return a function that calls a module of a class, with the same weights each time."""

    def call_module(namespace: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        reply = namespace[name](*sizes).eval()(x)
        return reply[0] if isinstance(reply, tuple) else reply

    return call_module


ATTENTION_CALLS: dict[str, AttentionCall] = {
    "causal_mask": lambda namespace, x: namespace["causal_weights"](x @ x.mT) @ x,
    "self_attention": module_caller("CausalAttention", WIDTH, WIDTH, 2 * T),
    "weight_split": module_caller("MultiHeadAttention", WIDTH, WIDTH, 2 * T, HEADS),
    "mha_by_loop": call_loop,
    "fused_qkv": module_caller("CausalSelfAttention", WIDTH, HEADS, 2 * T),
    "grouped_query_attention": module_caller("GroupedQueryAttention", WIDTH, HEADS, 1, 2 * T),
    "kv_cache": module_caller("CachedSelfAttention", WIDTH, HEADS, 2 * T),
    "sliding_window": lambda namespace, x: namespace["local_attention"](x, x, x, 3),
    "tiled_attention": lambda namespace, x: namespace["tiled_attention"](x, x, x, 3, 3)[0],
}


@pytest.fixture(scope="module")
def banks(repository: Path) -> dict[str, Bank]:
    """Return the bank of every exercise."""
    return {exercise.id: load_bank(exercise) for exercise in load_course(repository).exercises}


def mutants_of(bank: Bank, id_: str) -> list[BuiltMutant]:
    """Return the mutants of one misconception."""
    return [mutant for mutant in bank.mutants if mutant.id == id_]


def tokens_ahead(call: AttentionCall, namespace: dict[str, Any]) -> int:
    """Return the largest distance at which an edit of a later token changes an output."""
    x = torch.randn(1, T, WIDTH, generator=torch.Generator().manual_seed(1))
    original, farthest = call(namespace, x), 0
    for edited in range(T):
        changed = x.clone()
        changed[:, edited] += 1.0
        has_changed = (call(namespace, changed) - original).abs().amax((0, 2)) > 1e-6
        for token in range(edited):
            if has_changed[token]:
                farthest = max(farthest, edited - token)
    return farthest


@pytest.mark.parametrize("exercise", ATTENTION_CALLS)
def test_seeing_one_future_token_and_seeing_more_are_two_misconceptions(
    banks: Banks, exercise: str
) -> None:
    distances = {}
    for id_ in ("mask_peeks_one", "mask_peeks_ahead"):
        mutants = mutants_of(banks[exercise], id_)
        distances[id_] = {
            tokens_ahead(ATTENTION_CALLS[exercise], mutant.namespace) for mutant in mutants
        }
    # 0: the mask is wrong in a function that these outputs do not use
    assert distances["mask_peeks_one"] - {0} == {1}
    assert min(distances["mask_peeks_ahead"] - {0}) == 2


@pytest.mark.parametrize("exercise", ATTENTION_CALLS)
def test_a_mask_of_infinity_gives_nan_and_a_mask_of_a_high_number_does_not(
    banks: Banks, repository: Path, exercise: str
) -> None:
    (solution,) = [e.solution for e in load_course(repository).exercises if e.id == exercise]
    x = torch.randn(1, T, WIDTH, generator=torch.Generator().manual_seed(1))
    expected = ATTENTION_CALLS[exercise](namespace_of(solution), x)

    def wrong_answers(id_: str) -> list[torch.Tensor]:
        answers = [
            ATTENTION_CALLS[exercise](mutant.namespace, x)
            for mutant in mutants_of(banks[exercise], id_)
        ]
        return [answer for answer in answers if not torch.allclose(answer, expected, atol=1e-5)]

    infinite, high = wrong_answers("mask_plus_inf"), wrong_answers("mask_high_fill")
    assert infinite
    assert high
    assert all(answer.isnan().any() for answer in infinite)
    assert all(answer.isfinite().all() for answer in high)


RIGHT_SCALE = "/ math.sqrt(q.shape[-1])"  # an edit of one function may write it into another


def scale_of(mutant: BuiltMutant) -> str:
    """Return the wrong scale of a mutant: a name from the bank, or the text of an edit.

    The right scale is "sqrt_hd".
    """
    scales = (str(value) for value in mutant.faults.values() if value != "sqrt_hd")
    return " ".join(scales).replace(RIGHT_SCALE, "")


@pytest.mark.parametrize(
    ("id_", "takes_a_root"),
    [
        ("scale_sqrt_c", True),
        ("scale_c", False),
        ("scale_sqrt_heads", True),
        ("scale_heads", False),
        ("scale_sqrt_tokens", True),
        ("scale_tokens", False),
    ],
)
def test_a_title_says_took_no_root_only_if_its_mutants_take_none(
    banks: Banks, id_: str, takes_a_root: bool
) -> None:
    exercises = [name for name, bank in banks.items() if mutants_of(bank, id_)]
    assert exercises
    for name in exercises:
        assert ("took no root" in banks[name].texts[id_].title) != takes_a_root
        for mutant in mutants_of(banks[name], id_):
            scale = scale_of(mutant)
            assert ("sqrt" in scale or "** 0.5" in scale) == takes_a_root
