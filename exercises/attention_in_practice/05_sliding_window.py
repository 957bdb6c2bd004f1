# %% [markdown]
# # 5 · The sliding window
#
# *About 40 minutes. You need: the causal mask, the second exercise of the first assignment, and
# [4 · The KV cache](04_kv_cache.ipynb). After this: [6 · Tiled attention](06_tiled_attention.ipynb).*
#
# When you read a novel, you do not keep every word in mind. The last page or two are clear. Of the rest you remember
# something shorter: who is angry with whom, and why. A **sliding window** makes attention read like that. Each token
# looks at itself and at a few tokens before it, and at nothing else. What lies further back can still reach it
# through the layers: below you will count how far.
#
# ## A band on the grid
#
# Rows are queries, columns are keys, and True means *may look*, as in the causal mask. That mask hid one triangle. The
# window hides a second one, in the opposite corner. What is left is a band along the diagonal:
#
# ![Above, the band of eight queries and eight keys with a window of 3. Below, three queries at the end of eight
# keys: their band ends in the lower right corner; starting at the upper left it is
# wrong](figures/05_sliding_window.svg)
#
# **The window counts the token itself.** With `window` = 3 query 5 sees keys 3, 4 and 5: itself and `window` − 1 before
# it. Near the start there are fewer keys to see, and that is fine: query 0 sees only itself.
#
# ## Where the queries stand
#
# While a model writes, the cache holds T_k keys, and only the last T_q tokens ask. So the table is not square, and you
# must decide where in the sequence those queries stand. They are the *newest* tokens: **the last query stands at the
# last key**. In numbers, query i stands at position T_k − T_q + i.
#
# If you count the queries from 0 instead, the newest token counts as the oldest one when it asks alone. It may look at
# key 0 and at nothing else. With T_q = T_k both ways give the same mask. So training is right, and the model fails
# only when it writes.
#
# ## What you need of PyTorch
#
# - `torch.arange(n, device=device)`: whole numbers from 0 to n − 1.
# - `a[:, None] < b`: a table that compares each with each.
# - `(p < q) & (r < s)`: both hold. The brackets are needed, for `&` binds tighter than `<`.

# %% tags=["setup"]
import math

import torch

# %% [markdown]
# ## Your turn: `window_mask`
#
# Write the positions of the queries into a column and those of the keys into a row, and compare them: broadcasting
# makes a table. Two conditions must hold at once. The first you have written before. Which is the second? You may also
# cut the band out with two triangles, if you take care of their diagonals.
#
# Two calls make no sense, and yet PyTorch raises no error. With a window of 0 no token sees anything, and a softmax
# over nothing is NaN. And with more queries than keys, some queries would stand before the beginning of the sequence.
# Raise a ValueError that names the numbers.


