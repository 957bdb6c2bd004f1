"""What is recorded of mutants is what every processor computes: nothing that chance or rounding decides."""

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from manyheads.authoring.asked_aspects import Broken, broken_aspects, groups_of
from manyheads.authoring.mutant_answers import Asked, KnownReplies, answers_of, without_rounding
from manyheads.authoring.record_calls import RecordedCalls
from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.diagnosis.fingerprint import SAME, ReplyFingerprint, fingerprint_of

Places = tuple[int | None, ...]
CALL = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64),))


def calls(call: Call = CALL) -> RecordedCalls:
    """One recorded call, of a reference that returns its argument."""
    reply = LocalRunner({"f": lambda x: x}).execute(call)
    expected = (reply.outputs[0].tensor,)
    groups = {"check": groups_of([0], expected)}
    return RecordedCalls((), ("check",), (call,), (reply,), (fingerprint_of(reply),), (expected,), groups)


def answers(recorded: RecordedCalls, f: object) -> list[Asked]:
    """How a function answers where no check has asked it."""
    return answers_of(recorded, {"f": f})


def places(functions: Sequence[object], call: Call = CALL) -> tuple[list[Places], tuple[ReplyFingerprint, ...]]:
    """What is stored of these functions: the places of their replies to the call, and the replies."""
    recorded = calls(call)
    known = KnownReplies(recorded.right)
    found = [known.places({"f": f}, answers(recorded, f)) for f in functions]
    return [known.settled(each) for each in found], known.replies[0]


def by_a_sum_that_cancels(x: Tensor) -> Tensor:
    return x / (x.sum() - 1)


def by_chance_of_rounding(x: Tensor) -> Tensor:
    return x.masked_fill(x.sum() == x.sum().float(), torch.nan)


@pytest.mark.parametrize(("f", "stored"), [
    pytest.param(by_a_sum_that_cancels, None, id="a division by what rounding leaves"),
    pytest.param(by_chance_of_rounding, None, id="NaN if a sum is round"),
    pytest.param(lambda x: (1e12 * x).sin(), None, id="numbers of an ordinary size"),
    pytest.param(lambda x: x * 1e9, 1, id="large numbers"),
    pytest.param(lambda x: x.masked_fill(x > 0.25, torch.nan), 1, id="NaN where it always is"),
    pytest.param(lambda x: x.masked_fill(x > 0.25, -torch.inf), 1, id="an infinity"),
])  # fmt: skip
def test_what_rounding_decides_is_not_recorded_and_what_is_large_or_no_number_by_itself_is(f, stored) -> None:
    assert places([f])[0] == [(stored,)]


@pytest.mark.parametrize("middle", [2.5, 3.5])
def test_a_float32_that_another_processor_may_round_to_the_other_side_is_not_recorded(middle: float) -> None:
    """Python rounds 2.5 down and 3.5 up: a change to one side shows in one of them alone."""
    narrow = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4]),), dtype="float32")
    assert places([lambda x: (x * (middle / 0.1)).round()], call=narrow)[0] == [(None,)]
    assert places([lambda x: (x * ((middle + 0.01) / 0.1)).round()], call=narrow)[0] == [(1,)]


def broken(call: Call, f: object) -> tuple[Places, Broken]:
    """What is stored of a function, and the aspects that it breaks for sure."""
    recorded, known = calls(call), KnownReplies(calls(call).right)
    given = answers(recorded, f)
    found = known.places({"f": f}, given)
    every = broken_aspects([each.told for each in given], list(recorded.groups.values()))
    return known.settled(found), without_rounding(every, found, known.settled(found))


def test_what_rounding_decides_breaks_no_aspect() -> None:
    assert ("values", (0,)) in broken(CALL, lambda x: x + 1)[1]
    assert broken(CALL, lambda x: (1e12 * x).sin()) == ((None,), frozenset())


def test_what_chance_decides_is_no_reply_but_breaks_aspects() -> None:
    stored, aspects = broken(dataclasses.replace(CALL, random=True), lambda x: x + torch.randn(len(x)))
    assert stored == (None,)
    assert ("values", (0,)) in aspects


FACTORS = [lambda x, k=k: x * k for k in (1.0, 2.0, 2.0 + 1e-9, 3.0)]


def test_answers_that_differ_by_rounding_are_kept_once() -> None:
    found, replies = places(FACTORS)
    assert found == [(0,), (1,), (1,), (2,)]
    assert len(replies) == 3


def test_in_a_chain_of_replies_each_the_same_as_the_next_the_first_is_stored_for_those_that_are_the_same_as_it():
    right = fingerprint_of(LocalRunner({"f": lambda x: 2 * x}).execute(CALL)).outputs[0]
    step = 0.7 * SAME * right.norm / max(map(abs, right.projections))  # two such steps lead to another reply
    chain = [lambda x, k=k: 2 * (1 + k * step) * x for k in range(3)]
    assert places(chain)[0] == [(1,), (1,), (2,)]


def test_a_reply_that_rounding_decides_is_recorded_where_another_mutant_gives_it_for_sure() -> None:
    def sure(x: Tensor) -> Tensor:
        return torch.full_like(x, torch.nan)

    def unsure(x: Tensor) -> Tensor:
        return x.masked_fill(x.sum() == x.sum().float(), torch.nan) * torch.nan if x[0] == 0.1 else x

    assert places([unsure])[0] == [(None,)]
    assert places([unsure, sure])[0] == places([sure, unsure])[0] == [(1,), (1,)]


def test_what_is_left_of_numbers_that_cancel_is_zero() -> None:
    scaled = [LocalRunner({"f": lambda x, k=k: x * k}).execute(CALL) for k in (0, 3e-10, 1e-4)]
    nothing, rest, little = map(fingerprint_of, scaled)
    assert rest.is_same(nothing)
    assert not little.is_same(nothing)


def test_of_a_call_in_float32_what_its_rounding_decides_is_not_recorded() -> None:
    call = dataclasses.replace(CALL, dtype="float32")
    assert places([lambda x: (1e7 * x.float()).sin()], call=call)[0] == [(None,)]
