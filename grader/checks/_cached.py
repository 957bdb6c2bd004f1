"""The module with a KV cache: its description, and tests that explain a failure."""

from manyheads.checks import (
    Evidence,
    assert_refused,
    check,
)
from manyheads.checks.asserts import REFUSALS

from . import _modules
from ._causal_attention import FusedProjection
from ._modules import Sizes, round_float32, width_of_heads


class Cached(_modules.Subject):
    """The module of the KV cache, which has the weights of the fused one.

    Its general requirements are those of a first call.
    """

    name = "CachedSelfAttention"
    arguments = FusedProjection.arguments
    projections = FusedProjection.projections
    shapes = FusedProjection.shapes
    sizes = Sizes(B=[7], T=[9], nh=[5], hd=[6], block=[17], C=width_of_heads)

    def output(self, answer):
        return answer["y"]

    def weights(self, draw, s, **options):
        """Return weights with large queries and keys, so that the attention is far from even."""
        weights = super().weights(draw, s)
        weights["qkv.weight"][: 2 * s.C] = round_float32(1.5 * weights["qkv.weight"][: 2 * s.C])
        return weights

    @check(
        points=0.5,
        layer="hygiene",
        hint="One new token is always few: what is the cache's length?",
    )
    def refuses_too_long(self, attempt, reference, draw):
        """refuses more tokens than block_size, also where most of them are in the cache"""
        s = self.sizes(draw)
        module = self.module(attempt, s, self.weights(draw, s))
        full = drawn_chunks(draw, s, s.block - 4, 3, 1)
        answers_to(module, full)[-1].must_return()
        label = Evidence("T = {} with block_size = {}", s.block + 2, s.block)
        answer, accepted = module(draw(s.B, s.block + 2, s.C)), ("RuntimeError",)
        assert_refused(answer, label, also=accepted, suspect="context_unchecked")
        for past, T in ((full, 1), (full, 3), (full[:2], 3)):
            answer = answers_to(module, [*past, draw(s.B, T, s.C)])[-1]
            cached = sum(chunk.shape[1] for chunk in past)
            label = Evidence(
                "a cache of {} tokens and {} more, with block_size = {},", cached, T, s.block
            )
            uncounted = answer.raised is None and not forgets(module, s, draw)
            suspect = "cache_length_unchecked" if uncounted else ""
            assert_refused(answer, label, also=accepted, suspect=suspect)


class Chunked(Cached):
    """The same module, called on two chunks: the second call continues the first one."""

    def inputs(self, draw, s, scale=1.0):
        return drawn_chunks(draw, s, 5, 3)

    def answers(self, module, inputs):
        return answers_to(module, inputs)

    def of_first_call(self, inputs):
        return inputs[:1]

    @check(
        points=0.25,
        layer="hygiene",
        hint="A mask or a cache that you make needs a device: that of x.",
    )
    def moves(self, attempt, reference, draw):
        """works where .to(device) has put it, with a cache and without"""
        s = self.sizes(draw)
        weights, chunks = self.weights_and_inputs(draw, s)
        answers_to(self.module(attempt, s, weights), chunks)[-1].must_return()
        super().moves(attempt, reference, draw)


def drawn_chunks(draw, s, *lengths):
    """Return chunks of tokens of these lengths."""
    return [draw(s.B, T, s.C) for T in lengths]


def answers_to(module, chunks):
    """Return the answer to each chunk. Each call continues the one before it."""
    calls, previous = module.sequence(), None
    for chunk in chunks:
        previous = calls(chunk) if previous is None else calls(chunk, previous["cache"])
    return calls.ask()


def differs(a, b):
    """Return for each number of two outputs whether it differs. A NaN equals a NaN."""
    largest = a.nan_to_num().abs().max()
    return (a.nan_to_num(nan=1e30) - b.nan_to_num(nan=1e30)).abs() > 1e-6 * largest


def outputs_differ(answer, another):
    """Return whether y of two answers differs."""
    return bool(differs(answer["y"].output, another["y"].output).any())


def keeps_in_default(module, x):
    """Return whether the default of the argument `cache` keeps something between calls.

    It does if a first call without the argument differs from one with None, and a repeated call
    with None does not. It also does if the call without the argument is refused, as too many tokens
    are, and the call with None ends in an error that is no refusal.
    """
    left_out, explicit, again = module(x), module(x, None), module(x, None)
    if explicit.raised:
        return refuses(left_out) and not refuses(explicit)
    if again.raised or outputs_differ(explicit, again):
        return False
    return bool(left_out.raised) or outputs_differ(left_out, explicit)


def hears_the_last(module, a, b):
    """Return whether the sequence before b changes the answer to b, without a cache.

    One instance is asked about a and then b, another one about −a and then b. Both sequences have
    the same batch size.
    """
    answers = []
    for earlier in (a, -a):
        calls = module.sequence()
        # None, because a default that keeps something is another mistake, and grows with each call
        calls(earlier, None)
        calls(b, None)
        answers.append(calls.ask()[-1])
    return not any(answer.raised for answer in answers) and outputs_differ(*answers)


def refuses(answer):
    return answer.raised is not None and not {*REFUSALS}.isdisjoint(answer.raised.bases)


def forgets(module, s, draw):
    """Return whether too many tokens are accepted because the cache has lost some.

    If not, the module does not count the tokens in the cache.
    """
    if answers_to(module, drawn_chunks(draw, s, s.block, 1))[-1].raised is not None:
        return True
    prompt, token = drawn_chunks(draw, s, s.block - 3, 1)
    edited = prompt.clone()
    edited[:, 0] = draw(s.B, s.C)
    baseline, after = (answers_to(module, [chunk, token])[-1] for chunk in (prompt, edited))
    return not (baseline.raised or after.raised or outputs_differ(baseline, after))
