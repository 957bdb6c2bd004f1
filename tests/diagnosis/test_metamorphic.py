"""Metamorphic relations compare two or more replies of one attempt instead of expected numbers.

For example: an edit of the last token must not change the outputs of earlier tokens.
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

# the output of the reference and the output of the attempt, for each call
Pairs = list[tuple[Tensor, Tensor]]
# returns a message about the violation, or whether it is violated; "" or False if it holds
Relation = Callable[[Pairs], str | bool]

BEFORE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
AFTER = torch.tensor([[1.0, 2.0], [3.0, 4.0], [7.0, 0.0]])  # an edit of the last token
# the second token changed with the last one: it sees the future
PEEKS = torch.tensor([[1.0, 2.0], [3.5, 4.0], [7.0, 0.0]])
# two outputs of the reference that differ in every number
ALL, ALL_MOVED = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
DISTANCE = (BEFORE - AFTER).abs().max()
PATHS = [(BEFORE, BEFORE), (AFTER, AFTER)]  # two paths, both as the reference
IN_EVAL = torch.tensor([[[2.0, -1.0]]])  # an output in eval mode

# Of the outputs for many copies of one input: minimum, maximum, absolute values, and 1 where a
# number is dropped alone.
EXTREMES = torch.tensor([[[0.0, -3.0]], [[2.0, 0.0]], [[0.5, 0.25]], [[1.0, 1.0]]])
TOGETHER = EXTREMES * torch.tensor([1.0, 1.0, 1.0, 0.0])[:, None, None]
RESCALED = EXTREMES * torch.tensor([3.0, 3.0, 3.0, 1.0])[:, None, None]
SURVIVED = torch.stack([*EXTREMES[:2], EXTREMES[:2].abs().amax(0), EXTREMES[3]])

SCORES = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]], dtype=torch.float64)
HIDDEN = torch.tensor([[False, True, True], [False, False, True]])
WEIGHTS = SCORES.masked_fill(HIDDEN, -torch.inf).softmax(-1)
MASKED = SCORES.masked_fill(HIDDEN, -torch.inf)
FILLED = SCORES.masked_fill(HIDDEN, -7.3)


def extremes(in_eval: Tensor, factor: float) -> Tensor:
    """Return the extremes after dropout of this output in eval mode; factor: scale of survivors."""
    scaled = factor * in_eval[0]
    return torch.stack(
        [scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs(), torch.zeros_like(scaled)]
    )


def dropped(in_eval: Tensor, factor: float) -> Pairs:
    """Return the attempt's output in eval mode and its extremes after dropout, with the reference.

    The reference drops a quarter, so that it scales the survivors by 4 / 3.
    """
    return [(IN_EVAL, in_eval), (extremes(IN_EVAL, 4 / 3), extremes(in_eval, factor))]


# for each relation and case: the expected result, and the pairs
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
        "every number changes": ("", [(ALL, ALL), (ALL_MOVED, ALL + 1)]),
        "nothing changes at one index": (
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
        "both scaled": ("", [(BEFORE, BEFORE * 2), (BEFORE[1], BEFORE[1] * 2)]),
        "only the part is scaled": (
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
        "one of the answers is wrong": ("", [PATHS[0], (AFTER, PEEKS), (DISTANCE, DISTANCE / 2)]),
    },
    relations.dropout_differs: {
        "right": ("", dropped(IN_EVAL, 4 / 3)),
        "other values": ("", dropped(-3 * IN_EVAL, 4 / 3)),
        "another rate": ("dropout", dropped(IN_EVAL, 2)),
        "nothing dropped": ("dropout", dropped(-3 * IN_EVAL, 1)),
        "no factor leads there, and other values": (
            "",
            [(IN_EVAL, 2 * IN_EVAL), (EXTREMES, 0 * EXTREMES)],
        ),
        "no factor leads there": ("dropout", [(IN_EVAL, IN_EVAL), (EXTREMES, 0 * EXTREMES)]),
    },
    relations.dropout_mask_differs: {
        "scaled": ("", [(EXTREMES, RESCALED)]),
        "whole tokens dropped": ("never dropped, and they should be", [(EXTREMES, TOGETHER)]),
        "single numbers dropped": ("are dropped, and they should not be", [(TOGETHER, EXTREMES)]),
    },
    relations.survivors_differ: {
        "scaled": ("", [(EXTREMES, 3 * EXTREMES)]),
        "dropout of another tensor": (
            "is it applied to the tensor that the docstring names?",
            [(EXTREMES, SURVIVED)],
        ),
    },
    relations.is_dropped_at_another_rate: {
        "another rate": (True, dropped(3 * IN_EVAL, 1.25)),
        "right": (False, dropped(3 * IN_EVAL, 4 / 3)),
        "twice": (False, dropped(3 * IN_EVAL, 16 / 9)),
        "keep and drop rate exchanged": (False, dropped(3 * IN_EVAL, 4)),
        "scaled down": (False, dropped(3 * IN_EVAL, 0.75)),
    },
    relations.leaks_a_share: {
        "a weak fill": (True, [(WEIGHTS, FILLED.softmax(-1))]),
        "a number added": (True, [(WEIGHTS, (SCORES - 7.3 * HIDDEN).softmax(-1))]),
        "right": (False, [(WEIGHTS, WEIGHTS)]),
        "another axis": (False, [(WEIGHTS, FILLED.softmax(-2))]),
        "another scale": (False, [(WEIGHTS, (2 * FILLED).softmax(-1))]),
        "added after the softmax": (False, [(WEIGHTS, WEIGHTS + 0.1 * HIDDEN)]),
        "another shape": (False, [(WEIGHTS, WEIGHTS[:, :2])]),
    },
    relations.fills_with_a_number: {
        "a number": (True, [(MASKED, FILLED)]),
        "right": (False, [(MASKED, MASKED)]),
        "hidden scores unchanged": (False, [(MASKED, SCORES)]),
        "other numbers": (False, [(MASKED, 2 * FILLED)]),
        "another shape": (False, [(MASKED, FILLED[:, :2])]),
        "nothing is hidden": (False, [(SCORES, SCORES)]),
    },
}


@pytest.mark.parametrize(
    ("relation", "expected", "pairs"),
    [
        pytest.param(relation, *case, id=f"{relation.__name__}: {title}")
        for relation, cases in CASES.items()
        for title, case in cases.items()
    ],
)
def test_a_relation_finds_its_violation(
    relation: Relation, expected: str | bool, pairs: Pairs
) -> None:
    result = relation(pairs)
    if expected and isinstance(expected, str):
        assert expected in result
    else:
        assert result == expected


@pytest.mark.parametrize(
    ("second", "applies"),
    [
        pytest.param(AFTER, True, id="an edit"),
        pytest.param(BEFORE[1], True, id="a part"),
        pytest.param(AFTER + 10, False, id="nothing in common"),
        pytest.param(AFTER[:2], False, id="another shape"),
    ],
)
def test_a_relation_applies_only_if_the_outputs_of_the_reference_are_related(
    second: Tensor, applies: bool
) -> None:
    assert relations.relation_applies(BEFORE, second) is applies


def test_a_number_is_recognised_as_the_largest_difference_of_two_outputs() -> None:
    assert relations.is_difference(BEFORE, AFTER, DISTANCE)
    assert not relations.is_difference(BEFORE, AFTER, DISTANCE + 1)
    # equal outputs show nothing
    assert not relations.is_difference(BEFORE, BEFORE, DISTANCE * 0)


@pytest.mark.parametrize(
    ("change", "failed_causality_checks"),
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
def test_a_causality_check_fails_only_for_a_leak_or_a_wrong_shape(
    monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], failed_causality_checks: set[str]
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
    assert causality & failed == failed_causality_checks
    assert failed & {"values", "heads"}  # every change makes the attempt wrong
