"""A sequence is made with other sizes as one call: what is one axis in several of its calls stays one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import namespace_of
from manyheads.course import Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.diagnosis.resize import layouts, sizes_of
from tests.structures.conftest import Graded

FIXED = """\
import torch
from torch import nn


class RunningMean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x, state=None):
        if not x.shape[1]:
            raise ValueError("no tokens")
        total, count = (torch.zeros(8, 1, 3, dtype=x.dtype), 0) if state is None else state
        sums = self.proj(x).cumsum(1) + total
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype) + count
        return sums / counts[:, None], (sums[:, -1:], count + x.shape[1])
"""


def test_every_call_of_a_sequence_has_its_new_sizes(exercise_of: Callable[[str], Exercise]) -> None:
    exercise = exercise_of("running_mean")
    call = next(each for each in read(exercise.fingerprints).calls if len(each.steps) == 3)
    assert sizes_of(call) == {2, 3, 4, 5, 6}
    layout = next(layouts(call))
    resized = layout.at({2: 7, 3: 5, 4: 2, 5: 3, 6: 11})
    shapes = [step.args[0].shape for step in resized.steps if isinstance(step.args[0], torch.Tensor)]
    assert [tuple(shape) for shape in shapes] == [(2, 3, 5), (2, 7, 5), (2, layout._size(6, {2: 7, 3: 5, 6: 11}), 5)]
    assert LocalRunner(namespace_of(exercise.solution)).execute(resized).raised is None


def test_a_batch_that_is_written_into_the_code_is_named(graded: Graded) -> None:
    result = graded("running_mean", FIXED)
    assert [each.id for each in result.diagnosis] == ["hard_coded_shape"]
