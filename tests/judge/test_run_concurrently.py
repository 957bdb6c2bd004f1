"""Checks run concurrently, each with its own answers; a cache replays what earlier attempts did."""

from dataclasses import replace

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.replies import BadReply
from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import Exchange, LocalRunner
from manyheads.judge import run_hidden_checks
from manyheads.judge.attempt_runner import REPLY_LIMIT, RememberingRunner, ReplayCache
from manyheads.judge.collect_checks import Check, CheckRun
from manyheads.judge.run_hidden_checks import run_checks, run_concurrently
from tests.make import cases, payload

OUTCOME = CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
LONG_MESSAGE = "a" * 3999 + "\N{GRINNING FACE}"  # four bytes in memory for each character


def reply_with_numbers(count, value=1.0):
    """Return an encoded reply with `count` numbers."""
    tensor = torch.full((count,), value, dtype=torch.float64)
    return payload(Reply((Output("tensor", tensor, "float64", "cpu", (count,)),)))


class Doubling:
    """A runner that returns twice a number. Its process ends if the number is negative.

    Attributes:
        rounds: For each batch of calls, the check and the number of each call.
    """

    device, check = "cpu", ""

    def __init__(self, memory=None, plus=0.0):
        self.memory, self.plus = memory or ReplayCache(), plus
        self.rounds: list[list[tuple[str, int]]] = []
        self.transcript: list[Exchange] = []

    def execute_all(self, questions):
        self.rounds.append([(question.check, question.call.args[0]) for question in questions])
        return [self._answer(question) for question in questions]

    def _answer(self, question):
        (number,) = question.call.args
        assert isinstance(number, int)
        if number < 0:
            return AttemptEnded(End.CRASHED, "It died.")
        tensor = torch.tensor(2.0 * number + self.plus)
        reply = Reply((Output("tensor", tensor, "float32", "cpu", ()),))
        answer = self.memory.read(payload(reply))
        self.transcript.append(Exchange(question.check, question.call, answer))
        return answer


@pytest.fixture(autouse=True)
def use_exception_as_evidence(monkeypatch):
    """Make the exception that ended a check its evidence."""

    def judge_check(check, error, run):
        evidence = "" if error is None else f"{type(error).__name__}: {error}"
        return replace(check.unattempted, evidence=evidence)

    monkeypatch.setattr(run_hidden_checks, "outcome_of_check", judge_check)


def check_with_function(name, function):
    return Check(f"test_{name}", function, replace(OUTCOME, id=name, title=name))


def check_of(*numbers):
    """Return a check that calls f with each number, and fails if the answer is not twice that."""

    def function(attempt):
        for number in numbers:
            assert attempt.call("f", number).output == 2 * number

    return check_with_function("asks " + " ".join(map(str, numbers)), function)


def evidence_of_checks(*checks, attempt=None):
    attempt = attempt or Doubling()
    check_run = CheckRun(attempt, LocalRunner({}), b"s", ("f",), attempt.memory)
    return [outcome.evidence for outcome in run_concurrently(checks, check_run)]


def test_the_next_calls_of_all_checks_form_one_batch():
    attempt = Doubling()
    assert (
        evidence_of_checks(
            check_of(1, 2, 3),
            check_of(4),
            check_of(),
            check_of(5, 6),
            attempt=attempt,
        )
        == [""] * 4
    )
    assert attempt.rounds == [
        [("asks 1 2 3", 1), ("asks 4", 4), ("asks 5 6", 5)],
        [("asks 1 2 3", 2), ("asks 5 6", 6)],
        [("asks 1 2 3", 3)],
    ]


def raises_its_own_error(attempt):
    attempt.call("f", 1)
    raise KeyError("mine")


@cases(
    "check, evidence",
    {
        "dies of a call": (check_of(-1, 3), "AttemptEnded: It died."),
        "fails by itself": (check_with_function("fails", raises_its_own_error), "KeyError: 'mine'"),
    },
)
def test_other_checks_continue_if_one_fails(check, evidence):
    assert evidence_of_checks(check_of(1, 2), check, check_of(4, 5)) == [
        "",
        evidence,
        "",
    ]


