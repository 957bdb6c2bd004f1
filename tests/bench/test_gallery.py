"""The gallery trains each mistake and the correct attention from the same initial weights."""

import pytest

from bench.gallery import (
    OTHER_RIGHT,
    RIGHT,
    WRONG_ENTRIES,
    Entry,
    Outcome,
    exercise,
    table,
    train,
)
from manyheads.diagnosis import load_bank
from tests.make import REPOSITORY

NO_MASK = Entry("mask_missing")


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((1.7, 1.8), "**+0.25** (+0.20 to +0.30)"),
        ((1.7, 1.49), "nothing measurable (−0.01 to +0.20)"),
        ((1.51, 1.52), "nothing measurable (+0.01 to +0.02)"),
    ],
)
def test_a_difference_counts_only_if_all_seeds_show_more_than_chance(losses, expected):
    rights = {RIGHT.id: Outcome(1.4, 1.5, ""), OTHER_RIGHT.id: Outcome(1.4, 1.52, "")}
    seeds = [{**rights, NO_MASK.id: Outcome(1.0, loss, "", 2.0)} for loss in losses]
    assert f"{expected} | 2.00 |" in [*table([NO_MASK], seeds)][-1]


def test_the_gallery_page_has_a_row_for_each_mistake():
    page = (REPOSITORY / "docs" / "gallery.md").read_text(encoding="utf-8")
    texts = load_bank(exercise()).texts
    for entry in WRONG_ENTRIES:
        assert f"\n| {texts[entry.id].title} " in page


def test_each_mistake_starts_with_the_weights_of_the_correct_attention(monkeypatch):
    monkeypatch.setattr("bench.gallery.WINDOWS", 16)
    monkeypatch.setattr("bench.gallery.CHARACTERS", 9)
    trained, learned = train(RIGHT, 0, 8)
    start, _ = train(RIGHT, 0, 1)
    equal, unregistered, no_mask = (
        train(Entry(id_), 0, 1, learned)[0]
        for id_ in ("delegated", "params_not_registered", NO_MASK.id)
    )
    assert trained.writing < start.writing
    assert equal.transplanted == pytest.approx(trained.writing, abs=1e-4)
    assert equal.learning == pytest.approx(start.learning, abs=1e-5)
    assert unregistered.learning == pytest.approx(start.learning, abs=1e-5)
    assert unregistered.transplanted is None
    assert no_mask.learning != pytest.approx(start.learning, abs=1e-3)
