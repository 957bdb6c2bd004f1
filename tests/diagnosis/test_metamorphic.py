"""A check of causality or independence asks which numbers an edit reaches, not what the numbers
are.
"""

import sys
import types
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.checks.hidden_check import Layer
from manyheads.checks.runner import LocalRecordingRunner
from manyheads.course import load_course
from manyheads.diagnosis import metamorphic_relations as relations
from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import check_attempt
from tests.make import REPOSITORY, edit_text

# What the reference answered, and what the attempt did; "" or False if the relation holds.
Pairs = list[tuple[Tensor, Tensor]]
Relation = Callable[[Pairs], str | bool]

BEFORE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
AFTER = torch.tensor([[1.0, 2.0], [3.0, 4.0], [7.0, 0.0]])  # an edit of the last token
PEEKS = torch.tensor([[1.0, 2.0], [3.5, 4.0], [7.0, 0.0]])
ALL, ALL_MOVED = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
DISTANCE = (BEFORE - AFTER).abs().max()
PATHS = [(BEFORE, BEFORE), (AFTER, AFTER)]  # of two paths that are right
CALM = torch.tensor([[[2.0, -1.0]]])  # an answer in eval mode

# The least and the largest of many copies' answers, the sizes, and which are dropped alone.
EXTREMES = torch.tensor([[[0.0, -3.0]], [[2.0, 0.0]], [[0.5, 0.25]], [[1.0, 1.0]]])
TOGETHER = EXTREMES * torch.tensor([1.0, 1.0, 1.0, 0.0])[:, None, None]
RESCALED = EXTREMES * torch.tensor([3.0, 3.0, 3.0, 1.0])[:, None, None]
SURVIVED = torch.stack([*EXTREMES[:2], EXTREMES[:2].abs().amax(0), EXTREMES[3]])

SCORES = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]], dtype=torch.float64)
HIDDEN = torch.tensor([[False, True, True], [False, False, True]])
WEIGHTS = SCORES.masked_fill(HIDDEN, -torch.inf).softmax(-1)
MASKED = SCORES.masked_fill(HIDDEN, -torch.inf)
FILLED = SCORES.masked_fill(HIDDEN, -7.3)


def extremes(calm: Tensor, factor: float) -> Tensor:
    """Return the least and the largest of what a dropout leaves of an answer in eval mode."""
    scaled = factor * calm[0]
    return torch.stack(
        [scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs(), torch.zeros_like(scaled)]
    )


def dropped(calm: Tensor, factor: float) -> Pairs:
    """Return an answer in eval mode, and the extremes of a dropout by which it is scaled."""
    return [(CALM, calm), (extremes(CALM, 4 / 3), extremes(calm, factor))]


