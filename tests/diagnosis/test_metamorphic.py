"""A check of causality or independence asks which numbers an edit reaches, not what the numbers
are.
"""

import sys
import types
from pathlib import Path

import pytest
import torch

from manyheads.checks.hidden_check import Layer
from manyheads.checks.runner import LocalRecordingRunner
from manyheads.course import load_course
from manyheads.diagnosis import metamorphic_relations as relations
from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import check_attempt

COURSE = load_course(Path(__file__).parents[2])
ASSIGNMENT = COURSE.assignments[0]
EXERCISE = next(exercise for exercise in ASSIGNMENT.exercises if exercise.id == "fused_qkv")
RIGHT = EXERCISE.solution.read_text(encoding="utf-8")
HIDDEN = "scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)"

BEFORE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
AFTER = torch.tensor([[1.0, 2.0], [3.0, 4.0], [7.0, 0.0]])  # an edit of the last token
PEEKS = torch.tensor([[1.0, 2.0], [3.5, 4.0], [7.0, 0.0]])
NO_ZERO = torch.tensor([0.0, 0.3]) + AFTER


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(BEFORE, AFTER, "", id="right"),
        pytest.param(BEFORE * 9, AFTER * 9, "", id="scaled"),
        pytest.param(
            BEFORE * 9,
            PEEKS * 9,
            "{edit} changes 1 of the 5 numbers of the answer that should not depend on it",
            id="peeks",
        ),
        pytest.param(
            BEFORE,
            BEFORE,
            "{edit} leaves numbers as they were that it should change",
            id="does not see",
        ),
        pytest.param(BEFORE, NO_ZERO, "the number that should be 0 has another value", id="not 0"),
    ],
)
def test_what_an_edit_reaches(before: torch.Tensor, after: torch.Tensor, said: str) -> None:
    answers = [(BEFORE, before), (AFTER, after)]
    oracles = (
        relations.zeros_missed,
        relations.violates_causality,
        relations.misses_an_effect,
    )
    assert next(filter(None, (says(answers) for says in oracles)), "") == said


def test_where_an_edit_moves_every_number_it_must_move_something_at_every_index() -> None:
    before, after = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    assert not relations.misses_an_effect([(before, before), (after, before + 1)])
    assert relations.misses_an_effect(
        [(before, before), (after, before + torch.tensor([[0.0, 1.0]]))]
    )


def test_two_calls_that_give_the_same_must_give_the_same() -> None:
    message = "{edit} changes 1 of the 6 numbers of the answer that should not depend on it"
    assert relations.violates_causality([(BEFORE, BEFORE), (BEFORE, AFTER)]) == message
    message = "{edit} changes all 6 numbers of the answer that should not depend on it"
    assert relations.violates_causality([(BEFORE, BEFORE), (BEFORE, BEFORE + 1)]) == message


def test_a_part_that_stands_alone_gives_what_it_gives_in_the_whole() -> None:
    assert relations.parts_differ([(BEFORE, BEFORE * 2), (BEFORE[1], BEFORE[1] * 2)]) == ""
    message = "a part of the input gives something else when it stands alone"
    assert relations.parts_differ([(BEFORE, BEFORE), (BEFORE[1], BEFORE[1] * 2)]) == message


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
    other: torch.Tensor, related: bool
) -> None:
    assert relations.relation_applies(BEFORE, other) is related


