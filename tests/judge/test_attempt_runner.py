"""AttemptRunner in a real box: batched calls, ended processes, time limits, impossible replies."""

from contextlib import ExitStack, closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from manyheads.box.connection import AttemptEnded, Connection, End
from manyheads.box.replies import BadReply, read_reply
from manyheads.box.worker import wire
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import (
    Build,
    Call,
    Entry,
    FollowUp,
    ModuleFacts,
    Output,
    Raised,
    Reply,
    Returned,
)
from manyheads.box.worker.result_form import OPAQUE, Form, misfit
from manyheads.checks.runner import CheckQuestion
from manyheads.judge.attempt_runner import AttemptRunner, validate_reply
from manyheads.submission import Source
from tests.make import cases

X = torch.tensor([1.0, 2.0], dtype=torch.float64)
DOUBLES = "def f(x):\n    return x + x\n"
SINGLE = "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)\n"
# Reports a change of an argument that the call does not have, after this many seconds of sleep.
LIES = (
    "import sys, time\nworker = sys.modules['manyheads_worker.answer_call']\n"
    "def f(x):\n    time.sleep({})\n"
    "    worker._changed_arguments = lambda *given: ('args.7',)\n    return x + x\n"
)
LOOPS = "def f(x=0):\n    while True: pass\n"


@pytest.fixture
def load_runner(box):
    """Return a function that loads an attempt (its text, its limits) and returns its runner."""
    with ExitStack() as stack:

        def load(source, device="cpu", in_box=box, **limits):
            runner = AttemptRunner(in_box, Source("a.py", source), Limits(**limits), device=device)
            runner.load()
            return stack.enter_context(closing(runner))

        yield load


def outcomes_of_batch(runner, functions):
    """Call functions of an attempt in one batch.

    Return for each call the numbers of its answer, the name of its exception, or how it ended.

    Args:
        runner: The runner of the attempt.
        functions: Names of one letter; the first function gets X, the second 2 * X, and so on.
    """
    questions = [
        CheckQuestion(f"{name} {i}", Call(name, (X * i,))) for i, name in enumerate(functions, 1)
    ]
    outcomes: list[object] = []
    for answer in runner.execute_all(questions):
        if isinstance(answer, AttemptEnded):
            outcomes.append(answer.end)
        elif answer.raised:
            outcomes.append(answer.raised.type)
        else:
            outcomes.append(answer.outputs[0].tensor.tolist())
    return outcomes


@pytest.fixture
def batch_sizes(monkeypatch):
    """Return a list that records how many calls were sent in each batch."""
    counts: list[int] = []
    ask_all, ask_one = Connection.ask_all, Connection.ask

    def count_all(self, messages, *rest):
        counts.append(len(messages))
        return ask_all(self, messages, *rest)

    def count_one(self, message, *rest):
        if isinstance(message, Call):
            counts.append(1)
        return ask_one(self, message, *rest)

    monkeypatch.setattr(Connection, "ask_all", count_all)
    monkeypatch.setattr(Connection, "ask", count_one)
    return counts


def test_a_batch_returns_each_answer_and_records_its_check(load_runner, batch_sizes):
    runner = load_runner(DOUBLES + "def g(x):\n    raise KeyError\n")
    assert outcomes_of_batch(runner, "fgfh") == [
        [2.0, 4.0],
        "KeyError",
        [6.0, 12.0],
        "AttributeError",
    ]
    assert [exchange.check for exchange in runner.transcript] == ["f 1", "g 2", "f 3", "h 4"]
    assert batch_sizes == [4, 2]  # a call that raises is sent once more, in float32


@cases(
    "body, end",
    {
        "exits": ("import os; os._exit(0)", End.CRASHED),
        "crashes": ("import ctypes; ctypes.string_at(0)", End.CRASHED),
        "loops": ("while True: pass", End.TIMEOUT),
        "reads the other calls": ("import os\n    while os.read(64, 4096): pass", End.TIMEOUT),
        "writes rubbish": ("import os; os.write(65, b'x' * 64)", End.BAD_REPLY),
        "answers twice": (
            "import os, sys; worker = sys.modules\n"
            "    reply = worker['manyheads_worker.messages'].Reply()\n"
            "    os.write(65, 2 * worker['manyheads_worker.wire'].encode(reply))",
            End.BAD_REPLY,
        ),
        "hangs up": ("import os; os.close(65)", End.CRASHED),
    },
)
def test_other_calls_of_a_batch_are_answered_if_one_call_fails(load_runner, batch_sizes, body, end):
    runner = load_runner(f"{DOUBLES}def g(x):\n    {body}\n", seconds_per_call=0.5)
    assert outcomes_of_batch(runner, "fgff") == [[2.0, 4.0], end, [6.0, 12.0], [8.0, 16.0]]
    batch_sizes.clear()
    outcomes_of_batch(runner, "ff")
    assert batch_sizes == [1, 1], "after a failure each call is sent alone"


