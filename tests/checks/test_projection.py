"""What is kept of a tensor, and what that costs the judge."""

import resource

import torch

from manyheads.checks import projection
from manyheads.checks.projection import LARGEST, project


def test_equal_tensors_have_equal_projections_and_others_have_not() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert project(x) == project(x.clone())
    assert project(x) != project(x + 1e-3)
    assert project(x.masked_fill(x > 9, torch.nan)).extremes != project(x).extremes


def test_a_tensor_that_is_larger_than_any_right_answer_is_known_by_its_size_alone(monkeypatch):
    monkeypatch.setattr(projection, "_draw_directions", None)  # no directions are drawn for it
    large = torch.zeros(LARGEST + 1, dtype=torch.uint8)
    assert project(large) == project(large + 1)
    assert project(large) != project(torch.zeros(LARGEST + 2, dtype=torch.uint8))


def test_what_sizes_a_student_chooses_is_not_kept() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for length in range(LARGEST - 40, LARGEST):  # 32 MiB of directions each
        project(torch.zeros(length))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10  # KiB
