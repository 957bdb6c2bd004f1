"""A check that stumbles over an attempt's answer: the attempt is told what its answer should have been, nobody calls the grader
broken."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.outcome import FAILED_ITSELF, CheckOutcome
from manyheads.judge.run_checks import CheckRun, HiddenChecks

CHECKS = '''
from manyheads.checks import Layer, check, expect

@check(points=1, layer=Layer.VALUES)
def test_looks_at_the_last_token(attempt, reference, draw):
    """looks at the last token"""
    x = draw(2, 3, 4)
    out = attempt.call("f", x).output
    expect((out[:, 2] - x[:, 2]).abs().max() == 0, "the last token differs")
'''
BROKEN = CHECKS.replace("out[:, 2]", "out[:, 2] / (1 // 0)")


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., CheckOutcome]:
    """What becomes of the one check of this text, for an attempt that does this."""

    def judged(f: Callable[[torch.Tensor], object], checks: str = CHECKS) -> CheckOutcome:
        file = tmp_path / "test_unfit_answers.py"
        file.write_text(checks)
        right = LocalRunner({"f": lambda x: x}, only_values=True)
        run = CheckRun(LocalRecordingRunner({"f": f}), right, b"secret", ("f",))
        (outcome,) = HiddenChecks([file]).run(file, run)
        return outcome

    return judged


@pytest.mark.parametrize(("f", "says"), [
    pytest.param(lambda x: x.sum(), "the output should have shape (2, 3, 4); yours has ()", id="a number"),
    pytest.param(lambda x: x.mean(1), "the output should have shape (2, 3, 4); yours has (2, 4)", id="no tokens"),
    pytest.param(lambda x: x > 0, "a tensor of float64 was expected; yours is of bool", id="bools"),
])  # fmt: skip
def test_an_answer_of_another_shape_or_kind_is_told_and_is_no_fault_of_the_grader(outcome, f, says):
    found = outcome(f)
    assert (found.outcome, found.evidence, found.fault) == ("failed", says, "")


def test_a_check_that_breaks_over_an_answer_like_the_references_is_broken_itself(outcome):
    found = outcome(lambda x: 2 * x, BROKEN)
    assert (found.outcome, found.evidence) == ("skipped", FAILED_ITSELF)
    assert "ZeroDivisionError" in found.fault
