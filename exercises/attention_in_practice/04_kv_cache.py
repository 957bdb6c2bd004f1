# %% [markdown]
# # 4 · The KV cache
#
# *About 45 minutes. You need: the causal mask, heads and the fused QKV, which are exercises 2, 4 and 7 of the first
# assignment. After this: [5 · The sliding window](05_sliding_window.ipynb), where the cache stops growing.*
#
# A language model writes one token at a time. Token 1,000 attends to itself and the 999 before it, and token 1,001
# does the same with one more. The new token has a query, a key and a value of its own. All other keys and values do
# not change: token 17 never sees a later token, so nothing that comes later can change it. Computing them again would
# be like rereading the whole book for each word that you add.
#
# So keep them. This is the *KV cache*.
#
# ## What goes in, what is kept
#
# The first call gets the *prompt* (the text to continue), say three tokens. It returns three answers, and a *cache*
# with three keys and values for each head. The next call gets *only the new token*, and the cache:
#
# ```text
# call   x          q           k, v
# 1      (1, 3, C)  3 queries   3
# 2      (1, 1, C)  1 query     3 + 1
# 3      (1, 2, C)  2 queries   4 + 2
# ```
#
# Queries are not kept: each is used once, for its own token.
#
# ## The mask is no longer square
#
# With P tokens in the cache and T new ones, the queries stand at the positions P … P + T − 1, and the keys at
# 0 … P + T − 1. A query may see a key whose position is at most its own.
#
# ![Three calls: the cache grows to the right; in each call the mask of the new queries is aligned to the
# lower right corner](figures/04_kv_cache.svg)
#
# The triangle sits in the *lower right* corner. Two mistakes are common here:
#
# - The triangle starts in the upper left corner. With P = 3, the first new query, whose position is 3, then sees key 0
#   alone.
# - There is no mask when there is a cache, because "the past is all visible". That is true for one new token. With
#   three new ones, the first sees the other two.
#
# ## Your turn: `CachedSelfAttention`
#
# Start from your fused module of the first assignment, without dropout. New keys and values go behind the cached ones,
# and `forward` returns a second thing. Three rules:
#
# - **The cache belongs to the caller.** If it is kept on `self`, the next prompt finds the keys of the last one. A
#   default argument `cache=[]` has the same fault: Python makes that list only once.
# - **The cache is not changed.** One past may be continued twice, to try two endings. If you write new keys *into* the
#   given cache, both endings are in it. `torch.cat` makes a new tensor; `list.append` and writing into a slice do not.
# - **The text has an end.** The model knows `block_size` positions. Count all tokens, not only those of this call.
#
# ## What you need of PyTorch
#
# - `torch.cat([a, b], dim=…)`: b behind a, along that axis.
# - `torch.arange(a, b, device=x.device)`: whole numbers from a to b − 1.
# - `a[:, None] < b`: a table that compares each with each.

# %% tags=["setup"]
import math

import torch
from torch import nn


# %% tags=["solution"]
class CachedSelfAttention(nn.Module):
    """Attend causally, a few new tokens in each call; a cache holds the keys and values of all earlier ones.

    A module keeps no sequence between calls: all that the next call needs is in the cache.

    Attributes:
        qkv: Linear layer from n_embd to three times n_embd, without bias: queries, keys, values, in order.
        proj: Linear layer from n_embd to n_embd, without bias.
    """

    def __init__(self, n_embd: int, n_head: int, block_size: int) -> None:
        """Make both layers.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many heads share the channels evenly.
            block_size: The most tokens of one sequence, those in the cache included.

        Raises:
            ValueError: n_head does not divide n_embd; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")

    def forward(self, x: torch.Tensor, cache=None):
        """Let each new token attend to itself and all tokens before it.

        Cut a text into chunks, one for each call: the joined answers equal those of one call.

        Args:
            x: (B, T, C), the next T tokens.
            cache: What the call before returned as its second value; None at the start. It is not changed, so that you can
                use it a second time.

        Returns:
            (y, cache). y, (B, T, C), for the new tokens alone. cache: what the next call needs, in any form you like.

        Raises:
            ValueError: there are more than block_size tokens in all; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `CachedSelfAttention`
