# %% [markdown]
# # 6 · Tiled attention
#
# *About 60 minutes. You need: the causal mask, and softmax by hand; no classes. That is exercises 1 and 2 of the first
# assignment; [5 · The sliding window](05_sliding_window.ipynb) comes before. After this: you know what a fast attention
# function does inside.*
#
# A sequence of 16,384 tokens has 268 million scores in each head, and you want none of them. You want 16,384 answers.
# The square of scores is only an intermediate step: written to memory, read back, used once, thrown away.
# FlashAttention ([Dao and others, 2022](https://arxiv.org/abs/2205.14135)) never builds it. It works on small *tiles*
# of the square, one after the other, and forgets each before it takes the next.
#
# There is one difficulty. A softmax divides by the sum of the *whole* row, and a tile holds only a piece of the row.
# The way out is three lines long, and it is the subject of this exercise.
#
# ## A sum that can be corrected
#
# Softmax subtracts the largest score before it exponentiates (takes e to the power of each), so that nothing becomes
# infinite. When you go through a row in blocks, you know the largest score *so far*: call it m. You also keep the sum
# of exp(score − m) so far: call it s. Then a block arrives with a larger score. Must you start again? No: every old
# term is exp(score − m), and
#
# $$ e^{\mathrm{score} - \mathrm{new}\,m} = e^{\mathrm{score} - m} \cdot e^{m - \mathrm{new}\,m} $$
#
# The second factor is the same for all old terms. So one multiplication corrects the whole sum, however many scores
# came before ([Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867)):
#
# ```text
# new m = larger of m, the block's max
# s = s · exp(m − new m)
#     + sum of exp(block − new m)
# m = new m
# ```
#
# Start with m = −∞ and s = 0. The first factor is then exp(−∞) = 0, so you need no special case.
#
# Take the scores log 2, log 4 | log 8, log 2 in blocks of two. Their exponentials are 2, 4, 8 and 2, with a
# sum of 16, so the weights must be 1/8, 1/4, 1/2 and 1/8.
#
# | after block | m | s | because |
# |---|---|---|---|
# | 1 | log 4 | 1.5 | 2/4 + 4/4 |
# | 2 | log 8 | 2 | 1.5 · 4/8 + 8/8 + 2/8 |
#
# The whole sum is exp(m) · s = 8 · 2 = 16, as it should be. Without the factor 4/8 it would be 8 · 2.75 = 22: the first
# block would count as if its largest score were still the largest of all.
#
# ## What you need of PyTorch
#
# - `x.split(n, dim=…)`: pieces of size n; the last may be shorter.
# - `x.amax(dim=…, keepdim=True)`: the largest along an axis, which stays with size 1.
# - `torch.maximum(a, b)`: the larger number of each pair.

# %% tags=["setup"]
import math

import torch

# %% [markdown]
# ## Your turn: `online_softmax`
#
# Go through the blocks twice. The first time, carry m and s along. The second time, subtract the final m from the
# scores, exponentiate, and divide by the final s. The last block may be shorter than the others. Do not call
# `torch.softmax`: you write it yourself.


# %% tags=["solution"]
def online_softmax(scores: torch.Tensor, block: int) -> torch.Tensor:
    """Turn scores into weights over the last axis, block by block.

    One pass carries a running maximum and a running sum over the blocks; a second divides. torch.softmax is not called.

    Args:
        scores: (..., T), a float dtype, all finite. Not changed.
        block: how many scores a block has, at least 1. T need not be a multiple of it, and may be smaller.

    Returns:
        Weights, (..., T), equal to a softmax over the last axis.
    """
    ### BEGIN SOLUTION
    highest = torch.full_like(scores[..., :1], -math.inf)  # (..., 1)
    total = torch.zeros_like(highest)  # (..., 1)
    for piece in scores.split(block, dim=-1):  # (..., block), the last one may be shorter
        higher = torch.maximum(highest, piece.amax(-1, keepdim=True))
        total = total * (highest - higher).exp() + (piece - higher).exp().sum(-1, keepdim=True)
        highest = higher
    parts = [(piece - highest).exp() / total for piece in scores.split(block, dim=-1)]
    return torch.cat(parts, dim=-1)  # (..., T)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `online_softmax`
#
# The row from above; then the same row backwards, where the largest score comes first and nothing has to be corrected;
# then blocks that do not fit evenly.

