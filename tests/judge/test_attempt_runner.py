"""One attempt, many calls: deaths, budgets, dtypes. In the real box."""

from types import SimpleNamespace

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from manyheads.checks.transcript import Question
from manyheads.judge.attempt_runner import AttemptRunner
from manyheads.submission import AttemptSource

X = torch.tensor([1.0, 2.0], dtype=torch.float64)


def attempt(box, source: str, **limits) -> AttemptRunner:
    return AttemptRunner(box, AttemptSource("a.py", source), Limits(**limits))


def test_an_attempt_that_died_answers_the_next_call_afresh(box):
    runner = attempt(
        box, "import os\nn = 0\ndef die():\n    os._exit(1)\ndef count(x):\n    global n\n    n += 1\n    return x * n"
    )
    runner.load()
    assert runner.execute(Call("count", (X,))).outputs[0].tensor.tolist() == [1.0, 2.0]
    with pytest.raises(AttemptEnded):
        runner.execute(Call("die"))
    assert runner.execute(Call("count", (X,))).outputs[0].tensor.tolist() == [1.0, 2.0]
    runner.close()


def test_each_death_leaves_less_time_for_the_next_call(box):
    runner = attempt(box, "def f():\n    while True: pass", seconds_per_call=1.0, seconds_per_attempt=60.0)
    runner.load()
    said = []
    for _ in range(3):
        with pytest.raises(AttemptEnded) as caught:
            runner.execute(Call("f"))
        assert caught.value.end is End.TIMEOUT
        said.append(str(caught.value))
    runner.close()
    assert [s.split(" within ")[1].split()[0] for s in said] == ["1", "0.5", "0.5"]


def test_a_whole_attempt_has_one_budget(box):
    runner = attempt(box, "def f():\n    while True: pass", seconds_per_call=0.4, seconds_per_attempt=0.4)
    runner.load()
    with pytest.raises(AttemptEnded):
        runner.execute(Call("f"))
    with pytest.raises(AttemptEnded, match=r"used up the 0\.4 seconds that a whole attempt may take"):
        runner.execute(Call("f"))
    runner.close()


@pytest.mark.parametrize("together", [1, 3], ids=["asked one by one", "asked together"])
def test_all_answers_of_an_attempt_are_bounded_together(box, together):
    """The judge keeps them: large ones, one after the other, once filled its memory."""
    runner = attempt(box, "import torch\ndef f(x):\n    return torch.zeros(40_000, dtype=x.dtype)", reply_mib=1)
    runner.load()
    answers = [answer for _ in range(30) for answer in runner.execute_all([Question("f", Call("f", (X,)))] * together)]
    runner.close()
    kept = sum(exchange.reply.outputs[0].tensor.nbytes for exchange in runner.transcript)
    assert 3 << 20 < kept < 6 << 20
    assert str(answers[-1]) == "All answers of this attempt together are larger than 4 MiB."
    assert answers[-1].end is End.BAD_REPLY


def test_an_attempt_that_cannot_do_float64_is_asked_in_float32_from_then_on(box):
    runner = attempt(box, "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)")
    runner.load()
    reply = runner.execute(Call("f", (X,)))
    runner.close()
    assert reply.raised is None
    assert runner.dtype == "float32"
    assert reply.outputs[0].dtype == "float32"


def test_a_call_that_states_its_dtype_is_asked_in_no_other(box):
    runner = attempt(box, "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)")
    runner.load()
    reply = runner.execute(Call("f", (X,), dtype="float64"))
    runner.close()
    assert reply.raised is not None
    assert runner.dtype == "float64"


def test_a_refusal_is_not_asked_twice(box):
    runner = attempt(box, "n = 0\ndef f(x):\n    global n\n    n += 1\n    raise ValueError(n)")
    runner.load()
    assert runner.execute(Call("f", (X,))).raised.message == "1"
    assert runner.execute(Call("f", (X,))).raised.message == "2"
    runner.close()


def test_the_students_line_is_reported(box):
    runner = attempt(box, "import torch\n\ndef f(x):\n    y = x.T\n    return y.view(7)")
    runner.load()
    raised = runner.execute(Call("f", (X,))).raised
    runner.close()
    assert (raised.type, raised.line) == ("RuntimeError", 5)


def test_defaults_that_an_attempt_changes_are_its_own_affair(box):
    runner = attempt(
        box, "import torch\ntorch.set_default_dtype(torch.float16)\ntorch.manual_seed(0)\ndef f(x):\n    return x"
    )
    runner.load()
    runner.execute(Call("f", (X,)))
    runner.close()
    assert torch.get_default_dtype() is torch.float32


def test_a_module_that_stands_in_sys_modules_can_find_itself(box):
    source = (
        "import sys, inspect\ndef f(x):\n    return x * len(inspect.getsource(sys.modules[f.__module__]).splitlines())"
    )
    runner = attempt(box, source)
    runner.load()
    assert runner.execute(Call("f", (X,))).outputs[0].tensor.tolist() == [3.0, 6.0]
    runner.close()


def test_its_visible_checks_do_not_run(box):
    runner = attempt(box, "if __name__ == '__main__':\n    raise RuntimeError('visible')\ndef f(x):\n    return x")
    assert runner.load() is None
    runner.close()


def on_another_device(box, source: str, **limits) -> AttemptRunner:
    return AttemptRunner(box, AttemptSource("a.py", source), Limits(**limits), device="meta")


COUNTING = """
n = 0
def count():
    global n
    n += 1
    return float(n)
def fail(text):
    raise RuntimeError(text)
"""


@pytest.mark.parametrize(("text", "counted"), [
    pytest.param("CUDA error: device-side assert triggered", 1, id="what breaks CUDA ends the process"),
    pytest.param("CUDA out of memory. Tried to allocate 2.00 GiB", 2, id="what does not break it does not"),
])  # fmt: skip
def test_an_error_that_breaks_cuda_costs_its_own_check_alone(box, text, counted):
    runner = on_another_device(box, COUNTING)
    runner.execute(Call("count"))
    assert runner.execute(Call("fail", (text,))).raised.message == text
    assert runner.execute(Call("count")).outputs[0].tensor.item() == counted
    runner.close()


def test_on_a_cpu_an_error_is_an_error_whatever_it_says(box):
    runner = attempt(box, COUNTING)
    runner.execute(Call("count"))
    runner.execute(Call("fail", ("CUDA error: device-side assert triggered",)))
    assert runner.execute(Call("count")).outputs[0].tensor.item() == 2
    runner.close()


def test_starting_again_and_again_is_paid_for(box, monkeypatch):
    """By a clock of ours, on which a start takes eight seconds and nothing else takes any."""
    now = [0.0]
    monkeypatch.setattr("manyheads.judge.attempt_runner.time", SimpleNamespace(monotonic=lambda: now[0]))
    starts = []

    def slowly(limits):
        now[0] += 8.0
        starts.append(limits)
        return box.attempt(limits)

    slow = SimpleNamespace(attempt=slowly, start_seconds=1.0)
    runner = attempt(slow, "import os\ndef die():\n    os._exit(1)", seconds_per_attempt=20.0)
    for says in ("exit status 1", "exit status 1", "exit status 1", "used up the 20 seconds"):
        with pytest.raises(AttemptEnded, match=says):
            runner.execute(Call("die"))
    assert len(starts) == 4  # the first one free, 16 seconds for two more, and the fourth is too late
    runner.close()