@pytest.mark.parametrize(
    ("wrong", "fails_of_causality"),
    [
        (RIGHT.replace("/ math.sqrt(self.head_dim)", ""), set()),
        (
            RIGHT.replace(
                "return self.resid_dropout(self.proj(y))", "return self.resid_dropout(y)"
            ),
            set(),
        ),
        (RIGHT.replace(HIDDEN, ""), {"causal"}),
        (RIGHT.replace("weights @ v", "weights @ v.flip(0)"), {"independent"}),
        (RIGHT.replace("self.proj(y))", "self.proj(y)[1:])"), {"causal", "independent"}),
    ],
    ids=["not scaled", "not projected", "not masked", "another sequence's values", "another shape"],
)
def test_who_only_scales_wrongly_is_not_told_that_the_future_is_seen(
    monkeypatch, wrong, fails_of_causality
):
    assert wrong != RIGHT
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(wrong, "a.py", "exec", dont_inherit=True), vars(module))
    recording = read(EXERCISE.fingerprints)
    causality = {check.id for check in recording.checks if check.layer == Layer.CAUSALITY}
    failed = {
        c.id
        for c in check_attempt(recording, LocalRecordingRunner(vars(module))).checks
        if c.outcome != "passed"
    }
    assert causality & failed == fails_of_causality
    assert "values" in " ".join(failed) or "heads" in " ".join(failed), failed


def test_a_number_may_be_the_largest_difference_of_two_answers() -> None:
    number = (BEFORE - AFTER).abs().max()
    assert relations.is_difference(BEFORE, AFTER, number)
    assert not relations.is_difference(BEFORE, AFTER, number + 1)
    # two paths that agree say nothing
    assert not relations.is_difference(BEFORE, BEFORE, number * 0)
    correct_pairs = [(BEFORE, BEFORE), (AFTER, AFTER)]
    assert relations.difference_is_another([*correct_pairs, (number, number)]) == ""
    assert relations.difference_is_another([*correct_pairs, (number, number / 2)]) == (
        "the number that it gives is not the largest absolute difference of the two answers"
    )
    for actual, says in (
        (0 * number, "0, and the two answers differ"),
        (-number, "below 0, as no absolute difference is"),
        (
            (BEFORE - AFTER).abs().mean(),
            "the mean of the absolute differences, not the largest of them",
        ),
    ):
        assert (
            relations.difference_is_another([*correct_pairs, (number, actual)])
            == f"the number that it gives is {says}"
        )
    wrong_answers = [correct_pairs[0], (AFTER, PEEKS), (number, number / 2)]
    assert relations.difference_is_another(wrong_answers) == ""


def extremes(calm: torch.Tensor, factor: float) -> torch.Tensor:
    """The least and the largest of what a dropout leaves of an answer in eval mode."""
    scaled = factor * calm[0]
    return torch.stack(
        [scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs(), torch.zeros_like(scaled)]
    )


def test_a_dropout_is_held_to_an_attempts_own_answer_in_eval_mode() -> None:
    expected = torch.tensor([[[2.0, -1.0]]])
    recorded, actual = extremes(expected, 4 / 3), -3 * expected
    assert relations.dropout_differs([(expected, expected), (recorded, recorded)]) == ""
    pairs = [
        (expected, actual),
        (recorded, extremes(actual, 4 / 3)),
    ]  # its values are another check's
    assert relations.dropout_differs(pairs) == ""
    for calm in (expected, actual):
        for factor in (1.0, 2.0):
            assert relations.dropout_differs([(expected, calm), (recorded, extremes(calm, factor))])


def test_where_no_factor_leads_to_the_extremes_wrong_values_are_no_dropout() -> None:
    expected = torch.tensor([[[2.0, -1.0]]])
    assert relations.dropout_differs([(expected, 2 * expected), (EXTREMES, 0 * EXTREMES)]) == ""
    assert relations.dropout_differs([(expected, expected), (EXTREMES, 0 * EXTREMES)])


EXTREMES = torch.tensor([[[0.0, -3.0]], [[2.0, 0.0]], [[0.5, 0.25]], [[1.0, 1.0]]])


