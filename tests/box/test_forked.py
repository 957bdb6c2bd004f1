"""The box of a student's own check, which forks the command itself. In an interpreter of its own: ours runs threads."""

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from manyheads.box.forked import open_own_box
from manyheads.box.process import ProcessBox
from manyheads.box.procstat import has_ended
from tests.make import run

BODIES = {
    "folder is empty": "return float(len(os.listdir('.')))",
    "folder": "raise LookupError(os.getcwd())",
    "environment": "raise LookupError(' '.join(sorted(os.environ)))",
    "leaves a file": "open('left', 'w').close()\n    return 1.0",
    "leaves a name": "torch.left = 1.0\n    return 1.0",
    "finds a name": "return float(hasattr(torch, 'left'))",
    "leaves a process": "pid = os.fork()\n    if pid == 0:\n        time.sleep(60)\n    return float(pid)",
    "exits": "os._exit(3)",
    "loops": "while True: pass",
    "meta": "return float('torch.fx.experimental.symbolic_shapes' in sys.modules)",
    "computes": "return torch.ones(3, 3).matmul(torch.ones(3, 3)).sum().item()",
}
SCRIPT = """
import json, sys
from manyheads.box.connection import AttemptEnded
from manyheads.box.forked import open_own_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load

def answer(box, body):
    connection = box.attempt(Limits())
    try:
        source = f"import os, sys, time, torch\\n\\ndef f():\\n    {body}\\n"
        assert connection.ask(Load(source, "attempt.py"), 10.0).raised is None
        reply = connection.ask(Call("f"), 1.0 if body.startswith("while") else 10.0)
        return reply.raised.message if reply.raised else reply.outputs[0].tensor.item()
    except AttemptEnded as ended:
        return str(ended)
    finally:
        connection.close()

with open_own_box(meta=True) as box:
    said = {name: answer(box, body) for name, body in json.loads(sys.argv[1]).items()}
    said["zygote"] = box._zygote
print(json.dumps({"box": type(box).__name__, **said}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, object]:
    done = run(sys.executable, "-c", SCRIPT, json.dumps(BODIES), A_TOKEN="x")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "expected"), [
    pytest.param("box", "ForkedBox", id="a command without threads forks"),
    pytest.param("computes", 27.0, id="torch computes in it"),
    pytest.param("meta", 1.0, id="what the meta device needs is there before an attempt begins"),
    pytest.param("folder is empty", 0.0, id="an attempt stands in an empty folder"),
    pytest.param("finds a name", 0.0, id="what one attempt leaves in Python the next does not find"),
])  # fmt: skip
def test_inside(said, name, expected):
    assert said[name] == expected


def test_its_folder_goes_with_it_and_the_commands_environment_stays_outside(said):
    assert not Path(str(said["folder"])).exists()
    assert "A_TOKEN" not in str(said["environment"]).split()


def test_an_exit_is_told_as_one_and_an_endless_loop_ends_at_the_deadline(said):
    assert "exit status 3" in str(said["exits"])
    assert "endless loop" in str(said["loops"])


@pytest.mark.parametrize("name", ["leaves a process", "zygote"])
def test_no_process_is_left(said, name):
    ends = time.monotonic() + 60.0  # a busy machine is slow
    while not has_ended(int(said[name])):  # the kernel may need a moment
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_where_threads_run_every_attempt_is_a_new_interpreter():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert isinstance(open_own_box(), ProcessBox)
    finally:
        stop.set()
        thread.join()
