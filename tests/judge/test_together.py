"""Checks run side by side: each gets its own answers, and nobody's fate is another's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from grader.box.connection import AttemptEnded, End
from grader.box.worker.answers import Output, Reply
from grader.box.worker.messages import Call
from grader.judge.candidate import Candidate, LocalPerformer
from grader.judge.session import CheckSession
from grader.judge.subject import Exchange, Question
from grader.judge.together import run_together
from grader.judge.turn import PlainCheck, Turn


def reply(number: float) -> Reply:
    return Reply(outputs=(Output("tensor", torch.tensor(number), "float32", "cpu", ()),))


class Doubling:
    """Answers twice the number it is given; dies of a negative one. `rounds`: what was asked at once."""

    device, check = "cpu", ""

    def __init__(self) -> None:
        self.rounds: list[list[tuple[str, object]]] = []
        self.transcript: list[Exchange] = []

    def perform_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
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

    def perform(self, call: Call) -> Reply:
        raise AssertionError("asked alone")


def asks(*numbers: int) -> PlainCheck:
    """A check that asks these and fails where an answer is not its own."""

    def function(attempt: Candidate) -> None:
        for number in numbers:
            assert attempt.call("f", number).output == 2 * number

    name = "asks " + " ".join(map(str, numbers))
    return PlainCheck(name, f"test_{name}", function, ("attempt",))


def run(*checks: PlainCheck) -> tuple[list[BaseException | None], Doubling]:
    subject = Doubling()
    turn = Turn(Path("checks.py"), subject, LocalPerformer({}), b"s", ("student",))
    return run_together(checks, turn), subject


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
    def fails(attempt: Candidate) -> None:
        attempt.call("f", 1)
        raise KeyError("mine")

    ended, _ = run(asks(1, 2), PlainCheck("fails", "test_fails", fails, ("attempt",)), asks(3, 4))
    assert [type(error) for error in ended] == [type(None), KeyError, type(None)]


def test_a_fault_while_asking_is_raised_and_leaves_no_check_behind() -> None:
    left = []

    def waits(attempt: Candidate) -> None:
        try:
            attempt.call("f", "no number")
        finally:
            left.append("left")

    with pytest.raises(AssertionError):
        run(PlainCheck("waits", "test_waits", waits, ("attempt",)))
    assert left == ["left"]


CHECKS = """
from grader.judge import Layer, check, expect

@check(points=1, layer=Layer.VALUES)
def test_two(attempt):
    "asks twice"
    attempt.call("f", 1)
    attempt.call("f", 2)

@check(points=1, layer=Layer.VALUES)
def test_more(attempt, tmp_path):
    "asks for more than a plain check does"
    attempt.call("f", 3)

@check(points=1, layer=Layer.VALUES)
def test_one(attempt):
    "asks once"
    attempt.call("f", 4)
"""


def test_the_record_stands_in_the_order_of_the_checks_whoever_asked_first(tmp_path: Path) -> None:
    class Alone(Doubling):
        def perform(self, call: Call) -> Reply:
            (answer,) = self.perform_all([Question(self.check, call)])
            assert isinstance(answer, Reply)
            return answer

    subject, file = Alone(), tmp_path / "test_record.py"
    file.write_text(CHECKS)
    with CheckSession([file]) as session:
        reference = LocalPerformer({"f": lambda number: torch.tensor(2.0 * number)})
        outcomes = session.run(Turn(file, subject, reference, b"s", ("student",)))
    assert [o.outcome for o in outcomes] == ["passed"] * 3
    assert [number for asked in subject.rounds for _, number in asked] == [1, 4, 2, 3]
    assert [(e.check, e.call.args[0]) for e in subject.transcript] == [("two", 1), ("two", 2), ("more", 3), ("one", 4)]
