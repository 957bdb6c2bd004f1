"""Check that nothing of an earlier call is left in a module.

`judge_again` and `judge_modes_again` compare one instance with fresh ones, call by call.
`moved_after_a_call` moves a module to another device after it has answered once: tensors that it
keeps from that call have to move, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .answer import Answer
from .asserts import agrees, assert_finite, assert_shape, expect
from .dropout import copies_of
from .hidden_check import CheckFailed
from .runner import ImplementationModule

Args = Sequence[Any]

P = 0.5
KEPT, OTHERWISE = (
    "state_kept",
    "is answered otherwise than by a fresh one: something of an earlier call is left",
)
HINT = (
    "Does forward write to self? Then what does the next call read, with another T, another batch"
    " or another mode?"
)


def judge_again(module: ImplementationModule, original: Args, alike: Args, resized: Args) -> None:
    """Fail unless one instance answers each of several calls as a fresh instance would.

    The calls come in two orders in eval mode, and then in training mode and eval mode by turns.

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
                raise CheckFailed(f"call {n} of one instance {OTHERWISE}", KEPT)
    output, another = outputs[id(original)], outputs[id(alike)]
    assert_shape(another, output.shape)
    expect(not torch.equal(output, another), "whatever is asked, the answer is the same")
    expect(not torch.equal(output, original[0]), "the answer is the input itself")
    awake = module.asking(random=True).training()
    by_turns = (original, alike, resized, original, alike)
    answers = answers_of(awake, by_turns, by_turns=True)
    for n, (args, answer) in enumerate(zip(by_turns, answers, strict=True), 1):
        if not agrees(answer.output, outputs[id(args)]):
            # differences that are due to chance or to training mode itself belong to other checks
            fresh = fresh_one(awake, args)
            keeps_state = fresh is not None and not agrees(answer.output, fresh)
            expect(
                not keeps_state,
                f"in training and in eval mode by turns, call {n} of one instance {OTHERWISE}",
                KEPT,
            )


def answers_of(
    module: ImplementationModule, calls: Sequence[Args], by_turns: bool = False
) -> list[Answer]:
    """Return the answers of one instance to these calls.

    With `by_turns`, every second call is in eval mode. Fails if the instance raises an exception
    and fresh instances do not.
    """
    sequence = module.sequence()
    for n, args in enumerate(calls):
        if by_turns and n:
            sequence.train(n % 2 == 0)
        sequence(*args)
    answers = sequence.ask()
    if answers[0].raised is not None:
        lengths = ", then ".join("{} × {}".format(*args[0].shape) for args in calls)
        evidence = (
            f"one instance, asked about {lengths} tokens, raises an exception; fresh ones answer"
            " all of these"
        )
        expect(any(module(*args).raised is not None for args in calls), evidence, KEPT)
        answers[0].must_return()
    return answers


def fresh_one(module: ImplementationModule, args: Args) -> Tensor | None:
    """Return the output of a fresh instance, or None if another seed gives another output."""
    output, repeat = (module.asking(random=True, seed=seed)(*args).output for seed in (0, 1))
    return output if agrees(output, repeat) else None


def judge_modes_again(module: ImplementationModule, token: Tensor, heads: int) -> None:
    """Fail unless eval mode turns dropout off, and training mode turns it on again.

    One instance is called in training mode, in eval mode, and in training mode again. It must drop
    the same share both times, and in eval mode all copies must get the same answer.

    Args:
        module: the description of the module with dropout = `P`. Its output projection passes
            everything on, so that in each copy of a single token a head is there or is 0.
        token: (1, 1, C).
        heads: the number of heads.
    """
    copies = copies_of(token)
    calls = module.asking(random=True).training().sequence()
    calls(copies)
    calls.train(False)
    calls(copies)
    calls.train()
    calls(copies)
    awake, asleep, again = (answer.output for answer in calls.ask())
    assert_shape(again, awake.shape)
    assert_finite(asleep)
    if not agrees(asleep, asleep[:1].expand_as(asleep)):
        fresh = module.asking(random=True)(copies).output
        evidence = (
            "in eval mode, after training, copies of one token get different answers: dropout"
            " is still at work"
        )
        expect(not agrees(fresh, fresh[:1].expand_as(fresh)), evidence, KEPT)
    baseline, after = (
        float((output.abs() <= 1e-4 * asleep.abs().max()).double().mean())
        for output in (awake, again)
    )
    evidence = (
        f"in training mode {baseline:.0%} of a single token's answer is 0, and after a call in"
        f" eval mode {after:.0%}"
    )
    # Each share is the mean of len(copies) · nh coin tosses. A right attempt is 6.6 standard
    # deviations off once in 2e10 runs.
    expect(
        abs(baseline - after) <= 6.6 * (2 * P * (1 - P) / (len(copies) * heads)) ** 0.5,
        evidence,
        KEPT,
    )


_SOURCE = """
from contextlib import nullcontext

import torch

def around(subject, build):
    of_weights = next((each.dtype for each in subject.parameters()), torch.float32)
    dtypes = {"float": of_weights, "bool": torch.bool}
    subject(*(torch.ones(shape, dtype=dtypes[kind]) for shape, kind in INPUTS))
    subject.to("meta")
    return nullcontext()
"""


def moved_after_a_call(inputs: Sequence[Tensor]) -> str:
    """Return code to put around a call: the module first answers once, and is then moved to "meta".

    Args:
        inputs: tensors of the shapes of the first call's arguments.
    """
    input_specs = [
        (tuple(tensor.shape), "float" if tensor.is_floating_point() else "bool")
        for tensor in inputs
    ]
    return f"INPUTS = {input_specs!r}\n{_SOURCE}"
