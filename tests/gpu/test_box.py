"""The box on a real GPU. `make gpu` runs these tests; without a GPU they are skipped."""

from collections.abc import Iterator

import pytest
import torch

from manyheads.box import open_box
from manyheads.box.canary import run_canary
from manyheads.box.connection import AttemptEnded, Box, Connection, End
from manyheads.box.level_and_device_names import Level
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Call, Load, StandIn

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LIMITS = Limits(seconds_per_call=30.0, seconds_per_attempt=120.0).for_device("cuda")
PATTERN, MIB = 0x5EC2E7, 1 << 20  # the pattern is a number that memory does not hold by chance
SOURCE = """
import os, time, torch

def device_of(x):
    return x * 2

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x)

def through(layers, x):
    return layers.proj(x)

def write(mib, end):
    kept = [torch.full((256 << 18,), PATTERN, dtype=torch.int32, device="cuda") for _ in range(mib \
// 256)]
    torch.cuda.synchronize()
    if end == "exits":
        os._exit(0)
    if end == "is killed":
        time.sleep(600)
    return float(sum(piece.numel() for piece in kept) >> 18)

def look(mib):
    matches = 0
    for _ in range(mib // 256):
        piece = torch.empty(256 << 18, dtype=torch.int32, device="cuda")
        matches += int((piece == PATTERN).sum())
        pieces.append(piece)
    return float(matches)

pieces = []
""".replace("PATTERN", str(PATTERN))


@pytest.fixture(scope="module")
def box_with_gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with open_box(Level.NAMESPACES, LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
        yield opened


@pytest.fixture
def gpu_attempt(box_with_gpu: Box) -> Iterator[Connection]:
    connection = load_attempt(box_with_gpu)
    yield connection
    connection.close()


def load_attempt(box: Box) -> Connection:
    """Return a new attempt in the box, with SOURCE loaded."""
    connection = box.attempt(LIMITS)
    assert connection.ask(Load(SOURCE, "attempt.py"), 30.0).raised is None
    return connection


def number(connection: Connection, call: Call) -> float:
    """Return the number that a call returns."""
    reply = connection.ask(call, LIMITS.seconds_per_call)
    assert reply.raised is None, reply.raised
    assert reply.outputs[0].tensor is not None
    return float(reply.outputs[0].tensor.item())


def test_the_canary_finds_no_leak(box_with_gpu, tmp_path):
    report = run_canary(box_with_gpu, LIMITS, tmp_path)
    assert report.holds, report


@pytest.mark.parametrize("end", ["answers", "exits", "is killed"])
def test_an_attempt_cannot_read_the_last_ones_gpu_memory(box_with_gpu, end):
    """The first fills half of the memory; the second allocates as much without clearing it."""
    mib = torch.cuda.get_device_properties(0).total_memory // MIB // 2 // 256 * 256
    first = load_attempt(box_with_gpu)
    if end == "answers":
        assert number(first, Call("write", (mib, end))) == mib
        first.close()
    else:
        with pytest.raises(AttemptEnded) as caught:
            first.ask(Call("write", (mib, end)), 10.0)
        assert caught.value.end is (End.TIMEOUT if end == "is killed" else End.CRASHED)
    second = load_attempt(box_with_gpu)
    try:
        assert number(second, Call("look", (mib,))) == 0
    finally:
        second.close()


def test_gpu_memory_is_free_again_before_the_next_attempt(
    box_with_gpu,
):
    mib = int(torch.cuda.get_device_properties(0).total_memory * 0.6) // MIB // 256 * 256
    for _ in range(3):  # two attempts would need 1.2 times the memory
        connection = load_attempt(box_with_gpu)
        assert number(connection, Call("write", (mib, "answers"))) == mib
        connection.close()


X = torch.arange(6.0).reshape(2, 3)


def test_tensors_modules_and_gradients_go_to_the_gpu_and_return(gpu_attempt):
    state = {"inner.weight": torch.ones(2, 3), "inner.bias": torch.zeros(2)}
    layer = Build("Layer", state=state, device="cuda")
    reply = gpu_attempt.ask(Call(layer, (X,), cotangent=torch.ones(2, 2), device="cuda"), 30.0)
    assert reply.raised is None, reply.raised
    assert reply.outputs[0].device == "cuda"
    assert reply.outputs[0].tensor is not None
    assert torch.equal(reply.outputs[0].tensor, X @ torch.ones(3, 2))
    assert reply.modules[0].parameters["inner.weight"].device == "cuda"
    gradient = reply.gradients["args.0"]
    assert gradient is not None
    assert torch.equal(gradient, torch.full((2, 3), 2.0))
    layers, large = StandIn({"proj": torch.ones(4, 3)}, {}), torch.ones(1024, 1024)
    assert (
        gpu_attempt.ask(Call("through", (layers, X), device="cuda"), 30.0).outputs[0].device
        == "cuda"
    )
    assert (
        gpu_attempt.ask(Call("device_of", (large,), memory=True, device="cuda"), 30.0).peak
        == large.nbytes
    )
