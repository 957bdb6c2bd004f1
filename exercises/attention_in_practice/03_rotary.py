# %% [markdown]
# # 3 · Rotary positions
#
# *About 50 minutes. You need: the first two exercises of the first assignment (attention scores, the causal mask), and
# sine and cosine. After this: [4 · The KV cache](04_kv_cache.ipynb).*
#
# Without a mask, attention does not see order. Shuffle the keys together with their values, and no answer changes:
# *dog bites man* and *man bites dog* hold the same words. So each token must be told where it stands. The first
# transformers added a position to every token. Many models of today do something else: they **turn** queries and keys
# by an angle that depends on the position.
#
# ## A shelf of clocks
#
# Take the channels of a query two by two. Each pair (a, b) is a point in the plane, like the tip of a clock's hand. At
# position 0 all hands stay as they are. At position p the hand of pair i is turned by the angle θ:
#
# $$ \theta = p \cdot \mathrm{base}^{-2i/hd} $$
#
# $$ (a, b) \;\to\; (a \cos\theta - b \sin\theta,\; a \sin\theta + b \cos\theta) $$
#
# With base = 10,000 and hd = 4 there are two hands. Pair 0 turns by 1 radian a step, about 57 degrees. Pair 1 turns
# by 1/100 of that. The quick hand tells neighbours apart, but after about six steps it has been round once. By then
# the slow hand has hardly moved, so it tells the beginning of a page from its end.
#
# Turn the query at position m and the key at position n, and the angle between the two hands changes by (m − n) times
# that pair's step. So their score knows how far apart they are. You see why before you write the second function.
#
# ![The hands of pair 0 and pair 1 at positions 0 to 3: the first turns by 57 degrees a step, the second by 0.57.
# Below, query and key two steps apart at two places: the same angle between
# them](figures/03_rotary.svg)
#
# ## What you need of PyTorch
#
# - `x[..., 0::2]`: every second channel, from the first on.
# - `torch.stack([a, b], dim=…)`: puts both along a new axis. `x.flatten(-2)` joins the last two axes.
# - `a[:, None] * b`: a table of all products.

# %% tags=["setup"]
import math

import torch

# %% [markdown]
# ## Your turn: `rotate`
#
# Positions are given to you, and they need not be 0, 1, 2, …. While a model writes, the one new token may stand at
# position 37; if you count from 0 again, the model thinks that the text has just begun. Positions are integers. Turn
# them into floating-point angles, and give back the dtype of x.
#
# The pairs are neighbours: channels 0 and 1, then 2 and 3. A slice with a step of 2 takes the first channel of each
# pair, another takes the second. After the turn they go back to where they came from: side by side again, not one half
# behind the other. An odd number of channels leaves one without a partner: raise a ValueError.


# %% tags=["solution"]
def rotate(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Turn each pair of channels (2i, 2i + 1) of the token at position p by p · base^(−2i / hd).

    Args:
        x: queries or keys, (..., T, hd), a float dtype; hd is even.
        positions: integers, (T,), one for each token, in any order.
        base: from one position to the next, pair 0 turns by 1 radian, and pair i by base^(−2i / hd).

    Returns:
        A new tensor of the shape, dtype and device of x.

    Raises:
        ValueError: hd is odd; the message names the number.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `rotate`
#
# One hand that points along its first axis, at positions 0, 1 and 2: its angle should be 0, 1 and 2 radians. Then
# four channels at position 3, by hand: the second pair turns by 0.03. Then positions in another order, in a batch of
# heads. Last, five channels, which cannot be paired.

# %% tags=["check"]
if __name__ == "__main__":
    hand = torch.tensor([[1.0, 0.0]]).repeat(3, 1)
    turned = rotate(hand, torch.tensor([0, 1, 2]))
    assert turned.shape == (3, 2), f"turning keeps the shape: (3, 2), not {tuple(turned.shape)}"
    angles = torch.atan2(turned[:, 1], turned[:, 0])
    assert torch.allclose(angles, torch.tensor([0.0, 1.0, 2.0]), atol=1e-5), (
        f"the first hand should stand at 0, 1 and 2 radians; yours at {angles.tolist()}"
    )
    four = rotate(torch.tensor([[1.0, 0.0, 0.0, 1.0]]), torch.tensor([3]))[0]
    expected = torch.tensor([math.cos(3), math.sin(3), -math.sin(0.03), math.cos(0.03)])
    assert torch.allclose(four, expected, atol=1e-5), (
        f"expected {expected.tolist()}, got {four.tolist()}: which channels are a pair, and how fast is the second one?"
    )
    x = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(3))
    order = torch.tensor([7, 2, 40, 3])
    many = rotate(x, order)
    assert many.shape == x.shape, f"turning keeps the shape: (2, 3, 4, 6), not {tuple(many.shape)}"
    assert many.dtype == x.dtype, f"the dtype stays {x.dtype}; yours is {many.dtype}"
    assert torch.allclose(many.norm(dim=-1), x.norm(dim=-1), atol=1e-4), "a rotation changes no length"
    assert torch.allclose(many[1, 2, 2:3], rotate(x[1, 2, 2:3], torch.tensor([40])), atol=1e-4), (
        "the third token stands at position 40, in company and alone"
    )
    try:
        rotate(torch.zeros(2, 5), torch.tensor([0, 1]))
    except (ValueError, AssertionError):
        print("rotate: every hand at its own speed")
    else:
        raise AssertionError("five channels cannot be paired: raise a ValueError")

