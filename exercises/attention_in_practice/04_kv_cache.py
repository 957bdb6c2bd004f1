# %% [markdown]
# # 4 · The KV cache
#
# *About 45 minutes. You need: heads, the causal mask and the fused QKV, which are exercises 2, 4 and 7 of the first
# assignment. After this: exercise 5, where the cache stops growing.*
#
# A language model writes one token at a time. To write token 1,000 it attends from that token to the 999 before
# it, and to write token 1,001 it does so again, with one more. What changes between the two? The new token has a
# query, a key and a value that did not exist before. All other keys and values are what they were: token 17 never sees a
# later token, so nothing that comes later can change it. To compute them again is to
# read the whole book anew for each word that you add.
#
# So keep them. That is the whole idea of the KV cache; all else is bookkeeping, and the bookkeeping is where it goes wrong.
#
# ## What goes in, what is kept
#
# A first call gets the prompt, say five tokens. It answers five, and hands back a *cache* with five keys and
# five values for each head. The next call gets *only the new token*, and the cache:
#
# ```text
# call   x          q           k, v
# 1      (1, 5, C)  5 queries   5
# 2      (1, 1, C)  1 query     5 + 1
# 3      (1, 3, C)  3 queries   6 + 3
# ```
#
# Why is there no cache of queries? A query asks once, on behalf of its own token, and is never needed again.
#
# The cost of a token is now one row of scores in place of a square: T in place of T² dot products. What it costs is
# memory: 2 · T · C numbers a layer, which for a long text is more than the weights.
#
# ## The mask is no longer square
#
# With T new tokens and a cache of P, queries stand at the positions P … P + T − 1, and keys at 0 … P + T − 1. A key
# may be seen where its position is at most the query's. For P = 3 and T = 2:
#
# ![Three calls: the cache grows to the right; in each call the mask of the new queries is aligned to the
# lower right corner](figures/04_kv_cache.svg)
#
# The triangle sits in the *lower right* corner. Draw it from the upper left one and query 0 of the chunk, whose
# position is 3, sees key 0 alone: it has forgotten its own prompt. That is what `is_causal=True` does in PyTorch's fused
# function when there are fewer queries than keys; its documentation says so, and many have
# stumbled over it. With a single new token the mistake looks like this: the newest token sees the
# oldest only. And the opposite one: no mask at all whenever there is a cache, for "the past is all visible". True for
# a single token, and for a chunk of three the first sees the other two.
#
# ## Three rules for whoever hands out a cache
#
# - **It belongs to the caller.** A module that keeps the cache on itself serves one sequence; the next prompt finds the
#   last one's keys. A default argument `cache=[]` is made once, when the function is, and is such a place, too.
# - **It is not changed.** Beam search continues one past in two ways. Whoever writes the new keys *into* the cache that was
#   given has joined both futures. `torch.cat` makes a new tensor; `list.append` and writing into a slice do not.
# - **It has an end.** The model knows block_size positions. What counts is the tokens *in all*, not those of this call: one
#   token is always few.
#
# Feed the same text in any chunks, and the answers must be those of one call. It is the only test that you need, and
# the one below.
#
# Sources: Vaswani and others, *Attention Is All You Need* (2017), for the decoder that sees its past; Pope and others, *Efficiently
# Scaling Transformer Inference* (2022), for what the cache costs; the PyTorch documentation of
# `scaled_dot_product_attention` on `is_causal`.

# %% tags=["setup"]
import math

import torch
from torch import nn

# %% [markdown]
# ## Your turn: `CachedSelfAttention`
#
# Start from your fused module of the first assignment, without dropout. What is new: where keys and values come from, which positions
# the mask compares, who counts the tokens, and a second thing to return.


# %% tags=["solution"]
class CachedSelfAttention(nn.Module):
    """Attend causally to all tokens so far, given the next ones and what an earlier call handed back.

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
        """Let each new token gather from itself and all tokens before it.

        Fed in any chunks, the joined answers equal those of one call.

        Args:
            x: (B, T, C), the next T tokens.
            cache: What the call before returned as its second value; None at the start. It is not changed, so that it can be
                continued a second time.

        Returns:
            (y, cache). y, (B, T, C), for the new tokens alone. cache, of a form of your own: what the next call needs.

        Raises:
            ValueError: there are more than block_size tokens in all; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `CachedSelfAttention`
#
# One text of nine tokens, whole and in chunks; then a second text on the same module, and one past with two futures.

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
        "the same text again gives another answer: who remembers the last one?"
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
            raise AssertionError("11 tokens in all went through a block of 10; the docstring asks for a ValueError")
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
        print("and for twice as many tokens it would be one in twice as many")

# %% [markdown]
# ## Onward
#
# Watch the cache grow (`course trace kv_cache`), and see the triangle of a later chunk in its corner
# (`course plot kv_cache`). The cache grows with every token, for ever; in exercise 5 each token looks back a fixed way,
# and it need not grow beyond that. Go on with [5 · The sliding window](05_sliding_window.ipynb).
