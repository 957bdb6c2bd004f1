"""Each aspect fails what differs in it, and nothing else."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call, Reply
from manyheads.checks.hidden_check import AttemptRaised, CheckFailed
from manyheads.checks.runner import LocalRunner
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.observed_reply import ObservedReply
from manyheads.diagnosis.oracles import Oracle, compare

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)


class Layer(torch.nn.Module):
    def __init__(self, width: int = 2, bias: bool = False) -> None:
        super().__init__()
        self.W = torch.nn.Linear(2, width, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.W(x)


def refuses(x: Tensor) -> Tensor:
    raise ValueError("two rows and no more")


def breaks(x: Tensor) -> Tensor:
    raise KeyError("x")


def in_place(x: Tensor) -> Tensor:
    return x.mul_(2)


def reply_to(function: Callable[..., object], call: Call) -> Reply:
    return LocalRunner({"f": function, "Layer": function}).execute(call)


def observe_reply(
    reference: Callable[..., object], attempt: Callable[..., object], call: Call
) -> ObservedReply:
    want, have = reply_to(reference, call), reply_to(attempt, call)
    expected = want.outputs[0].tensor if want.outputs else None
    return ObservedReply(call, fingerprint_of(want), (expected,), have, fingerprint_of(have))


def doubled(x: Tensor) -> Tensor:
    return x * 2


CALL = Call("f", (X,))
GRADIENT = Call("f", (X,), cotangent=torch.ones(2, 2, dtype=torch.float64))
ON_META = Call("f", (X.to("meta"),))
LONG = Call("f", (torch.arange(5.0, dtype=torch.float64)[None],), watch=True)
WATCHED = Call("f", (X.to("meta"),), watch=True)
BUILD = Call(Build("Layer"), only_build=True)
ONE_CALL = [
    ("answered", doubled, breaks, CALL, "KeyError"),
    ("refused", refuses, doubled, CALL, "this should be refused, and is accepted in silence"),
    ("refused", refuses, breaks, CALL, "KeyError"),
    ("kind", doubled, lambda x: (x, x), CALL, "a tensor was expected; yours returned a tuple"),
    ("shape", doubled, lambda x: x[0], CALL, r"should have shape \(2, 2\); yours has \(2,\)"),
    ("finite", doubled, lambda x: x / 0, CALL, "4 of 4 values are infinite"),
    ("zeros", lambda x: x - 1, doubled, CALL, "the number that should be 0 has another value"),
    ("values", doubled, lambda x: x * 3, CALL, "4 of 4 values differ"),
    ("dtype", doubled, lambda x: x.float(), CALL, "should be float64; yours is float32"),
    (
        "device",
        doubled,
        lambda x: torch.ones(2, 2),
        ON_META,
        "the output is on cpu wherever the arguments are",
    ),
    ("device", doubled, lambda x: x + torch.ones(2, 2), WATCHED, "tensors on two devices meet"),
    (
        "parameters",
        Layer,
        lambda: Layer(bias=True),
        BUILD,
        "parameters too many: .'W.bias'.; parameters missing: none",
    ),
    ("parameters", Layer, lambda: Layer(3), BUILD, "other shapes than asked for"),
    ("mutated", doubled, in_place, CALL, "changed in place"),
    (
        "gradients_arrive",
        doubled,
        lambda x: x.detach() * 2,
        GRADIENT,
        "no gradient reaches the first argument",
    ),
    ("gradients", doubled, lambda x: x * 3, GRADIENT, "the gradients differ"),
    (
        "argument_gradients_arrive",
        doubled,
        lambda x: x.detach() * 2,
        GRADIENT,
        "no gradient reaches the first argument",
    ),
    ("argument_gradients", doubled, lambda x: x * 3, GRADIENT, "the gradients differ"),
    ("adjoint", doubled, lambda x: x + x.detach(), GRADIENT, "is not that of the output"),
    (
        "softmax",
        lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
        lambda x: x.softmax(-1),
        LONG,
        "PyTorch's softmax",
    ),
    ("softmax", doubled, lambda x: x.log_softmax(-1), LONG, "PyTorch's softmax"),
    (
        "square",
        doubled,
        lambda x: (x[0] * torch.eye(5).to(x)).sum(0)[None] * 2,
        LONG,
        "two axes are as long",
    ),
    (
        "square",
        doubled,
        lambda x: x * 2 + torch.zeros(25).to(x).sum(),
        LONG,
        "two axes are as long",
    ),
]


@pytest.mark.parametrize(
    ("aspect", "right", "wrong", "call", "evidence"),
    ONE_CALL,
    ids=[f"{a}: {e[:30]}" for a, *_, e in ONE_CALL],
)
def test_an_aspect_fails_what_differs_in_it(aspect, right, wrong, call, evidence):
    compare(aspect, [observe_reply(right, right, call)])
    with pytest.raises(CheckFailed, match=evidence):
        compare(aspect, [observe_reply(right, wrong, call)])


def test_a_missing_output_has_no_dtype():
    want, none = fingerprint_of(reply_to(doubled, CALL)), Reply()
    with pytest.raises(CheckFailed, match="yours is none"):
        compare("dtype", [ObservedReply(CALL, want, (), none, fingerprint_of(none))])


def test_who_looks_at_numbers_on_the_meta_device_has_no_fixed_device() -> None:
    for aspect in ("answered", "device"):
        compare(aspect, [observe_reply(doubled, lambda x: x * x.sum().item(), WATCHED)])
        compare(aspect, [observe_reply(doubled, lambda x: x[x > 0], WATCHED)])
    with pytest.raises(AttemptRaised):
        compare("answered", [observe_reply(doubled, breaks, WATCHED)])


def test_an_attempt_that_raises_fails_no_aspect_but_the_one_that_asks_for_an_answer() -> None:
    aspects: list[Oracle] = ["kind", "shape", "finite", "values", "dtype", "gradients", "stays"]
    for aspect in aspects:
        compare(aspect, [observe_reply(doubled, breaks, CALL)])
    with pytest.raises(AttemptRaised):
        compare("answered", [observe_reply(doubled, breaks, CALL)])


def test_what_a_right_attempt_may_do_otherwise_is_another_aspect() -> None:
    linear, reshaped = (lambda x: x * 3), lambda x: x.mT.reshape(4)
    compare("adjoint", [observe_reply(doubled, linear, GRADIENT)])
    compare(
        "argument_gradients_arrive",
        [observe_reply(doubled, lambda x: reshaped(x).detach(), GRADIENT)],
    )


def test_a_mask_that_hides_with_minus_infinity_is_held_to_no_relation() -> None:
    """A right attempt may hide with a low finite number: its answers are finite where the recorded
    ones are not.
    """
    hides = [Call("f", (X,)), Call("f", (X + 1,))]
    with_infinity = lambda x: x.masked_fill(torch.eye(2).bool(), -torch.inf)  # noqa: E731
    with_number = lambda x: x.masked_fill(torch.eye(2).bool(), -1e9)  # noqa: E731
    compare("moves", [observe_reply(with_infinity, with_number, call) for call in hides])


def test_a_low_enough_fill_has_the_values_of_minus_infinity_and_a_rounded_answer_has_not() -> None:
    def masking_function(fill: float) -> Callable[[Tensor], Tensor]:
        return lambda x: x.masked_fill(x > 3, fill)

    def mask_and_round(x: Tensor) -> Tensor:
        return masking_function(-torch.inf)(x).round(decimals=3)

    call = Call("f", (X + 4e-4,))
    reference = masking_function(-torch.inf)
    for fill in (-torch.inf, -1e9, torch.finfo(torch.float64).min):
        compare("values", [observe_reply(reference, masking_function(fill), call)])
    for wrong in (*map(masking_function, (-100.0, torch.inf, 0.0)), mask_and_round):
        with pytest.raises(CheckFailed):
            compare("values", [observe_reply(reference, wrong, call)])
