"""What raises with numbers raises without any, too, in other words: these hide no misconception."""

from __future__ import annotations

import pytest

from tests.public.told_at_home import RIGHT, checked, exercise

MERGED = "y.transpose(1, 2).flatten(2)"


def test_heads_that_are_averaged_are_named_where_the_projection_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MERGED in RIGHT
    result = checked(exercise("weight_split"), RIGHT.replace(MERGED, "y.mean(1)"), monkeypatch)
    assert "heads_averaged" in {name for each in result.diagnosis for name in (each.id, *each.alternatives)}
