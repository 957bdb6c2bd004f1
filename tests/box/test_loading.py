"""A source is loaded part by part: what raises, takes too long or ends the process is left out, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from manyheads.box.connection import ALL_REPLIES, AttemptEnded, End, Spent
from manyheads.box.level import Box
from manyheads.box.loading import MOST_SKIPPED, Loaded, Stopped, load
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load

LIMITS = Limits(seconds_per_call=1.0, seconds_per_attempt=30.0)
BELOW = "def below():\n    return 1.0\n"


@contextmanager
def loaded(box: Box, source: str, limits: Limits = LIMITS, **more: tuple[int, ...]) -> Iterator[Loaded]:
    process = load(box, limits, Load(source, "a.py", **more))
    try:
        yield process
    finally:
        process.connection.close()


def number(process: Loaded, name: str) -> float:
    reply = process.connection.ask(Call(name), 5.0)
    assert reply.raised is None, reply.raised
    (output,) = reply.outputs
    return float(output.tensor)


def ends_of(process: Loaded) -> list[tuple[int, End | None]]:
    return [(part.line, part.ended) for part in process.stopped]


@pytest.mark.parametrize(("part", "ended"), [
    pytest.param("import time; time.sleep(60)", End.TIMEOUT, id="a sleep"),
    pytest.param("while True:\n    pass", End.TIMEOUT, id="a loop without end"),
    pytest.param("while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass", End.TIMEOUT, id="a loop that hears nothing"),
    pytest.param("sum(range(10**12))", End.TIMEOUT, id="one long step of the interpreter"),
    pytest.param("import os; os._exit(0)", End.CRASHED, id="an end of the process"),
    pytest.param("import ctypes; ctypes.string_at(0)", End.CRASHED, id="a crash in native code"),
])  # fmt: skip
def test_what_stands_below_a_part_that_ends_the_process_runs(box: Box, part: str, ended: End) -> None:
    with loaded(box, f"above = 1\n{part}\n{BELOW}") as process:
        assert number(process, "below") == 1.0
        assert ends_of(process) == [(2, ended)]


def test_each_part_that_ends_the_process_is_left_out_and_told_in_the_order_of_lines(box: Box) -> None:
    source = f"import os\nos._exit(1)\nraise KeyError\nos._exit(2)\n{BELOW}oops\n"
    with loaded(box, source) as process:
        assert number(process, "below") == 1.0
        assert ends_of(process) == [(2, End.CRASHED), (3, None), (4, End.CRASHED), (7, None)]
        assert process.skipped == (1, 3)


def test_the_next_process_leaves_them_out_at_once(box: Box) -> None:
    with loaded(box, f"import os\nos._exit(1)\n{BELOW}", skipped=(1,)) as process:
        assert number(process, "below") == 1.0
        assert process.stopped == ()


@pytest.mark.parametrize(("per_call", "seconds"), [(1.0, [0.5, 0.5, 0.5]), (4.0, [2.0, 1.0, 0.5])])
def test_all_parts_that_are_too_slow_take_twice_the_time_of_a_call_at_most(box, per_call, seconds) -> None:
    with loaded(box, "import time\n" + "time.sleep(60)\n" * 3, Limits(seconds_per_call=per_call)) as process:
        assert [part.seconds for part in process.stopped] == seconds


@pytest.mark.parametrize(("source", "limits", "end", "says"), [
    pytest.param("import os\n" + "os._exit(1)\n" * (MOST_SKIPPED + 1) + BELOW, LIMITS, End.CRASHED, "exit status 1",
        id="of which many parts end the process"),
    pytest.param("import time\n" + "time.sleep(60)\n" * 5, Limits(seconds_per_call=0.6, seconds_per_attempt=0.7),
        End.TIMEOUT, None, id="whose time is up"),
    pytest.param("import os\nfor fd in range(64, 70):\n    try:\n        os.write(fd, bytes(8))\n"
        "    except OSError:\n        pass\n" + BELOW, LIMITS, End.BAD_REPLY, None,
        id="that answers in the judge's place"),
])  # fmt: skip
def test_of_a_file_nothing_more_is_tried(box: Box, source: str, limits: Limits, end: End, says: str | None) -> None:
    with pytest.raises(AttemptEnded, match=says) as caught:
        load(box, limits, Load(source, "a.py"))
    assert caught.value.end is end


def test_all_that_its_processes_take_is_paid_for(box: Box) -> None:
    spent = Spent()
    process = load(box, LIMITS, Load("import os, time\ntime.sleep(0.3)\nos._exit(1)\n", "a.py"), spent=spent)
    process.connection.close()
    assert spent.seconds > 0.85  # three of them slept
    assert spent.received > 0
    spent.received = ALL_REPLIES * LIMITS.reply_mib << 20
    with pytest.raises(AttemptEnded, match=r"all its answers together are larger than 128 MiB\."):
        load(box, LIMITS, Load("x = 1\n", "a.py"), spent=spent)


def test_what_a_part_raises_is_told_with_the_line_at_which_the_part_begins(box: Box) -> None:
    source = "def f(x):\n    raise ValueError(x)\n\n@str\n@f\ndef g():\n    pass\n\nf(\n    2)\n"
    with loaded(box, source) as process:
        lines = [(part.line, part.raised.line) for part in process.stopped if part.raised]
    assert lines == [(4, 2), (9, 2)]


def test_text_that_is_not_python_raises_and_runs_nothing(box: Box) -> None:
    with loaded(box, "import os\nos._exit(1)\ndef (:\n") as process:
        assert (process.raised.type, process.raised.line, process.stopped) == ("SyntaxError", 3, ())


def test_lines_beyond_the_file_are_not_taken_over(box: Box) -> None:
    with loaded(box, "exec(compile('\\n' * 90000 + 'raise KeyError(1)', 'a.py', 'exec'))\n") as process:
        (stopped,) = process.stopped
    assert stopped == Stopped(1, stopped.raised)
    assert stopped.raised.line is None
