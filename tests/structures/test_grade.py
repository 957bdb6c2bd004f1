"""What returns several tensors, and what goes on from what it returned, is graded and named like anything else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.level import Box
from manyheads.box.worker.form import Form
from manyheads.checks import assert_matches
from manyheads.checks.implementation import Implementation, LocalRunner
from manyheads.checks.outcome import CheckFailed
from manyheads.course import Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import AttemptSource
from tests.make import edited
from tests.structures.conftest import Scored

Returning = Callable[[str], str]


def test_a_list_in_place_of_a_tuple_and_a_cache_of_any_kind_are_right(scored: Scored, returning: Returning) -> None:
    result = scored(returning("[self.proj(y), {0: k, 1: v}]"))
    assert [check.evidence for check in result.checks if check.outcome != "passed"] == []


@pytest.mark.parametrize(("returned", "sentence"), [
    ("self.proj(y)", "a pair (y, cache) was expected; yours returned a tensor alone"),
    ("None", "a pair (y, cache) was expected; yours returned None: is a return missing at its end?"),
    ("(x, k, v)", "a pair (y, cache) was expected; yours returned a tuple of 3"),
    ("{'y': x, 'cache': (k, v)}", "a pair (y, cache) was expected; yours returned a dict"),
    ("None, (k, v)", "a tensor was expected as y; yours returned None: is a return missing at its end?"),
    ("(self.proj(y), (k, v)) if cache is None else self.proj(y)",
        "a pair (y, cache) was expected of call 2; yours returned a tensor alone"),
])  # fmt: skip
def test_another_structure_gets_one_sentence(scored, returning, returned, sentence):
    result = scored(returning(returned))
    assert {check.evidence for check in result.checks if check.id == "shape"} == {sentence}


def test_a_cache_that_is_ignored_is_named(repository: Path, box: Box, kv_cache: Exercise) -> None:
    judge = Judge(load_course(repository), box, Settings(secret=b"secret", lines=False))
    ignored = ("B, T, C = x.shape", "cache = None\n        B, T, C = x.shape")
    text = edited(kv_cache.solution.read_text(encoding="utf-8"), ignored)
    result = judge.grade_attempt("student", kv_cache, AttemptSource(f"{kv_cache.stem}.py", text))
    assert [each.id for each in result.diagnosis] == ["cache_ignored"]


@pytest.mark.recorded
def test_sequences_are_recorded_with_their_judged_parts_alone(kv_cache: Exercise) -> None:
    recorded = read(kv_cache.fingerprints)
    chunks = [recorded.right(i).outputs for i, call in enumerate(recorded.calls) if len(call.steps) > 1]
    assert any(each.projections for outputs in chunks for each in outputs[::2])
    assert not any(each.projections for outputs in chunks for each in outputs[1::2]), "a cache is the attempt's own"


def test_a_part_may_be_none() -> None:
    forms = {"spread": Form("tuple", ("mean", "spread"), (Form(), Form()))}
    x = torch.ones(3, 1)

    def ask(function: Callable[[torch.Tensor], object]) -> object:
        return Implementation(LocalRunner({"spread": function}), forms=forms).call("spread", x)

    nothing, something = (ask(lambda x, part=part: (x.mean(-1), part)) for part in (None, torch.zeros(3)))
    assert_matches(nothing, nothing)
    with pytest.raises(CheckFailed, match="spread should be None; yours is a tensor"):
        assert_matches(something, nothing)
    with pytest.raises(CheckFailed, match="spread should be a tensor; yours is None"):
        assert_matches(nothing, something)