# %% tags=["solution"]
def window_mask(T_q: int, T_k: int, window: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Say who may see whom when each token looks at itself and at the window − 1 tokens before it.

    Args:
        T_q: number of queries, at least 1; the last query stands at the last key.
        T_k: number of keys, at least T_q.
        window: how many keys a query sees at most, itself included; at least 1, and it may exceed T_k.
        device: where to make the mask; None is PyTorch's default device.

    Returns:
        A mask of dtype bool, (T_q, T_k): True where the query (row) may look at the key (column).

    Raises:
        ValueError: window is below 1, or there are more queries than keys; the message names the numbers.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `window_mask`
#
# Five tokens and a window of 3, drawn with a ● where a query may look. Then the last two of five queries, which
# must get the last two rows of the same drawing. Then one token alone with its cache, and the two calls that make
# no sense. The device check uses "meta", a pretend device whose tensors have a shape and no numbers.

# %% tags=["check"]
if __name__ == "__main__":

    def draw(mask: torch.Tensor) -> list[str]:
        return ["".join("●" if seen else "·" for seen in row) for row in mask.tolist()]

    mask = window_mask(5, 5, 3)
    assert mask.dtype == torch.bool, f"the mask should be boolean; yours is {mask.dtype}"
    assert mask.shape == (5, 5), f"five queries and five keys make a (5, 5) mask, not {tuple(mask.shape)}"
    band = ["●····", "●●···", "●●●··", "·●●●·", "··●●●"]
    assert draw(mask) == band, f"each token sees itself and two before it; yours, one row per query: {draw(mask)}"
    late = window_mask(2, 5, 3)
    assert late.shape == (2, 5), f"two queries and five keys make a (2, 5) mask, not {tuple(late.shape)}"
    assert draw(late) == band[-2:], f"the last two queries have the last two rows, {band[-2:]}; yours: {draw(late)}"
    assert draw(window_mask(1, 6, 2)) == ["····●●"], (
        f"the newest token stands last; yours: {draw(window_mask(1, 6, 2))}"
    )
    assert draw(window_mask(3, 3, 9)) == ["●··", "●●·", "●●●"], "a window wider than the text is the causal mask"
    for T_q, T_k, window in ((3, 3, 0), (4, 3, 2)):
        try:
            window_mask(T_q, T_k, window)
        except (ValueError, AssertionError):
            continue
        raise AssertionError(f"window_mask({T_q}, {T_k}, {window}) makes no sense: raise a ValueError")
    assert window_mask(2, 3, 2, device="meta").device.type == "meta", "the mask should be built on the device asked for"
    print("window_mask: a band that ends in the lower right corner")

# %% [markdown]
# ## Your turn: `local_attention`
#
# You know the rest: scores over √hd, hide, softmax, mix the values. Take T_q, T_k and the device from q and k. Every
# row of the band holds at least the token itself, so no softmax is empty.


# %% tags=["solution"]
def local_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int) -> torch.Tensor:
    """Answer each query from itself and the window − 1 tokens before it.

    Args:
        q: queries, (..., T_q, hd), a float dtype; the last one stands at the last key.
        k: keys, (..., T_k, hd), with T_k at least T_q and the same leading dimensions (or none).
        v: values, (..., T_k, hd_v), one for each key.
        window: how many keys a query sees at most, itself included; at least 1.

    Returns:
        Answers, (..., T_q, hd_v), in the dtype and on the device of q.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `local_attention`
#
# Queries of zeros have no preference, so each gets the plain mean of the values that it sees: with a window of 2,
# means of two neighbours. Then the test of the causal mask, in both directions: an edit of the future must change
# nothing, and an edit of what has slid out of the window must change nothing either. Last, the newest query alone
# must get the same answer as with the others.

# %% tags=["check"]
if __name__ == "__main__":
    v = torch.tensor([[1.0, 10.0, 5.0], [3.0, 20.0, 5.0], [5.0, 40.0, 5.0], [7.0, 80.0, 5.0]])
    zeros = torch.zeros(4, 2)
    means = local_attention(zeros, zeros, v, 2)
    assert means.shape == (4, 3), f"four queries, values three wide: (4, 3), not {tuple(means.shape)}"
    expected = torch.tensor([[1.0, 10.0, 5.0], [2.0, 15.0, 5.0], [4.0, 30.0, 5.0], [6.0, 60.0, 5.0]])
    assert torch.allclose(means, expected, atol=1e-5), (
        f"means of two neighbours: {expected.tolist()}; got {means.tolist()}"
    )

    generator = torch.Generator().manual_seed(5)
    q, k, v = (torch.randn(2, 3, 6, width, generator=generator) for width in (4, 4, 5))
    y = local_attention(q, k, v, 3)
    assert y.shape == (2, 3, 6, 5), f"leading dimensions stay: (2, 3, 6, 5), not {tuple(y.shape)}"
    for edited, untouched, where in ((5, slice(0, 5), "future"), (0, slice(3, 6), "part that slid out of the window")):
        k_edited, v_edited = k.clone(), v.clone()
        k_edited[..., edited, :] += 3.0
        v_edited[..., edited, :] -= 3.0
        again = local_attention(q, k_edited, v_edited, 3)
        still = torch.allclose(y[..., untouched, :], again[..., untouched, :], atol=1e-5)
        assert still, f"the {where} was edited, and an answer moved that should not see it"
        assert not torch.allclose(y, again, atol=1e-3), f"key {edited} was edited, and no answer moved at all"
    alone = local_attention(q[..., -1:, :], k, v, 3)
    assert torch.allclose(alone, y[..., -1:, :], atol=1e-5), "the newest query gets another answer when it asks alone"
    assert torch.allclose(local_attention(q, k, v, 1), v, atol=1e-5), (
        "with a window of 1 each query should get its own value"
    )
    print("local_attention: near things are clear, far things are gone")

# %% [markdown]
# ### Predict before you run
#
# Three layers, one above the other, each with a window of 4. A token of the third layer sees four tokens of the
# second, each of which has seen four of the first, and so on. How many tokens can reach the last token of a long
# text: 4, 10, 12 or 64? Say a number before you run the cell.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        seen = window_mask(40, 40, 4).float()
    except NotImplementedError:
        print("window_mask is not written yet, so the answer waits. Keep your guess.")
    else:
        heard = [int((seen.matrix_power(layers)[-1] > 0).sum()) for layers in (1, 2, 3)]
        print(f"after one layer of {heard[0]} tokens, after two of {heard[1]}, after three of {heard[2]}")
        print("each layer adds window − 1, for the token itself is already known: layers · (window − 1) + 1")

# %% [markdown]
# ## What it saves
#
# | | full causal attention | a window of W |
# |---|---|---|
# | scores that matter, T tokens | about T² / 2 | T · W − W(W − 1) / 2 |
# | 32,768 tokens, W = 4,096 | 537 million | 126 million |
# | keys and values to keep while a model writes | T | W |
#
# The last row is why this exercise comes after the KV cache: a key that has slid out of the window is never needed
# again, so the cache stops growing. A mask alone saves no arithmetic: your function computes all scores and then
# hides some. You need a function that skips them. In the next exercise you build one that skips the
# future.
#
# ## One key too many, and the wrong corner
#
# Not every library counts the token itself. FlashAttention, a program that computes attention fast on a GPU, takes the
# number of keys *to the left*, without the token. Give it a model's window as it is, and each token sees one key too
# many. Hugging Face's transformers had this fault: with FlashAttention and without it, the same model saw windows that
# differed by one key ([issue 39408](https://github.com/huggingface/transformers/issues/39408)).
#
# PyTorch's `is_causal=True` starts its triangle in the upper left corner, as its documentation says
# ([issue 103082](https://github.com/pytorch/pytorch/issues/103082)). FlashAttention changed from the upper left to the
# lower right corner in [version 2.1](https://github.com/Dao-AILab/flash-attention#21-change-behavior-of-causal-flag).
#
# ## Sources
#
# Longformer reads long documents with a window: Beltagy, Peters and Cohan, *Longformer: The Long-Document
# Transformer* ([2020](https://arxiv.org/abs/2004.05150)). Mistral 7B has a window of 4,096 in each of 32 layers, and
# a cache that overwrites what has slid out: Jiang and others, *Mistral 7B*
# ([2023](https://arxiv.org/abs/2310.06825)). That paper multiplies layers by window and gets about 131,000 tokens.
# Your count, layers · (window − 1) + 1, is the exact one.
#
# ## Onward
#
# Your mask says which scores are not needed, but your function has computed them all the same. Go on with
# [6 · Tiled attention](06_tiled_attention.ipynb), which skips those of the future.
