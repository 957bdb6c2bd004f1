"""What two curves say, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.student.recorded_training import Recorded, choices, random_sample, verdict
from manyheads.student.training_plan import Curve

REFERENCE = Curve((4.4, *(3.0 - i / 100 for i in range(99))), {50: 2.6, 100: 2.1})
RECORDED = Recorded(REFERENCE, {50: 0.02, 100: 0.04}, {}, "setup", drawn=random_sample())


def moved(first: float, learning: float, writing: float, steps: int = 100) -> Curve:
    """The reference's curve, moved by so much at the first step, in all others, and in writing."""
    first_loss, *others = REFERENCE.losses
    losses = (first_loss + first, *(loss + learning for loss in others))
    held_out = {step: loss + writing for step, loss in REFERENCE.held_out.items()}
    return Curve(losses, held_out).until(steps)


@pytest.mark.parametrize(
    ("yours", "well", "sentence"),
    [
        pytest.param(moved(1e-6, 1e-4, 1e-3), True, "Yours learns as the reference does: the two curves are one.", id="right"),
        pytest.param(moved(1e-6, 1e-4, 0, 60), True, "Yours learns as the reference does: the two curves are one.", id="right, stopped early"),
        pytest.param(moved(1e-6, 0, 0, 9), True, "Yours begins as the reference does; more steps would say more.", id="a few steps"),
        pytest.param(moved(0.1, 0, 0, 9), False, "Yours begins elsewhere than the reference, with the same weights: it computes something else.", id="a few wrong steps"),
        pytest.param(
            moved(0.1, 0.2, 0.21),
            False,
            "Yours ends 0.21 above it and begins elsewhere, too: it computes something else.",
            id="worse",
        ),
        pytest.param(
            moved(0.1, 0.01, 0.03),
            False,
            "Yours learns about as well as the reference, but it is not the same computation: the losses differ before "
            "anything is learned. Some mistakes cost nothing here; the check names them.",
            id="no worse than luck",
        ),
        pytest.param(
            moved(0, 0.2, 0.3),
            False,
            "Yours begins as the reference does and ends 0.3 above it: its answers are right, but it learns "
            "differently. Does every weight get its gradient, and keep what it learned?",
            id="right answers, wrong gradients",
        ),
        pytest.param(
            moved(-0.02, -1.5, 2.0),
            False,
            "Yours sees what it is to predict: while learning its loss is 0.77, below the reference's 2.27, but in "
            "writing, where there is no future to look at, it is 4.10, above 2.10.",
            id="sees the future",
        ),
    ],
)  # fmt: skip
def test_a_verdict_is_one_sentence(yours: Curve, well: bool, sentence: str) -> None:
    found = verdict(yours, RECORDED)
    assert found.sentence == sentence
    assert found.well is well


@pytest.mark.parametrize(
    ("yours", "well", "sentence"),
    [
        pytest.param(
            moved(0.1, 0.05, 0.05),
            True,
            "Yours learns about as well as the reference; torch draws other numbers here, so no more can be said.",
            id="a right one",
        ),
        pytest.param(
            moved(0.1, 0.2, 0.3),
            False,
            "Yours ends 0.3 above it, which is more than other random numbers would do.",
            id="a wrong one",
        ),
        pytest.param(moved(0.1, 0, 0, 9), True, "More steps would say more.", id="a few steps"),
    ],
)
def test_where_torch_draws_other_numbers_only_the_end_is_compared(yours: Curve, well: bool, sentence: str) -> None:
    elsewhere = replace(RECORDED, drawn=tuple(number + 1 for number in random_sample()))
    found = verdict(yours, elsewhere)
    assert (found.well, found.sentence) == (well, sentence)


def test_a_loss_is_a_number_of_choices() -> None:
    assert choices(0.0) == "1.0"
    assert choices(1.6094379) == "5.0"
    assert choices(6.0) == "403"
