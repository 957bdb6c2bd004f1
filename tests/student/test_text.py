"""The text that is learned from."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.student.training_plan import PATH, TrainingText, read_text


def test_remarks_name_the_source_and_are_not_read(text: TrainingText) -> None:
    assert "Carroll" in PATH.read_text(encoding="utf-8").splitlines()[0]
    whole = text.decode(text.ids)
    assert "Carroll" not in whole
    assert whole.startswith("Alice was beginning to get very tired of sitting by her sister on the bank")
    assert len(whole) > 100_000


def test_what_is_held_out_is_the_end_and_is_not_learned(text: TrainingText) -> None:
    assert text.decode(text.training_part) + text.decode(text.held_out) == text.decode(text.ids)
    assert len(text.held_out) == len(text.ids) // 10


def test_numbers_and_characters_are_one_to_one(text: TrainingText) -> None:
    sentence = "The keys to the cabinet were on the table"
    assert text.decode(text.encode(sentence)) == sentence
    assert len(set(text.vocabulary)) == len(text.vocabulary) == int(text.ids.max()) + 1
    with pytest.raises(ValueError):
        text.encode("€")


def test_another_text_has_its_own_characters(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("# of nobody\nbanana\n", encoding="utf-8")
    assert read_text(path).vocabulary == "\nabn"
    assert read_text(path).ids.tolist() == [2, 1, 3, 1, 3, 1, 0]