def test_a_fault_of_the_grader_is_raised_after_the_checks_clean_up():
    events = []

    def waits(attempt):
        try:
            attempt.call("f", "no number")
        finally:
            events.append("left")

    with pytest.raises(AssertionError):
        evidence_of_checks(check_with_function("waits", waits))
    assert events == ["left"]


def test_the_transcript_follows_the_order_of_the_checks():
    attempt = Doubling()
    reference = LocalRunner({"f": lambda number: torch.tensor(2.0 * number)})
    run_checks(
        [check_of(1, 2), check_of(4), check_of(5, 6)],
        CheckRun(attempt, reference, b"s", ("f",)),
    )
    assert [number for calls in attempt.rounds for _, number in calls] == [1, 4, 5, 2, 6]
    assert [exchange.call.args[0] for exchange in attempt.transcript] == [1, 2, 4, 5, 6]


class WrongAfterFirstCall(Doubling):
    """A runner whose answers are 1 too large after the first call."""

    def _answer(self, question):
        self.plus = float(len(self.rounds) > 1)
        return super()._answer(question)


class EndsAtSecondCall(Doubling):
    """A runner whose process ends at the second call."""

    def _answer(self, question):
        if len(self.rounds) > 1:
            return AttemptEnded(End.CRASHED, "It died.")
        return super()._answer(question)


def check_of_two_calls(runs):
    """Return a check that calls f(1), then f with the answer, and appends to `runs` if it runs.

    It fails if the second answer is not 4.
    """

    def function(attempt):
        runs.append(attempt)
        first_answer = attempt.call("f", 1).output
        second_answer = attempt.call("f", int(first_answer)).output
        if second_answer != 4:
            raise AssertionError(f"after {first_answer:g}")

    return check_with_function("asks twice", function)


def test_a_check_runs_once_for_each_sequence_of_answers():
    """If all its answers are known, its calls and its outcome are replayed without running it."""
    runs = []
    cache = ReplayCache()
    check = check_of_two_calls(runs)
    attempts = [Doubling(cache, plus) for plus in (0.0, 1.0, 0.0, 1.0)]  # f(1) is 2 or 3
    evidence = [evidence_of_checks(check, attempt=attempt) for attempt in attempts]
    assert evidence == [[""], ["AssertionError: after 3"]] * 2
    assert len(runs) == 2
    assert attempts[0].rounds == attempts[2].rounds
    calls = [exchange.call for exchange in attempts[0].transcript]
    assert calls == [exchange.call for exchange in attempts[2].transcript]
    # f(1) is 2, as for the first attempt, but f(2) is 5
    assert evidence_of_checks(check, attempt=WrongAfterFirstCall(cache)) == [
        "AssertionError: after 2"
    ]
    assert len(runs) == 3


def test_an_attempt_that_ends_is_neither_replayed_nor_changes_other_replays():
    """Both attempts return 2 for f(1), but one attempt ends in the middle of f(2)."""
    runs = []
    cache = ReplayCache()
    check = check_of_two_calls(runs)
    ended = ["AttemptEnded: It died."]
    assert evidence_of_checks(check, attempt=EndsAtSecondCall(cache)) == ended
    assert len(runs) == 1
    assert evidence_of_checks(check, attempt=Doubling(cache)) == [""]
    assert len(runs) == 2
    assert evidence_of_checks(check, attempt=Doubling(cache)) == [""]
    assert len(runs) == 2
    assert evidence_of_checks(check, attempt=EndsAtSecondCall(cache)) == ended


X = torch.ones(2, dtype=torch.float64)


def test_an_invalid_reply_is_refused_every_time():
    cache = ReplayCache()
    for _ in range(2):
        with pytest.raises(BadReply):
            cache.read(b"no reply")


