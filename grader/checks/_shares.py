"""A softmax shares out one unit: whoever is alone gets all of it, whatever its score is.

So who weighs by something else in its place, such as a sigmoid, is known by what it gives to one token, or to one key. These
are conditions (COUNTS_IF): a check of form does not count for a function that uses no softmax.
"""

from manyheads.checks import expect

from ._functions import same

ALONE = 40  # of them, so that some scores are far above 0
FAR = 5.0  # times: from here on a sigmoid's weight grows no more
SLIGHT = 1e-3


def shares_out(weighed):
    """No weight of one that is alone goes by its score, up to a limit.

    weighed: by factor, what is given to so many of ALONE, (n, …), over what it would grow by anyway. With no softmax at all
    weights grow on and on, and with one along another axis they stay, or go by the others: mistakes with names.
    """
    small, twice, large, larger = (weighed(factor, ALONE).flatten(1) for factor in (1.0, 2.0, FAR, 2 * FAR))
    size = small.norm(dim=1)
    along = (small * twice).sum(1).abs() >= (1 - SLIGHT**2) * size * twice.norm(dim=1)
    changes = (twice - small).norm(dim=1) > SLIGHT * size
    ends = ((larger - large).norm(dim=1) <= SLIGHT * large.norm(dim=1)) & (large.norm(dim=1) > SLIGHT * size)
    if (along & changes & ends).any():
        first = weighed(1.0, 1).flatten(1)
        told = "one that is alone gets a weight that goes by its score, up to a limit: a softmax would give it all"
        expect(not same(first, small[:1]), told)