#
# Feed the same text in any chunks, and the answers must be those of one call. This is the test that matters: nine
# tokens, whole and in chunks. Then a second text on the same module, and one past with two futures.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(4)
    layer, text = CachedSelfAttention(n_embd=12, n_head=3, block_size=10), torch.randn(2, 9, 12)
    whole, _ = layer(text)
    assert whole.shape == (2, 9, 12), f"(2, 9, 12) should keep its shape, yours is {tuple(whole.shape)}"
    for sizes in ((5, 4), (1,) * 9, (2, 1, 6)):
        cache, parts = None, []
        for chunk in text.split(sizes, dim=1):
            y, cache = layer(chunk, cache)
            assert y.shape == chunk.shape, f"{tuple(chunk.shape)} in, {tuple(y.shape)} out: answer the new tokens only"
            parts.append(y)
        wrong = (torch.cat(parts, dim=1) - whole).abs().amax((0, 2)) > 1e-5
        assert not wrong.any(), (
            f"in chunks of {sizes}, positions {wrong.nonzero().flatten().tolist()} differ from one call"
        )
    assert torch.allclose(layer(text)[0], whole), (
        "the same text again gives another answer: does the module remember the last one?"
    )
    _, past = layer(text[:, :4])
    once = layer(text[:, 4:6], past)[0]
    layer(torch.randn(2, 3, 12), past)
    assert torch.allclose(layer(text[:, 4:6], past)[0], once), "the past was continued elsewhere, and changed"
    for chunk, cache in ((torch.randn(2, 11, 12), None), (torch.randn(2, 7, 12), past)):
        try:
            layer(chunk, cache)
        except (ValueError, AssertionError, RuntimeError) as error:
            print(f"CachedSelfAttention refuses: {error}")
        else:
            raise AssertionError(
                "11 tokens in all went through with a block_size of 10; the docstring asks for a ValueError"
            )
    print("CachedSelfAttention: in any chunks, the same answers")

# %% [markdown]
# ### Predict before you run
#
# 64 tokens, one at a time. With the cache, each call scores its one query against all keys so far. Without it, each
# call is given the whole text so far, and scores every token against every token. How many scores are computed
# altogether, in each head: about a tenth, a fortieth or a thousandth with the cache?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        layer, cache, rows = CachedSelfAttention(8, 2, block_size=64), None, []
        for token in torch.randn(1, 64, 8).split(1, dim=1):
            y, cache = layer(token, cache)
            rows.append(y.shape[1] * (len(rows) + 1))
    except NotImplementedError:
        print("CachedSelfAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        squares = sum(t * t for t in range(1, 65))
        print(f"{sum(rows)} with the cache, {squares} without: one in {squares / sum(rows):.0f},")
        print("and for 128 tokens, one in 86")

# %% [markdown]
# ## What it costs, and what it saves
#
# With the cache a new token costs one row of scores in place of a square: T dot products in each head, not T². The
# price is memory: 2 · T · C numbers in each layer. You counted those bytes in exercise 2.
#
# ## The mask of PyTorch's own function
#
# `scaled_dot_product_attention` has an argument `is_causal=True`. Where there are fewer queries than keys, it draws the
# triangle from the upper left corner, as its documentation says. With a cache and a single new token, that token sees
# only the oldest one. [Issue 103082](https://github.com/pytorch/pytorch/issues/103082) of PyTorch is about just this.
#
# ## Sources
#
# This kind of decoder, the half of a model that writes and sees only its past, is from Vaswani and others, *Attention
# Is All You Need* ([2017](https://arxiv.org/abs/1706.03762)). What the cache costs is in Pope and others, *Efficiently
# Scaling Transformer Inference* ([2022](https://arxiv.org/abs/2211.05102)).
#
# ## Onward
#
# Watch the cache grow (`course trace kv_cache`), and see the triangle of a later chunk in its corner
# (`course plot kv_cache`). Your cache grows with every token. In exercise 5 each token looks back a fixed number of
# tokens, and then the cache need not grow beyond that: [5 · The sliding window](05_sliding_window.ipynb).
