"""The reference's heads as data: found again by what the reference answered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from manyheads.course import CourseError
from manyheads.student.heads import Heads, Recorded, Tiles, key_of, read, save

pytestmark = pytest.mark.recorded


def test_what_is_saved_is_read_again_scores_or_none(tmp_path: Path) -> None:
    path, (a, b) = tmp_path / "heads.safetensors", (torch.randn(2, 3, 3), torch.randn(1, 4, 4))
    path.write_bytes(save(Recorded({"one": Heads(a, a * 2), "other": Heads(b, None)})))
    found = read(path).heads
    assert set(found) == {"one", "other"}
    assert torch.equal(found["one"].weights, a)
    assert found["one"].scores is not None
    assert torch.equal(found["one"].scores, a * 2)
    assert torch.equal(found["other"].weights, b)
    assert found["other"].scores is None


def test_tiles_stand_in_the_same_file(tmp_path: Path) -> None:
    path, scores = tmp_path / "heads.safetensors", torch.randn(4, 4)
    boxes = torch.tensor([[0.0, 0, 4, 3], [0, 3, 4, 1]])
    path.write_bytes(save(Recorded({"one": Heads(scores[None], None)}, {"other": Tiles(boxes, scores)})))
    found = read(path)
    assert (list(found.heads), list(found.tiles)) == (["one"], ["other"])
    assert torch.equal(found.tiles["other"].boxes, boxes)
    assert torch.equal(found.tiles["other"].scores, scores)


def test_nothing_to_record_is_no_file() -> None:
    assert save(Recorded()) == b""


def test_an_exercise_without_the_file_has_no_heads(tmp_path: Path) -> None:
    assert read(tmp_path / "none.safetensors") == Recorded()


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "heads.safetensors").write_bytes(b"not one")
    with pytest.raises(CourseError, match=r"cannot be read \(.*\)\. Next: git checkout .*: course release$"):
        read(tmp_path / "heads.safetensors")


def test_a_call_is_known_by_its_answer_whatever_its_precision() -> None:
    answer = torch.randn(2, 3)
    assert key_of(answer) == key_of(answer.double()) == key_of(answer.T.contiguous().T)
    assert key_of(answer) != key_of(answer.view(3, 2))
    assert key_of(answer) != key_of(answer + 1e-3)
