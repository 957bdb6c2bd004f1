"""A mask's fill that is not low enough is named on a student's machine whatever the number is, and wherever it is written."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import checked, exercise

MASKED = """import torch

def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()

def mask_scores(scores, mask):
    return {given}

def causal_weights(scores):
    mask = causal_mask(scores.shape[-1], scores.device)
    return ({own}).softmax(-1)
"""
HIDDEN = "scores.masked_fill(~mask, -torch.inf)"


@pytest.mark.parametrize("fill", ["scores.masked_fill(~mask, -5.55)", "scores + ~mask * -27.3"])
@pytest.mark.parametrize("places", [
    pytest.param(("given",), id="in mask_scores alone"),
    pytest.param(("own",), id="in causal_weights alone"),
    pytest.param(("given", "own"), id="in both"),
])  # fmt: skip
def test_any_number_is_a_weak_fill(monkeypatch: pytest.MonkeyPatch, fill: str, places: tuple[str, ...]) -> None:
    lines = {"given": HIDDEN, "own": HIDDEN} | dict.fromkeys(places, fill)
    result = checked(exercise("causal_mask"), MASKED.format(**lines), monkeypatch)
    assert [each.id for each in result.diagnosis] == ["mask_weak_fill"]