# What a relation says of these pairs.
CASES: dict[Relation, dict[str, tuple[str | bool, Pairs]]] = {
    relations.violates_causality: {
        "right": ("", [(BEFORE, BEFORE), (AFTER, AFTER)]),
        "scaled": ("", [(BEFORE, BEFORE * 9), (AFTER, AFTER * 9)]),
        "peeks": (
            "{edit} changes 1 of the 5 numbers of the answer that should not depend on it",
            [(BEFORE, BEFORE * 9), (AFTER, PEEKS * 9)],
        ),
        "two calls that should give the same": (
            "{edit} changes all 6 numbers of the answer that should not depend on it",
            [(BEFORE, BEFORE), (BEFORE, BEFORE + 1)],
        ),
    },
    relations.misses_an_effect: {
        "right": ("", [(BEFORE, BEFORE), (AFTER, AFTER)]),
        "does not see": (
            "{edit} leaves numbers as they were that it should change",
            [(BEFORE, BEFORE), (AFTER, BEFORE)],
        ),
        "every number moves": ("", [(ALL, ALL), (ALL_MOVED, ALL + 1)]),
        "nothing moves at one index": (
            "{edit} leaves numbers as they were that it should change",
            [(ALL, ALL), (ALL_MOVED, ALL + torch.tensor([[0.0, 1.0]]))],
        ),
    },
    relations.zeros_missed: {
        "not 0": (
            "the number that should be 0 has another value",
            [(BEFORE, BEFORE), (AFTER, AFTER + torch.tensor([0.0, 0.3]))],
        ),
    },
    relations.parts_differ: {
        "scaled alike": ("", [(BEFORE, BEFORE * 2), (BEFORE[1], BEFORE[1] * 2)]),
        "scaled alone": (
            "a part of the input gives something else when it stands alone",
            [(BEFORE, BEFORE), (BEFORE[1], BEFORE[1] * 2)],
        ),
    },
    relations.difference_is_another: {
        "right": ("", [*PATHS, (DISTANCE, DISTANCE)]),
        "half of it": (
            "the number that it gives is not the largest absolute difference of the two answers",
            [*PATHS, (DISTANCE, DISTANCE / 2)],
        ),
        "nothing": (
            "the number that it gives is 0, and the two answers differ",
            [*PATHS, (DISTANCE, 0 * DISTANCE)],
        ),
        "signed": (
            "the number that it gives is below 0, as no absolute difference is",
            [*PATHS, (DISTANCE, -DISTANCE)],
        ),
        "the mean": (
            "the number that it gives is the mean of the absolute differences, not the largest of "
            "them",
            [*PATHS, (DISTANCE, (BEFORE - AFTER).abs().mean())],
        ),
        "of wrong answers": ("", [PATHS[0], (AFTER, PEEKS), (DISTANCE, DISTANCE / 2)]),
    },
    relations.dropout_differs: {
        "right": ("", dropped(CALM, 4 / 3)),
        "of other values": ("", dropped(-3 * CALM, 4 / 3)),
        "another rate": ("dropout", dropped(CALM, 2)),
        "nothing dropped": ("dropout", dropped(-3 * CALM, 1)),
        "no factor leads there, and other values": (
            "",
            [(CALM, 2 * CALM), (EXTREMES, 0 * EXTREMES)],
        ),
        "no factor leads there": ("dropout", [(CALM, CALM), (EXTREMES, 0 * EXTREMES)]),
    },
    relations.dropout_mask_differs: {
        "scaled": ("", [(EXTREMES, RESCALED)]),
        "none alone": ("never dropped, and they should be", [(EXTREMES, TOGETHER)]),
        "each alone": ("are dropped, and they should not be", [(TOGETHER, EXTREMES)]),
    },
    relations.survivors_differ: {
        "scaled": ("", [(EXTREMES, 3 * EXTREMES)]),
        "of another tensor": (
            "is it applied to the tensor that the docstring names?",
            [(EXTREMES, SURVIVED)],
        ),
    },
    relations.is_dropped_at_another_rate: {
        "another rate": (True, dropped(3 * CALM, 1.25)),
        "right": (False, dropped(3 * CALM, 4 / 3)),
        "twice": (False, dropped(3 * CALM, 16 / 9)),
        "what stays": (False, dropped(3 * CALM, 4)),
        "scaled down": (False, dropped(3 * CALM, 0.75)),
    },
    relations.leaks_a_share: {
        "a weak fill": (True, [(WEIGHTS, FILLED.softmax(-1))]),
        "a number added": (True, [(WEIGHTS, (SCORES - 7.3 * HIDDEN).softmax(-1))]),
        "right": (False, [(WEIGHTS, WEIGHTS)]),
        "another axis": (False, [(WEIGHTS, FILLED.softmax(-2))]),
        "another scale": (False, [(WEIGHTS, (2 * FILLED).softmax(-1))]),
        "added after": (False, [(WEIGHTS, WEIGHTS + 0.1 * HIDDEN)]),
        "another shape": (False, [(WEIGHTS, WEIGHTS[:, :2])]),
    },
    relations.fills_with_a_number: {
        "a number": (True, [(MASKED, FILLED)]),
        "right": (False, [(MASKED, MASKED)]),
        "what stood there": (False, [(MASKED, SCORES)]),
        "other numbers": (False, [(MASKED, 2 * FILLED)]),
        "another shape": (False, [(MASKED, FILLED[:, :2])]),
        "nothing is hidden": (False, [(SCORES, SCORES)]),
    },
}


@pytest.mark.parametrize(
    ("relation", "says", "pairs"),
    [
        pytest.param(relation, *case, id=f"{relation.__name__}: {title}")
        for relation, cases in CASES.items()
        for title, case in cases.items()
    ],
)
def test_a_relation(relation: Relation, says: str | bool, pairs: Pairs) -> None:
    message = relation(pairs)
    if says and isinstance(says, str):
        assert says in message
    else:
        assert message == says


@pytest.mark.parametrize(
    ("other", "related"),
    [
        pytest.param(AFTER, True, id="an edit"),
        pytest.param(BEFORE[1], True, id="a part"),
        pytest.param(AFTER + 10, False, id="nothing in common"),
        pytest.param(AFTER[:2], False, id="another shape"),
    ],
)
def test_answers_are_held_together_only_where_the_reference_relates_them(
    other: Tensor, related: bool
) -> None:
    assert relations.relation_applies(BEFORE, other) is related


def test_a_number_may_be_the_largest_difference_of_two_answers() -> None:
    assert relations.is_difference(BEFORE, AFTER, DISTANCE)
    assert not relations.is_difference(BEFORE, AFTER, DISTANCE + 1)
    # two paths that agree say nothing
    assert not relations.is_difference(BEFORE, BEFORE, DISTANCE * 0)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        pytest.param(("/ math.sqrt(self.head_dim)", ""), set(), id="not scaled"),
        pytest.param(("self.proj(y))", "y)"), set(), id="not projected"),
        pytest.param(
            ("scores.masked_fill(~self.visible[:T, :T], -math.inf)", "scores"),
            {"causal"},
            id="not masked",
        ),
        pytest.param(
            ("weights @ v", "weights @ v.flip(0)"),
            {"independent"},
            id="another sequence's values",
        ),
        pytest.param(
            ("self.proj(y))", "self.proj(y)[1:])"), {"causal", "independent"}, id="another shape"
        ),
    ],
)
def test_who_only_scales_wrongly_is_not_told_that_the_future_is_seen(
    monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], broken: set[str]
) -> None:
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == "fused_qkv")
    text = edit_text(exercise.solution.read_text(encoding="utf-8"), change)
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(text, "a.py", "exec", dont_inherit=True), vars(module))
    recording = read(exercise.fingerprints)
    causality = {check.id for check in recording.checks if check.layer == Layer.CAUSALITY}
    checks = check_attempt(recording, LocalRecordingRunner(vars(module))).checks
    failed = {check.id for check in checks if check.outcome != "passed"}
    assert causality & failed == broken
    assert failed & {"values", "heads"}
