"""A source is loaded part by part: what raises, takes too long or ends the process is left out, and nothing else."""

import pytest

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.level import Box
from manyheads.box.loading import MOST_SKIPPED, Loaded, Stopped, load
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load

LIMITS = Limits(seconds_per_call=1.0, seconds_per_attempt=30.0)
BELOW = "def below():\n    return 1.0\n"


def loaded(box: Box, source: str, skipped: tuple[int, ...] = ()) -> Loaded:
    return load(box, LIMITS, Load(source, "a.py", skipped=skipped))


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
    process = loaded(box, f"above = 1\n{part}\n{BELOW}")
    try:
        assert number(process, "below") == 1.0
        assert ends_of(process) == [(2, ended)]
    finally:
        process.connection.close()


def test_each_part_that_ends_the_process_is_left_out_and_told_in_the_order_of_lines(box: Box) -> None:
    source = f"import os\nos._exit(1)\nraise KeyError\nos._exit(2)\n{BELOW}oops\n"
    process = loaded(box, source)
    try:
        assert number(process, "below") == 1.0
        assert ends_of(process) == [(2, End.CRASHED), (3, None), (4, End.CRASHED), (7, None)]
        assert process.skipped == (1, 3)
    finally:
        process.connection.close()


def test_the_next_process_leaves_them_out_at_once(box: Box) -> None:
    process = loaded(box, f"import os\nos._exit(1)\n{BELOW}", skipped=(1,))
    try:
        assert number(process, "below") == 1.0
        assert process.stopped == ()
    finally:
        process.connection.close()


def test_a_file_of_many_parts_that_end_the_process_ends_the_attempt(box: Box) -> None:
    with pytest.raises(AttemptEnded, match="exit status 1"):
        loaded(box, "import os\n" + "os._exit(1)\n" * (MOST_SKIPPED + 1) + BELOW)


def test_all_parts_that_are_too_slow_take_twice_the_time_of_a_call_at_most(box: Box) -> None:
    process = loaded(box, "import time\n" + "time.sleep(60)\n" * 3 + BELOW)
    process.connection.close()
    assert [part.seconds for part in process.stopped] == [0.5, 0.5, 0.5]
    slow = load(box, Limits(seconds_per_call=4.0), Load("import time\n" + "time.sleep(60)\n" * 3, "a.py"))
    slow.connection.close()
    assert [part.seconds for part in slow.stopped] == [2.0, 1.0, 0.5]


def test_where_the_attempts_time_is_up_nothing_more_is_tried(box: Box) -> None:
    limits = Limits(seconds_per_call=0.6, seconds_per_attempt=0.7)
    with pytest.raises(AttemptEnded) as caught:
        load(box, limits, Load("import time\n" + "time.sleep(60)\n" * 5, "a.py"))
    assert caught.value.end is End.TIMEOUT


def test_what_a_part_raises_is_told_with_the_line_at_which_the_part_begins(box: Box) -> None:
    source = "def f(x):\n    raise ValueError(x)\n\n@str\n@f\ndef g():\n    pass\n\nf(\n    2)\n"
    process = loaded(box, source)
    process.connection.close()
    lines = [(part.line, part.raised.line) for part in process.stopped if part.raised]
    assert lines == [(4, 2), (9, 2)]


def test_a_part_that_answers_in_the_judges_place_is_no_answer(box: Box) -> None:
    forged = "import os\nfor fd in range(64, 70):\n    try:\n        os.write(fd, bytes(8))\n    except OSError:\n        pass\n"
    with pytest.raises(AttemptEnded) as caught:
        loaded(box, forged + BELOW)
    assert caught.value.end is End.BAD_REPLY


def test_text_that_is_not_python_raises_and_runs_nothing(box: Box) -> None:
    process = loaded(box, "import os\nos._exit(1)\ndef (:\n")
    process.connection.close()
    assert (process.raised.type, process.raised.line, process.stopped) == ("SyntaxError", 3, ())


def test_lines_beyond_the_file_are_not_taken_over(box: Box) -> None:
    process = loaded(box, "exec(compile('\\n' * 90000 + 'raise KeyError(1)', 'a.py', 'exec'))\n")
    process.connection.close()
    (stopped,) = process.stopped
    assert stopped == Stopped(1, stopped.raised)
    assert stopped.raised.line is None