def test_each_call_of_a_batch_has_its_own_time_limit(load_runner):
    slow = "import time\ndef f(x):\n    time.sleep(0.4)\n    return x + x\n"
    assert outcomes_of_batch(load_runner(slow, seconds_per_call=1.1), "fff") == [
        [2.0, 4.0],
        [4.0, 8.0],
        [6.0, 12.0],
    ]


def test_all_calls_share_the_time_limit_of_the_attempt(load_runner):
    runner = load_runner(LOOPS, seconds_per_call=0.4, seconds_per_attempt=0.4)
    first, second = runner.execute_all([CheckQuestion("f", Call("f", (X,)))] * 2)
    assert "No answer within 0." in str(first)
    assert "used up the 0.4 seconds" in str(second)


def test_an_attempt_that_needs_float32_gets_all_later_calls_in_float32(load_runner, batch_sizes):
    runner = load_runner(SINGLE)
    assert outcomes_of_batch(runner, "ff") == outcomes_of_batch(runner, "ff") == [3.0, 6.0]
    assert runner.dtype == runner.transcript[0].reply.outputs[0].dtype == "float32"
    assert batch_sizes == [2, 2, 2]


def test_a_call_with_a_dtype_is_never_sent_in_another(load_runner):
    runner = load_runner(SINGLE)
    assert runner.execute(Call("f", (X,), dtype="float64")).raised is not None
    assert runner.dtype == "float64"


def test_an_impossible_reply_is_refused(load_runner, batch_sizes):
    assert outcomes_of_batch(load_runner(LIES.format(0)), "ff") == [End.BAD_REPLY] * 2
    assert batch_sizes == [2, 1, 1]


def test_a_batch_with_an_impossible_reply_uses_up_no_time(load_runner):
    """Each call is sent again alone, with its full time."""
    runner = load_runner(LIES.format(0.5), seconds_per_call=5.0, seconds_per_attempt=60.0)
    assert runner._ask_batch([Call("f", (X,))] * 2, "float64") == [None] * 2
    assert runner._spent.seconds < 0.5


COUNTS = """
import os
n = 0
def count():
    global n
    n += 1
    return float(n)
def fail(text):
    raise RuntimeError(text)
def refuse():
    global n
    n += 1
    raise ValueError(n)
def die():
    os._exit(1)
"""


def call_count(runner):
    """Call count() in the attempt. Return how often that process was called, this call included."""
    return runner.execute(Call("count")).outputs[0].tensor.item()


def test_a_call_after_a_timeout_has_less_time(load_runner):
    runner = load_runner(LOOPS, seconds_per_call=1.0, seconds_per_attempt=60.0)
    seconds = []
    for _ in range(3):
        with pytest.raises(AttemptEnded) as ended:
            runner.execute(Call("f"))
        assert ended.value.end is End.TIMEOUT
        seconds.append(str(ended.value).split(" within ")[1].split()[0])
    assert seconds == ["1", "0.5", "0.5"]


@pytest.mark.parametrize("batch_size", [1, 3], ids=["asked one by one", "asked together"])
def test_the_total_size_of_all_replies_is_bounded(load_runner, batch_size):
    """The judge keeps all replies; many large ones once filled its memory."""
    large = "import torch\ndef f(x):\n    return torch.zeros(40_000, dtype=x.dtype)"
    runner = load_runner(large, reply_mib=1)
    batch = [CheckQuestion("f", Call("f", (X,)))] * batch_size
    for _ in range(30):
        answers = runner.execute_all(batch)
    total_bytes = sum(exchange.reply.outputs[0].tensor.nbytes for exchange in runner.transcript)
    assert 3 << 20 < total_bytes < 6 << 20
    assert str(answers[-1]) == (
        "The attempt sent something that is not an answer: all its answers together are "
        "larger than 4 MiB."
    )


def test_a_call_that_raises_value_error_is_sent_only_once(load_runner):
    runner = load_runner(COUNTS)
    assert [runner.execute(Call("refuse")).raised.message for _ in range(2)] == ["1", "2"]


def test_an_attempt_is_in_sys_modules_and_is_not_main(load_runner):
    runner = load_runner(
        "import sys, inspect\nif __name__ == '__main__':\n    raise RuntimeError('visible')\n"
        "def f(x):\n    return x * "
        "len(inspect.getsource(sys.modules[f.__module__]).splitlines())"
    )
    assert runner.stopped == ()
    assert outcomes_of_batch(runner, "f") == [[5.0, 10.0]]


