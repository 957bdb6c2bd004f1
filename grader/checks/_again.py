"""Check that an instance answers every call as a fresh one with the same weights would."""

import torch

from manyheads.checks import CheckFailed, agrees, assert_finite, assert_shape, expect

from ._dropout import copies_of

P = 0.5
KEPT, OTHERWISE = (
    "state_kept",
    "is answered otherwise than by a fresh one: something of an earlier call is left",
)
HINT = (
    "Does forward write to self? Then what does the next call read, with another T, another batch"
    " or another mode?"
)


def judge_again(module, original, alike, resized):
    """Fail unless one instance answers each of several calls as a fresh instance would.

    The calls come in two orders in eval mode, and then in training mode and eval mode by turns.

    Args:
        module: the description of the module, in eval mode and without dropout. A call returns one
            tensor.
        original: the arguments of a call.
        alike: arguments of the same sizes with other numbers, and without the optional ones.
        resized: arguments of other sizes.
    """
    outputs = {}
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
    awake, order = (
        module.asking(random=True).training(),
        (original, alike, resized, original, alike),
    )
    for n, (args, answer) in enumerate(
        zip(order, answers_of(awake, order, by_turns=True), strict=True), 1
    ):
        if not agrees(answer.output, outputs[id(args)]):
            # differences that are due to chance or to training mode itself belong to other checks
            fresh = fresh_one(awake, args)
            keeps_state = fresh is not None and not agrees(answer.output, fresh)
            expect(
                not keeps_state,
                f"in training and in eval mode by turns, call {n} of one instance {OTHERWISE}",
                KEPT,
            )


def answers_of(module, calls, by_turns=False):
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


def fresh_one(module, args):
    """Return the output of a fresh instance, or None if another seed gives another output."""
    output, repeat = (module.asking(random=True, seed=seed)(*args).output for seed in (0, 1))
    return output if agrees(output, repeat) else None


def judge_modes_again(subject, attempt, draw):
    """Fail unless eval mode turns dropout off, and training mode turns it on again.

    One instance is called in training mode, in eval mode, and in training mode again. It must drop
    the same share both times, and in eval mode all copies must get the same answer.

    The output projection passes everything on. So in each copy of a single token, a head is there
    or is 0.
    """
    s = subject.sizes(draw)
    passing, copies = subject.passing_on(subject.weights(draw, s)), copies_of(draw(1, 1, s.C))
    for options in subject.paths.values():
        module = subject.module(attempt, s, passing, **options, dropout=P)
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
            abs(baseline - after) <= 6.6 * (2 * P * (1 - P) / (len(copies) * s.nh)) ** 0.5,
            evidence,
            KEPT,
        )
