"""The conditions under which checks of form count for attention.

The key that a query prefers must decide what the query gets. A condition makes the same call
several times. In some calls two keys change places, and in some the value of one of these two keys
is raised. The change that a raised value causes shows the share of its key. In attention, the
shares of the two keys change places with the keys, because each query weighs the keys by its
scores. If the scores decide nothing, as in a running mean, a decay by distance or a gate on one of
these, then the ratio of the two shares stays the same, and the attempt fails.

A second condition is that the shares of all keys are parts of one unit. A sigmoid of each score
fails it.

With a wrong scale, mask, view or order of q, k and v this interaction remains. Such attempts lose
the points of the check that fails, and keep those of form.
"""

import torch

from manyheads.checks import Condition
from manyheads.checks.preconditions import LEAST, LIMIT_FACTORS, LeftOut

TOKENS = 7
# The keys that change places. There are queries on both sides, because a mask may be the wrong way
# round.
FIRST, SECOND = 2, 3
TWO_TOKENS, TWO_HEADS = 0, 1  # the axis along which two keys change places
# Pairs: the tensor whose value is raised, and the tensor in which two tokens change places. The
# first pair fits the reference, the others fit attempts that confuse q, k and v. In the last pair
# the queries are negated instead, so that an attempt whose keys are its values shows its
# comparison.
NEGATED = "negated q"
ROLES = [
    ("v", "k"),
    ("v", "q"),
    ("q", "k"),
    ("q", "v"),
    ("k", "q"),
    ("k", "v"),
    ("q", "q"),
    ("k", "k"),
    ("v", NEGATED),
]
# factors of the scores: if an attempt's scale is far too small, only large scores decide anything
MAGNITUDES = (1.0, 32.0)
LOUD = 3.0  # the length of the first key; in most draws the others are shorter than 1.5
# A second pair of keys, because a wrong view may turn the first tokens into queries and the last
# ones into values.
OTHER_PAIR = (4, 5)
SCORES = 2.0  # their standard deviation at magnitude 1
# The least part of the reference's interaction if the scores themselves are given, because then no
# scale makes it small.
LEAST_OF_WEIGHTS = 0.03
TEXTS = 8
ALIKE = 0.5  # standard deviation of the queries and keys if all tokens are the same

NO_INTERACTION = (
    "the scores decide nothing: which key a query prefers changes nothing in what the query gets"
)
NO_SHARES = "equal keys get more than one unit together: a softmax shares one unit out among them"


def with_opposed_keys(keys):
    """Return the keys with two opposed ones that are longer than the rest.

    Any query prefers one of these two.
    """
    keys = 0.5 * keys
    loud = keys[FIRST, ..., :-1]  # the last channel is read by no query
    keys[FIRST, ..., :-1] = LOUD * loud / loud.norm(dim=-1, keepdim=True)
    # not the mirror image, because an attempt may compare sizes alone
    keys[SECOND] = 0.6 * keys[SECOND] - 0.8 * keys[FIRST]
    return keys


def variants(qkv, roles, axis=TWO_TOKENS, pair=(FIRST, SECOND), raised_at=()):
    """Return the six variants of q, k and v for every role, by name: (roles · 6, …).

    The last channel is raised, which no query reads. So a value that is also a key keeps its score.

    Args:
        qkv: the tensors, with tokens on axis 0, and with heads on axis 1 if heads change places.
        roles: a selection of ROLES.
        axis: the axis along which the pair changes places.
        pair: the two indices that change places.
        raised_at: the indices whose values are raised, by default the pair. If they are heads, only
            the value of token 0 is raised. If the values of all tokens were raised, the answer
            would move by the same amount for all weights.
    """
    stacked = {name: [] for name in qkv}
    indices = torch.tensor(pair)
    for raised, swapped in roles:
        after = {name: tensor.clone() for name, tensor in qkv.items()}
        if swapped == NEGATED:
            after["q"].neg_()
        else:
            after[swapped].index_copy_(
                axis, indices, qkv[swapped].index_select(axis, indices.flip(0))
            )
        for state in (qkv, after):
            for index in (None, *(raised_at or pair)):
                changed = {name: tensor.clone() for name, tensor in state.items()}
                if index is not None:
                    at = (index,) if axis == TWO_TOKENS else (0, index)
                    changed[raised][(*at, ..., -1)] += 1.0
                for name, edited in changed.items():
                    stacked[name].append(edited)
    return {name: torch.stack(tensors) for name, tensors in stacked.items()}


