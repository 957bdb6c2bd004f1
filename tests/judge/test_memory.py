"""What is remembered of earlier attempts: equal bytes, packed calls, answers of trusted code. And what is not."""

from dataclasses import replace

import pytest
import torch

from manyheads.box.replies import BadReply
from manyheads.box.worker import wire
from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.box.worker.messages import Call
from manyheads.checks.marks import Layer
from manyheads.checks.outcome import CheckOutcome
from manyheads.judge.memory import LARGE, Memory, RememberingRunner

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
    reply, step = memory.read(large), memory.first("check")
    assert memory.after(step, reply) is not memory.after(step, reply)


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
    mine.add_(1)
    assert torch.equal(held.args[0], X)
    assert memory.hold(Call("f", (mine,))) is not held
    assert memory.hold(Call("f", (X,), random=True)) is not held


def test_a_call_that_lives_longer_than_the_memory_is_held_as_it_is() -> None:
    memory, recorded = Memory(), Call("f", (X,))
    memory.hold_as_it_is(recorded)
    assert memory.hold(recorded) is recorded
    assert memory.pack(recorded, "float64") is memory.pack(recorded, "float64")


def test_what_is_packed_is_kept_in_each_dtype() -> None:
    memory, other = Memory(), Call("f", (X,))
    call = memory.hold(other)
    in_double, in_single = memory.pack(call, "float64"), memory.pack(call, "float32")
    assert memory.pack(call, "float64") is in_double
    assert (b"F64" in in_double, b"F32" in in_single) == (True, True)
    assert memory.pack(other, "float64") is not memory.pack(other, "float64")


def test_trusted_code_answers_equal_calls_once() -> None:
    memory, asked = Memory(), []
    names = {"f": lambda x: asked.append(1) or x}
    for _ in range(2):
        RememberingRunner(names, only_values=True, memory=memory).execute(Call("f", (X.clone(),)))
    assert len(asked) == 1


def test_a_reply_that_a_check_has_changed_is_made_anew() -> None:
    memory, call = Memory(), Call("f", (X,))
    reference = RememberingRunner({"f": lambda x: x + 1}, memory=memory)
    for _ in range(2):
        for reply in (reference.execute(call), memory.read(payload(2, 2.0))):
            found = reply.outputs[0].tensor
            assert found.tolist() == [2, 2]
            found.mul_(3)


def test_a_large_answer_of_trusted_code_is_not_kept() -> None:
    memory, asked = Memory(), []
    call = memory.hold(Call("f", (X,)))
    reference = RememberingRunner({"f": lambda x: asked.append(1) or x.new_zeros(LARGE)}, memory=memory)
    size = memory.size
    for _ in range(2):
        reference.execute(call)
    assert (len(asked), memory.size) == (2, size)


def test_beyond_its_limit_it_forgets_all_and_only_between_attempts() -> None:
    memory, outcome = Memory(limit=1000), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    first, step = memory.read(payload(200)), memory.first("check")
    memory.note(step, Call("f", (X,)))
    memory.note(memory.after(step, first), outcome)
    assert memory.after(memory.first("check"), memory.read(payload(200))).made is outcome
    memory.begin_attempt()
    assert memory.size == 0
    assert memory.first("check").made is None
    assert memory.read(payload(200)) is not first


def test_within_its_limit_it_forgets_nothing() -> None:
    memory = Memory(limit=3000)
    first = memory.read(payload(200))
    memory.begin_attempt()
    assert memory.read(payload(200)) is first


def test_where_a_check_broke_by_itself_it_is_tried_anew() -> None:
    memory, outcome = Memory(), CheckOutcome("check", "check", Layer.VALUES, 1.0, "")
    memory.note(memory.first("check"), replace(outcome, fault="MemoryError"))
    assert memory.first("check").made is None
    memory.note(memory.first("other"), outcome)
    assert memory.first("other").made is outcome
