"""What a title says is true of every mutant that stands under it, where numbers can show it."""

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
Ask = Callable[[dict[str, Any], torch.Tensor], torch.Tensor]


def ask_loop(names: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    """Ask mha_by_loop with a container whose layers are the same in every call."""
    torch.manual_seed(0)
    layers = {
        "qkv": nn.Linear(WIDTH, 3 * WIDTH, bias=False),
        "proj": nn.Linear(WIDTH, WIDTH, bias=False),
    }
    container = SimpleNamespace(**layers, n_head=HEADS, head_dim=WIDTH // HEADS)
    return names["mha_by_loop"](container, x)


def ask_module(name: str, *sizes: int) -> Ask:
    """Return what asks a module of this class, made with these sizes and always the same
    weights.
    """

    def ask(names: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        reply = names[name](*sizes).eval()(x)
        return reply[0] if isinstance(reply, tuple) else reply

    return ask


ASKS: dict[str, Ask] = {
    "causal_mask": lambda names, x: names["causal_weights"](x @ x.mT) @ x,
    "self_attention": ask_module("CausalAttention", WIDTH, WIDTH, 2 * T),
    "weight_split": ask_module("MultiHeadAttention", WIDTH, WIDTH, 2 * T, HEADS),
    "mha_by_loop": ask_loop,
    "fused_qkv": ask_module("CausalSelfAttention", WIDTH, HEADS, 2 * T),
    "grouped_query_attention": ask_module("GroupedQueryAttention", WIDTH, HEADS, 1, 2 * T),
    "kv_cache": ask_module("CachedSelfAttention", WIDTH, HEADS, 2 * T),
    "sliding_window": lambda names, x: names["local_attention"](x, x, x, 3),
    "tiled_attention": lambda names, x: names["tiled_attention"](x, x, x, 3, 3)[0],
}


@pytest.fixture(scope="module")
def banks(repository: Path) -> dict[str, Bank]:
    """Return the bank of every exercise."""
    return {exercise.id: load_bank(exercise) for exercise in load_course(repository).exercises}


def mutants_of(bank: Bank, id_: str) -> list[BuiltMutant]:
    """Return the mutants of one misconception."""
    return [mutant for mutant in bank.mutants if mutant.id == id_]


def tokens_ahead(ask: Ask, names: dict[str, Any]) -> int:
    """Return how far ahead of itself some token sees: the largest distance at which an edit moves
    an answer.
    """
    x = torch.randn(1, T, WIDTH, generator=torch.Generator().manual_seed(1))
    original, farthest = ask(names, x), 0
    for edited in range(T):
        changed = x.clone()
        changed[:, edited] += 1.0
        moved = (ask(names, changed) - original).abs().amax((0, 2)) > 1e-6
        for token in range(edited):
            if moved[token]:
                farthest = max(farthest, edited - token)
    return farthest


@pytest.mark.parametrize("exercise", ASKS)
def test_one_future_token_is_one_and_more_are_another_mistake(banks: Banks, exercise: str) -> None:
    distances = {}
    for id_ in ("mask_peeks_one", "mask_peeks_ahead"):
        mutants = mutants_of(banks[exercise], id_)
        distances[id_] = {tokens_ahead(ASKS[exercise], mutant.namespace) for mutant in mutants}
    # A mutant that has the mask wrong in a function that the answers do not use sees nothing ahead.
    assert distances["mask_peeks_one"] - {0} == {1}
    assert min(distances["mask_peeks_ahead"] - {0}) == 2


@pytest.mark.parametrize("exercise", ASKS)
def test_infinity_gives_nan_and_a_high_number_does_not(
    banks: Banks, repository: Path, exercise: str
) -> None:
    (solution,) = [e.solution for e in load_course(repository).exercises if e.id == exercise]
    x = torch.randn(1, T, WIDTH, generator=torch.Generator().manual_seed(1))
    expected = ASKS[exercise](namespace_of(solution), x)

    def wrong_answers(id_: str) -> list[torch.Tensor]:
        answers = [
            ASKS[exercise](mutant.namespace, x) for mutant in mutants_of(banks[exercise], id_)
        ]
        return [answer for answer in answers if not torch.allclose(answer, expected, atol=1e-5)]

    infinite, high = wrong_answers("mask_plus_inf"), wrong_answers("mask_high_fill")
    assert infinite
    assert high
    assert all(answer.isnan().any() for answer in infinite)
    assert all(answer.isfinite().all() for answer in high)


RIGHT_SCALE = "/ math.sqrt(q.shape[-1])"  # an edit of one function may write it into another


def scale_of(mutant: BuiltMutant) -> str:
    """Return the scale in the mutant's change: a name of the bank's scales, or the text of an edit.
    "sqrt_hd" is right.
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
def test_a_title_that_speaks_of_a_root_has_mutants_that_take_one(
    banks: Banks, id_: str, takes_a_root: bool
) -> None:
    exercises = [name for name, bank in banks.items() if mutants_of(bank, id_)]
    assert exercises
    for name in exercises:
        assert ("took no root" in banks[name].texts[id_].title) != takes_a_root
        for mutant in mutants_of(banks[name], id_):
            scale = scale_of(mutant)
            assert ("sqrt" in scale or "** 0.5" in scale) == takes_a_root
