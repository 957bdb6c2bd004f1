"""What is remembered of earlier attempts: equal bytes, packed calls, answers of trusted code. And what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from manyheads.box.replies import BadReply
from manyheads.box.worker import wire
from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.box.worker.messages import Call
from manyheads.checks.local import ReplayRunner
from manyheads.checks.marks import Layer
from manyheads.checks.outcome import CheckOutcome
from manyheads.judge.memory import LARGE, Memory, RememberingRunner, Step

X = torch.ones(2, dtype=torch.float64)


def payload(numbers: int, value: float = 1.0) -> bytes:
    """A reply with that many numbers, as an attempt sends it."""
    tensor = torch.full((numbers,), value, dtype=torch.float64)
    return wire.encode(Reply(outputs=(Output("tensor", tensor, "float64", "cpu", (numbers,)),)))[wire.LENGTH.size :]


def test_the_same_bytes_are_one_reply_and_others_are_not() -> None:
    memory = Memory()
    assert memory.read(payload(3)) is memory.read(payload(3))
    assert memory.read(payload(3)) is not memory.read(payload(3, 2.0))


def test_bytes_that_are_no_reply_are_refused_every_time() -> None:
    memory = Memory()
    for _ in range(2):
        with pytest.raises(BadReply):
            memory.read(b"no reply")


def test_a_large_reply_is_read_and_not_kept() -> None:
    memory, large = Memory(), payload(LARGE)
    assert memory.read(large) is not memory.read(large)
    step = memory.first("check")
    assert not memory.after(step, memory.read(large)).is_held


def test_a_reply_that_reports_on_cells_is_no_answer_and_not_kept() -> None:
    words = Raised("E", ("E",), "a" * 3999 + "\U0001f600", "call", None)
    memory, cells = Memory(), wire.encode(Reply(stopped=(words,) * 60))[wire.LENGTH.size :]
    assert memory.read(cells) is not memory.read(cells)
    assert memory.size == 0


def test_what_is_kept_of_a_message_counts_as_it_lies_in_memory() -> None:
    memory = Memory()
    message = "a" * 3999 + "\U0001f600"  # one character beyond the first plane: four bytes for each
    raised = wire.encode(Reply(raised=Raised("E", ("E",), message, "call", None)))[wire.LENGTH.size :]
    memory.read(raised)
    assert memory.size > len(raised) + 4 * len(message)


def test_equal_calls_are_one_and_that_one_is_nobodys_to_change() -> None:
    memory, mine = Memory(), X.clone()
    held = memory.hold(Call("f", (mine,)))
    assert memory.hold(Call("f", (X,))) is held
    assert memory.hold(held) is held
    assert memory.replays.hold(Call("f", (X,))) is held
    mine.add_(1)
    assert torch.equal(held.args[0], X)
    assert memory.hold(Call("f", (mine,))) is not held
    assert memory.hold(Call("f", (X,), random=True)) is not held


def test_a_call_that_lives_longer_than_the_memory_is_held_as_it_is() -> None:
    memory, probe = Memory(), Call("f", (X,))
    memory.hold_as_it_is(probe)
    assert memory.hold(probe) is probe
    memory.pack(probe, "float64")
    assert memory.pack(probe, "float64") is memory.pack(probe, "float64")


def test_what_is_packed_is_kept_from_the_second_time_on_in_each_dtype() -> None:
    memory, other = Memory(), Call("f", (X,))
    call = memory.hold(other)
    assert memory.pack(call, "float64") is not memory.pack(call, "float64")
    in_double, in_single = memory.pack(call, "float64"), memory.pack(call, "float32")
    assert memory.pack(call, "float64") is in_double
    assert (b"F64" in in_double, b"F32" in in_single) == (True, True)
    assert memory.pack(other, "float64") is not memory.pack(other, "float64")


def test_trusted_code_answers_a_call_that_is_held_once_and_any_other_anew() -> None:
    memory, asked = Memory(), []
    names = {"f": lambda x: asked.append(1) or x}
    call = memory.hold(Call("f", (X,)))
    for each in (call, call, Call("f", (X,)), Call("f", (X,))):
        ReplayRunner(names, only_values=True, replays=memory.replays).execute(each)
    assert len(asked) == 3
    RememberingRunner(names, only_values=True, memory=memory).execute(Call("f", (X,)))
    assert len(asked) == 3


def test_a_reply_that_a_check_has_changed_is_made_anew() -> None:
    memory, call = Memory(), Call("f", (X,))
    reference = RememberingRunner({"f": lambda x: x + 1}, memory=memory)
    for _ in range(2):
        for reply in (reference.execute(call), memory.read(payload(2, 2.0))):
            found = reply.outputs[0].tensor
            assert found.tolist() == [2, 2]
            found.mul_(3)


def test_what_other_code_answers_is_its_own() -> None:
    memory = Memory()
    call = memory.hold(Call("f", (X,)))
    once = ReplayRunner({"f": lambda x: x}, replays=memory.replays)
    assert once.of({"f": lambda x: 2 * x}).execute(call).outputs[0].tensor.tolist() == [2, 2]
    assert once.execute(call).outputs[0].tensor.tolist() == [1, 1]


def test_what_a_pair_answers_is_known_to_the_next_namespace_that_is_made_of_it() -> None:
    memory, asked, pair = Memory(), [], (object(), object())
    call = memory.hold(Call("f", (X,)))
    once = ReplayRunner({}, only_values=True, replays=memory.replays)
    runners = [once.of({"f": lambda x: asked.append(1) or x}, pair) for _ in range(2)]
    assert id(call) not in runners[1].known_calls()
    assert [runner.execute(call).outputs[0].tensor.tolist() for runner in runners] == [[1, 1], [1, 1]]
    assert (len(asked), id(call) in runners[1].known_calls()) == (1, True)
    memory.replays.forget_calls({id(call)})
    assert id(call) not in runners[1].known_calls()


def test_a_large_answer_of_trusted_code_is_not_kept() -> None:
    memory, call = Memory(), Call("f", (X,))
    held, size = memory.hold(call), 2 * LARGE // X.element_size()
    for numbers, kept in ((2, True), (size, False)):
        runner = ReplayRunner({"f": lambda x, n=numbers: x[:1].expand(n).clone()}, replays=memory.replays)
        runner.execute(held)
        assert (id(held) in runner.known_calls()) is kept
    assert memory.replays.bytes == X.nbytes


def test_what_is_made_of_a_call_that_is_held_is_made_once_and_forgotten_with_it() -> None:
    memory, made = Memory(), []

    def make() -> tuple[str, int]:
        made.append(1)
        return "curve", 100

    call = memory.hold(Call("f", (X,)))
    for each in (call, call, Call("f", (X,))):
        assert memory.replays.kept("family", each, make) == "curve"
    assert (len(made), memory.replays.bytes) == (2, 100)
    memory.replays.forget_calls({id(call)})
    assert memory.replays.bytes == 0


def test_beyond_its_limit_it_forgets_what_was_met_but_once_and_only_between_attempts() -> None:
    memory = Memory(limit=5000)
    common, rare = memory.read(payload(200)), memory.read(payload(300))
    assert memory.read(payload(200)) is common
    memory.read(payload(100))
    memory.begin_attempt()
    assert memory.read(payload(200)) is common
    assert memory.read(payload(300)) is not rare


def test_it_forgets_all_where_most_of_it_is_met_again_and_again() -> None:
    memory = Memory(limit=1000)
    first = memory.read(payload(200))
    assert memory.read(payload(200)) is first
    memory.begin_attempt()
    assert memory.read(payload(200)) is not first


def after(memory: Memory, call: Call, *said: int) -> Step:
    """Where a check stands that asked this call again and again, and got replies of so many numbers."""
    step = memory.first("check")
    for numbers in said:
        if not step.is_known:
            memory.note(step, call)
        memory.pack(memory.hold(call), "float64")
        step = memory.after(step, memory.read(payload(numbers)))
    return step


def test_a_check_goes_on_as_before_where_its_replies_are_kept_and_is_new_after_those_forgotten() -> None:
    memory, call, outcome = Memory(limit=5000), Call("f", (X,)), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    for said in ((100,), (100,), (300,), (200,)):
        memory.note(after(memory, call, *said), outcome)
    memory.begin_attempt()
    assert len(memory.first("check").after) == 1  # another object may get the id of a reply that is no more
    assert after(memory, call, 100).outcome is outcome
    assert not after(memory, call, 300).is_known


def test_what_trusted_code_answered_goes_with_the_call() -> None:
    memory, asked = Memory(limit=1000), []
    reference = RememberingRunner({"f": lambda x: asked.append(1) or x}, memory=memory)
    reference.execute(Call("f", (X,)))
    reference.execute(Call("f", (X,)))
    reference.execute(Call("f", (torch.ones(100, dtype=torch.float64),)))
    assert (len(asked), memory.replays.bytes) == (2, 102 * 8)
    memory.begin_attempt()
    assert memory.replays.bytes == 2 * 8
    reference.execute(Call("f", (X,)))
    assert len(asked) == 2


def test_within_its_limit_it_forgets_nothing() -> None:
    memory = Memory(limit=3000)
    first = memory.read(payload(200))
    memory.begin_attempt()
    assert memory.read(payload(200)) is first


def test_where_a_check_broke_by_itself_it_is_tried_anew() -> None:
    memory, outcome = Memory(), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    memory.note(memory.first("check"), replace(outcome, fault="MemoryError"))
    assert not memory.first("check").is_known
    memory.note(memory.first("other"), outcome)
    assert memory.first("other").outcome is outcome