# %% tags=["check"]
if __name__ == "__main__":
    row = torch.tensor([2.0, 4.0, 8.0, 2.0]).log()
    expected = torch.tensor([0.125, 0.25, 0.5, 0.125])
    weights = online_softmax(row, 2)
    assert weights.shape == (4,), f"four scores, four weights: (4,), not {tuple(weights.shape)}"
    assert torch.allclose(online_softmax(row, 4), expected, atol=1e-6), "in a single block it is a plain softmax"
    assert torch.allclose(online_softmax(row.flip(0), 2), expected.flip(0), atol=1e-6), (
        "here the largest score is in the first block: the second pass, or the sum, is not right yet"
    )
    assert torch.allclose(weights, expected, atol=1e-6), (
        f"expected {expected.tolist()}, got {weights.tolist()}: what happens to the old sum when a larger score arrives?"
    )
    for block in (1, 3, 7):
        found = online_softmax(row.expand(2, 5, 4), block)
        assert found.shape == (2, 5, 4), (
            f"block={block}: (2, 5, 4) should keep its shape, yours is {tuple(found.shape)}"
        )
        assert torch.allclose(found, expected.expand(2, 5, 4), atol=1e-6), f"block={block} gives other weights"
    print("online_softmax: a block at a time, and one factor corrects the past")

# %% [markdown]
# ## The values come along
#
# Attention needs the weighted sum of the values, not the weights. You can carry that sum along just like s. Call it o:
# the sum so far of exp(score − m) times the value. It is made of the same terms, so the same factor corrects it:
#
# ```text
# fix = exp(m − new m)
# p   = exp(tile − new m)
# s   = s · fix + row sums of p
# o   = o · fix + p @ values
# ```
#
# At the end of the row the answer is o / s. Divide only there, once: if you divide in each tile, the results cannot
# be added. m, s and o have one entry for each *query*, so you can work on a block of queries at once. A tile is
# block_q queries against block_k keys.
#
# ## Which tiles, and which corners of them
#
# Causal attention needs only the lower triangle of the square. For a block of queries there are three kinds of tiles:
#
# - All keys are past: every score counts.
# - All keys are future: no score counts, and the tile is not even computed.
# - The diagonal runs through the tile: a score counts where key ≤ query. These are positions in the *sequence*. Row 0
#   of a tile is position `top`, and column 0 is position `left`. If block_q and block_k differ, the diagonal may
#   cross several tiles of a row, at any place.
#
# ![Twelve queries and keys in tiles of 4 × 3, numbered in the order they are visited; below, the running maximum
# of queries 8 to 11 after each tile](figures/06_tiled_attention.svg)
#
# A whole row of a tile may be hidden, and its maximum is then −∞. If the query has seen a real score before, m stays
# finite, and exp(−∞ − m) = 0, as it should be. Which order of tiles would make this fail? Think of a query whose
# first tile is hidden.
#
# ## What is left over: log-sum-exp
#
# Return one more number for each query: lse = m + log s. For the whole row this means: raise e to each of the query's
# scaled scores (*exp*), take the *sum*, then its *log*. From it every weight of the row can be made again, as
# exp(score − lse), without a maximum and without a sum.

# %% [markdown]
# ## Your turn: `tiled_attention`
#
# Write an outer loop over blocks of queries, and an inner one over blocks of keys. Divide scores by √hd. Where both
# blocks are smaller than T, no tensor that you make may have two axes of length T: no scores, no weights, and no mask.
# So compare positions inside each tile.


