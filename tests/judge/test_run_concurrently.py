"""Checks run side by side: each gets its own answers, and nobody's fate is another's. What is
remembered of earlier attempts, and what is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.replies import BadReply
from manyheads.box.worker import wire
from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.box.worker.wire import LENGTH, encode
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import CheckQuestion, Exchange, Implementation, LocalRunner
from manyheads.judge import run_hidden_checks
from manyheads.judge.attempt_runner import REPLY_LIMIT, RememberingRunner, ReplayCache
from manyheads.judge.collect_checks import Check, CheckRun
from manyheads.judge.run_hidden_checks import run_checks, run_concurrently


def reply(number: float) -> Reply:
    return Reply(outputs=(Output("tensor", torch.tensor(number), "float32", "cpu", ()),))


class Doubling:
    """Answers twice the number it is given; dies of a negative one. `rounds`: what was asked at
    once.
    """

    device, check = "cpu", ""

    def __init__(self) -> None:
        self.rounds: list[list[tuple[str, object]]] = []
        self.transcript: list[Exchange] = []

    def execute_all(self, questions: Sequence[CheckQuestion]) -> list[Reply | AttemptEnded]:
        self.rounds.append([(q.check, q.call.args[0]) for q in questions])
        return [self._answer(q) for q in questions]

    def _answer(self, question: CheckQuestion) -> Reply | AttemptEnded:
        (number,) = question.call.args
        assert isinstance(number, int)
        if number < 0:
            return AttemptEnded(End.CRASHED, "It died.")
        answer = reply(2.0 * number)
        self.transcript.append(Exchange(question.check, question.call, answer))
        return answer

    def execute(self, call: Call) -> Reply:
        raise AssertionError("asked alone")


@pytest.fixture(autouse=True)
def outcome_has_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome of a check tells what it ended with."""

    def judge_check(check: Check, error: BaseException | None, run: CheckRun) -> CheckOutcome:
        evidence = "" if error is None else f"{type(error).__name__}: {error}"
        return replace(check.unattempted, evidence=evidence)

    monkeypatch.setattr(run_hidden_checks, "outcome_of_check", judge_check)


def check_of(name: str, function: Callable[[Implementation], None]) -> Check:
    return Check(f"test_{name}", function, CheckOutcome(name, name, Layer.VALUES, 1.0, ""))


def asks(*numbers: int) -> Check:
    """A check that asks these and fails where an answer is not its own."""

    def function(attempt: Implementation) -> None:
        for number in numbers:
            assert attempt.call("f", number).output == 2 * number

    name = "asks " + " ".join(map(str, numbers))
    return check_of(name, function)


def run(
    *checks: Check, subject: Doubling | None = None, memory: ReplayCache | None = None
) -> tuple[list[str], Doubling]:
    subject = subject or Doubling()
    check_run = CheckRun(subject, LocalRunner({}), b"s", ("f",), memory or ReplayCache())
    return [outcome.evidence for outcome in run_concurrently(checks, check_run)], subject


def test_what_all_checks_ask_next_is_asked_at_once() -> None:
    ended, subject = run(asks(1, 2, 3), asks(4), asks(), asks(5, 6))
    assert ended == [""] * 4
    rounds = []
    for calls in subject.rounds:
        rounds.append([number for _, number in calls])
    assert rounds == [[1, 4, 5], [2, 6], [3]]
    assert subject.rounds[0] == [("asks 1 2 3", 1), ("asks 4", 4), ("asks 5 6", 5)]


def test_who_dies_of_a_call_takes_no_other_check_along() -> None:
    ended, subject = run(asks(1, 2), asks(-1, 3), asks(4, 5))
    assert ended == ["", "AttemptEnded: It died.", ""]
    assert [number for calls in subject.rounds for _, number in calls] == [1, -1, 4, 2, 5]


def test_a_check_that_fails_or_is_wrong_itself_ends_alone() -> None:
    def fails(attempt: Implementation) -> None:
        attempt.call("f", 1)
        raise KeyError("mine")

    ended, _ = run(asks(1, 2), check_of("fails", fails), asks(3, 4))
    assert ended == ["", "KeyError: 'mine'", ""]


def test_a_fault_while_asking_is_raised_and_leaves_no_check_behind() -> None:
    events = []

    def waits(attempt: Implementation) -> None:
        try:
            attempt.call("f", "no number")
        finally:
            events.append("left")

    with pytest.raises(AssertionError):
        run(check_of("waits", waits))
    assert events == ["left"]