def with_unread_channel(qkv):
    """The same parts, with queries that do not read the last channel."""
    queries = qkv["q"].clone()
    queries[..., -1] = 0.0
    return {**qkv, "q": queries}


def all_alike(key, value):
    """Return texts whose tokens are all the same, by name: (texts · 4, TOKENS, …).

    There is one text for each key and each factor of the scores. The queries are the keys, so that
    each score is above 0.

    Args:
        key: the key of each text.
        value: the value of each text.
    """
    factors = torch.tensor(LIMIT_FACTORS, dtype=torch.float64).repeat(len(key))
    factors = factors.view(-1, *[1 for _ in key.shape[1:]])
    repeated = [tensor.repeat_interleave(len(LIMIT_FACTORS), 0) for tensor in (key, value)]
    texts = {"q": factors * repeated[0], "k": factors * repeated[0], "v": repeated[1]}
    return {
        name: tensor[:, None].expand(-1, TOKENS, *tensor.shape[1:]).contiguous()
        for name, tensor in texts.items()
    }


def of_queries_keys_values(name, *extra_args, width=7, tokens=TOKENS):
    """Return the conditions of a function of q, k and v.

    Args:
        name: the name of the function.
        extra_args: its further arguments.
        width: the number of channels.
        tokens: the number of queries, and of keys.
    """

    def conditions(attempt, draw):
        scale = SCORES  # a score is a sum of `width` products, divided by √width
        qkv = {
            "q": draw(tokens, width, scale=scale),
            "k": with_opposed_keys(draw(tokens, width)),
            "v": draw(tokens, width),
        }
        for magnitude, inputs in in_all_roles(qkv):
            answer = attempt.call(
                name, magnitude * inputs["q"], inputs["k"], inputs["v"], *extra_args
            )
            yield Condition(
                "weighing", answer, NO_INTERACTION, LeftOut(rows=(FIRST, SECOND, *OTHER_PAIR))
            )
        inputs = all_alike(draw(TEXTS, width, scale=ALIKE), draw(TEXTS, width))
        answer = attempt.call(name, inputs["q"], inputs["k"], inputs["v"], *extra_args)
        yield Condition("limit", answer, NO_SHARES)

    return conditions


def of_tokens(name, width=7):
    """Return the conditions of a function that compares the tokens of one x.

    The last channel is 0 in every token except the raised one. So no other query's score depends on
    it, and it is a value alone.
    """

    def conditions(attempt, draw):
        tokens = with_opposed_keys(draw(TOKENS, width, scale=(SCORES / width**0.5) ** 0.5))
        tokens[:, -1] = 0.0
        # every token prefers itself, all the more the larger the scores are
        for magnitude in (0.1, *MAGNITUDES):
            inputs = variants(
                {"k": magnitude**0.5 * tokens[:, :-1], "v": tokens[:, -1:]}, [("v", "k")]
            )
            answer = attempt.call(name, torch.cat([inputs["k"], inputs["v"]], dim=-1))
            yield Condition("weighing", answer, NO_INTERACTION, LeftOut(rows=(FIRST, SECOND)))

    return conditions


