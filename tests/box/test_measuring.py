"""The worker measures the last step of a call: tensors that are alive are counted exactly, and runs are as many as asked."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from manyheads.box.worker.form import Form
from manyheads.box.worker.measuring import LiveTensors, measure
from manyheads.box.worker.messages import Build, Call, FollowUp, Measure, Returned

KB = 1024
RUNS: list[int] = []


def kilobytes(count: int) -> Tensor:
    return torch.zeros(count * KB, dtype=torch.uint8)


def one_after_the_other(x: Tensor) -> Tensor:
    for _ in range(3):
        held = kilobytes(64)
        del held
    return x


def all_together(x: Tensor) -> Tensor:
    held = [kilobytes(64) for _ in range(3)]
    return held[0]


def only_views(x: Tensor) -> Tensor:
    return x[1:].view(3, -1).T.chunk(2)[0]


def in_place(x: Tensor) -> Tensor:
    return x.add_(1)


def counts_runs(x: Tensor) -> Tensor:
    RUNS.append(len(x))
    return x


def raises(x: Tensor) -> Tensor:
    raise SystemExit("enough")


class Keeps(nn.Module):
    """Hands back all that it was given so far."""

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        RUNS.append(len(x))
        return x, x if past is None else torch.cat([past, x])


NAMES: dict[str, object] = {
    f.__name__: f for f in (one_after_the_other, all_together, only_views, in_place, counts_runs, raises, Keeps)
}
PAIR = Form("tuple", ("y", "past"), (Form(), Form("opaque")))


def measured(message: Measure) -> list[float]:
    reply = measure(NAMES, message, "a.py")
    assert reply.raised is None
    assert reply.outputs[0].tensor is not None
    return [float(number) for number in reply.outputs[0].tensor.flatten().tolist()]


@pytest.mark.parametrize(
    ("name", "bytes_"),
    [("one_after_the_other", 64 * KB), ("all_together", 3 * 64 * KB), ("only_views", 0), ("in_place", 0)],
)
def test_bytes_are_those_alive_at_once_and_neither_given_ones_nor_views(name: str, bytes_: int) -> None:
    assert measured(Measure(Call(name, args=(torch.zeros(13),)), memory=True)) == [bytes_]


def test_scores_and_what_is_made_of_them_are_counted_as_a_hand_counts_them() -> None:
    """q kᵀ, its scaled copy, and the weights: at each moment two (T, T) matrices are alive."""
    T, q = 40, torch.randn(40, 8)
    with LiveTensors([q]) as live:
        scores = q @ q.T
        scores = scores / math.sqrt(8)
        del q
        scores.softmax(-1)
    assert live.peak == 2 * T * T * 4


@pytest.mark.parametrize(("enough", "runs"), [(0.0, 4), (1e9, 6)])
def test_runs_are_at_least_and_at_most_as_many_as_asked_and_the_first_one_warms_up(enough: float, runs: int) -> None:
    RUNS.clear()
    times = measured(Measure(Call("counts_runs", args=(torch.zeros(2),)), enough=enough, fewest=4, most=6))
    assert len(times) == runs
    assert len(RUNS) == runs + 1
    assert all(each >= 0 for each in times)


def test_the_steps_before_the_last_are_taken_once() -> None:
    RUNS.clear()
    step = FollowUp((torch.zeros(1), Returned(0, (1,))))
    call = Call(Build("Keeps"), args=(torch.zeros(9),), returns=PAIR, then=(step,))
    measured(Measure(call, fewest=3, most=3))
    assert RUNS == [9, 1, 1, 1, 1]
    assert measured(Measure(call, memory=True)) == [10 * 4]  # the nine, and the new one, in one tensor


def test_an_exception_is_an_answer_and_so_is_another_structure() -> None:
    raised = measure(NAMES, Measure(Call("raises", args=(torch.zeros(2),))), __file__).raised
    assert raised is not None
    assert (raised.type, raised.stage) == ("SystemExit", "call")
    call = Call("counts_runs", args=(torch.zeros(2),), returns=PAIR, then=(FollowUp((Returned(0, (1,)),)),))
    raised = measure(NAMES, Measure(call), "a.py").raised
    assert raised is not None
    assert raised.message == "returned another structure"
