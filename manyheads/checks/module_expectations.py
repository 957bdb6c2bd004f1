"""Expectations about modules that several check files share.

Gradients: `is_cut` and its neighbours compare an attempt's gradients with finite differences of its
outputs. If the values are wrong too, the reference's gradients say nothing about the attempt's
graph. Finite differences do: a wrong value with an intact graph has the gradient of that value, a
cut graph does not.

Dropout: `copies_of` and `is_dropped` recognise dropout by the answers to copies of the same tokens.

Repeated calls: `judge_again` and `judge_modes_again` compare one instance with fresh ones, call by
call. `moved_after_a_call` moves a module to another device after it has answered once: tensors that
it keeps from that call have to move, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..box.worker.messages import MovedAfterACall, Ones, dtype_name
from .answer import Answer
from .asserts import agrees, assert_finite, assert_gradients_match, assert_shape, expect
from .hidden_check import CheckFailed, Evidence, Listed, Percent
from .runner import Implementation, ImplementationModule

Tensors = Mapping[str, Tensor]
_NEAR, _FAR = 0.01, 0.02  # steps along a direction through all tensors; float32 resolves them


def is_cut(
    output: Callable[[Tensors, Tensor], Tensor],
    weights: Tensors,
    x: Tensor,
    g: Tensor,
    got: Answer,
    want: Answer,
) -> bool:
    """Return whether the gradients contradict the attempt's own output.

    The missing part is the difference between the reference's gradients and the attempt's. The
    output is computed a little way along this direction, forwards and backwards. If its slope there
    is another than the gradients claim, and is the same at twice the distance, the graph is cut.
    Gradients of a wrong shape or with infinite numbers are no proof.

    Args:
        output: returns the attempt's output for these weights and this x.
        weights: the weights of the call, or its further arguments, by name.
        x: the first argument of the call.
        g: the cotangent of the call.
        got: the attempt's answer to the call.
        want: the reference's answer to it.
    """
    tensors = {**weights, "args.0": x}
    names = [name for name in tensors if name in got.reply.gradients]
    actual, target = (_gradients_or_zeros(answer, names, tensors) for answer in (got, want))
    if any(
        actual[name].shape != target[name].shape or not actual[name].isfinite().all()
        for name in names
    ):
        return False
    lacking = {name: target[name] - actual[name] for name in names}
    size = sum(float(d.square().sum()) for d in lacking.values()) ** 0.5
    if not size:
        return False

    def output_at(step: float) -> Tensor:
        point = {name: t + step * lacking.get(name, 0.0) / size for name, t in tensors.items()}
        return output({name: point[name] for name in weights}, point["args.0"])

    def derivative(step: float) -> float:
        ahead, behind = output_at(step), output_at(-step)
        return float(((ahead - behind) * g).sum() / (2 * step))

    near = derivative(_NEAR)
    claimed = sum(float((actual[name] * lacking[name]).sum()) for name in names) / size
    largest = max(float(gradient.norm()) for gradient in (*actual.values(), *target.values()))
    if not abs(near - claimed) > 0.05 * max(abs(near), abs(claimed), 0.1 * largest):
        return False
    return abs(near - derivative(_FAR)) <= 0.01 * max(abs(near), 0.1 * largest)


def is_cut_in_part(attempt: Implementation, got: Answer, want: Answer, cotangent: Tensor) -> bool:
    """Return whether the values of a function are right and its gradient contradicts them.

    If the values are wrong, or an argument was changed in place, the result is False. A detached
    part may then be harmless in itself: for example, a detached maximum cancels only in right
    values.

    Args:
        attempt: the attempt that gave the answer.
        got: its answer to a call of the function, with gradients.
        want: the reference's answer to the same call.
        cotangent: the cotangent of that call.
    """
    if got.reply.mutated or not agrees(got, want):
        return False
    name, inputs = str(got.call.subject), list[Any](got.call.args)

    def output(other_args: Tensors, first_arg: Tensor) -> Tensor:
        named_args = {**other_args, "args.0": first_arg}
        args = [named_args.get(f"args.{i}", arg) for i, arg in enumerate(inputs)]
        return attempt.call(name, *args).output

    tensors = {
        f"args.{i}": arg
        for i, arg in enumerate(inputs)
        if i and f"args.{i}" in want.reply.gradients
    }
    return is_cut(output, tensors, inputs[0], cotangent, got, want)


def _gradients_or_zeros(answer: Answer, names: list[str], tensors: Tensors) -> dict[str, Tensor]:
    """Return the gradients of these tensors by name, with zeros for those that are missing."""
    gradients = {}
    for name in names:
        gradient = answer.gradient(name)
        gradients[name] = torch.zeros_like(tensors[name]) if gradient is None else gradient
    return gradients


def expect_gradients(
    got: Answer,
    want: Answer,
    names: Iterable[str],
    cut: Callable[[], bool],
    path: str = "",
    missing: str = "",
) -> None:
    """Raise CheckFailed unless the gradients of these names are the reference's.

    Args:
        got: the attempt's answer to a call with gradients.
        want: the reference's answer to the same call.
        names: the names of the gradients, as `assert_gradients_match` takes them.
        cut: returns whether the graph is cut. It is called only if the gradients differ.
        path: the evidence's name for the path that the call takes.
        missing: the misconception that a missing gradient proves on its own.
    """
    try:
        assert_gradients_match(got, want, *names, suspect_if_cut=missing)
    except CheckFailed as fault:
        if got.raised is not None:
            raise
        suspect = fault.suspect or ("gradient_cut" if cut() else "")
        evidence = Evidence("{}: {}", path, fault.evidence) if path else fault.evidence
        raise CheckFailed(evidence, suspect) from None


def weights_without_effect(ask: Callable[[Tensors], Answer], weights: Tensors) -> list[str]:
    """Return the names of the matrices that do not affect the output.

    If the columns of such a matrix are reversed, the output at the same seed is the same.

    Args:
        ask: returns the attempt's answer with these weights.
        weights: the weights by name. Those with a single axis are not examined.
    """
    baseline = ask(weights).output.nan_to_num()
    changed = {
        name: {**weights, name: tensor.flip(-1)}
        for name, tensor in weights.items()
        if tensor.dim() > 1
    }
    return [
        name
        for name, edited in changed.items()
        if torch.equal(ask(edited).output.nan_to_num(), baseline)
    ]


COPIES = 512
# Copies of a single token. Only for a single token does a mask of the batch's size fit the scores,
# and this costs copies³.
LONE_COPIES = 192


def copies_of(x: Tensor) -> Tensor:
    """Return (1, T, C) as (COPIES, T, C), and a single token as (LONE_COPIES, 1, C)."""
    return x.expand(LONE_COPIES if x.shape[1] == 1 else COPIES, *x.shape[1:]).contiguous()


def is_dropped(output: Tensor, again: Tensor, heads: int) -> bool:
    """Return whether dropout alone can explain the differences between copies of one token.

    A single token has one weight for each head. So in each copy, each head is present or 0, or each
    channel is present or 0. Noise would give every copy other numbers. Weights that are made anew
    in every call would give all copies the same numbers, and other numbers with another seed.

    Args:
        output: the output for `copies_of` one token, (copies, 1, C).
        again: the same at another seed.
        heads: the number of heads.
    """
    if output.shape != again.shape:
        return False
    rows, again_rows = (
        (tensor[:, 0] / output.abs().max().clamp_min(1e-30)).mul(1e4).round()
        for tensor in (output, again)
    )
    outcomes, channels = len(rows.unique(dim=0)), [column.unique() for column in rows.T]
    dropped = outcomes <= 2**heads or all(len(c) <= 2 and bool((c == 0).any()) for c in channels)
    return (
        outcomes > 1
        and dropped
        and all(bool(torch.isin(c, o).any()) for c, o in zip(channels, again_rows.T, strict=True))
    )


# At this rate dropout is active, but no number is ever dropped, so that the output can be recorded.
RARE = 1e-12


def expect_gradients_awake(module: ImplementationModule, x: Tensor) -> None:
    """Raise CheckFailed if autograd complains in training mode of a change in place.

    Args:
        module: with a cotangent, and with the dropout rate RARE.
        x: its input.
    """
    evidence = (
        "in training with dropout no gradient can be computed: what backward needs was changed in"
        " place"
    )
    expect(
        "inplace operation" not in module.in_training_mode()(x).message,
        evidence,
        "dropout_in_place",
    )


Args = Sequence[Any]

P = 0.5  # the rate of dropout where both modes are compared
KEPT, OTHERWISE = (
    "state_kept",
    "is answered otherwise than by a fresh one: something of an earlier call is left",
)
HINT = (
    "Does forward write to self? Then what does the next call read, with another T, another batch"
    " or another mode?"
)


def judge_again(module: ImplementationModule, original: Args, alike: Args, resized: Args) -> None:
    """Raise CheckFailed unless one instance answers several calls as fresh instances would.

    The calls come in two orders in eval mode, and then in training mode and eval mode by turns. The
    answers to `original` and `alike` must also differ, and the first must not be its input.

    Args:
        module: the description of the module, in eval mode and without dropout. A call returns one
            tensor.
        original: the arguments of a call.
        alike: arguments of the same sizes with other numbers, and without the optional ones.
        resized: arguments of other sizes.
    """
    outputs = dict[int, Tensor]()
    for order in ((original, alike, resized, original), (resized, alike, original, resized)):
        for n, (args, answer) in enumerate(zip(order, answers_of(module, order), strict=True), 1):
            assert_finite(answer)
            if not agrees(answer.output, outputs.setdefault(id(args), answer.output)):
                expect(
                    fresh_one(module, args) is not None,
                    "two fresh instances answer the same call otherwise",
                )
                raise CheckFailed(Evidence("call {} of one instance {}", n, OTHERWISE), KEPT)
    output, another = outputs[id(original)], outputs[id(alike)]
    assert_shape(another, output.shape)
    expect(not torch.equal(output, another), "whatever is asked, the answer is the same")
    expect(not torch.equal(output, original[0]), "the answer is the input itself")
    awake = module.with_options(random=True).in_training_mode()
    by_turns = (original, alike, resized, original, alike)
    answers = answers_of(awake, by_turns, by_turns=True)
    for n, (args, answer) in enumerate(zip(by_turns, answers, strict=True), 1):
        if not agrees(answer.output, outputs[id(args)]):
            # differences that are due to chance or to training mode itself belong to other checks
            fresh = fresh_one(awake, args)
            keeps_state = fresh is not None and not agrees(answer.output, fresh)
            evidence = Evidence(
                "in training and in eval mode by turns, call {} of one instance {}", n, OTHERWISE
            )
            expect(not keeps_state, evidence, KEPT)


def answers_of(
    module: ImplementationModule, calls: Sequence[Args], by_turns: bool = False
) -> list[Answer]:
    """Return the answers of one instance to these calls.

    With `by_turns`, every second call is in eval mode. Raises CheckFailed if the instance raises an
    exception; the evidence depends on whether a fresh instance raises for one of the calls, too.
    """
    sequence = module.sequence()
    for n, args in enumerate(calls):
        if by_turns and n:
            sequence.train(n % 2 == 0)
        sequence(*args)
    answers = sequence.ask()
    if answers[0].raised is not None:
        lengths = Listed([Evidence("{} × {}", *args[0].shape) for args in calls], ", then ")
        evidence = Evidence(
            "one instance, asked about {} tokens, raises an exception; fresh ones answer all of"
            " these",
            lengths,
        )
        expect(any(module(*args).raised is not None for args in calls), evidence, KEPT)
        answers[0].must_return()
    return answers


def fresh_one(module: ImplementationModule, args: Args) -> Tensor | None:
    """Return the output of a fresh instance, or None if another seed gives another output."""
    output, repeat = (module.with_options(random=True, seed=seed)(*args).output for seed in (0, 1))
    return output if agrees(output, repeat) else None


def judge_modes_again(module: ImplementationModule, token: Tensor, heads: int) -> None:
    """Raise CheckFailed unless eval mode turns dropout off, and training mode turns it on again.

    One instance is called in training mode, in eval mode, and in training mode again. It must drop
    the same share both times, and in eval mode all copies must get the same answer.

    Args:
        module: the description of the module with dropout = `P`. Its output projection passes
            everything on, so that in each copy of a single token a head is there or is 0.
        token: (1, 1, C).
        heads: the number of heads.
    """
    copies = copies_of(token)
    calls = module.with_options(random=True).in_training_mode().sequence()
    calls(copies)
    calls.train(False)
    calls(copies)
    calls.train()
    calls(copies)
    awake, asleep, again = (answer.output for answer in calls.ask())
    assert_shape(again, awake.shape)
    assert_finite(asleep)
    if not agrees(asleep, asleep[:1].expand_as(asleep)):
        fresh = module.with_options(random=True)(copies).output
        evidence = (
            "in eval mode, after training, copies of one token get different answers: dropout"
            " is still at work"
        )
        expect(not agrees(fresh, fresh[:1].expand_as(fresh)), evidence, KEPT)
    baseline, after = (
        float((output.abs() <= 1e-4 * asleep.abs().max()).double().mean())
        for output in (awake, again)
    )
    shares = Evidence(
        "in training mode {} of a single token's answer is 0, and after a call in eval mode {}",
        Percent(baseline),
        Percent(after),
    )
    # Each share is the mean of len(copies) · nh coin tosses. A right attempt is 6.6 standard
    # deviations off once in 2e10 runs.
    expect(
        abs(baseline - after) <= 6.6 * (2 * P * (1 - P) / (len(copies) * heads)) ** 0.5,
        shares,
        KEPT,
    )


def moved_after_a_call(inputs: Sequence[Tensor]) -> MovedAfterACall:
    """Return a value for the option `around`: the module first answers once, then moves to "meta".

    Args:
        inputs: tensors of the shapes of the first call's arguments. A floating-point one is
            replaced by ones in the dtype of the module's weights, any other by ones in its own.
    """
    args = [
        Ones(tuple(t.shape), None if t.is_floating_point() else dtype_name(t.dtype)) for t in inputs
    ]
    return MovedAfterACall(tuple(args))
