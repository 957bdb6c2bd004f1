"""A text with a cache beside one without: what is rounding, and what is a wrong cache."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from manyheads.student.own_training import KeptFacts, keep, kept
from manyheads.student.recorded_training import Decoded, compare

WHOLE = Decoded(torch.tensor([3, 1, 2, 0]), torch.arange(16, dtype=torch.float64).view(4, 4), (5.0, 6.0, 7.0, 9.0))


def changed(position: int, by: float, ids: tuple[int, ...] = (3, 1, 2, 0)) -> Decoded:
    logits = WHOLE.logits.clone()
    logits[position, 2] += by
    return Decoded(torch.tensor(ids), logits, (1.0, 1.0, 2.0, 1.0))


def test_rounding_is_said_to_be_rounding() -> None:
    found = compare(changed(2, 3e-6), WHOLE)
    assert found.well
    assert found.sentence == "The same text without a cache: the logits differ by at most 3e-06, which is rounding."


@pytest.mark.parametrize("by", [0.5, -0.5, math.nan])
def test_a_wrong_cache_is_named_by_its_first_character(by: float) -> None:
    found = compare(changed(1, by), WHOLE)
    assert not found.well
    assert found.sentence.startswith("Your cache changes what the model says: at character 2 of its text")


def test_after_the_texts_part_nothing_is_compared() -> None:
    """There the two have read another text, and a difference says nothing."""
    found = compare(changed(3, 5.0, ids=(3, 0, 2, 0)), WHOLE)
    assert found.well
    assert "at character 2 chose another one of equal chance" in found.sentence


def test_times_are_medians_of_all_tokens_and_of_the_last_ones() -> None:
    assert (WHOLE.time, WHOLE.time_at_end) == (6.5, 9.0)


def test_what_was_kept_is_read_again_for_the_same_training_alone(tmp_path: Path) -> None:
    path, facts = tmp_path / "plots" / "weights.safetensors", KeptFacts("setup", "code", 600)
    assert kept(path, "setup") is None
    keep(path, torch.arange(5.0), facts)
    found = kept(path, "setup")
    assert found is not None
    assert torch.equal(found[0], torch.arange(5.0))
    assert found[1] == facts
    assert kept(path, "another") is None


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_file_that_is_broken_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    assert kept(path, "setup") is None
