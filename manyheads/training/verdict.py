"""Compare an attempt's training curve with the reference's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .curve import Curve
from .recorded import Recorded

SAME = 0.005  # two runs that differ only by rounding stay closer than this at every step
ROUGHLY = 2.0  # times the recorded spread
ROUNDING = 2e-5  # the largest rounding difference of the first loss, before any training


@dataclass(frozen=True)
class TrainingVerdict:
    """`well`: whether nothing seems to be wrong. `sentence`: the explanation."""

    well: bool
    sentence: str


def verdict(yours: Curve, recorded: Recorded) -> TrainingVerdict:
    """Compare at the last step at which both were evaluated."""
    reference = recorded.curve
    if not recorded.draws_the_same:
        return _roughly(yours, recorded)
    begins_alike = abs(yours.losses[0] - reference.losses[0]) <= ROUNDING
    common = sorted(yours.held_out.keys() & reference.held_out.keys())
    if not common:
        if begins_alike:
            return TrainingVerdict(True, "Yours begins as the reference does; more steps would say more.")
        return TrainingVerdict(
            False, "Yours begins elsewhere than the reference, with the same weights: it computes something else."
        )
    step = common[-1]
    apart = yours.held_out[step] - reference.held_out[step]
    ahead = reference.recent(step) - yours.recent(step)
    spread = recorded.spread[step]
    if ahead > spread and apart > spread:
        return TrainingVerdict(False, _sees_ahead(yours, reference, step))
    if begins_alike:
        if abs(apart) <= SAME:
            return TrainingVerdict(True, "Yours learns as the reference does: the two curves are one.")
        return TrainingVerdict(
            False,
            f"Yours begins as the reference does and ends {_beside(apart)}: its answers are right, but it learns "
            "differently. Does every weight get its gradient, and keep what it learned?",
        )
    if abs(apart) <= spread:
        return TrainingVerdict(
            False,
            "Yours learns about as well as the reference, but it is not the same computation: the losses differ before "
            "anything is learned. Some mistakes cost nothing here; the check names them.",
        )
    return TrainingVerdict(False, f"Yours ends {_beside(apart)} and begins elsewhere, too: it computes something else.")


def _roughly(yours: Curve, recorded: Recorded) -> TrainingVerdict:
    """The verdict on a machine with other random numbers than the recording: only the end can be compared."""
    common = sorted(yours.held_out.keys() & recorded.curve.held_out.keys())
    if not common:
        return TrainingVerdict(True, "More steps would say more.")
    apart = yours.held_out[common[-1]] - recorded.curve.held_out[common[-1]]
    if abs(apart) <= ROUGHLY * recorded.spread[common[-1]]:
        return TrainingVerdict(
            True, "Yours learns about as well as the reference; torch draws other numbers here, so no more can be said."
        )
    return TrainingVerdict(False, f"Yours ends {_beside(apart)}, which is more than other random numbers would do.")


def _sees_ahead(yours: Curve, reference: Curve, step: int) -> str:
    return (
        f"Yours sees what it is to predict: while learning its loss is {yours.recent(step):.2f}, below the reference's "
        f"{reference.recent(step):.2f}, but in writing, where there is no future to look at, it is "
        f"{yours.held_out[step]:.2f}, above {reference.held_out[step]:.2f}."
    )


def _beside(apart: float) -> str:
    return f"{abs(apart):.2g} {'above' if apart > 0 else 'below'} it" if abs(apart) >= 0.01 else "a hair beside it"


def choices(loss: float) -> str:
    """A loss as a number of equally likely characters."""
    return f"{math.exp(loss):.1f}" if loss < 5 else f"{math.exp(min(loss, 20)):.0f}"
