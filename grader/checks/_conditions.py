"""The conditions under which checks of form count for attention: which key a query prefers must
decide what it gets.

A check asks the same call several times. In some of them two keys change places, and in some the
value of one of these two is raised. What the raised value moves shows the share of its key. In
attention, the shares of the two keys change places with the keys, because each query weighs the
keys by its scores. Where the scores decide nothing, as in a running mean, a decay by distance or a
gate on either, the ratio of the two shares stays the same: such an attempt fails. A second
condition says that the shares of all keys are parts of one unit. A sigmoid of each score fails it.

Wrong scales, masks, views and orders of q, k and v keep this interaction. So they lose the points
of what is wrong, and not those of form.
"""

import torch

from manyheads.checks import Condition
from manyheads.checks.conditions import LEAST, LIMIT_FACTORS, LeftOut

TOKENS = 7
# the keys that change places, with queries on both sides, for a mask may be the wrong way round
FIRST, SECOND = 2, 3
TWO_TOKENS, TWO_HEADS = 0, 1  # the axis along which two keys change places
# What is raised, and what changes places: first as the reference reads them, then in the roles that
# other orders give them. In the last one the queries are negated instead: so an attempt whose keys
# are its values shows what it compares.
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
# of the scores: with a scale that is far too small only large ones decide anything
MAGNITUDES = (1.0, 32.0)
LOUD = 3.0  # the length of the first key, where that of the others is below 1.5 for most draws
# Tried in other roles, too: a wrong view may make queries of the first tokens, and values of the
# last.
OTHER_PAIR = (4, 5)
SCORES = 2.0  # their standard deviation at magnitude 1
# The least part of the reference's interaction, where the scores themselves are given: no scale
# makes that small.
LEAST_OF_WEIGHTS = 0.03
TEXTS = 8
ALIKE = 0.5  # standard deviation of what makes the scores of tokens that are all the same

NO_INTERACTION = (
    "the scores decide nothing: which key a query prefers changes nothing in what the query gets"
)
NO_SHARES = "equal keys get more than one unit together: a softmax shares one unit out among them"


def opposed(keys):
    """The same with two keys that stand against each other, louder than the rest: any query prefers
    one of them.
    """
    keys = 0.5 * keys
    loud = keys[FIRST, ..., :-1]  # the last channel is read by no query
    keys[FIRST, ..., :-1] = LOUD * loud / loud.norm(dim=-1, keepdim=True)
    # not its mirror image: an attempt may look at sizes alone
    keys[SECOND] = 0.6 * keys[SECOND] - 0.8 * keys[FIRST]
    return keys


