"""What chance answers is named where all mutants that chance answers there, and that are wrong nowhere else, have one name."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import RIGHT, checked, exercise
from tests.make import edited


@pytest.mark.parametrize(("old", "new", "named"), [
    pytest.param("", "", [], id="nothing"),
    pytest.param("self.p, self.training)", "self.p)", ["dropout_always_on"], id="a dropout that is not told of eval"),
    pytest.param("self.out_proj(y", "(1 + torch.rand(()) / 9) * self.out_proj(y", [], id="noise, which nobody listed"),
])  # fmt: skip
def test_what_chance_answers_is_named(monkeypatch: pytest.MonkeyPatch, old: str, new: str, named: list[str]) -> None:
    source = RIGHT.replace(old, new) if old else RIGHT
    assert bool(old) is (source != RIGHT)
    assert [each.id for each in checked(exercise("weight_split"), source, monkeypatch).diagnosis] == named


def test_where_most_is_wrong_chance_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = exercise("fused_qkv")
    right, gated = fused.solution.read_text(encoding="utf-8"), "self.attn_dropout(scores.softmax(dim=-1))"
    assert gated in right
    # Layers that are made anew in every call vary as widely.
    source = right.replace(gated, "nn.functional.dropout(scores.softmax(dim=-1), 0.1)")
    result = checked(fused, source, monkeypatch)
    assert result.score < result.max_score
    assert (result.diagnosis, result.also) == ((), ())


def test_what_chance_answers_in_other_functions_too_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = exercise("sdpa_equivalence")
    right, gated = paths.solution.read_text(encoding="utf-8"), "self.dropout if self.training else 0.0"
    assert gated in right
    result = checked(paths, right.replace(gated, "self.dropout"), monkeypatch)
    assert [each.id for each in result.diagnosis] == ["dropout_always_on"]


def test_what_chance_answers_in_one_function_is_named_where_another_works_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = exercise("sdpa_equivalence")
    right = paths.solution.read_text(encoding="utf-8")
    source = edited(
        right,
        ("self.dropout if self.training else 0.0", "self.dropout"),
        ("flash, modes = module.flash", "(p, module.dropout), (flash, modes) = (module.dropout, 0.0), (module.flash"),
        ("for part in module.modules()]\n", "for part in module.modules()])\n"),
        ("        module.flash = flash\n", "        module.flash, module.dropout = flash, p\n"),
    )  # fmt: skip
    assert [each.id for each in checked(paths, source, monkeypatch).diagnosis] == ["dropout_always_on"]


@pytest.mark.parametrize(("id_", "awake", "other", "named"), [
    pytest.param("weight_split", ("self.p, self.training)", "self.p)"), (" / math.sqrt(q.shape[-1])", ""),
        ["scale_missing", "dropout_always_on"], id="scores that are not scaled"),
    pytest.param("weight_split", ("self.p, self.training)", "self.p)"), (" @ v", " @ v.tanh()"), [],
        id="a mistake that nobody listed"),
    pytest.param("sdpa_equivalence", ("self.dropout if self.training else 0.0", "self.dropout"),
        ("q, k, v = ", "k, q, v = "), ["qkv_order", "dropout_always_on"],
        id="queries taken for keys, where a function that compares two paths is left to chance as well"),
])  # fmt: skip
def test_beside_what_chance_answers_another_mistake_is_named(
    monkeypatch: pytest.MonkeyPatch, id_: str, awake: tuple[str, str], other: tuple[str, str], named: list[str]
) -> None:
    asked = exercise(id_)
    right = RIGHT if id_ == "weight_split" else asked.solution.read_text(encoding="utf-8")
    found = checked(asked, edited(right, awake, other), monkeypatch).diagnosis
    assert [each.id for each in found] == named
