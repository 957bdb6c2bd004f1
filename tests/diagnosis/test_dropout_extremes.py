"""Dropout is compared by the extremes of its outputs for many copies of one input.

A single output is random, but the minimum and the maximum over 512 copies are not.
"""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.box.worker.messages import Build, Call
from manyheads.checks.runner import LocalRunner
from manyheads.diagnosis.observed_reply import is_of_copies, summarise_copies

DROPOUT_RATE = 0.25


class Layer(nn.Module):
    """Applies dropout to its input.

    times: how often. whole: all channels of a token are dropped together.
    """

    def __init__(self, times: int, rate: float = DROPOUT_RATE, whole: bool = False) -> None:
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
    """Return the extremes of the outputs of Layer(*args, **options) for the 512 copies."""
    call = Call(Build("Layer", args, options, training=True), (COPIES,), random=True, seed=seed)
    output = summarise_copies(call, LocalRunner({"Layer": Layer}).execute(call)).outputs[0].tensor
    assert output is not None
    return output


def test_the_extremes_are_the_same_for_every_seed() -> None:
    scale = 1 / (1 - DROPOUT_RATE)
    for seed in (1, 2):
        extremes = [0, -scale, 2 * scale, 0, 2 * scale, scale]
        assert layer_output(1, seed=seed)[:, 0].flatten().tolist() == pytest.approx(
            [*extremes, 1, 1]
        )


def test_the_extremes_show_whether_channels_are_dropped_together() -> None:
    assert layer_output(1)[3].tolist() == [[1, 1]]
    assert layer_output(1, whole=True)[3].tolist() == [[0, 0]]


def test_the_extremes_show_the_number_and_the_rate_of_dropouts() -> None:
    once = layer_output(1)
    for output in (layer_output(0), layer_output(2), layer_output(1, 0.5)):
        assert not torch.allclose(once, output)


def test_an_empty_output_is_not_summarised() -> None:
    call = Call(Build("Layer", (1,), training=True), (COPIES,), random=True)
    reply = LocalRunner({"Layer": Layer}).execute(call)
    empty = torch.zeros(512, 1, 0)
    empty_reply = dataclasses.replace(
        reply, outputs=(dataclasses.replace(reply.outputs[0], tensor=empty, shape=(512, 1, 0)),)
    )
    assert summarise_copies(call, empty_reply).outputs[0].tensor is empty


def test_only_random_calls_in_training_with_many_copies_are_summarised() -> None:
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
