"""The module with a KV cache: how checks build and call it, and tests that explain a failure."""

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
        """Return weights with large queries and keys, so that the attention is far from even."""
        weights = super().weights(draw, s)
        weights["qkv.weight"][: 2 * s.C] = round_float32(1.5 * weights["qkv.weight"][: 2 * s.C])
        return weights


class Fed(Cached):
    """The same module, called on chunks of these lengths; each call continues the one before it."""

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
    """Return the answer to each chunk. Each call continues the one before it."""
    calls, previous = module.sequence(), None
    for chunk in chunks:
        previous = calls(chunk) if previous is None else calls(chunk, previous["cache"])
    return calls.ask()


def differs(a, b):
    return (
        a.nan_to_num(nan=1e30) - b.nan_to_num(nan=1e30)
    ).abs() > 1e-6 * a.nan_to_num().abs().max()


def keeps_in_default(attempt, s, weights, x):
    """Return whether the default of the argument `cache` keeps something between calls.

    It does if a first call without the argument differs from one with None, and a repeated call
    with None does not. It also does if the call without the argument is refused, as too many tokens
    are, and the call with None ends in an error that is no refusal.
    """
    module = CACHED.module(attempt, s, weights)
    left_out, explicit, again = module(x), module(x, None), module(x, None)
    if explicit.raised:
        return refuses(left_out) and not refuses(explicit)
    if again.raised or differs(explicit["y"].output, again["y"].output).any():
        return False
    return bool(left_out.raised) or bool(differs(left_out["y"].output, explicit["y"].output).any())


def hears_the_last(attempt, s, weights, a, b):
    """Return whether the sequence before b changes the answer to b, without a cache.

    One instance is asked about a and then b, another one about −a and then b. Both sequences have
    the same batch size.
    """
    answers = []
    for earlier in (a, -a):
        calls = CACHED.module(attempt, s, weights).sequence()
        # None, because a default that keeps something is another mistake, and grows with each call
        calls(earlier, None)
        calls(b, None)
        answers.append(calls.ask()[-1])
    return not any(answer.raised for answer in answers) and bool(
        differs(*(answer["y"].output for answer in answers)).any()
    )


def refuses(answer):
    return answer.raised is not None and not {*REFUSALS}.isdisjoint(answer.raised.bases)


def forgets(module, s, draw):
    """Return whether too many tokens are accepted because the cache has lost some.

    If not, the module does not count the tokens in the cache.
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
