"""One attempt, many calls: deaths, budgets, dtypes; much at once, as if each had been asked alone;
what no answer is. In the real box.
"""

from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from manyheads.box.connection import AttemptEnded, Box, Connection, End
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

X = torch.tensor([1.0, 2.0], dtype=torch.float64)
TWICE = """import os, sys
    worker = sys.modules
    reply = worker['manyheads_worker.wire'].encode(worker['manyheads_worker.messages'].Reply())
    os.write(65, reply + reply)"""
GOOD = "def f(x):\n    return x + x\n"


def attempt(box: Box, source: str, device: str = "cpu", **limits: float) -> closing[AttemptRunner]:
    runner = AttemptRunner(box, Source("a.py", source), Limits(**limits), device=device)
    runner.load()
    return closing(runner)


def questions(*subjects: str) -> list[CheckQuestion]:
    return [
        CheckQuestion(f"{name} {i}", Call(name, (X * i,))) for i, name in enumerate(subjects, 1)
    ]


def outcomes(answers: list[Reply | AttemptEnded]) -> list[object]:
    """Of each the numbers, the exception's name, or how the process ended."""

    def outcome(answer: Reply | AttemptEnded) -> object:
        if isinstance(answer, AttemptEnded):
            return answer.end.value
        return answer.raised.type if answer.raised else answer.outputs[0].tensor.tolist()

    return list(map(outcome, answers))


@pytest.fixture
def sent_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls were sent together, each time."""
    counts: list[int] = []
    ask_all, ask = Connection.ask_all, Connection.ask
    monkeypatch.setattr(
        Connection, "ask_all", lambda s, m, r, t: counts.append(len(m)) or ask_all(s, m, r, t)
    )
    monkeypatch.setattr(
        Connection, "ask", lambda s, m, t: counts.extend([1] * isinstance(m, Call)) or ask(s, m, t)
    )
    return counts


def test_each_gets_its_own_answer_and_stands_in_the_record_under_its_check(
    box: Box, sent_counts: list[int]
) -> None:
    with attempt(box, GOOD + "def g(x):\n    raise KeyError\n") as runner:
        answers = runner.execute_all(questions("f", "g", "f", "h"))
        assert outcomes(answers) == [[2.0, 4.0], "KeyError", [6.0, 12.0], "AttributeError"]
        assert [e.check for e in runner.transcript] == ["f 1", "g 2", "f 3", "h 4"]
        assert [e.reply for e in runner.transcript] == answers
    assert sent_counts == [4, 2]  # what raises is asked once more, in float32


@pytest.mark.parametrize(
    ("body", "end"),
    [
        pytest.param("import os\n    os._exit(0)", End.CRASHED, id="it exits"),
        pytest.param("import ctypes\n    ctypes.string_at(0)", End.CRASHED, id="it crashes"),
        pytest.param("while True: pass", End.TIMEOUT, id="it loops"),
        pytest.param(
            "import os\n    while os.read(64, 4096): pass",
            End.TIMEOUT,
            id="it reads what others are asked",
        ),
        pytest.param(
            "import os\n    os.write(65, b'x' * 64)", End.BAD_REPLY, id="it writes rubbish"
        ),
        pytest.param(TWICE, End.BAD_REPLY, id="it answers twice"),
        pytest.param("import os\n    os.close(65)", End.CRASHED, id="it hangs up"),
    ],
)
def test_what_one_call_does_befalls_no_other(box: Box, body: str, end: End) -> None:
    with attempt(box, f"{GOOD}def g(x):\n    {body}\n", seconds_per_call=0.5) as runner:
        answers = runner.execute_all(questions("f", "g", "f", "f"))
    assert outcomes(answers) == [[2.0, 4.0], end.value, [6.0, 12.0], [8.0, 16.0]]


def test_after_that_it_is_asked_one_by_one(box: Box, sent_counts: list[int]) -> None:
    with attempt(box, GOOD + "def g(x):\n    import os\n    os._exit(0)\n") as runner:
        runner.execute_all(questions("f", "g"))
        runner.execute_all(questions("f", "f"))
    assert sent_counts == [2, 1, 1, 1, 1]


def test_a_slow_attempt_has_for_each_call_the_time_that_it_had(box: Box) -> None:
    slow = "import time\ndef f(x):\n    time.sleep(0.7)\n    return x + x\n"
    with attempt(box, slow, seconds_per_call=2.0) as runner:
        answers = runner.execute_all(questions("f", "f", "f"))
    assert outcomes(answers) == [[2.0, 4.0], [4.0, 8.0], [6.0, 12.0]]


def test_a_budget_that_is_used_up_is_used_up_for_all(box: Box) -> None:
    with attempt(
        box, "def f(x):\n    while True: pass", seconds_per_call=0.4, seconds_per_attempt=0.4
    ) as runner:
        answers = runner.execute_all(questions("f", "f"))
    assert outcomes(answers) == ["timeout", "timeout"]
    assert "No answer within 0." in str(answers[0])
    assert "used up the 0.4 seconds" in str(answers[1])


def test_who_can_do_only_float32_is_asked_the_rest_in_it(box: Box, sent_counts: list[int]) -> None:
    single = "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)\n"
    with attempt(box, single) as runner:
        answers = runner.execute_all(questions("f", "f"))
        assert outcomes(answers) == [3.0, 6.0]
        assert outcomes(runner.execute_all(questions("f", "f"))) == [3.0, 6.0]
        assert (runner.dtype, answers[0].outputs[0].dtype) == ("float32", "float32")
    assert sent_counts == [2, 2, 2]


def test_an_answer_that_fits_no_question_is_not_taken(box: Box, sent_counts: list[int]) -> None:
    """It says that it changed an argument which it was not given."""
    lies = (
        "import sys\nworker = sys.modules['manyheads_worker.answer_call']\n"
        "def f(x):\n    worker._changed_arguments = lambda *given: ('args.7',)\n    return x + x\n"
    )
    with attempt(box, lies) as runner:
        answers = runner.execute_all(questions("f", "f"))
    assert outcomes(answers) == ["bad reply", "bad reply"]
    assert sent_counts == [2, 1, 1]


def test_the_time_of_a_batch_with_an_impossible_answer_is_given_back(box: Box) -> None:
    """The calls are sent again one by one, and each has the time that it would have had."""
    slow = (
        "import sys, time\nworker = sys.modules['manyheads_worker.answer_call']\n"
        "def f(x):\n    time.sleep(0.5)\n"
        "    worker._changed_arguments = lambda *given: ('args.7',)\n"
        "    return x + x\n"
    )
    with attempt(box, slow, seconds_per_call=5.0, seconds_per_attempt=60.0) as runner:
        assert (
            runner._ask_batch([question.call for question in questions("f", "f")], "float64")
            == [None] * 2
        )
        assert runner._spent.seconds < 0.5


COUNTING = """
import os
n = 0
def count():
    global n
    n += 1
    return float(n)
