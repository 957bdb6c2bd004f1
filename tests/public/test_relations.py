"""A check of causality or independence asks which numbers an edit reaches, not what the numbers are."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import torch

from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.marks import Layer
from manyheads.course import load_course
from manyheads.public.check import check_attempt
from manyheads.public.file import read
from manyheads.public.metamorphic import broken_relation

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
        (BEFORE, AFTER, ""),
        (BEFORE * 9, AFTER * 9, ""),
        (BEFORE * 9, PEEKS * 9, "the input was edited, and 1 of 5 numbers that should stay have moved"),
        (BEFORE, BEFORE, "the input was edited, and numbers that should move stay as they were"),
        (BEFORE, NO_ZERO, "1 of 1 numbers that should be 0 are not"),
        (BEFORE, AFTER[:2], None),
        (BEFORE, AFTER / 0, None),
        (BEFORE, None, None),
    ],
    ids=["right", "scaled", "peeks", "does not see", "not 0", "another shape", "not finite", "no tensor"],
)
def test_what_an_edit_reaches(before: torch.Tensor, after: torch.Tensor | None, said: str | None) -> None:
    assert broken_relation([BEFORE, AFTER], [before, after]) == said


def test_where_the_reference_has_nothing_in_common_nothing_can_be_said() -> None:
    assert broken_relation([BEFORE, AFTER + 10], [BEFORE, AFTER + 10]) is None
    assert broken_relation([BEFORE, AFTER[:2]], [BEFORE, AFTER[:2]]) is None


@pytest.mark.parametrize(
    ("wrong", "fails_of_causality"),
    [
        (RIGHT.replace("/ math.sqrt(self.head_dim)", ""), set()),
        (RIGHT.replace("return self.resid_dropout(self.proj(y))", "return self.resid_dropout(y)"), set()),
        (RIGHT.replace(HIDDEN, ""), {"causal"}),
        (RIGHT.replace("weights @ v", "weights @ v.flip(0)"), {"independent"}),
        (RIGHT.replace("self.proj(y))", "self.proj(y)[1:])"), {"causal", "independent"}),
    ],
    ids=["not scaled", "not projected", "not masked", "another sequence's values", "another shape"],
)
def test_who_only_scales_wrongly_is_not_told_that_the_future_is_seen(
    monkeypatch: pytest.MonkeyPatch, wrong: str, fails_of_causality: set[str]
) -> None:
    assert wrong != RIGHT
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(wrong, "a.py", "exec", dont_inherit=True), vars(module))
    fingerprints = read(EXERCISE.fingerprints)
    causality = {check.id for check in fingerprints.content.checks if check.layer == Layer.CAUSALITY}
    failed = {
        c.id for c in check_attempt(fingerprints, LocalRecordingRunner(vars(module))).checks if c.outcome != "passed"
    }
    assert causality & failed == fails_of_causality
    assert "values" in " ".join(failed) or "heads" in " ".join(failed), failed


def test_of_a_mask_that_hides_with_minus_infinity_nothing_is_said_this_way():
    """A right attempt may hide with a low finite number: its answers are finite where the recorded ones are not."""
    first, second = torch.tensor([[1.0, -torch.inf, 2.0]]), torch.tensor([[1.0, 3.0, -torch.inf]])
    low = [answer.clamp(min=-1e9) for answer in (first, second)]
    assert broken_relation([first, second], low) is None
