"""Internal: no course has functions that depend on rounding or chance in all of these ways.

Replies of mutants that depend on rounding or chance are not stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from manyheads.authoring.choose_recorded_calls import RecordedCall, RecordedCalls, Replies
from manyheads.authoring.choose_visible_oracles import ViolatedOracles, groups_of
from manyheads.authoring.record_fault_dictionary import (
    recorded_weights,
    shares_of,
    store_replies,
    without_rounding,
)
from manyheads.authoring.remembered_steps import ProgramSteps
from manyheads.authoring.trusted_program import TrustedProgram
from manyheads.box.worker.messages import Call
from manyheads.checks.runner import LocalRunner
from manyheads.course import load_course
from manyheads.diagnosis.fingerprint import SAME, ReplyFingerprint, fingerprint_of
from manyheads.diagnosis.recording_file import read
from tests.authoring.same_recordings import differences
from tests.make import REPOSITORY

Function = Callable[[Tensor], Tensor]
CALL = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64),))
IN_FLOAT32 = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4]),), dtype="float32")


def recorded_calls(call: Call) -> RecordedCalls:
    """Return one recorded call of a reference that returns its argument."""
    reply = LocalRunner({"f": lambda x: x}).execute(call)
    expected = (reply.outputs[0].tensor,)
    groups = {"check": groups_of([0], [expected])}
    return RecordedCalls(
        (), ("check",), (RecordedCall(call),), (fingerprint_of(reply),), (expected,), groups
    )


def stored_replies_of(functions: Sequence[Function], call: Call) -> tuple[list[int | None], int]:
    """Return the index of each function's stored reply, None if it is not stored, and the number
    of stored replies.
    """
    recorded = recorded_calls(call)
    stored_replies = [*map(Replies, recorded.fingerprints)]
    positions_by_function = [
        store_replies(stored_replies, TrustedProgram({"f": f}, recorded, ProgramSteps()))
        for f in functions
    ]
    return [
        without_rounding(stored_replies, positions, frozenset())[0][0]
        for positions in positions_by_function
    ], len(stored_replies[0].every)


def fingerprint(f: Function) -> ReplyFingerprint:
    """Return the fingerprint of the function's reply to CALL."""
    return fingerprint_of(LocalRunner({"f": f}).execute(CALL))


def multiplications(*factors: float) -> list[Function]:
    """Return functions that multiply by these factors."""
    return [lambda x, k=k: x * k for k in factors]


def nan_if_the_sum_is_round(x: Tensor) -> Tensor:
    """Return NaN if rounding makes the sum of x a float32 number, else x."""
    return x.masked_fill(x.sum() == x.sum().float(), torch.nan)


def always_nan(x: Tensor) -> Tensor:
    return torch.full_like(x, torch.nan)


def nan_or_unchanged_by_rounding(x: Tensor) -> Tensor:
    """Return NaN for the original inputs, but x if they change by a rounding error."""
    return nan_if_the_sum_is_round(x) * torch.nan if x[0] == 0.1 else x


DOUBLED_OUTPUT = fingerprint(lambda x: 2 * x).outputs[0]
# replies that differ by one step count as the same, by two steps as different
STEP = 0.7 * SAME * DOUBLED_OUTPUT.norm / max(map(abs, DOUBLED_OUTPUT.projections))
CHAIN = multiplications(*(2 * (1 + k * STEP) for k in range(3)))


def rounding_function(middle: float) -> Function:
    """Return a function that rounds x, scaled so that its first element is `middle`.

    Python rounds 2.5 down and 3.5 up, so a small change of x in one direction changes the result
    of only one of them.
    """
    return lambda x: (x * (middle / 0.1)).round()