def fail(text):
    raise RuntimeError(text)
def die():
    os._exit(1)
"""


def test_an_attempt_that_died_answers_the_next_call_afresh(box):
    with attempt(box, COUNTING) as runner:
        assert runner.execute(Call("count")).outputs[0].tensor.item() == 1
        with pytest.raises(AttemptEnded):
            runner.execute(Call("die"))
        assert runner.execute(Call("count")).outputs[0].tensor.item() == 1


def test_each_death_leaves_less_time_for_the_next_call(box):
    messages = []
    with attempt(
        box, "def f():\n    while True: pass", seconds_per_call=1.0, seconds_per_attempt=60.0
    ) as runner:
        for _ in range(3):
            with pytest.raises(AttemptEnded) as caught:
                runner.execute(Call("f"))
            assert caught.value.end is End.TIMEOUT
            messages.append(str(caught.value))
    assert [s.split(" within ")[1].split()[0] for s in messages] == ["1", "0.5", "0.5"]


@pytest.mark.parametrize("together", [1, 3], ids=["asked one by one", "asked together"])
def test_all_answers_of_an_attempt_are_bounded_together(box, together):
    """The judge keeps them: large ones, one after the other, once filled its memory."""
    large = "import torch\ndef f(x):\n    return torch.zeros(40_000, dtype=x.dtype)"
    batch = [CheckQuestion("f", Call("f", (X,)))] * together
    with attempt(box, large, reply_mib=1) as runner:
        answers = [answer for _ in range(30) for answer in runner.execute_all(batch)]
    total_bytes = sum(exchange.reply.outputs[0].tensor.nbytes for exchange in runner.transcript)
    assert 3 << 20 < total_bytes < 6 << 20
    assert str(answers[-1]) == (
        "The attempt sent something that is not an answer: all its answers together are "
        "larger than 4 MiB."
    )
    assert answers[-1].end is End.BAD_REPLY


def test_a_call_that_states_its_dtype_is_asked_in_no_other(box):
    with attempt(
        box, "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)"
    ) as runner:
        assert runner.execute(Call("f", (X,), dtype="float64")).raised is not None
    assert runner.dtype == "float64"


def test_a_refusal_is_not_asked_twice(box):
    with attempt(
        box, "n = 0\ndef f(x):\n    global n\n    n += 1\n    raise ValueError(n)"
    ) as runner:
        assert [runner.execute(Call("f", (X,))).raised.message for _ in range(2)] == ["1", "2"]


def test_a_module_that_stands_in_sys_modules_can_find_itself_and_its_visible_checks_do_not_run(box):
    visible = "import sys, inspect\nif __name__ == '__main__':\n    raise RuntimeError('visible')\n"
    source = (
        f"{visible}def f(x):\n    return x * "
        "len(inspect.getsource(sys.modules[f.__module__]).splitlines())"
    )
    with attempt(box, source) as runner:
        assert runner.stopped == ()
        assert runner.execute(Call("f", (X,))).outputs[0].tensor.tolist() == [5.0, 10.0]


@pytest.mark.parametrize(
    ("device", "text", "counted"),
    [
        pytest.param(
            "meta",
            "CUDA error: device-side assert triggered",
            1,
            id="what breaks CUDA ends the process",
        ),
        pytest.param(
            "meta",
            "CUDA out of memory. Tried to allocate 2.00 GiB",
            2,
            id="what does not break it does not",
        ),
        pytest.param(
            "cpu", "CUDA error: device-side assert triggered", 2, id="on a CPU nothing breaks it"
        ),
    ],
)
def test_an_error_that_breaks_cuda_costs_its_own_check_alone(box, device, text, counted):
    with attempt(box, COUNTING, device) as runner:
        runner.execute(Call("count"))
        assert runner.execute(Call("fail", (text,))).raised.message == text
        assert runner.execute(Call("count")).outputs[0].tensor.item() == counted


def test_starting_again_and_again_is_paid_for(box, monkeypatch):
    """By a clock of ours, on which a start takes eight seconds and nothing else takes any."""
    now = [0.0]
    monkeypatch.setattr("manyheads.box.connection.time", SimpleNamespace(monotonic=lambda: now[0]))
    starts = []

    def slow_attempt(limits):
        now[0] += 8.0
        starts.append(limits)
        return box.attempt(limits)

    with attempt(
        SimpleNamespace(attempt=slow_attempt), COUNTING, seconds_per_attempt=20.0
    ) as runner:
        for says in ("exit status 1", "exit status 1", "exit status 1", "used up the 20 seconds"):
            with pytest.raises(AttemptEnded, match=says):
                runner.execute(Call("die"))
    # the first one free, 16 seconds for two more, and the fourth is too late
    assert len(starts) == 4


PAIR = Form("tuple", ("y", "state"), (Form(), Form("opaque")))
CALL = Call("f", returns=PAIR, then=(FollowUp((Returned(0, (1,)),)),))
TENSOR, HIDDEN = Output("tensor", torch.ones(2), "float32", "cpu", (2,)), Output(OPAQUE)


def test_an_output_for_each_leaf_of_each_step_is_an_answer() -> None:
    assert not validate_reply(CALL, Reply((TENSOR, HIDDEN, TENSOR, HIDDEN)))
    assert not validate_reply(CALL, Reply((Output(misfit(0, "tensor")),) * 4))


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param((TENSOR, HIDDEN), id="a step without an answer"),
        pytest.param((TENSOR, HIDDEN) * 3, id="an answer too many"),
        pytest.param((TENSOR, TENSOR) * 2, id="a tensor in place of an opaque part"),
        pytest.param(
            (TENSOR, Output(OPAQUE, torch.ones(1), shape=(1,))) * 2,
            id="an opaque part with numbers",
        ),
        pytest.param((HIDDEN, HIDDEN) * 2, id="an opaque part in place of a tensor"),
        pytest.param(
            (Output(misfit(0, "tensor"), torch.ones(1), shape=(1,)), HIDDEN) * 2,
            id="a misfit with numbers",
        ),
    ],
)
def test_anything_else_is_none(outputs: tuple[Output, ...]) -> None:
    assert validate_reply(CALL, Reply(outputs))


def test_a_step_s_arguments_may_be_named_and_no_others() -> None:
    call = Call("f", (torch.ones(1),), then=(FollowUp((torch.ones(1),)),))
    assert not validate_reply(call, Reply((TENSOR,) * 2, mutated=("args.0", "then.0.args.0")))
    assert validate_reply(call, Reply((TENSOR,) * 2, mutated=("then.1.args.0",)))


def test_a_call_runs_no_cells() -> None:
    cell = Raised("E", ("E",), "", "load", None)
    assert validate_reply(CALL, Reply((TENSOR, HIDDEN, TENSOR, HIDDEN), stopped=(cell,)))


def test_weights_that_were_not_loaded_are_those_that_were_given() -> None:
    call = Call(Build("A", state={"w": torch.ones(1)}), only_build=True)
    facts = ModuleFacts({}, {}, training=False, changed=False, unloaded=("w",), attributes={})
    assert not validate_reply(call, Reply(modules=(facts,)))
    assert validate_reply(call, Reply(modules=(replace(facts, unloaded=("w", "n314159265")),)))


def test_buffers_are_numbered_in_their_order_and_have_no_names() -> None:
    entry = Entry((1,), "float32", "cpu")
    facts = ModuleFacts(
        {}, {"0": entry, "1": entry}, training=False, changed=False, unloaded=(), attributes={}
    )
    sent = wire.encode(Reply(modules=(facts,)))[wire.LENGTH.size :]
    assert read_reply(sent).modules == (facts,)
    for names in (("1", "0"), ("0", "2"), ("0", "mask"), ("00", "1")):
        misnamed = replace(facts, buffers=dict.fromkeys(names, entry))
        with pytest.raises(BadReply):
            read_reply(wire.encode(Reply(modules=(misnamed,)))[wire.LENGTH.size :])
