"""Each oracle (shape, values, dtype, …) fails replies that differ in it, and no other replies."""

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


def raises_value_error(x: Tensor) -> Tensor:
    """Refuse the input, as a reference does for an input that is not allowed."""
    raise ValueError("two rows and no more")


def raises_key_error(x: Tensor) -> Tensor:
    """Fail by mistake: a KeyError is not a refusal."""
    raise KeyError("x")


def doubled_in_place(x: Tensor) -> Tensor:
    return x.mul_(2)


def reply_to(function: Callable[..., object], call: Call) -> Reply:
    """Return the reply of this function to the call."""
    return LocalRunner({"f": function, "Layer": function}).execute(call)


def observe_reply(
    reference: Callable[..., object], attempt: Callable[..., object], call: Call
) -> ObservedReply:
    """Return the attempt's reply to the call, next to the reply of the reference."""
    expected, actual = reply_to(reference, call), reply_to(attempt, call)
    output = expected.outputs[0].tensor if expected.outputs else None
    return ObservedReply(call, fingerprint_of(expected), (output,), actual, fingerprint_of(actual))


def doubled(x: Tensor) -> Tensor:
    return x * 2


CALL = Call("f", (X,))
GRADIENT = Call("f", (X,), cotangent=torch.ones(2, 2, dtype=torch.float64))
ON_META = Call("f", (X.to("meta"),))
LONG = Call("f", (torch.arange(5.0, dtype=torch.float64)[None],), watch=True)
WATCHED = Call("f", (X.to("meta"),), watch=True)
BUILD = Call(Build("Layer"), only_build=True)
# oracle, reference, wrong attempt, call, and a pattern for the message
VIOLATIONS = [
    ("answered", doubled, raises_key_error, CALL, "KeyError"),
    (
        "refused",
        raises_value_error,
        doubled,
        CALL,
        "this should be refused, and is accepted in silence",
    ),
    ("refused", raises_value_error, raises_key_error, CALL, "KeyError"),
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
    ("mutated", doubled, doubled_in_place, CALL, "changed in place"),
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
    ("oracle", "reference", "wrong", "call", "message"),
    VIOLATIONS,
    ids=[f"{oracle}: {message[:30]}" for oracle, *_, message in VIOLATIONS],
)
def test_an_oracle_fails_a_reply_that_differs_from_the_reference(
    oracle, reference, wrong, call, message
):
    compare(oracle, [observe_reply(reference, reference, call)])
    with pytest.raises(CheckFailed, match=message):
        compare(oracle, [observe_reply(reference, wrong, call)])


def test_a_missing_output_has_no_dtype():
    expected, empty = fingerprint_of(reply_to(doubled, CALL)), Reply()
    with pytest.raises(CheckFailed, match="yours is none"):
        compare("dtype", [ObservedReply(CALL, expected, (), empty, fingerprint_of(empty))])


def test_reading_numbers_on_the_meta_device_is_not_a_device_violation() -> None:
    for oracle in ("answered", "device"):
        compare(oracle, [observe_reply(doubled, lambda x: x * x.sum().item(), WATCHED)])
        compare(oracle, [observe_reply(doubled, lambda x: x[x > 0], WATCHED)])
    with pytest.raises(AttemptRaised):
        compare("answered", [observe_reply(doubled, raises_key_error, WATCHED)])


def test_an_exception_violates_only_the_oracle_for_an_answer() -> None:
    oracles: list[Oracle] = ["kind", "shape", "finite", "values", "dtype", "gradients", "stays"]
    for oracle in oracles:
        compare(oracle, [observe_reply(doubled, raises_key_error, CALL)])
    with pytest.raises(AttemptRaised):
        compare("answered", [observe_reply(doubled, raises_key_error, CALL)])


def test_an_oracle_for_gradients_ignores_differences_of_the_output() -> None:
    linear, reshaped = (lambda x: x * 3), lambda x: x.mT.reshape(4)
    compare("adjoint", [observe_reply(doubled, linear, GRADIENT)])
    compare(
        "argument_gradients_arrive",
        [observe_reply(doubled, lambda x: reshaped(x).detach(), GRADIENT)],
    )


def test_a_mask_with_a_low_finite_number_violates_no_relation() -> None:
    """A correct attempt may fill with a low finite number where the reference fills with −inf."""
    calls = [Call("f", (X,)), Call("f", (X + 1,))]
    with_infinity = lambda x: x.masked_fill(torch.eye(2).bool(), -torch.inf)  # noqa: E731
    with_number = lambda x: x.masked_fill(torch.eye(2).bool(), -1e9)  # noqa: E731
    compare("moves", [observe_reply(with_infinity, with_number, call) for call in calls])


def test_values_accept_a_very_low_fill_for_minus_infinity() -> None:
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
