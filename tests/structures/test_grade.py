"""What returns several tensors, and what goes on from what it returned, is graded and named like anything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.judge.prove_line import GRADED
from manyheads.submission import AttemptSource
from tests.structures.conftest import MUTANTS, STREAMS, Graded

MutantOf = Callable[[str, str], str]
MEANS = """\
class RunningMean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)
"""


@pytest.mark.parametrize(("exercise", "misconception"), MUTANTS)
def test_every_mistake_is_named(graded: Graded, mutant_of: MutantOf, exercise: str, misconception: str) -> None:
    result = graded(exercise, mutant_of(exercise, misconception))
    assert [each.id for each in result.diagnosis] == [misconception]
    assert not result.is_done


@pytest.mark.parametrize("path", sorted(STREAMS.glob("grader/right/*/*.py")), ids=lambda path: path.stem)
def test_a_list_in_place_of_a_tuple_is_right(scored: Graded, path) -> None:
    result = scored(path.parent.name, path.read_text(encoding="utf-8"))
    assert [check.evidence for check in result.checks if check.outcome != "passed"] == []


@pytest.mark.parametrize(
    ("exercise", "misconception", "sentence"),
    [
        ("mean_and_spread", "spread_alone", "a pair (mean, spread) was expected; yours returned a tensor alone"),
        ("mean_and_spread", "spread_always", "spread should be None; yours is a tensor"),
        ("running_mean", "state_alone", "a pair (means, state) was expected; yours returned a tensor alone"),
        ("running_mean", "state_changed", "means of call 3 (4, 2, 3): 24 of 24 values differ"),
    ],
)
def test_evidence_names_the_part_and_the_call(
    scored: Graded, mutant_of: MutantOf, exercise: str, misconception: str, sentence: str
) -> None:
    result = scored(exercise, mutant_of(exercise, misconception))
    assert any(check.evidence.startswith(sentence) for check in result.checks), [c.evidence for c in result.checks]


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("None", "a pair (means, state) was expected; yours returned None: is a return missing at its end?"),
        ("(x, x, x)", "a pair (means, state) was expected; yours returned a tuple of 3"),
        ("{'means': x, 'state': x}", "a pair (means, state) was expected; yours returned a dict"),
        ("(None, x)", "a tensor was expected as means; yours returned None: is a return missing at its end?"),
    ],
)
def test_another_structure_gets_one_sentence(scored: Graded, returned: str, sentence: str) -> None:
    text = f"from torch import nn\n\n\n{MEANS}\n    def forward(self, x, state=None):\n        return {returned}\n"
    result = scored("running_mean", text)
    assert {check.evidence for check in result.checks if check.id == "shape"} == {sentence}
    assert result.score == 0


def test_a_state_that_is_kept_in_a_default_is_somebody_else_s(scored: Graded) -> None:
    text = f"""\
import torch
from torch import nn


{MEANS}
    def forward(self, x, state={{}}):
        whole = torch.cat([state["seen"], x], 1) if "seen" in state else x
        state["seen"] = whole
        if not x.shape[1]:
            raise ValueError("no tokens")
        means = self.proj(whole).cumsum(1) / torch.arange(1, whole.shape[1] + 1, dtype=x.dtype)[:, None]
        return means[:, -x.shape[1] :], state
"""
    result = scored("running_mean", text)
    assert not result.is_done


def test_the_line_of_a_state_that_is_ignored_is_proved(
    streams: Course, box: Box, exercise_of: Callable[[str], Exercise]
) -> None:
    exercise = exercise_of("running_mean")
    text = exercise.solution.read_text(encoding="utf-8").replace("+ total", "- total")
    judge = Judge(streams, box, Settings(secret=b"secret", bounds=replace(GRADED, seconds=60.0)))
    result = judge.grade_attempt("student", exercise, AttemptSource("02_running_mean.py", text))
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "- total" in each)
    assert [each.line for each in result.lines] == [line]