def test_single_numbers_that_are_dropped_are_told_from_what_is_dropped_further_inside() -> None:
    rescaled, together = (
        EXTREMES * torch.tensor([3.0, 3.0, 3.0, 1.0])[:, None, None],
        EXTREMES.clone(),
    )
    together[3] = 0
    assert not relations.dropout_mask_differs([(EXTREMES, rescaled)])
    assert "never dropped, and they should be" in relations.dropout_mask_differs(
        [(EXTREMES, together)]
    )
    assert "are dropped, and they should not be" in relations.dropout_mask_differs(
        [(together, EXTREMES)]
    )


def test_what_is_left_of_the_weights_is_told_whatever_scales_the_answer() -> None:
    rescaled, altered = 3 * EXTREMES, EXTREMES.clone()
    altered[2] = altered[:2].abs().amax(0)
    assert not relations.survivors_differ([(EXTREMES, rescaled)])
    says = relations.survivors_differ([(EXTREMES, altered)])
    assert says.endswith("is it applied to the tensor that the docstring names?")


@pytest.mark.parametrize(
    ("factor", "is_another"),
    [(1.25, True), (4 / 3, False), (16 / 9, False), (4.0, False), (1.0, False), (0.75, False)],
    ids=[
        "another rate",
        "the given one",
        "twice",
        "what stays is dropped",
        "not scaled up",
        "scaled down",
    ],
)
def test_a_factor_that_no_dropout_at_the_rate_makes_is_another_rate(
    factor: float, is_another: bool
) -> None:
    calm = torch.tensor([[[1.0, -2.0]]])
    answers = [(calm, 3 * calm), (extremes(calm, 4 / 3), 3 * extremes(calm, factor))]
    assert relations.is_dropped_at_another_rate(answers) is is_another


SCORES = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]], dtype=torch.float64)
HIDDEN_SCORES = torch.tensor([[False, True, True], [False, False, True]])
WEIGHTS = SCORES.masked_fill(HIDDEN_SCORES, -torch.inf).softmax(-1)


@pytest.mark.parametrize(
    ("found", "leaks"),
    [
        pytest.param(
            SCORES.masked_fill(HIDDEN_SCORES, -7.3).softmax(-1),
            True,
            id="a fill that is not low enough",
        ),
        pytest.param((SCORES - 7.3 * HIDDEN_SCORES).softmax(-1), True, id="a number added"),
        pytest.param(WEIGHTS, False, id="right"),
        pytest.param(SCORES.masked_fill(HIDDEN_SCORES, -7.3).softmax(-2), False, id="another axis"),
        pytest.param(
            (2 * SCORES).masked_fill(HIDDEN_SCORES, -7.3).softmax(-1), False, id="another scale"
        ),
        pytest.param(WEIGHTS + 0.1 * HIDDEN_SCORES, False, id="added to the weights"),
        pytest.param(WEIGHTS[:, :2], False, id="another shape"),
    ],
)
def test_a_share_that_what_is_hidden_gets(found: torch.Tensor, leaks: bool) -> None:
    assert relations.leaks_a_share([(WEIGHTS, found)]) is leaks


@pytest.mark.parametrize(
    ("found", "fills"),
    [
        pytest.param(SCORES.masked_fill(HIDDEN_SCORES, -99.0), True, id="a number"),
        pytest.param(SCORES.masked_fill(HIDDEN_SCORES, -torch.inf), False, id="right"),
        pytest.param(SCORES.masked_fill(HIDDEN_SCORES, 0.0), False, id="nothing"),
        pytest.param(SCORES, False, id="what stood there"),
        pytest.param(
            (2 * SCORES).masked_fill(HIDDEN_SCORES, -99.0), False, id="other numbers beside it"
        ),
        pytest.param(SCORES[:, :2], False, id="another shape"),
    ],
)
def test_a_number_in_place_of_an_infinity(found: torch.Tensor, fills: bool) -> None:
    expected = SCORES.masked_fill(HIDDEN_SCORES, -torch.inf)
    assert relations.fills_with_a_number([(expected, found)]) is fills
    assert not relations.fills_with_a_number([(SCORES, SCORES)])
