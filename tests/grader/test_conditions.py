"""The preconditions of the real course give the same verdict for any hidden inputs."""

import runpy
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from manyheads.checks import CheckFailed, Condition
from manyheads.checks.hidden_check import Draw
from manyheads.checks.runner import Implementation, LocalRunner, namespace_of
from manyheads.judge.run_hidden_checks import expect_conditions
from tests.make import REPOSITORY

CONDITIONS = runpy.run_path(str(REPOSITORY / "grader" / "checks" / "_conditions.py"))
CAUSAL_WEIGHTS: Callable[..., Iterable[Condition]] = CONDITIONS["of_scores"]("causal_weights")
SEEDS = 300  # enough draws to meet rare inputs


def attempt_at(path: Path) -> Implementation:
    """Return the functions of a file, run in this process."""
    return Implementation(LocalRunner(namespace_of(path)))


@pytest.fixture(scope="module")
def causal_mask_reference() -> Implementation:
    (path,) = (REPOSITORY / "solutions").rglob("*_causal_mask.py")
    return attempt_at(path)


def test_a_softmax_of_negative_scores_meets_the_preconditions(
    causal_mask_reference: Implementation,
) -> None:
    path = REPOSITORY / "grader" / "wrong" / "causal_mask" / "softmax_of_negative_scores.py"
    attempt = attempt_at(path)
    for seed in range(SEEDS):
        expect_conditions(attempt, causal_mask_reference, Draw(seed), CAUSAL_WEIGHTS)


@pytest.mark.parametrize("seed", range(10))
def test_weights_that_ignore_the_scores_violate_a_precondition(
    causal_mask_reference: Implementation, tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "even_weights.py"
    path.write_text(
        "import torch\n\n\n"
        "def causal_weights(scores):\n"
        "    visible = torch.ones_like(scores).tril()\n"
        "    return visible / visible.sum(-1, keepdim=True)\n",
        encoding="utf-8",
    )
    with pytest.raises(CheckFailed, match="the scores decide nothing"):
        expect_conditions(attempt_at(path), causal_mask_reference, Draw(seed), CAUSAL_WEIGHTS)
