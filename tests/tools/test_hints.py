"""Which step of a hint comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.tools.hints import next_step


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / ".course" / "hints.json"


def test_the_last_step_stays(note: Path) -> None:
    assert [next_step(note, "one", "sum", 2) for _ in range(4)] == [1, 2, 2, 2]


def test_another_mistake_and_another_exercise_start_with_their_own_first_step(note: Path) -> None:
    assert [next_step(note, *about, 3) for about in (("one", "sum"), ("one", "mean"), ("two", "sum"))] == [1, 1, 1]
    assert next_step(note, "two", "sum", 3) == 2


@pytest.mark.parametrize("damage", ["", "[7", "[]", '{"one": 3}', '{"one": {"about": "sum"}}'])
def test_a_damaged_note_starts_over(note: Path, damage: str) -> None:
    next_step(note, "one", "sum", 3)
    note.write_text(damage, encoding="utf-8")
    assert [next_step(note, "one", "sum", 3) for _ in range(2)] == [1, 2]