def variants(qkv, roles, axis=TWO_TOKENS, pair=(FIRST, SECOND), raised_at=()):
    """The six variants of q, k and v for every role: (roles · 6, …), by name.

    qkv: by name, with tokens on axis 0, and heads on axis 1 where these change places. pair: what
    changes places. raised_at: whose values are raised; empty: those of the pair. Of a head the
    value of token 0 alone is raised: if those of all tokens were, the answer would move by the same
    whatever the weights are. Raised is the last channel, which no query reads, so that a value that
    is a key, too, keeps its score.
    """
    stacked = {name: [] for name in qkv}
    places = torch.tensor(pair)
    for raised, swapped in roles:
        after = {name: tensor.clone() for name, tensor in qkv.items()}
        if swapped == NEGATED:
            after["q"].neg_()
        else:
            after[swapped].index_copy_(
                axis, places, qkv[swapped].index_select(axis, places.flip(0))
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


def unread(qkv):
    """The same parts, with queries that do not read the last channel."""
    queries = qkv["q"].clone()
    queries[..., -1] = 0.0
    return {**qkv, "q": queries}


def all_alike(key, value):
    """Tokens that are all the same, for each text and each factor of its scores: (texts · 4, T, …),
    by name.

    key: of each text; queries are the same, so that each score is above 0. value: of each text.
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
    """The conditions of a function of q, k and v. extra_args: more arguments. tokens: how many
    queries and keys there are.
    """

    def conditions(attempt, draw):
        scale = SCORES  # a score is a sum of `width` products, divided by √width
        qkv = {
            "q": draw(tokens, width, scale=scale),
            "k": opposed(draw(tokens, width)),
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
    """The conditions of a function of one x, which is compared with itself.

    The last channel is 0 in every token but the one that is raised, so no other query's score reads
    it: it is a value alone.
    """

    def conditions(attempt, draw):
        tokens = opposed(draw(TOKENS, width, scale=(SCORES / width**0.5) ** 0.5))
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
    """The conditions of a function that makes weights of scores.

    A score of the last query is raised, in turn at two keys of its past; and one of the first
    query, at two keys that come later, for a mask may be the wrong way round. extra_args: more
    arguments. queries: how many a text has; with none a text is a row of scores.
    """

    def conditions(attempt, draw):
        scores = draw(*queries, TOKENS)
        raised = []
        for key in (FIRST, SECOND):
            raised.append(scores.clone())
            if queries:
                raised[-1][0, key + 2] += 3.0
            raised[-1][(-1,) * len(queries) + (key,)] += 3.0
        answer = attempt.call(name, torch.stack([*raised, scores, scores]), *extra_args)
        yield Condition("interaction", answer, NO_INTERACTION, least=LEAST_OF_WEIGHTS)
        factors = torch.tensor(LIMIT_FACTORS, dtype=torch.float64).square()
        texts = draw(TEXTS, 1).abs() * factors
        alike = texts.view(-1, *[1 for _ in queries], 1).expand(-1, *queries, TOKENS).contiguous()
        yield Condition("limit", attempt.call(name, alike, *extra_args), NO_SHARES)

    return conditions


def in_all_roles(qkv):
    """Yield the variants of one call after the other, with the magnitude of their scores.

    The reference's own roles come first and apart, at each magnitude: who shares one unit out over
    all sequences of a call gives each of them but little.
    """
    for magnitude in MAGNITUDES:
        yield magnitude, variants(unread(qkv), ROLES[:1])
    pairs = [variants(unread(qkv), ROLES, pair=pair) for pair in ((FIRST, SECOND), OTHER_PAIR)]
    pairs.append(variants(unread(qkv), ROLES[:1], raised_at=OTHER_PAIR))
    yield 1.0, joined(pairs)


def joined(sets):
    """Return several sets of variants as one, by name: (sum of their sizes, …)."""
    together = {}
    for name in sets[0]:
        together[name] = torch.cat([variants_of_set[name] for variants_of_set in sets])
    return together


def of_module(subject, least=LEAST, **options):
    """The conditions of a module whose projections read q, k and v of each head from a part of the
    input of its own.

    So what one head reads can change places with what another reads, as two tokens can: an attempt
    that attends over the heads goes by the scores, too. least: as a part of what the reference
    leaves. options: of the module, such as the path.
    """

    def conditions(attempt, draw):
        readers = Readers(subject, draw, options)
        qkv = {name: draw(TOKENS, heads, readers.width) for name, heads in readers.heads.items()}
        tokens = {**qkv, "k": opposed(qkv["k"])}
        for magnitude, inputs in in_all_roles(tokens):
            answer = readers.answer(attempt, inputs, magnitude)
            yield Condition("weighing", answer, NO_INTERACTION, readers.two_tokens, least)
        if readers.heads["k"] > 2:
            # The reference's heads answer for themselves: what it leaves of two tokens is the
            # measure.
            over_heads = variants(unread(qkv), ROLES[:1], TWO_HEADS, (0, 1))
            answer = readers.answer(
                attempt, joined([variants(unread(tokens), ROLES[:1]), over_heads])
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
    """Weights of a module: each head reads its q, k and v from a part of the input that nothing
    else reads.

    The parts are planes in general position, not blocks of channels, so that a weight that is used
    untransposed still reads something. All heads read alike, and queries as keys do. The context is
    as long as the text, for an attempt may know no shorter one.

    heads: how many there are of q, k and v. width: of each part.
    """

    width = 2

    def __init__(self, subject, draw, options):
        s = subject.sizes(draw)
        lengths = {name: TOKENS for name in ("T", "T_q", "T_k", "block") if hasattr(s, name)}
        s = subject.sizes.changed(s, draw, **lengths, **self._widths(s))
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
        # Channels of a part stay apart in a score: what no query reads changes none.
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
        """Inputs that are wide enough for all parts, where their width is not that of the heads."""
        room = 3 * self.width * s.nh + 1
        free = {"C": room} if hasattr(s, "d_out") and hasattr(s, "C") else {}
        return free | {
            name: room + n for n, name in enumerate(("d_query", "d_context")) if hasattr(s, name)
        }

    def _planes(self, draw, widths):
        """An orthonormal basis of what each of q, k and v reads: (channels, heads · width), by
        name.
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
        """The module's answer to these qkv: (n, T, heads, width), by name.

        magnitude: of the scores. It stands in the weights: in the input, rounding to float32 would
        move the other parts.
        """
        weights = {name: weight.clone() for name, weight in self.weights.items()}
        self.subject.rows(weights, self.s)[0][0].mul_(magnitude)
        read = {name: tensor.flatten(-2) @ self.planes[name].T for name, tensor in qkv.items()}
        inputs = (read["q"], read["k"] + read["v"]) if self.is_crossed else (sum(read.values()),)
        return self.subject.output(
            self.subject.module(attempt, self.s, weights, **self.options)(*inputs)
        )