# %% tags=["solution"]
def tiled_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_q: int, block_k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend causally, one tile of block_q queries and block_k keys at a time.

    If both blocks are smaller than T, make no tensor with two axes of length T, nor of T rounded up to whole blocks.
    Gradients must flow from y to q, k and v.

    Args:
        q: queries, (..., T, hd), a float dtype.
        k: keys, (..., T, hd).
        v: values, (..., T, hd_v); hd_v may differ from hd.
        block_q: queries in a tile, at least 1. T need not be a multiple of it, and may be smaller.
        block_k: keys in a tile, at least 1. T need not be a multiple of it either, and may be smaller.

    Returns:
        (y, lse). y, (..., T, hd_v): each query's answer from itself and the tokens before it. lse, (..., T): for
            each query, the log-sum-exp of its scaled scores for these tokens.
    """
    ### BEGIN SOLUTION
    T, hd = q.shape[-2:]
    answers, sums = [], []
    for top in range(0, T, block_q):
        rows = q[..., top : top + block_q, :] / math.sqrt(hd)  # (..., bq, hd)
        bottom = top + rows.shape[-2]
        query = torch.arange(top, bottom, device=q.device)[:, None]  # (bq, 1)
        highest, total, gathered = torch.full_like(rows[..., :1], -math.inf), 0.0, 0.0  # (..., bq, 1)
        for left in range(0, bottom, block_k):  # what lies further right is all future
            keys, values = k[..., left : left + block_k, :], v[..., left : left + block_k, :]  # (..., bk, hd)
            key = torch.arange(left, left + keys.shape[-2], device=q.device)  # (bk,)
            tile = (rows @ keys.transpose(-2, -1)).masked_fill(key > query, -math.inf)  # (..., bq, bk)
            higher = torch.maximum(highest, tile.amax(-1, keepdim=True))  # (..., bq, 1)
            fix, shares = (highest - higher).exp(), (tile - higher).exp()
            total = total * fix + shares.sum(-1, keepdim=True)  # (..., bq, 1)
            gathered = gathered * fix + shares @ values  # (..., bq, hd_v)
            highest = higher
        answers.append(gathered / total)
        sums.append((highest + total.log()).squeeze(-1))  # (..., bq)
    return torch.cat(answers, dim=-2), torch.cat(sums, dim=-1)  # (..., T, hd_v), (..., T)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `tiled_attention`
#
# Your answers beside those of the whole square, with tiles of several sizes. Then the shape of every tensor that
# PyTorch makes while your function runs.

# %% tags=["check"]
if __name__ == "__main__":
    from torch.utils._python_dispatch import TorchDispatchMode

    class Shapes(TorchDispatchMode):
        """Note the shape of every tensor that is made."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            shapes.extend(
                tuple(t.shape) for t in (out if isinstance(out, tuple | list) else [out]) if hasattr(t, "shape")
            )
            return out

    torch.manual_seed(6)
    q, k, v = torch.randn(2, 3, 11, 4), torch.randn(2, 3, 11, 4), torch.randn(2, 3, 11, 5)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(4)).masked_fill(torch.ones(11, 11).triu(1).bool(), -math.inf)
    expected, expected_lse = scores.softmax(-1) @ v, scores.logsumexp(-1)
    for block_q, block_k in ((11, 11), (11, 4), (4, 11), (3, 3), (4, 2), (2, 5), (20, 1)):
        y, lse = tiled_attention(q, k, v, block_q, block_k)
        which = f"with tiles of {block_q} × {block_k}"
        assert y.shape == (2, 3, 11, 5), f"{which}: y should be (2, 3, 11, 5), yours is {tuple(y.shape)}"
        assert lse.shape == (2, 3, 11), f"{which}: lse should be (2, 3, 11), yours is {tuple(lse.shape)}"
        wrong = (y - expected).abs().amax((0, 1, 3)) > 1e-5
        assert not wrong.any(), f"{which}: y is wrong for the queries {wrong.nonzero().flatten().tolist()}"
        wrong = (lse - expected_lse).abs().amax((0, 1)) > 1e-5
        assert not wrong.any(), f"{which}: y is right; lse is not, for the queries {wrong.nonzero().flatten().tolist()}"
    shapes = []
    with Shapes():
        tiled_attention(q, k, v, 3, 4)
    squares = [shape for shape in shapes if shape.count(11) > 1]
    assert not squares, f"with tiles of 3 × 4 something of shape {squares and squares[0]} was made: the square is back"
    print("tiled_attention: the same answers, and no square was ever made")

# %% [markdown]
# ### Predict before you run
#
# The queries are zeros, so every score is 0, whatever the keys are. Query 7 sees the keys 0 to 7. Is its lse 0, about
# 2.1, or 8? Say why, and only then run the cell.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        _, lse = tiled_attention(torch.zeros(16, 4), torch.randn(16, 4), torch.randn(16, 4), 4, 4)
    except NotImplementedError:
        print("tiled_attention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"{lse[7]:.2f}, and exp({lse[7]:.2f}) = {lse[7].exp():.0f}: eight keys, each with exp(0) = 1.")
        print(f"Query 15 has {lse[15]:.2f}: twice as many equal keys add log 2 = {math.log(2):.2f}")

# %% [markdown]
# ## What it saves
#
# With T = 16,384 and tiles of 128 × 64, 8,192 scores are in memory at a time, in place of 268 million. The arithmetic
# stays about the same. What you save is the way to memory and back.
#
# The lse saves more. When FlashAttention computes gradients, it makes the weights again from lse, so it need not keep
# them. And two answers to the same query, each from one half of the keys, can be joined with the help of their lse,
# even if they were computed on two machines.
#
# ## Sources
#
# Milakov and Gimelshein, *Online normalizer calculation for softmax* ([2018](https://arxiv.org/abs/1805.02867)). Rabe
# and Staats, *Self-attention does not need O(n²) memory* ([2021](https://arxiv.org/abs/2112.05682)). Dao, Fu, Ermon,
# Rudra and Ré, *FlashAttention* ([2022](https://arxiv.org/abs/2205.14135)).
#
# ## Onward
#
# That was the last of the six. Watch your tiles one by one (`course trace tiled_attention`). Then open the last
# exercise of the first assignment once more: now you know what its fused function does inside.
