"""Of many copies of one input, in training, the extremes of the answers are compared: chance does
not decide them.
"""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.box.worker.messages import Build, Call
from manyheads.checks.runner import LocalRunner
from manyheads.diagnosis.observed_reply import is_of_copies, summarise_copies

P = 0.25


class Layer(nn.Module):
    """Drops its input, so often and at this rate; whole: all channels of a token together."""

    def __init__(self, times: int, rate: float = P, whole: bool = False) -> None:
        super().__init__()
        self.times, self.rate, self.whole = times, rate, whole

    def forward(self, x: Tensor) -> Tensor:
        if self.whole:
            return x * F.dropout(torch.ones(len(x), 1, 1, dtype=x.dtype), self.rate, self.training)
        for _ in range(self.times):
            x = F.dropout(x, self.rate, self.training)
        return x


COPIES = torch.tensor([[[2.0, -1.0]]]).expand(512, 1, 2).contiguous()


def layer_output(*args: object, seed: int = 0, **options: object) -> Tensor:
    call = Call(Build("Layer", args, options, training=True), (COPIES,), random=True, seed=seed)
    output = summarise_copies(call, LocalRunner({"Layer": Layer}).execute(call)).outputs[0].tensor
    assert output is not None
    return output


def test_the_extremes_are_the_same_whatever_is_drawn() -> None:
    scale = 1 / (1 - P)
    for seed in (1, 2):
        extremes = [0, -scale, 2 * scale, 0, 2 * scale, scale]
        assert layer_output(1, seed=seed)[:, 0].flatten().tolist() == pytest.approx(
            [*extremes, 1, 1]
        )


def test_numbers_that_are_dropped_together_are_told_from_single_ones() -> None:
    assert layer_output(1)[3].tolist() == [[1, 1]]
    assert layer_output(1, whole=True)[3].tolist() == [[0, 0]]


def test_a_dropout_more_or_less_or_at_another_rate_shows() -> None:
    once = layer_output(1)
    for output in (layer_output(0), layer_output(2), layer_output(1, 0.5)):
        assert not torch.allclose(once, output)


def test_an_answer_without_numbers_is_left_alone() -> None:
    call = Call(Build("Layer", (1,), training=True), (COPIES,), random=True)
    reply = LocalRunner({"Layer": Layer}).execute(call)
    empty = torch.zeros(512, 1, 0)
    none = dataclasses.replace(
        reply, outputs=(dataclasses.replace(reply.outputs[0], tensor=empty, shape=(512, 1, 0)),)
    )
    assert summarise_copies(call, none).outputs[0].tensor is empty


def test_other_calls_are_left_alone() -> None:
    call = Call(Build("Layer", (1,), training=True), (COPIES,), random=True)
    assert is_of_copies(call)
    different, in_eval = torch.arange(1024.0).view(512, 1, 2), Build("Layer", (1,))
    changes = (
        {"random": False},
        {"args": (different,)},
        {"args": (COPIES[:8],)},
        {"subject": "f"},
        {"subject": in_eval},
    )
    assert not [change for change in changes if is_of_copies(dataclasses.replace(call, **change))]
