"""Which wrong attempts hang in the gallery: they run, they train, and nothing tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from manyheads.checks.local import namespace_of
from manyheads.course import Course, Exercise, load_course
from manyheads.course.file import Trainable
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.bank import Namespace

from ..places import REPOSITORY

EXERCISE = "fused_qkv"
DROPOUT = 0.2  # where dropout is what it is about; 0 elsewhere
RIGHT, RIGHT_DROPOUT = "right", "right, dropout"


@dataclass(frozen=True)
class Entry:
    """A misconception by its id. knobs: which mutant of it; by default the bank's first."""

    id: str
    knobs: Mapping[str, object] = field(default_factory=dict)
    dropout: float = 0.0

    @property
    def right(self) -> str:
        """The right one that it is compared with."""
        return RIGHT_DROPOUT if self.dropout else RIGHT


RIGHT_ONES = (Entry(RIGHT), Entry(RIGHT_DROPOUT, dropout=DROPOUT))
WRONG_ONES = (
    Entry("wrong_view"),
    Entry("wrong_view_both"),
    Entry("merge_no_transpose"),
    Entry("heads_interleaved"),
    Entry("heads_averaged", {"merge": "mean_repeated"}),
    Entry("scale_sqrt_c"),
    Entry("scale_missing"),
    Entry("scale_no_sqrt"),
    Entry("softmax_query_axis"),
    Entry("softmax_wrong_axis", {"softmax": "square"}),
    Entry("mask_missing"),
    Entry("mask_peeks_one"),
    Entry("mask_zero_fill"),
    Entry("mask_weak_fill"),
    Entry("mask_after_softmax"),
    Entry("proj_missing"),
    Entry("qkv_order"),
    Entry("gradient_cut", {"cut_gradient": "qk"}),
    Entry("params_not_registered"),
    Entry("dropout_always_on", dropout=DROPOUT),
    Entry("dropout_missing", dropout=DROPOUT),
    Entry("dropout_before_softmax", {"dropout": "scores_before_mask"}, DROPOUT),
)


@cache
def place() -> tuple[Course, Exercise]:
    """The course of this repository and the exercise that is measured."""
    course = load_course(REPOSITORY)
    return next((course, e) for e in course.exercises if e.id == EXERCISE)


def trainable() -> Trainable:
    """The module of that exercise that is trained."""
    found = place()[1].train
    assert found is not None
    return found


def namespace(entry: Entry) -> Namespace:
    """Its names, as trusted code: the reference's, or a mutant's."""
    _, exercise = place()
    if entry in RIGHT_ONES:
        return namespace_of(exercise.solution)
    bank = load_bank(exercise)
    if entry.knobs:
        assert bank.make is not None
        return bank.make(**entry.knobs)
    return next(mutant.namespace for mutant in bank.mutants if mutant.id == entry.id)


def title(entry: Entry) -> str:
    """The sentence that the grader says."""
    _, exercise = place()
    return load_bank(exercise).texts[entry.id].title