@pytest.mark.parametrize(
    ("functions", "call", "reply_indices"),
    [
        pytest.param(
            [lambda x: x / (x.sum() - 1)], CALL, [None], id="a division by a rounding error"
        ),
        pytest.param([nan_if_the_sum_is_round], CALL, [None], id="NaN if a sum is round"),
        pytest.param([lambda x: (1e12 * x).sin()], CALL, [None], id="numbers of an ordinary size"),
        pytest.param(
            [lambda x: (1e7 * x).sin()], IN_FLOAT32, [None], id="numbers that float32 rounds"
        ),
        *(
            pytest.param(
                [rounding_function(middle)],
                IN_FLOAT32,
                [None],
                id=f"{middle}, which another processor may round differently",
            )
            for middle in (2.5, 3.5)
        ),
        pytest.param(
            [rounding_function(2.51)],
            IN_FLOAT32,
            [1],
            id="a number that every processor rounds the same way",
        ),
        pytest.param(multiplications(1e9), CALL, [1], id="large numbers"),
        pytest.param(
            [lambda x: x.masked_fill(x > 0.25, torch.nan)], CALL, [1], id="NaN where it always is"
        ),
        pytest.param([lambda x: x.masked_fill(x > 0.25, -torch.inf)], CALL, [1], id="an infinity"),
        pytest.param(
            multiplications(1.0, 2.0, 2.0 + 1e-9, 3.0),
            CALL,
            [0, 1, 1, 2],
            id="answers that differ by rounding are kept once",
        ),
        pytest.param(
            CHAIN,
            CALL,
            [1, 1, 2],
            id="of similar replies the first is stored",
        ),
        pytest.param(
            [nan_or_unchanged_by_rounding], CALL, [None], id="a reply that depends on rounding"
        ),
        pytest.param(
            [nan_or_unchanged_by_rounding, always_nan],
            CALL,
            [1, 1],
            id="the same reply without rounding by a later mutant",
        ),
        pytest.param(
            [always_nan, nan_or_unchanged_by_rounding],
            CALL,
            [1, 1],
            id="the same reply without rounding by an earlier mutant",
        ),
    ],
)
def test_only_replies_that_every_processor_computes_are_stored(functions, call, reply_indices):
    assert stored_replies_of(functions, call) == (
        reply_indices,
        1 + max([0, *(index for index in reply_indices if index)]),
    )


def reply_violations(call: Call, f: Function) -> tuple[int | None, ViolatedOracles]:
    """Return the index of the function's stored reply, and the oracles that it certainly violates.

    The index is None if the reply is not stored.
    """
    recorded = recorded_calls(call)
    stored_replies = [*map(Replies, recorded.fingerprints)]
    program = TrustedProgram({"f": f}, recorded, ProgramSteps())
    positions = store_replies(stored_replies, program)
    violations = program.violations(list(recorded.groups.values()))
    (reply_index,), violated_oracles = without_rounding(stored_replies, positions, violations)
    return reply_index, violated_oracles


def test_random_replies_violate_oracles_but_rounding_does_not():
    assert ("values", (0,)) in reply_violations(CALL, lambda x: x + 1)[1]
    assert reply_violations(CALL, lambda x: (1e12 * x).sin()) == (None, frozenset())
    reply_index, violated_oracles = reply_violations(
        replace(CALL, random=True), lambda x: x + torch.randn(len(x))
    )
    assert reply_index is None
    assert ("values", (0,)) in violated_oracles


def test_a_residue_of_numbers_that_cancel_counts_as_zero():
    zero, residue, small = map(fingerprint, multiplications(0, 3e-10, 1e-4))
    assert residue.is_same(zero)
    assert not small.is_same(zero)


@pytest.mark.recorded
@pytest.mark.parametrize("id_", ["self_attention", "mha_by_loop", "kv_cache"])
def test_the_recorded_attention_weights_are_those_of_the_reference(id_):
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == id_)
    stored = read(exercise.fingerprints)
    weights = recorded_weights(exercise, stored)
    assert weights
    assert differences(stored, replace(stored, weights=weights)) == []
    assert differences(stored, replace(stored, weights={})) == ["weights"]


class TwoHeads(nn.Module):
    """Two heads that compute a causal mean; with flash set, the attention weights stay hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.flash = True

    def forward(self, x: Tensor) -> Tensor:
        if self.flash:
            return x.cumsum(1)
        scores = torch.zeros(1, 2, x.shape[1], x.shape[1])
        shares = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf).softmax(-1)
        return (shares @ x[:, None]).mean(1)


def test_shares_of_returns_the_attention_weights_of_each_head():
    x = torch.randn(1, 3, 4)
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]).expand(
        2, 3, 3
    )
    actual = shares_of(TwoHeads(), x, {"flash": False})
    assert actual is not None
    torch.testing.assert_close(actual, expected)
    assert shares_of(TwoHeads(), x, {}) is None