@cases(
    "device, message, second_count",
    {
        "an error that breaks CUDA": ("meta", "CUDA error: device-side assert triggered", 1),
        "no GPU memory left": ("meta", "CUDA out of memory. Tried to allocate 2.00 GiB", 2),
        "the same error on a CPU": ("cpu", "CUDA error: device-side assert triggered", 2),
    },
)
def test_only_an_error_that_breaks_cuda_restarts_the_process(
    load_runner, device, message, second_count
):
    runner = load_runner(COUNTS, device)
    call_count(runner)
    assert runner.execute(Call("fail", (message,))).raised.message == message
    assert call_count(runner) == second_count


def test_restarts_use_up_the_time_of_the_attempt(load_runner, box, monkeypatch):
    """The clock is faked: a start takes eight seconds, and everything else takes none."""
    now = [0.0]
    monkeypatch.setattr("manyheads.box.connection.time", SimpleNamespace(monotonic=lambda: now[0]))
    starts = []

    def slow_attempt(limits):
        now[0] += 8.0
        starts.append(limits)
        return box.attempt(limits)

    runner = load_runner(
        COUNTS, in_box=SimpleNamespace(attempt=slow_attempt), seconds_per_attempt=20.0
    )
    for end in [*["exit status 1"] * 3, "used up the 20 seconds"]:
        with pytest.raises(AttemptEnded, match=end):
            runner.execute(Call("die"))
    # the first one is free, 16 seconds for two more, and the fourth is too late
    assert len(starts) == 4


TENSOR, HIDDEN = Output("tensor", torch.ones(2), "float32", "cpu", (2,)), Output(OPAQUE)
MISFIT = Output(misfit(0, "tensor"))
NUMBERS = {"tensor": torch.ones(1), "shape": (1,)}
PAIR = Form("tuple", ("y", "state"), (Form(), Form("opaque")))
CALL = Call("f", returns=PAIR, then=(FollowUp((Returned(0, (1,)),)),))
TWO_STEPS = Call("f", (torch.ones(1),), then=(FollowUp((torch.ones(1),)),))
BUILD = Call(Build("A", state={"w": torch.ones(1)}), only_build=True)
FACTS = ModuleFacts({}, {}, training=False, changed=False, unloaded=("w",), attributes={})
STOPPED = Raised("E", ("E",), "", "load", None)


@cases(
    "call, reply, is_possible",
    {
        "an output for each leaf of each step": (CALL, Reply((TENSOR, HIDDEN) * 2), True),
        "a misfit for each": (CALL, Reply((MISFIT,) * 4), True),
        "a step without an output": (CALL, Reply((TENSOR, HIDDEN)), False),
        "an output too many": (CALL, Reply((TENSOR, HIDDEN) * 3), False),
        "a tensor in place of an opaque part": (CALL, Reply((TENSOR, TENSOR) * 2), False),
        "an opaque part with numbers": (
            CALL,
            Reply((TENSOR, replace(HIDDEN, **NUMBERS)) * 2),
            False,
        ),
        "an opaque part in place of a tensor": (CALL, Reply((HIDDEN, HIDDEN) * 2), False),
        "a misfit with numbers": (CALL, Reply((replace(MISFIT, **NUMBERS), HIDDEN) * 2), False),
        "a report on a cell": (CALL, Reply((TENSOR, HIDDEN) * 2, stopped=(STOPPED,)), False),
        "changed arguments of each step": (
            TWO_STEPS,
            Reply((TENSOR,) * 2, mutated=("args.0", "then.0.args.0")),
            True,
        ),
        "a changed argument of a step that was not asked": (
            TWO_STEPS,
            Reply((TENSOR,) * 2, mutated=("then.1.args.0",)),
            False,
        ),
        "a given weight that was not loaded": (BUILD, Reply(modules=(FACTS,)), True),
        "another weight that was not loaded": (
            BUILD,
            Reply(modules=(replace(FACTS, unloaded=("w", "n314159265")),)),
            False,
        ),
    },
)
def test_a_reply_that_does_not_fit_its_call_is_impossible(call, reply, is_possible):
    assert (validate_reply(call, reply) == "") == is_possible


def test_buffers_must_be_numbered_in_order():
    entry = Entry((1,), "float32", "cpu")
    facts = replace(FACTS, buffers={"0": entry, "1": entry})
    sent = wire.encode(Reply(modules=(facts,)))[wire.LENGTH.size :]
    assert read_reply(sent).modules == (facts,)
    for names in (("1", "0"), ("0", "2"), ("0", "mask"), ("00", "1")):
        misnamed = replace(facts, buffers=dict.fromkeys(names, entry))
        with pytest.raises(BadReply):
            read_reply(wire.encode(Reply(modules=(misnamed,)))[wire.LENGTH.size :])
