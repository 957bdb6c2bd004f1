"""The claim about lines: its faults are known, always the same, and what is told of them is told apart."""

from itertools import islice

import pytest

from manyheads.authoring.verify.line_claims import LineBench, verify_lines
from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.lines.find_lines import Bounds
from manyheads.result import ProvedLine


@pytest.fixture
def bench(tiny: Course, box: Box, running_mean: Exercise) -> LineBench:
    return LineBench(tiny, box, [running_mean])


def test_faults_are_always_the_same(bench: LineBench, running_mean: Exercise) -> None:
    first, again = (list(islice(bench.faults(running_mean), 5)) for _ in range(2))
    assert first == again
    assert len({fault.text for fault in first}) == 5


def test_where_nothing_is_tried_the_claim_is_broken(tiny: Course, box: Box, running_mean: Exercise) -> None:
    found, wrong = verify_lines(tiny, box, running_mean, Bounds(edits=0))
    assert (found.kept, found.held) == (False, 0)
    assert all(failure.endswith("nothing is told") for failure in found.failures)
    assert wrong.kept


@pytest.mark.parametrize(("line", "edit", "said"), [
    pytest.param(0, None, "there", id="the line of the fault"),
    pytest.param(1, None, "wrong", id="another line with the same edit"),
    pytest.param(0, "a → b", "wrong", id="an edit that does not mend it"),
])  # fmt: skip
def test_what_is_told_is_tried_on_other_inputs(bench, running_mean, monkeypatch, line, edit, said):
    fault = next(fault for fault in bench.faults(running_mean) if fault.undone)
    (found,) = bench.lines(running_mean, fault.text)
    told = ProvedLine(line=found.line + line, edit=found.edit if edit is None else edit)
    monkeypatch.setattr(bench, "lines", lambda *_: (told,))
    assert bench.told(running_mean, fault) == said