def test_the_record_stands_in_the_order_of_the_checks_whoever_asked_first() -> None:
    subject = Doubling()
    reference = LocalRunner({"f": lambda number: torch.tensor(2.0 * number)})
    run_checks([asks(1, 2), asks(4), asks(5, 6)], CheckRun(subject, reference, b"s", ("f",)))
    assert [number for calls in subject.rounds for _, number in calls] == [1, 4, 5, 2, 6]
    assert [e.call.args[0] for e in subject.transcript] == [1, 2, 4, 5, 6]


class Remembering(Doubling):
    """Doubling whose answers are read as an attempt's are: equal bytes are one object. plus: is
    added to every answer.
    """

    def __init__(self, memory: ReplayCache, plus: float = 0.0) -> None:
        super().__init__()
        self.memory, self.plus = memory, plus

    def _answer(self, question: CheckQuestion) -> Reply | AttemptEnded:
        answer = super()._answer(question)
        if isinstance(answer, AttemptEnded):
            return answer
        number = answer.outputs[0].tensor
        return self.memory.read(encode(reply(float(number) + self.plus))[LENGTH.size :])


def counting_check(function: Callable[[Implementation], None]) -> tuple[Check, list[int]]:
    """A check, and how often its function has run."""
    runs: list[int] = []

    def count_run(attempt: Implementation) -> None:
        runs.append(1)
        function(attempt)

    return check_of("counted", count_run), runs


def asks_twice(attempt: Implementation) -> None:
    answer = attempt.call("f", 1).output
    if attempt.call("f", int(answer)).output != 4:
        raise AssertionError(f"after {answer:g}")


def test_after_the_same_answers_a_check_is_not_run_again_and_ends_as_before() -> None:
    memory = ReplayCache()
    check, runs = counting_check(asks_twice)
    ended = [
        run(check, subject=Remembering(memory, plus), memory=memory)[0] for plus in (0, 1, 0, 1)
    ]
    assert ended == [[""], ["AssertionError: after 3"]] * 2
    assert len(runs) == 2


def test_what_is_not_run_again_is_asked_all_the_same() -> None:
    memory = ReplayCache()
    check, _ = counting_check(asks_twice)
    first, second = (run(check, subject=Remembering(memory), memory=memory)[1] for _ in range(2))
    assert first.rounds == second.rounds
    assert [e.call for e in second.transcript] == [e.call for e in first.transcript]


def test_where_answers_part_the_check_is_run_from_its_beginning_with_its_own() -> None:
    class ChangesItsMind(Remembering):
        """Right in the first call alone."""

        def _answer(self, question: CheckQuestion) -> Reply | AttemptEnded:
            self.plus = float(len(self.rounds) > 1)
            return super()._answer(question)

    memory = ReplayCache()
    check, runs = counting_check(asks_twice)
    run(check, subject=Remembering(memory), memory=memory)
    assert run(check, subject=ChangesItsMind(memory), memory=memory)[0] == [
        "AssertionError: after 2"
    ]
    assert len(runs) == 2


def test_of_an_attempt_that_died_nothing_is_remembered() -> None:
    class Dies(Remembering):
        def _answer(self, question: CheckQuestion) -> Reply | AttemptEnded:
            return (
                AttemptEnded(End.CRASHED, "It died.")
                if len(self.rounds) > 1
                else super()._answer(question)
            )

    memory = ReplayCache()
    check, _ = counting_check(asks_twice)
    assert run(check, subject=Dies(memory), memory=memory)[0] == ["AttemptEnded: It died."]
    assert run(check, subject=Remembering(memory), memory=memory)[0] == [""]
    assert run(check, subject=Dies(memory), memory=memory)[0] == ["AttemptEnded: It died."]


X = torch.ones(2, dtype=torch.float64)


def payload(numbers: int, value: float = 1.0) -> bytes:
    """A reply with that many numbers, as an attempt sends it."""
    tensor = torch.full((numbers,), value, dtype=torch.float64)
    return wire.encode(Reply(outputs=(Output("tensor", tensor, "float64", "cpu", (numbers,)),)))[
        wire.LENGTH.size :
    ]


def test_the_same_bytes_are_one_reply_and_others_are_not() -> None:
    memory = ReplayCache()
    assert memory.read(payload(3)) is memory.read(payload(3))
    assert memory.read(payload(3)) is not memory.read(payload(3, 2.0))


def test_bytes_that_are_no_reply_are_refused_every_time() -> None:
    memory = ReplayCache()
    for _ in range(2):
        with pytest.raises(BadReply):
            memory.read(b"no reply")


def test_a_large_reply_is_read_and_not_kept() -> None:
    memory, large = ReplayCache(), payload(REPLY_LIMIT)
    assert memory.read(large) is not memory.read(large)
    reply, step = memory.read(large), memory.first_step("check")
    assert memory.after(step, reply) is not memory.after(step, reply)