def of_scores(name, *extra_args, queries=(TOKENS,)):
    """Return the conditions of a function that makes weights from scores.

    One score of the last query is raised, in turn at two keys of its past. One score of the first
    query is raised at two keys that come later, because a mask may be the wrong way round. Then the
    same scores are lowered instead, because an attempt may prefer the lowest score: if it already
    gives almost nothing to a key, a raised score takes nothing away.

    Args:
        name: the name of the function.
        extra_args: its further arguments.
        queries: the number of queries of a text; empty if a text is one row of scores.
    """

    def conditions(attempt, draw):
        scores = draw(*queries, TOKENS)
        variants = []
        for change in (3.0, -3.0):
            for key in (FIRST, SECOND):
                changed = scores.clone()
                if queries:
                    changed[0, key + 2] += change
                changed[(-1,) * len(queries) + (key,)] += change
                variants.append(changed)
            variants += [scores, scores]
        answer = attempt.call(name, torch.stack(variants), *extra_args)
        yield Condition("interaction", answer, NO_INTERACTION, least=LEAST_OF_WEIGHTS)
        factors = torch.tensor(LIMIT_FACTORS, dtype=torch.float64).square()
        texts = draw(TEXTS, 1).abs() * factors
        alike = texts.view(-1, *[1 for _ in queries], 1).expand(-1, *queries, TOKENS).contiguous()
        yield Condition("limit", attempt.call(name, alike, *extra_args), NO_SHARES)

    return conditions


def in_all_roles(qkv):
    """Yield the magnitude of the scores and the variants, for one call after the other.

    The first calls contain the reference's roles alone, one call for each magnitude. They are kept
    small, because an attempt that shares one unit out over all sequences of a call gives little to
    each sequence.
    """
    for magnitude in MAGNITUDES:
        yield magnitude, variants(with_unread_channel(qkv), ROLES[:1])
    pairs = [
        variants(with_unread_channel(qkv), ROLES, pair=pair)
        for pair in ((FIRST, SECOND), OTHER_PAIR)
    ]
    pairs.append(variants(with_unread_channel(qkv), ROLES[:1], raised_at=OTHER_PAIR))
    yield 1.0, join_variants(pairs)


def join_variants(sets):
    """Return several sets of variants as one, by name: (sum of their sizes, …)."""
    together = {}
    for name in sets[0]:
        together[name] = torch.cat([variants_of_set[name] for variants_of_set in sets])
    return together


def of_module(subject, least=LEAST, **options):
    """Return the conditions of a module of which each head reads q, k and v from separate inputs.

    The inputs of two heads can change places, as two tokens can. So an attempt that attends over
    the heads goes by the scores, too.

    Args:
        least: the smallest interaction, as a part of the reference's.
        options: options of the module, such as the path.
    """

    def conditions(attempt, draw):
        readers = Readers(subject, draw, options)
        qkv = {name: draw(TOKENS, heads, readers.width) for name, heads in readers.heads.items()}
        tokens = {**qkv, "k": with_opposed_keys(qkv["k"])}
        for magnitude, inputs in in_all_roles(tokens):
            answer = readers.answer(attempt, inputs, magnitude)
            yield Condition("weighing", answer, NO_INTERACTION, readers.two_tokens, least)
        if readers.heads["k"] > 2:
            # The reference does not attend over heads. So its interaction of two tokens is the
            # measure, and comes first.
            over_heads = variants(with_unread_channel(qkv), ROLES[:1], TWO_HEADS, (0, 1))
            answer = readers.answer(
                attempt,
                join_variants([variants(with_unread_channel(tokens), ROLES[:1]), over_heads]),
            )
            yield Condition("weighing", answer, NO_INTERACTION, readers.two_heads, least)
        key, value = (draw(TEXTS, 1, readers.width, scale=scale) for scale in (ALIKE, 1.0))
        alike = all_alike(key, value)
        of_heads = {
            name: tensor.expand(-1, -1, readers.heads[name], -1) for name, tensor in alike.items()
        }
        yield Condition("limit", readers.answer(attempt, of_heads), NO_SHARES)

    return conditions