@cases(
    "encoded_reply",
    {
        "many numbers": reply_with_numbers(REPLY_LIMIT),
        "a report on cells": payload(
            Reply(stopped=(Raised("E", ("E",), LONG_MESSAGE, "call", None),) * 60)
        ),
    },
)
def test_a_large_reply_is_not_cached(encoded_reply):
    cache = ReplayCache()
    assert cache.read(encoded_reply) is not cache.read(encoded_reply)
    assert cache.size == 0
    reply, step = cache.read(encoded_reply), cache.first_step("check")
    assert cache.after(step, reply) is not cache.after(step, reply)


def test_a_cached_message_counts_with_its_size_in_memory():
    cache = ReplayCache()
    encoded_reply = payload(Reply(raised=Raised("E", ("E",), LONG_MESSAGE, "call", None)))
    cache.read(encoded_reply)
    assert cache.size > len(encoded_reply) + 4 * len(LONG_MESSAGE)


def test_equal_calls_share_one_object_that_checks_cannot_change():
    cache, argument, recorded = ReplayCache(), X.clone(), Call("g", (X,))
    call = cache.hold(Call("f", (argument,)))
    assert cache.hold(Call("f", (X,))) is cache.hold(call) is call
    argument.add_(1)
    assert torch.equal(call.args[0], X)
    assert cache.hold(Call("f", (argument,))) is not call
    assert cache.hold(Call("f", (X,), random=True)) is not call
    cache.hold_as_it_is(recorded)
    assert cache.hold(recorded) is recorded


def test_a_cached_call_is_encoded_once_for_each_dtype():
    cache = ReplayCache()
    call = cache.hold(Call("f", (X,)))
    in_double, in_single = cache.pack(call, "float64"), cache.pack(call, "float32")
    assert cache.pack(call, "float64") is in_double
    assert (b"F64" in in_double, b"F32" in in_single) == (True, True)


@pytest.mark.parametrize(("size", "executions"), [(2, 1), (REPLY_LIMIT, 2)])
def test_the_reference_answers_equal_calls_once_unless_the_answer_is_large(size, executions):
    cache, calls = ReplayCache(), []
    call = cache.hold(Call("f", (X,)))
    reference = RememberingRunner(
        {"f": lambda x: calls.append(1) or x.new_zeros(size)}, memory=cache
    )
    for _ in range(2):
        reference.execute(call)
    assert len(calls) == executions
    assert cache.size < 8 * REPLY_LIMIT


def test_a_reply_that_a_check_modified_is_not_reused():
    cache, call = ReplayCache(), Call("f", (X,))
    reference = RememberingRunner({"f": lambda x: x + 1}, memory=cache)
    for _ in range(2):
        for reply in (reference.execute(call), cache.read(reply_with_numbers(2, 2.0))):
            tensor = reply.outputs[0].tensor
            assert tensor.tolist() == [2, 2]
            tensor.mul_(3)


@pytest.mark.parametrize("is_beyond", [True, False])
def test_a_cache_above_its_limit_is_emptied_between_attempts(is_beyond):
    cache = ReplayCache(limit=1000 if is_beyond else 3000)
    first_reply, step = cache.read(reply_with_numbers(200)), cache.first_step("check")
    cache.note(step, Call("f", (X,)))
    cache.note(cache.after(step, first_reply), OUTCOME)
    assert cache.after(step, cache.read(reply_with_numbers(200))).next_action is OUTCOME
    cache.begin_attempt()
    assert (cache.size == 0) == is_beyond
    assert (cache.first_step("check").next_action is None) == is_beyond
    assert (cache.read(reply_with_numbers(200)) is first_reply) != is_beyond


def test_a_broken_check_is_run_again():
    cache = ReplayCache()
    cache.note(cache.first_step("check"), replace(OUTCOME, fault="MemoryError"))
    assert cache.first_step("check").next_action is None
    cache.note(cache.first_step("other"), OUTCOME)
    assert cache.first_step("other").next_action is OUTCOME