# %% [markdown]
# ## Why turning is the right thing to do
#
# A score is a dot product. For two hands it depends on their lengths and on the *angle between them*. Turn the query
# by its position m and the key by its position n: the angle between them changes by m − n times the speed, and by
# nothing else. So a score knows how far apart two tokens are, and not where in the text they are. Move a whole
# sentence along by a hundred words, and all scores within it stay the same.
#
# | query at | key at | difference | angle added between the hands of pair 0 |
# |---|---|---|---|
# | 5 | 3 | 2 | 2 rad |
# | 47 | 45 | 2 | 2 rad |
# | 3 | 5 | −2 | −2 rad |
#
# A rotation changes no length. Values are never turned: they carry the content, and the content does not depend on the
# place.
#
# ## Your turn: `rotary_scores`
#
# Turn both sides, each by its own positions, then score as always. If you turn only one of the two, shapes agree, and
# numbers change with the positions. But then a score depends on where a token stands, and not on how far apart two
# tokens are.


# %% tags=["solution"]
def rotary_scores(
    q: torch.Tensor,
    k: torch.Tensor,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    """Score every query against every key, both turned by their positions: their dot product over √hd.

    Args:
        q: queries, (..., T_q, hd), a float dtype; hd is even.
        k: keys, (..., T_k, hd), of the same dtype, with the same leading dimensions (or none).
        q_positions, k_positions: integers, (T_q,) and (T_k,), in any order.
        base: as in rotate.

    Returns:
        Scores, (..., T_q, T_k), which depend on differences of positions alone.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `rotary_scores`
#
# Two equal hands, turned at positions two apart: their dot product is cos 2, and divided by √2 it is −0.2943. Then
# again, ten positions later, and again with random numbers: only the difference may count.

# %% tags=["check"]
if __name__ == "__main__":
    hand = torch.tensor([[1.0, 0.0]])
    for m, n in ((2, 0), (12, 10), (10, 12)):
        score = rotary_scores(hand, hand, torch.tensor([m]), torch.tensor([n]))
        assert score.shape == (1, 1), f"one query and one key make a (1, 1) table, not {tuple(score.shape)}"
        assert abs(score.item() - math.cos(2) / math.sqrt(2)) < 1e-4, (
            f"query at {m} and key at {n} are two apart, so cos 2 / √2 = −0.2943; yours is {score.item():.4f}"
        )
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 3, 4, 6, generator=generator), torch.randn(2, 3, 5, 6, generator=generator)
    here = rotary_scores(q, k, torch.tensor([4, 5, 6, 7]), torch.arange(5))
    assert here.shape == (2, 3, 4, 5), f"four queries and five keys: (2, 3, 4, 5), not {tuple(here.shape)}"
    later = rotary_scores(q, k, torch.tensor([24, 25, 26, 27]), torch.arange(20, 25))
    assert torch.allclose(here, later, atol=1e-4), "all tokens moved on by 20, and scores changed"
    apart = rotary_scores(q, k, torch.tensor([24, 25, 26, 27]), torch.arange(5))
    assert not torch.allclose(here, apart, atol=1e-2), "the queries alone moved on by 20, and no score changed"
    decoded = rotary_scores(q[..., -1:, :], k, torch.tensor([7]), torch.arange(5))
    assert torch.allclose(decoded, here[..., -1:, :], atol=1e-5), (
        "the query at position 7 gets other scores when it is alone"
    )
    print("rotary_scores: how far apart, not where")

# %% [markdown]
# ## Two layouts, and a trap between them
#
# Which channels are a pair? Here, as in the paper, neighbours are: 0 with 1, 2 with 3. Many published models use
# another layout, which pairs channel i with channel i + hd/2, because halves are quicker to slice than neighbours.
# **Both are right, each with its own weights.** Weights that were trained with neighbours and are run with halves
# give a model that writes nonsense, and no error tells you why. Libraries that load other people's weights have had
# bug reports about just this (see *Sources*).
#
# To use weights trained with neighbours in a rotation of halves, reorder the *rows* of the query and key projections
# once, within each head, so that the channels come out in the other order.
#
# ## Your turn: `pairs_to_halves`
#
# A row of a projection's weight makes one channel of what comes out. In one head of six channels the pairs are
# (0, 1), (2, 3), (4, 5). In halves, pair i is channel i with channel i + 3:
#
# | new row | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | comes from old row | 0 | 2 | 4 | 1 | 3 | 5 |
#
# First come all the *first* channels of the pairs, then all the *second* ones. This happens in each head for itself.
# There are C rows, so a head has C / `n_head` of them. The tools are those of the reshape dance: a view cuts an axis
# into two, and a transpose swaps two axes.


# %% tags=["solution"]
def pairs_to_halves(weight: torch.Tensor, n_head: int) -> torch.Tensor:
    """Reorder the rows of a query or key projection for a layout that pairs channel i with channel i + hd/2.

    Args:
        weight: (C, C_in), as nn.Linear keeps it; rows h · hd … (h + 1) · hd − 1 make head h; pairs are neighbours.
        n_head: number of heads; it divides C, and hd = C / n_head is even.

    Returns:
        A tensor of the same shape and dtype: in each head the first channels of all pairs, then the second ones.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `pairs_to_halves`
#
# First rows that say where they came from, for two heads of six channels. Then what it is for: with the reordered
# weights, a rotation that pairs halves must give the scores that you had.

# %% tags=["check"]
if __name__ == "__main__":
    rows = torch.arange(12.0)[:, None].expand(12, 5)
    moved = pairs_to_halves(rows, 2)
    assert moved.shape == (12, 5), f"rows change places, the shape stays: (12, 5), not {tuple(moved.shape)}"
    expected = [0.0, 2.0, 4.0, 1.0, 3.0, 5.0, 6.0, 8.0, 10.0, 7.0, 9.0, 11.0]
    assert moved[:, 0].tolist() == expected, f"the rows should come from {expected}; yours from {moved[:, 0].tolist()}"

    def rotate_halves(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        angle = positions[:, None] * 10000.0 ** -(torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)

    generator = torch.Generator().manual_seed(6)
    x, places = torch.randn(4, 5, generator=generator), torch.tensor([0, 3, 4, 9])
    Wq, Wk = (torch.randn(12, 5, generator=generator) for _ in "qk")
    q, k = (x @ W.T for W in (pairs_to_halves(Wq, 2), pairs_to_halves(Wk, 2)))
    for head in (slice(0, 6), slice(6, 12)):
        halves = rotate_halves(q[:, head], places) @ rotate_halves(k[:, head], places).T / math.sqrt(6)
        pairs = rotary_scores((x @ Wq.T)[:, head], (x @ Wk.T)[:, head], places, places)
        assert torch.allclose(halves, pairs, atol=1e-4), "with reordered rows, halves should score as pairs do"
    print("pairs_to_halves: another order, the same scores")

# %% [markdown]
# ### Predict before you run
#
# One token stands at position 0, and another moves away from it, step by step. Both have the same eight channels, all
# 1. Does the score fall steadily, or does it rise again? And does position 63 score lower than position 3, or higher?
# Decide before you run the cell.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        ones = torch.ones(64, 8)
        fades = rotary_scores(ones[:1], ones, torch.tensor([0]), torch.arange(64))[0]
    except NotImplementedError:
        print("rotary_scores or rotate is not written yet, so the answer waits. Keep your guess.")
    else:
        print("  ".join(f"{place}: {fades[place]:.2f}" for place in (0, 1, 3, 6, 9, 19, 31, 44, 63)))
        print("quick hands come round again: at 63 the first one has made ten whole turns and stands where it began")

# %% [markdown]
# ## Sources
#
# Su and others, *RoFormer: Enhanced Transformer with Rotary Position Embedding*
# ([2021](https://arxiv.org/abs/2104.09864)), pairs neighbours, with base 10,000.
#
# On neighbours and halves: [issue 25199](https://github.com/huggingface/transformers/issues/25199) of Hugging Face's
# transformers, and [issue 190](https://github.com/meta-pytorch/gpt-fast/issues/190) of gpt-fast, about the function
# that reorders the weights. On positions that restart while a model writes:
# [pull request 2010](https://github.com/pytorch/executorch/pull/2010) of PyTorch's executorch.
#
# ## Onward
#
# A key is turned once, by its own position, and never again. So it can be kept as it is. Go on with
# [4 · The KV cache](04_kv_cache.ipynb).
