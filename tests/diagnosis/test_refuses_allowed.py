"""A guard that refuses what is allowed is named on a student's machine, whatever functions meet it."""

from __future__ import annotations

import pytest

from manyheads.box.level import Box
from manyheads.diagnosis.recording_file import read
from manyheads.lines.find_lines import Bounds
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource
from tests.diagnosis.told_at_home import COURSE, checked, exercise


@pytest.mark.parametrize(
    ("id_", "old", "new", "named"),
    [
        pytest.param("fused_qkv", "if n_embd % n_head != 0:", "if True:", ["refuses_allowed"], id="whatever the heads"),
        pytest.param("self_attention", "if self.context_length < T:", "if self.context_length <= T:", ["refuses_allowed"], id="the limit"),
        pytest.param("weight_split", "if self.context_length < T:", "if self.context_length > T:", ["refuses_allowed"], id="the wrong way round"),
        pytest.param("sliding_window", "if T_q > T_k:", "if T_q == T_k:", ["refuses_allowed", "argument_unchecked"], id="through another function"),
        pytest.param("rotary", "if hd % 2:", "if not hd % 2:", ["refuses_allowed"], id="even for odd"),
        pytest.param("kv_cache", "q, k, v = self.qkv(x).split(C, dim=-1)", "q, k, v = self.qkv(x).split(C, dim=-1)\n        assert q.shape == (B, C, T)", [], id="an assertion about what is computed"),
    ],
)  # fmt: skip
def test_a_guard_that_refuses_what_is_allowed(box: Box, id_: str, old: str, new: str, named: list[str]) -> None:
    source = exercise(id_).solution.read_text(encoding="utf-8")
    assert old in source
    attempt = AttemptSource(f"{exercise(id_).stem}.py", source.replace(old, new))
    limits = COURSE.limits.for_worker()
    result = check_source(read(exercise(id_).fingerprints), attempt, box, limits, Bounds(seconds=0.0))
    assert [each.id for each in result.diagnosis] == named


@pytest.mark.parametrize(("id_", "old", "new"), [
    pytest.param("attention_scores", "k.transpose(-2, -1)", "k.transpose(-2, -3)", id="axes"),
    pytest.param("reshape_dance", "C // n_head", "C * n_head", id="a product for a quotient"),
])  # fmt: skip
def test_who_raises_everywhere_and_writes_no_size_has_not_fixed_one(
    monkeypatch: pytest.MonkeyPatch, id_: str, old: str, new: str
) -> None:
    source = exercise(id_).solution.read_text(encoding="utf-8")
    assert old in source
    result = checked(exercise(id_), source.replace(old, new), monkeypatch)
    assert "hard_coded_shape" not in {name for each in result.diagnosis for name in (each.id, *each.alternatives)}


def test_another_shape_made_of_sizes_of_the_call_is_no_shape_of_a_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    source = exercise("attention_scores").solution.read_text(encoding="utf-8")
    mixed = source.replace(
        "return attention_weights(attention_scores(q, k)) @ v", "return attention_weights(attention_scores(k, k)) @ v"
    )
    assert mixed != source
    assert [each.id for each in checked(exercise("attention_scores"), mixed, monkeypatch).diagnosis] == []
