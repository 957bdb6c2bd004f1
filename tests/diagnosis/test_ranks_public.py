"""A fixed number of axes is named on a student's machine, where recorded calls have several."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import RIGHT, SCORES, checked, exercise
from tests.make import edited

SCORED = "return q @ k.mT / math.sqrt(q.shape[-1])"


@pytest.mark.parametrize(
    ("new", "named"),
    [
        pytest.param("B, T, hd = q.shape\n    " + SCORED, ["hard_coded_shape"], id="three axes"),
        pytest.param("B, nh, T, hd = q.shape\n    " + SCORED, ["hard_coded_shape"], id="four axes"),
        pytest.param("q.transpose(0, -3)\n    " + SCORED, ["hard_coded_shape"], id="three axes at least"),
        pytest.param(SCORED + "[None] if q.dim() < 3 else q @ k.mT / math.sqrt(q.shape[-1])", ["hard_coded_shape"], id="an axis too many for two"),
        pytest.param("q.transpose(0, -3)\n    " + SCORED + ".tanh()", [], id="three axes at least, and numbers of nobody's"),
    ],
)  # fmt: skip
def test_a_number_of_axes_that_is_written_in(monkeypatch: pytest.MonkeyPatch, new: str, named: list[str]) -> None:
    result = checked(exercise("attention_scores"), edited(SCORES, (SCORED, new)), monkeypatch)
    assert [each.id for each in result.diagnosis] == named


def test_a_module_that_only_raises_has_no_number_of_axes_written_in(monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(RIGHT, ("self.out_proj(y", "self.p(y"))
    assert [each.id for each in checked(exercise("weight_split"), source, monkeypatch).diagnosis] == []
