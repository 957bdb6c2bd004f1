"""The reference's heads as data: found again by what the reference answered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from manyheads.course import CourseError
from manyheads.public.heads import Heads, key_of, read, save

pytestmark = pytest.mark.recorded


def test_what_is_saved_is_read_again_scores_or_none(tmp_path: Path) -> None:
    path, (a, b) = tmp_path / "heads.safetensors", (torch.randn(2, 3, 3), torch.randn(1, 4, 4))
    path.write_bytes(save({"one": Heads(a, a * 2), "other": Heads(b, None)}))
    found = read(path)
    assert set(found) == {"one", "other"}
    assert torch.equal(found["one"].weights, a)
    assert found["one"].scores is not None
    assert torch.equal(found["one"].scores, a * 2)
    assert torch.equal(found["other"].weights, b)
    assert found["other"].scores is None


def test_an_exercise_without_the_file_has_no_heads(tmp_path: Path) -> None:
    assert read(tmp_path / "none.safetensors") == {}


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "heads.safetensors").write_bytes(b"not one")
    with pytest.raises(CourseError, match=r"cannot be read \(.*\)\. Next: git checkout .*: course release$"):
        read(tmp_path / "heads.safetensors")


def test_a_call_is_known_by_its_answer_whatever_its_precision() -> None:
    answer = torch.randn(2, 3)
    assert key_of(answer) == key_of(answer.double()) == key_of(answer.T.contiguous().T)
    assert key_of(answer) != key_of(answer.view(3, 2))
    assert key_of(answer) != key_of(answer + 1e-3)
