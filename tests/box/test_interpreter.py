"""A fresh interpreter that calls back, and how its end is told."""

import socket
import time

import pytest

from manyheads.box.connection import AttemptEnded, Channel, Connection
from manyheads.box.process import _caller
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call

PASSWORD = bytes(range(32))


def test_who_does_not_know_the_password_is_sent_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stranger, ours = (socket.create_connection(server.getsockname()) for _ in range(2))
        with stranger, ours:
            stranger.sendall(PASSWORD[::-1])
            ours.sendall(PASSWORD)
            with _caller(server, PASSWORD, time.monotonic() + 60) as caller:
                assert caller.getpeername() == ours.getsockname()
            assert stranger.recv(1) == b""


def test_who_waits_for_a_call_that_never_comes_gives_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimeoutError):
        _caller(server, PASSWORD, time.monotonic() + 0.01)


@pytest.mark.parametrize(("code", "said"), [
    pytest.param(-11, "was ended by SIGSEGV (a crash in native code).", id="a signal"),
    pytest.param(3, "(exit status 3)", id="an exit"),
    pytest.param(0xC0000005, "was ended by Windows, with 0xC0000005 (a crash in native code).",
        id="a crash on Windows"),
    pytest.param(0xC0000142, "was ended by Windows, with 0xC0000142.", id="another end on Windows"),
    pytest.param(None, "ended in the middle of a call.", id="who knows"),
])  # fmt: skip
def test_how_it_ended_is_one_sentence(code: int | None, said: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.setblocking(False)
    file = ours.makefile("rwb", buffering=0)
    with pytest.raises(AttemptEnded) as ended:
        Connection(Channel(file, file), Limits(), lambda seconds: code).ask(Call("f"), 5.0)
    assert said in str(ended.value)
