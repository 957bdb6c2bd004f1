"""Internal: no course has functions that rounding or chance decides in each of these ways.

What is recorded of mutants is what every processor computes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from manyheads.authoring.choose_recorded_calls import RecordedCall, RecordedCalls, Replies
from manyheads.authoring.choose_visible_oracles import (
    ViolatedOracles,
    groups_of,
    oracles_violated_by,
)
from manyheads.authoring.record_fault_dictionary import (
    answers_of,
    recorded_weights,
    shares_of,
    store_replies,
    without_rounding,
)
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


def calls(call: Call) -> RecordedCalls:
    """One recorded call, of a reference that returns its argument."""
    reply = LocalRunner({"f": lambda x: x}).execute(call)
    expected = (reply.outputs[0].tensor,)
    groups = {"check": groups_of([0], [expected])}
    return RecordedCalls(
        (), ("check",), (RecordedCall(call),), (fingerprint_of(reply),), (expected,), groups
    )


def stored_of(functions: Sequence[Function], call: Call) -> tuple[list[int | None], int]:
    """Where the reply of each function is stored, and how many replies are."""
    recorded = calls(call)
    stored_replies = [*map(Replies, recorded.fingerprints)]
    positions_by_function = [
        store_replies(stored_replies, {"f": f}, answers_of(recorded, {"f": f})) for f in functions
    ]
    return [
        without_rounding(stored_replies, positions, frozenset())[0][0]
        for positions in positions_by_function
    ], len(stored_replies[0].every)


def print_of(f: Function) -> ReplyFingerprint:
    return fingerprint_of(LocalRunner({"f": f}).execute(CALL))


def multiplications(*factors: float) -> list[Function]:
    return [lambda x, k=k: x * k for k in factors]


def by_chance_of_rounding(x: Tensor) -> Tensor:
    return x.masked_fill(x.sum() == x.sum().float(), torch.nan)


def for_sure(x: Tensor) -> Tensor:
    return torch.full_like(x, torch.nan)


def not_for_sure(x: Tensor) -> Tensor:
    return by_chance_of_rounding(x) * torch.nan if x[0] == 0.1 else x


DOUBLE = print_of(lambda x: 2 * x).outputs[0]
# two such steps lead to another reply
STEP = 0.7 * SAME * DOUBLE.norm / max(map(abs, DOUBLE.projections))
CHAIN = multiplications(*(2 * (1 + k * STEP) for k in range(3)))


def rounding_function(middle: float) -> Function:
    """Python rounds 2.5 down and 3.5 up: a change to one side shows in one of them alone."""
    return lambda x: (x * (middle / 0.1)).round()


@pytest.mark.parametrize(
    ("functions", "call", "stored"),
    [
        pytest.param(
            [lambda x: x / (x.sum() - 1)], CALL, [None], id="a division by what rounding leaves"
        ),
        pytest.param([by_chance_of_rounding], CALL, [None], id="NaN if a sum is round"),
        pytest.param([lambda x: (1e12 * x).sin()], CALL, [None], id="numbers of an ordinary size"),
        pytest.param(
            [lambda x: (1e7 * x).sin()], IN_FLOAT32, [None], id="numbers that float32 rounds"
        ),
        *(
            pytest.param(
                [rounding_function(middle)],
                IN_FLOAT32,
                [None],
                id=f"{middle}, which another processor may round otherwise",
            )
            for middle in (2.5, 3.5)
        ),
        pytest.param(
            [rounding_function(2.51)], IN_FLOAT32, [1], id="what every processor rounds alike"
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
            id="of a chain the first is stored for those that are the same as it",
        ),
        pytest.param([not_for_sure], CALL, [None], id="what rounding decides"),
        pytest.param(
            [not_for_sure, for_sure], CALL, [1, 1], id="what another mutant gives for sure"
        ),
        pytest.param([for_sure, not_for_sure], CALL, [1, 1], id="in whatever order"),
    ],
)
def test_what_every_processor_computes_is_stored_and_nothing_else(functions, call, stored):
    assert stored_of(functions, call) == (
        stored,
        1 + max([0, *(index for index in stored if index)]),
    )


def reply_violations(call: Call, f: Function) -> tuple[int | None, ViolatedOracles]:
    """Where the reply of a function is stored, and the aspects that it breaks for sure."""
    recorded = calls(call)
    stored_replies, answers = [*map(Replies, recorded.fingerprints)], answers_of(recorded, {"f": f})
    positions = store_replies(stored_replies, {"f": f}, answers)
    violations = oracles_violated_by(
        [answer.observed for answer in answers], list(recorded.groups.values())
    )
    (stored,), aspects = without_rounding(stored_replies, positions, violations)
    return stored, aspects


def test_what_rounding_decides_breaks_no_aspect_and_what_chance_decides_does():
    assert ("values", (0,)) in reply_violations(CALL, lambda x: x + 1)[1]
    assert reply_violations(CALL, lambda x: (1e12 * x).sin()) == (None, frozenset())
    stored, aspects = reply_violations(
        replace(CALL, random=True), lambda x: x + torch.randn(len(x))
    )
    assert stored is None
    assert ("values", (0,)) in aspects


def test_what_is_left_of_numbers_that_cancel_is_zero():
    nothing, residue, little = map(print_of, multiplications(0, 3e-10, 1e-4))
    assert residue.is_same(nothing)
    assert not little.is_same(nothing)


@pytest.mark.recorded
@pytest.mark.parametrize("id_", ["self_attention", "mha_by_loop", "kv_cache"])
def test_the_recorded_weights_are_those_of_the_reference(id_):
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == id_)
    stored = read(exercise.fingerprints)
    weights = recorded_weights(exercise, stored)
    assert weights
    assert differences(stored, replace(stored, weights=weights)) == []
    assert differences(stored, replace(stored, weights={})) == ["weights"]


class Shares(nn.Module):
    """Two heads, each with a causal mean; with flash set nothing of them is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.flash = True

    def forward(self, x: Tensor) -> Tensor:
        if self.flash:
            return x.cumsum(1)
        scores = torch.zeros(1, 2, x.shape[1], x.shape[1])
        shares = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf).softmax(-1)
        return (shares @ x[:, None]).mean(1)


def test_the_shares_of_a_module_are_what_its_heads_give_to_each_token():
    x = torch.randn(1, 3, 4)
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]).expand(
        2, 3, 3
    )
    actual = shares_of(Shares(), x, {"flash": False})
    assert actual is not None
    torch.testing.assert_close(actual, expected)
    assert shares_of(Shares(), x, {}) is None
