"""Much asked at once comes out as if each had been asked alone, whatever the attempt does. In the real box."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from manyheads.box.connection import AttemptEnded, Connection, End
from manyheads.box.level import Box
from manyheads.box.worker.answers import Reply
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from manyheads.checks.transcript import Question
from manyheads.judge.attempt_runner import AttemptRunner
from manyheads.submission import AttemptSource

X = torch.tensor([1.0, 2.0], dtype=torch.float64)
TWICE = """import os, sys
    worker = sys.modules
    reply = worker['manyheads_worker.wire'].encode(worker['manyheads_worker.answers'].Reply())
    os.write(65, reply + reply)"""
GOOD = "def f(x):\n    return x + x\n"


@contextmanager
def attempt(box: Box, source: str, device: str = "cpu", **limits: float) -> Iterator[AttemptRunner]:
    runner = AttemptRunner(box, AttemptSource("a.py", source), Limits(**limits), device=device)
    runner.load()
    try:
        yield runner
    finally:
        runner.close()


def questions(*subjects: str) -> list[Question]:
    return [Question(f"{name} {i}", Call(name, (X * i,))) for i, name in enumerate(subjects, 1)]


def said(answers: list[Reply | AttemptEnded]) -> list[object]:
    """Of each the numbers, the exception's name, or how the process ended."""

    def of(answer: Reply | AttemptEnded) -> object:
        if isinstance(answer, AttemptEnded):
            return answer.end.value
        return answer.raised.type if answer.raised else answer.outputs[0].tensor.tolist()

    return list(map(of, answers))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls were sent together, each time."""
    counts: list[int] = []
    ask_all, ask = Connection.ask_all, Connection.ask
    monkeypatch.setattr(Connection, "ask_all", lambda s, m, r, t: counts.append(len(m)) or ask_all(s, m, r, t))
    monkeypatch.setattr(Connection, "ask", lambda s, m, t: counts.extend([1] * isinstance(m, Call)) or ask(s, m, t))
    return counts


def test_each_gets_its_own_answer_and_stands_in_the_record_under_its_check(box: Box, sent: list[int]) -> None:
    with attempt(box, GOOD + "def g(x):\n    raise KeyError\n") as runner:
        answers = runner.execute_all(questions("f", "g", "f", "h"))
        assert said(answers) == [[2.0, 4.0], "KeyError", [6.0, 12.0], "AttributeError"]
        assert [e.check for e in runner.transcript] == ["f 1", "g 2", "f 3", "h 4"]
        assert [e.reply for e in runner.transcript] == answers
    assert sent == [4, 2]  # what raises is asked once more, in float32


@pytest.mark.parametrize(("body", "end"), [
    pytest.param("import os\n    os._exit(0)", End.CRASHED, id="it exits"),
    pytest.param("import ctypes\n    ctypes.string_at(0)", End.CRASHED, id="it crashes"),
    pytest.param("while True: pass", End.TIMEOUT, id="it loops"),
    pytest.param("import os\n    while os.read(64, 4096): pass", End.TIMEOUT, id="it reads what others are asked"),
    pytest.param("import os\n    os.write(65, b'x' * 64)", End.BAD_REPLY, id="it writes rubbish"),
    pytest.param(TWICE, End.BAD_REPLY, id="it answers twice"),
    pytest.param("import os\n    os.close(65)", End.CRASHED, id="it hangs up"),
])  # fmt: skip
def test_what_one_call_does_befalls_no_other(box: Box, body: str, end: End) -> None:
    with attempt(box, f"{GOOD}def g(x):\n    {body}\n", seconds_per_call=0.5) as runner:
        answers = runner.execute_all(questions("f", "g", "f", "f"))
    assert said(answers) == [[2.0, 4.0], end.value, [6.0, 12.0], [8.0, 16.0]]


def test_after_that_it_is_asked_one_by_one(box: Box, sent: list[int]) -> None:
    with attempt(box, GOOD + "def g(x):\n    import os\n    os._exit(0)\n") as runner:
        runner.execute_all(questions("f", "g"))
        runner.execute_all(questions("f", "f"))
    assert sent == [2, 1, 1, 1, 1]


def test_a_slow_attempt_has_for_each_call_the_time_that_it_had(box: Box) -> None:
    slow = "import time\ndef f(x):\n    time.sleep(0.7)\n    return x + x\n"
    with attempt(box, slow, seconds_per_call=2.0) as runner:
        answers = runner.execute_all(questions("f", "f", "f"))
    assert said(answers) == [[2.0, 4.0], [4.0, 8.0], [6.0, 12.0]]


def test_a_budget_that_is_used_up_is_used_up_for_all(box: Box) -> None:
    with attempt(box, "def f(x):\n    while True: pass", seconds_per_call=0.4, seconds_per_attempt=0.4) as runner:
        answers = runner.execute_all(questions("f", "f"))
    assert said(answers) == ["timeout", "timeout"]
    assert "No answer within 0." in str(answers[0])
    assert "used up the 0.4 seconds" in str(answers[1])


def test_who_can_do_only_float32_is_asked_the_rest_in_it(box: Box, sent: list[int]) -> None:
    single = "import torch\ndef f(x):\n    return x @ torch.ones(2, dtype=torch.float32)\n"
    with attempt(box, single) as runner:
        answers = runner.execute_all(questions("f", "f"))
        assert said(answers) == [3.0, 6.0]
        assert said(runner.execute_all(questions("f", "f"))) == [3.0, 6.0]
        assert (runner.dtype, answers[0].outputs[0].dtype) == ("float32", "float32")
    assert sent == [2, 2, 2]


def test_an_answer_that_fits_no_question_is_not_taken(box: Box, sent: list[int]) -> None:
    """It says that it changed an argument which it was not given."""
    lies = (
        "import sys\nworker = sys.modules['manyheads_worker.execute']\n"
        "def f(x):\n    worker._changed = lambda *given: ('args.7',)\n    return x + x\n"
    )
    with attempt(box, lies) as runner:
        answers = runner.execute_all(questions("f", "f"))
    assert said(answers) == ["bad reply", "bad reply"]
    assert sent == [2, 1, 1]
