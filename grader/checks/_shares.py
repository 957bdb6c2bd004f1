"""A softmax shares out one unit: keys that are all the same share it, whatever their score is.

So who weighs by something else in its place, such as a sigmoid, is known by what it gives where all tokens are the same.
And it goes by the differences of scores, however high they are: there all that ends at a limit weighs all keys alike.
These are conditions (COUNTS_IF): a check of form does not count for a function that uses no softmax.
"""

from manyheads.checks import expect

from ._functions import same

ALIKE, TOKENS = 40, 9  # texts of tokens that are all the same: so many that some scores are far above 0
FAR = 5.0  # times the token, 25 times its score: from here on a sigmoid's weight grows no more
MUCH, SLIGHT = 0.05, 1e-3
HUGE = 1e3
HIGH = 44.0  # a score: a sigmoid of it is 1 to the last bit


def alike(draw, *shape, scale=1.0, tokens=TOKENS):
    """Numbers of this shape for each of ALIKE texts, the same for each of its tokens: (ALIKE, tokens, …)."""
    return draw(ALIKE, 1, *shape, scale=scale).expand(ALIKE, tokens, *shape).contiguous()


def heads_alike(weight, heads):
    """The weight, (heads · hd, C), with its first head in every place: a softmax over heads shares out evenly, too."""
    return weight.unflatten(0, (heads, -1))[:1].expand(heads, -1, -1).flatten(0, 1)


def by_head(output, heads):
    """The output, (n, T, heads · hd), with a row for each head of each text."""
    return output.unflatten(-1, (heads, -1)).transpose(1, 2).flatten(0, 1)


def shares_out(weighed):
    """No weight goes by the score that all keys have, up to a limit.

    weighed: by factor of the tokens, what is given to the first n texts, a row for each or for each of their heads, over what
    it would grow by anyway. With no softmax at all weights grow on and on, and with one along another axis they stay, or go by
    other texts: mistakes with names.
    """
    small, twice, large, larger = (weighed(factor, ALIKE).flatten(1) for factor in (1.0, 2.0, FAR, 2 * FAR))
    size = small.norm(dim=1)
    along = (small * twice).sum(1).abs() >= (1 - SLIGHT**2) * size * twice.norm(dim=1)
    changes = (twice - small).norm(dim=1) > MUCH * size
    ends = ((larger - large).norm(dim=1) <= SLIGHT * large.norm(dim=1)) & (large.norm(dim=1) > SLIGHT * size)
    if (along & changes & ends).any():
        first = weighed(1.0, 1).flatten(1)
        told = "where all keys are the same their weights go by their score, up to a limit: a softmax would share out one unit"
        expect(not same(first, small[: len(first)]), told)


def goes_by_high_scores(first, second):
    """The outputs of high scores and of others as high are not the same, unless something else makes them huge."""
    is_seen = bool((second.abs() < HUGE).all())
    told = "where all scores are high the weights do not go by them, as those of a softmax do"
    expect(not is_seen or not same(first, second), told)


def weighs_one_key(name, *rest, queries=(TOKENS,)):
    """The condition for a function that makes weights of scores: all scores of a text are the same.

    rest: more arguments. queries: how many a text has, one axis for each number; with none a text is a row of scores.
    """

    def condition(attempt, draw):
        scores = alike(draw).view(ALIKE, *[1 for _ in queries], TOKENS).expand(ALIKE, *queries, TOKENS).contiguous()
        shares_out(lambda factor, n: attempt.call(name, factor**2 * scores[:n], *rest).output)
        goes_by_high_scores(*(attempt.call(name, HIGH + draw(2, *queries, TOKENS), *rest).output for _ in "12"))

    return condition


def attends_to_one_key(name, *rest, width=7):
    """The condition for a function of q, k and v: all keys are the same. rest: more arguments."""

    def condition(attempt, draw):
        def attended(*qkv):
            return next(attempt.call(name, *qkv, *rest).leaves()).output

        q, k, v = (alike(draw, width) for _ in "qkv")
        shares_out(lambda factor, n: attended(factor**2 * q[:n], k[:n], v[:n]))
        q, other, k, v = (draw(2, TOKENS, width) for _ in range(4))
        q[..., 0] = other[..., 0] = k[..., 0] = (HIGH * width**0.5) ** 0.5
        goes_by_high_scores(attended(q, k, v), attended(other, k, v))

    return condition
