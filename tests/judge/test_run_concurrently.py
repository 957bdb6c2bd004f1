"""Checks run side by side: each gets its own answers, and nobody's fate is another's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import Implementation, LocalRunner
from manyheads.checks.marks import Layer
from manyheads.checks.outcome import CheckOutcome
from manyheads.checks.recording import Exchange, Question
from manyheads.judge.check_run import Check, CheckRun
from manyheads.judge.run_checks import run_checks
from manyheads.judge.run_concurrently import run_concurrently


def reply(number: float) -> Reply:
    return Reply(outputs=(Output("tensor", torch.tensor(number), "float32", "cpu", ()),))


class Doubling:
    """Answers twice the number it is given; dies of a negative one. `rounds`: what was asked at once."""

    device, check = "cpu", ""

    def __init__(self) -> None:
        self.rounds: list[list[tuple[str, object]]] = []
        self.transcript: list[Exchange] = []

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        self.rounds.append([(q.check, q.call.args[0]) for q in questions])
        return [self._answer(q) for q in questions]

    def _answer(self, question: Question) -> Reply | AttemptEnded:
        (number,) = question.call.args
        assert isinstance(number, int)
        if number < 0:
            return AttemptEnded(End.CRASHED, "It died.")
        answer = reply(2.0 * number)
        self.transcript.append(Exchange(question.check, question.call, answer))
        return answer

    def execute(self, call: Call) -> Reply:
        raise AssertionError("asked alone")


def check_of(name: str, function: Callable[[Implementation], None]) -> Check:
    return Check(f"test_{name}", function, ("attempt",), CheckOutcome(name, name, Layer.VALUES, 1.0, ""))


def asks(*numbers: int) -> Check:
    """A check that asks these and fails where an answer is not its own."""

    def function(attempt: Implementation) -> None:
        for number in numbers:
            assert attempt.call("f", number).output == 2 * number

    name = "asks " + " ".join(map(str, numbers))
    return check_of(name, function)


def run(*checks: Check) -> tuple[list[BaseException | None], Doubling]:
    subject = Doubling()
    return run_concurrently(checks, CheckRun(subject, LocalRunner({}), b"s", ("f",))), subject


def test_what_all_checks_ask_next_is_asked_at_once() -> None:
    ended, subject = run(asks(1, 2, 3), asks(4), asks(), asks(5, 6))
    assert ended == [None] * 4
    assert [[number for _, number in asked] for asked in subject.rounds] == [[1, 4, 5], [2, 6], [3]]
    assert subject.rounds[0] == [("asks 1 2 3", 1), ("asks 4", 4), ("asks 5 6", 5)]


def test_who_dies_of_a_call_takes_no_other_check_along() -> None:
    ended, subject = run(asks(1, 2), asks(-1, 3), asks(4, 5))
    assert [str(error) for error in ended] == ["None", "It died.", "None"]
    assert [number for asked in subject.rounds for _, number in asked] == [1, -1, 4, 2, 5]


def test_a_check_that_fails_or_is_wrong_itself_ends_alone() -> None:
    def fails(attempt: Implementation) -> None:
        attempt.call("f", 1)
        raise KeyError("mine")

    ended, _ = run(asks(1, 2), check_of("fails", fails), asks(3, 4))
    assert [type(error) for error in ended] == [type(None), KeyError, type(None)]


def test_a_fault_while_asking_is_raised_and_leaves_no_check_behind() -> None:
    left = []

    def waits(attempt: Implementation) -> None:
        try:
            attempt.call("f", "no number")
        finally:
            left.append("left")

    with pytest.raises(AssertionError):
        run(check_of("waits", waits))
    assert left == ["left"]


def test_the_record_stands_in_the_order_of_the_checks_whoever_asked_first() -> None:
    subject = Doubling()
    reference = LocalRunner({"f": lambda number: torch.tensor(2.0 * number)})
    run_checks([asks(1, 2), asks(4), asks(5, 6)], CheckRun(subject, reference, b"s", ("f",)), {})
    assert [number for asked in subject.rounds for _, number in asked] == [1, 4, 5, 2, 6]
    assert [e.call.args[0] for e in subject.transcript] == [1, 2, 4, 5, 6]
