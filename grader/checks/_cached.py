"""A module that hands out a cache: how it is made and fed, and what is asked of one that fails."""

from manyheads.checks.asserts import REFUSALS

from ._causal_attention import Subject
from ._modules import Sizes, joined, round_float32


class Cached(Subject):
    """The module of the KV cache: it has the weights of the fused one."""

    name = "CachedSelfAttention"
    sizes = Sizes(B=[7], T=[9], nh=[5], hd=[6], block=[17], C=joined)

    def output(self, answer):
        return answer["y"]

    def weights(self, draw, s, **options):
        """Queries and keys are large, so that the weights are far from even."""
        weights = super().weights(draw, s)
        weights["qkv.weight"][: 2 * s.C] = round_float32(1.5 * weights["qkv.weight"][: 2 * s.C])
        return weights


class Fed(Cached):
    """The same, for chunks of so many tokens, of which each continues the one before it."""

    def __init__(self, *lengths):
        self.lengths = lengths

    def inputs(self, draw, s, scale=1.0):
        return [draw(s.B, T, s.C) for T in self.lengths]

    def answers(self, module, inputs):
        return fed(module, *inputs)

    def of_first_call(self, inputs):
        return inputs[:1]


CACHED = Cached()


def fed(module, *chunks):
    """The answer to each chunk, each continued where the one before it ended."""
    calls, previous = module.sequence(), None
    for chunk in chunks:
        previous = calls(chunk) if previous is None else calls(chunk, previous["cache"])
    return calls.ask()


def differs(a, b):
    return (
        a.nan_to_num(nan=1e30) - b.nan_to_num(nan=1e30)
    ).abs() > 1e-6 * a.nan_to_num().abs().max()


def keeps_in_default(attempt, s, weights, x):
    """Whether a first call is another one without the argument than with None, which gives the same
    twice.

    Or it is refused, as one with too many tokens would be, and does not come so far with None.
    """
    module = CACHED.module(attempt, s, weights)
    left_out, explicit, again = module(x), module(x, None), module(x, None)
    if explicit.raised:
        return refuses(left_out) and not refuses(explicit)
    if again.raised or differs(explicit["y"].output, again["y"].output).any():
        return False
    return bool(left_out.raised) or bool(differs(left_out["y"].output, explicit["y"].output).any())


def hears_the_last(attempt, s, weights, a, b):
    """Whether one instance answers b without a cache by what the sequence before it was. Both have
    the same batch.
    """
    answers = []
    for earlier in (a, -a):
        calls = CACHED.module(attempt, s, weights).sequence()
        calls(earlier, None)  # what a default keeps is another question, and every call adds to it
        calls(b, None)
        answers.append(calls.ask()[-1])
    return not any(answer.raised for answer in answers) and bool(
        differs(*(answer["y"].output for answer in answers)).any()
    )


def refuses(answer):
    return answer.raised is not None and not {*REFUSALS}.isdisjoint(answer.raised.bases)


def forgets(module, s, draw):
    """Whether the tokens are accepted because the cache has lost some, and not because nobody
    counts.
    """
    if fed(module, draw(s.B, s.block, s.C), draw(s.B, 1, s.C))[-1].raised is not None:
        return True
    prompt, token = draw(s.B, s.block - 3, s.C), draw(s.B, 1, s.C)
    edited = prompt.clone()
    edited[:, 0] = draw(s.B, s.C)
    baseline, after = (fed(module, chunk, token)[-1] for chunk in (prompt, edited))
    return (
        baseline.raised is None
        and after.raised is None
        and not differs(baseline["y"].output, after["y"].output).any()
    )