def test_a_reply_that_reports_on_cells_is_no_answer_and_not_kept() -> None:
    words = Raised("E", ("E",), "a" * 3999 + "\U0001f600", "call", None)
    memory, cells = ReplayCache(), wire.encode(Reply(stopped=(words,) * 60))[wire.LENGTH.size :]
    assert memory.read(cells) is not memory.read(cells)
    assert memory.size == 0


def test_what_is_kept_of_a_message_counts_as_it_lies_in_memory() -> None:
    memory = ReplayCache()
    message = "a" * 3999 + "\U0001f600"  # one character beyond the first plane: four bytes for each
    raised = wire.encode(Reply(raised=Raised("E", ("E",), message, "call", None)))[
        wire.LENGTH.size :
    ]
    memory.read(raised)
    assert memory.size > len(raised) + 4 * len(message)


def test_equal_calls_are_one_and_that_one_is_nobodys_to_change() -> None:
    memory, argument = ReplayCache(), X.clone()
    call = memory.hold(Call("f", (argument,)))
    assert memory.hold(Call("f", (X,))) is call
    assert memory.hold(call) is call
    argument.add_(1)
    assert torch.equal(call.args[0], X)
    assert memory.hold(Call("f", (argument,))) is not call
    assert memory.hold(Call("f", (X,), random=True)) is not call


def test_a_call_that_lives_longer_than_the_memory_is_held_as_it_is() -> None:
    memory, recorded = ReplayCache(), Call("f", (X,))
    memory.hold_as_it_is(recorded)
    assert memory.hold(recorded) is recorded
    assert memory.pack(recorded, "float64") is memory.pack(recorded, "float64")


def test_what_is_packed_is_kept_in_each_dtype() -> None:
    memory, uncached = ReplayCache(), Call("f", (X,))
    call = memory.hold(uncached)
    in_double, in_single = memory.pack(call, "float64"), memory.pack(call, "float32")
    assert memory.pack(call, "float64") is in_double
    assert (b"F64" in in_double, b"F32" in in_single) == (True, True)
    assert memory.pack(uncached, "float64") is not memory.pack(uncached, "float64")


def test_trusted_code_answers_equal_calls_once() -> None:
    memory, calls = ReplayCache(), []
    names = {"f": lambda x: calls.append(1) or x}
    for _ in range(2):
        RememberingRunner(names, only_values=True, memory=memory).execute(Call("f", (X.clone(),)))
    assert len(calls) == 1


def test_a_reply_that_a_check_has_changed_is_made_anew() -> None:
    memory, call = ReplayCache(), Call("f", (X,))
    reference = RememberingRunner({"f": lambda x: x + 1}, memory=memory)
    for _ in range(2):
        for reply in (reference.execute(call), memory.read(payload(2, 2.0))):
            tensor = reply.outputs[0].tensor
            assert tensor.tolist() == [2, 2]
            tensor.mul_(3)


def test_a_large_answer_of_trusted_code_is_not_kept() -> None:
    memory, calls = ReplayCache(), []
    call = memory.hold(Call("f", (X,)))
    reference = RememberingRunner(
        {"f": lambda x: calls.append(1) or x.new_zeros(REPLY_LIMIT)}, memory=memory
    )
    size = memory.size
    for _ in range(2):
        reference.execute(call)
    assert (len(calls), memory.size) == (2, size)


def test_beyond_its_limit_it_forgets_all_and_only_between_attempts() -> None:
    memory, outcome = ReplayCache(limit=1000), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    first_reply, step = memory.read(payload(200)), memory.first_step("check")
    memory.note(step, Call("f", (X,)))
    memory.note(memory.after(step, first_reply), outcome)
    assert (
        memory.after(memory.first_step("check"), memory.read(payload(200))).next_action is outcome
    )
    memory.begin_attempt()
    assert memory.size == 0
    assert memory.first_step("check").next_action is None
    assert memory.read(payload(200)) is not first_reply


def test_within_its_limit_it_forgets_nothing() -> None:
    memory = ReplayCache(limit=3000)
    first_reply = memory.read(payload(200))
    memory.begin_attempt()
    assert memory.read(payload(200)) is first_reply


def test_where_a_check_broke_by_itself_it_is_tried_anew() -> None:
    memory, outcome = ReplayCache(), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    memory.note(memory.first_step("check"), replace(outcome, fault="MemoryError"))
    assert memory.first_step("check").next_action is None
    memory.note(memory.first_step("other"), outcome)
    assert memory.first_step("other").next_action is outcome
