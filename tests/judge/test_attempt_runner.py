"""One attempt, many calls: deaths, budgets, dtypes. In the real box."""

from types import SimpleNamespace

import pytest

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.worker.messages import Call
from manyheads.checks.transcript import Question
from tests.judge.test_at_once import X, attempt

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
    said = []
    with attempt(box, "def f():\n    while True: pass", seconds_per_call=1.0, seconds_per_attempt=60.0) as runner:
        for _ in range(3):
            with pytest.raises(AttemptEnded) as caught:
                runner.execute(Call("f"))
            assert caught.value.end is End.TIMEOUT
            said.append(str(caught.value))
    assert [s.split(" within ")[1].split()[0] for s in said] == ["1", "0.5", "0.5"]


@pytest.mark.parametrize("together", [1, 3], ids=["asked one by one", "asked together"])
def test_all_answers_of_an_attempt_are_bounded_together(box, together):
    """The judge keeps them: large ones, one after the other, once filled its memory."""
    large = "import torch\ndef f(x):\n    return torch.zeros(40_000, dtype=x.dtype)"
    asked = [Question("f", Call("f", (X,)))] * together
    with attempt(box, large, reply_mib=1) as runner:
        answers = [answer for _ in range(30) for answer in runner.execute_all(asked)]
    kept = sum(exchange.reply.outputs[0].tensor.nbytes for exchange in runner.transcript)
    assert 3 << 20 < kept < 6 << 20
    assert (
        str(answers[-1])
        == "The attempt sent something that is not an answer: all its answers together are larger than 4 MiB."
    )
    assert answers[-1].end is End.BAD_REPLY


def test_a_call_that_states_its_dtype_is_asked_in_no_other(box):
    with attempt(box, "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)") as runner:
        assert runner.execute(Call("f", (X,), dtype="float64")).raised is not None
    assert runner.dtype == "float64"


def test_a_refusal_is_not_asked_twice(box):
    with attempt(box, "n = 0\ndef f(x):\n    global n\n    n += 1\n    raise ValueError(n)") as runner:
        assert [runner.execute(Call("f", (X,))).raised.message for _ in range(2)] == ["1", "2"]


def test_a_module_that_stands_in_sys_modules_can_find_itself_and_its_visible_checks_do_not_run(box):
    visible = "import sys, inspect\nif __name__ == '__main__':\n    raise RuntimeError('visible')\n"
    source = f"{visible}def f(x):\n    return x * len(inspect.getsource(sys.modules[f.__module__]).splitlines())"
    with attempt(box, source) as runner:
        assert runner.stopped == ()
        assert runner.execute(Call("f", (X,))).outputs[0].tensor.tolist() == [5.0, 10.0]


@pytest.mark.parametrize(("device", "text", "counted"), [
    pytest.param("meta", "CUDA error: device-side assert triggered", 1, id="what breaks CUDA ends the process"),
    pytest.param("meta", "CUDA out of memory. Tried to allocate 2.00 GiB", 2, id="what does not break it does not"),
    pytest.param("cpu", "CUDA error: device-side assert triggered", 2, id="on a CPU nothing breaks it"),
])  # fmt: skip
def test_an_error_that_breaks_cuda_costs_its_own_check_alone(box, device, text, counted):
    with attempt(box, COUNTING, device) as runner:
        runner.execute(Call("count"))
        assert runner.execute(Call("fail", (text,))).raised.message == text
        assert runner.execute(Call("count")).outputs[0].tensor.item() == counted


def test_starting_again_and_again_is_paid_for(box, monkeypatch):
    """By a clock of ours, on which a start takes eight seconds and nothing else takes any."""
    now = [0.0]
    monkeypatch.setattr("manyheads.box.loading.time", SimpleNamespace(monotonic=lambda: now[0]))
    starts = []

    def slowly(limits):
        now[0] += 8.0
        starts.append(limits)
        return box.attempt(limits)

    slow = SimpleNamespace(attempt=slowly)
    with attempt(slow, COUNTING, seconds_per_attempt=20.0) as runner:
        for says in ("exit status 1", "exit status 1", "exit status 1", "used up the 20 seconds"):
            with pytest.raises(AttemptEnded, match=says):
                runner.execute(Call("die"))
    assert len(starts) == 4  # the first one free, 16 seconds for two more, and the fourth is too late
