"""What raises with numbers raises without any, too, in other words: these hide no misconception."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import RIGHT, checked, exercise

MERGED = "y.transpose(1, 2).flatten(2)"


def test_heads_that_are_averaged_are_named_where_the_projection_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MERGED in RIGHT
    result = checked(exercise("weight_split"), RIGHT.replace(MERGED, "y.mean(1)"), monkeypatch)
    assert "heads_averaged" in {name for each in result.diagnosis for name in (each.id, *each.alternatives)}


def test_what_three_mistakes_raise_alike_has_the_name_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    two_paths = exercise("sdpa_equivalence")
    source = two_paths.solution.read_text(encoding="utf-8")
    for name in "qkv":  # attention over heads, which are merged as though they stood before the tokens
        line = f"{name} = {name}.view(B, T, self.n_head, self.head_dim)"
        assert f"{line}.transpose(1, 2)" in source
        source = source.replace(f"{line}.transpose(1, 2)", line)
    source = source.replace("y.transpose(1, 2).reshape(B, T, C)", "y.transpose(1, 2).flatten(2)")
    result = checked(two_paths, source, monkeypatch)
    assert all(each.outcome != "passed" for each in result.checks if each.id in ("shape", "values_fast"))
    assert result.diagnosis == ()