class Readers:
    """Weights of a module with which each head reads q, k and v from separate parts of the input.

    The parts are planes in general position, not blocks of channels, so that a weight that is used
    untransposed still reads something. All heads read in the same way, and queries read as keys do.
    The context is as long as the text, because an attempt may support no shorter text.

    Attributes:
        heads: the number of heads of q, k and v, by name.
        width: the number of dimensions of each part.
    """

    width = 2

    def __init__(self, subject, draw, options):
        s = subject.sizes(draw)
        lengths = {name: TOKENS for name in ("T", "T_q", "T_k", "block") if hasattr(s, name)}
        s = subject.sizes.replace(s, draw, **lengths, **self._widths(s))
        self.subject, self.s, self.options = subject, s, options
        weights = subject.passing_on(subject.weights(draw, s, **options))
        self.weights = {
            n: torch.zeros_like(w) if n.endswith(".bias") else w for n, w in weights.items()
        }
        rows = dict(zip("qkv", subject.rows(self.weights, s), strict=True))
        self.heads = {name: heads for name, (_, heads) in rows.items()}
        queries, keys = subject.sides(subject.weights_and_inputs(draw, s)[1])
        self.is_crossed = queries is not keys
        self.planes = self._planes(
            draw, {name: matrix.shape[-1] for name, (matrix, _) in rows.items()}
        )
        head_dim = len(rows["q"][0]) // self.heads["q"]
        # A score adds up head_dim products of such readings, over √head_dim; a part has `width`
        # numbers.
        loudness = (SCORES / (self.width * head_dim) ** 0.5) ** 0.5
        compared, mixed = draw(head_dim, self.width), draw(head_dim, self.width)
        # The readings are orthogonal, so that the channels of a part stay apart in a score: a
        # channel that no query reads changes no score.
        compared = loudness * head_dim**0.5 * torch.linalg.qr(compared).Q
        for name, (weight, heads) in rows.items():
            read = mixed if name == "v" else compared
            planes = self.planes[name].unflatten(1, (heads, self.width))  # (channels, heads, width)
            weight.copy_(torch.einsum("dw,chw->hdc", read, planes).flatten(0, 1))
        shared = self.heads["q"] // self.heads["k"]
        # the channels of the heads whose keys change places
        of_two_heads = tuple(range(2 * shared * head_dim))
        own_rows = () if self.is_crossed else (FIRST, SECOND, *OTHER_PAIR)
        self.two_tokens, self.two_heads = (
            LeftOut(rows=own_rows),
            LeftOut(rows=own_rows, columns=of_two_heads),
        )

    def _widths(self, s):
        """Return widths with room for all parts, for inputs that may be wider than the heads."""
        room = 3 * self.width * s.nh + 1
        free = {"C": room} if hasattr(s, "d_out") and hasattr(s, "C") else {}
        return free | {
            name: room + n for n, name in enumerate(("d_query", "d_context")) if hasattr(s, name)
        }

    def _planes(self, draw, widths):
        """Return an orthonormal basis of the part that q, k and v each read, by name.

        Each has the shape (channels, heads · width).
        """
        sizes = {name: heads * self.width for name, heads in self.heads.items()}
        basis = torch.linalg.qr(draw(widths["k"], widths["k"])).Q
        if self.is_crossed:
            query = torch.linalg.qr(draw(widths["q"], widths["q"])).Q[:, : sizes["q"]]
            return {
                "q": query,
                "k": basis[:, : sizes["k"]],
                "v": basis[:, sizes["k"] :][:, : sizes["v"]],
            }
        bases = basis[:, : sum(sizes.values())].split(list(sizes.values()), dim=1)
        return dict(zip(sizes, bases, strict=True))

    def answer(self, attempt, qkv, magnitude=1.0):
        """Return the module's answer to these q, k and v: (n, T, heads, width), by name.

        Args:
            magnitude: the factor of the scores. The weights contain it: in the input, rounding to
                float32 would move the other parts.
        """
        weights = {name: weight.clone() for name, weight in self.weights.items()}
        self.subject.rows(weights, self.s)[0][0].mul_(magnitude)
        read = {name: tensor.flatten(-2) @ self.planes[name].T for name, tensor in qkv.items()}
        inputs = (read["q"], read["k"] + read["v"]) if self.is_crossed else (sum(read.values()),)
        return self.subject.output(
            self.subject.module(attempt, self.s, weights, **self.options)(*inputs)
        )
