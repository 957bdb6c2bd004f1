# %% [markdown]
# # 1 · Cross-attention
#
# *About 45 minutes. You need: the first assignment up to its exercise 5, the weight split. After this:
# [2 · Grouped queries](02_grouped_query_attention.ipynb).*
#
# So far every sequence has looked at itself. A translator needs more. While it writes its French sentence, it looks
# back at the English one. Queries come from one side, keys and values from the other. This is called
# **cross-attention**, and you have already built most of it.
#
# ## Who asks whom
#
# The side that asks is `x`, and the side that is asked is the *context* (not `context_length`, not a context
# vector). Each has its own length, T_q and T_k, and its own number of channels. nh is the number of heads, and hd the
# number of channels in each.
#
# | from | through | becomes |
# |---|---|---|
# | x (B, T_q, d_query) | W_query | q (B, nh, T_q, hd) |
# | context (B, T_k, d_context) | W_key | k (B, nh, T_k, hd) |
# | context (B, T_k, d_context) | W_value | v (B, nh, T_k, hd) |
# | q and k | q kᵀ / √hd | scores (B, nh, T_q, T_k) |
#
# A row of the scores belongs to a token of `x`, and a column to a token of the context. Each token of `x` gets one
# answer, however long the context is.
#
# There is no causal mask: the whole context is known before the first question is asked.
#
# ## Padding is not a word
#
# Sentences in a batch have different lengths, but a tensor has only one. So the shorter ones are filled up with a token
# that means nothing, the *padding*. `keep` says which tokens are real:
#
# ```text
# context   the  cat  sat   ·    ·
# keep      True True True  False False
#
# context   a    bird sang  at   dawn
# keep      True True True  True True
# ```
#
# Your layers turn the padding into keys and values as well. So hide its *scores* before the softmax, just as you hid
# the future. Then the real tokens share all of the weight.
#
# `keep` has two axes, (B, T_k), and the scores have four. Broadcasting lines axes up from the right, so the B of `keep`
# would meet the *queries*. Put two axes of length 1 between. `(B, 1, 1, T_k)` hides columns, the same ones for every
# head and query. `(B, 1, T_k, 1)` would hide rows, and where T_q equals T_k that runs without an error.
#
# ## Your turn: `CrossAttention`
#
# Start from your module of the weight split. `d_out`, `num_heads` and `out_proj` with its bias stay. Take the causal
# mask out, and put the context in.
#
# - **Three widths.** `W_query` reads `d_query` channels, the other two read `d_context`, and all three write `d_out`.
#   The heads are cut from `d_out`.
# - **Two lengths.** `view` keys and values with T_k, queries with T_q.
# - **True means real.** But `masked_fill` fills where *its* mask is True, so turn `keep` into its opposite first.
# - **`keep` may be None.** Then every token is real.
#
# ## What you need of PyTorch
#
# - `mask[:, None]`: a new axis of size 1, which fits every size.
# - `~mask`: True and False change places.
# - `x.masked_fill(mask, value)`: a copy of x, with that value where the mask is True.

# %% tags=["setup"]
import math

import torch
from torch import nn


# %% tags=["solution"]
class CrossAttention(nn.Module):
    """Let every token of x attend to another sequence, the context, with several heads.

    Attributes:
        W_query: Linear layer from d_query to d_out, without bias.
        W_key, W_value: Linear layers from d_context to d_out, without bias.
        out_proj: Linear layer from d_out to d_out, with a bias. It mixes the heads.
    """

    def __init__(self, d_query: int, d_context: int, d_out: int, num_heads: int) -> None:
        """Make the four layers.

        Args:
            d_query: Channels of each token that asks.
            d_context: Channels of each token that is asked.
            d_out: Channels of each outgoing token, all heads together.
            num_heads: How many heads share the d_out channels evenly.

        Raises:
            ValueError: num_heads does not divide d_out; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")

    def forward(self, x: torch.Tensor, context: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        """Let every token of x attend to all real tokens of its context.

        Args:
            x: (B, T_q, d_query), floating point. Not changed.
            context: (B, T_k, d_context), floating point. Not changed.
            keep: bool (B, T_k), True where a context token is real and False where it is padding; None if all are
                real. Every sequence has at least one real token.

        Returns:
            (B, T_q, d_out), in the dtype and on the device of x.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ## One walk through, with numbers
#
# If your numbers are off, follow this small case by hand. There is one head of two channels, and every layer passes on
# what it gets. Two tokens ask. Three are in the context, and the third is padding with large numbers in it:
#
# | | channels | |
# |---|---|---|
# | x_0 | 1, 0 | |
# | x_1 | 0, 1 | |
# | c_0 | 2, 0 | real |
# | c_1 | 0, 2 | real |
# | c_2 | 9, 9 | padding |
#
# The dot products of x_0 with the three are 2, 0 and 9. Divided by √2 they are 1.4142, 0 and 6.3640.
#
# | x_0's weights | c_0 | c_1 | c_2 |
# |---|---|---|---|
# | all three real | 0.0070 | 0.0017 | 0.9913 |
# | c_2 hidden | 0.8044 | 0.1956 | 0 |
# | c_2 zeroed after the softmax | 0.0070 | 0.0017 | 0 |
#
# The second line is right: x_0 becomes 1.6089, 0.3911. In the third line the weight of the padding was set to 0 after
# the softmax. By then it had already taken nearly all of the weight, and only 0.0087 is left for the real tokens.
#
# ![Weights of two queries over three context tokens. Without keep both give 0.99 to the padding; with keep the
# padding's column is hidden and the real tokens share 0.80 and 0.20](figures/01_cross_attention.svg)

# %% [markdown]
# ### See for yourself: `CrossAttention`
#
# First what your module owns and refuses, and its shapes with two lengths. Then the numbers from above. Last, the
# padding is rewritten, and no output may move.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(1)
    layer = CrossAttention(d_query=10, d_context=14, d_out=12, num_heads=3).eval()
    owned = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    expected = {"W_query.weight": (12, 10), "W_key.weight": (12, 14), "W_value.weight": (12, 14)}
    expected |= {"out_proj.weight": (12, 12), "out_proj.bias": (12,)}
    assert owned == expected, f"these parameters are expected: {expected}; yours: {owned}"
    for T_q, T_k in ((5, 8), (8, 5), (1, 6), (6, 2)):
        shape = tuple(layer(torch.randn(2, T_q, 10), torch.randn(2, T_k, 14)).shape)
        assert shape == (2, T_q, 12), f"{T_q} tokens asking {T_k} should give (2, {T_q}, 12), yours is {shape}"
    print("CrossAttention: as many answers as questions, however long the context")
    try:
        CrossAttention(10, 14, 12, num_heads=5)
    except (ValueError, AssertionError) as error:
        print(f"CrossAttention refuses 12 channels in 5 heads: {error}")
    else:
        raise AssertionError("12 channels in 5 heads went through; the docstring asks for a ValueError")

# %% tags=["check"]
if __name__ == "__main__":
    same = {f"{name}.weight": torch.eye(2) for name in ("W_query", "W_key", "W_value", "out_proj")}
    plain = CrossAttention(2, 2, 2, num_heads=1).eval()
    plain.load_state_dict({**same, "out_proj.bias": torch.zeros(2)})
    asks, asked = torch.eye(2)[None], torch.tensor([[[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]]])
    for keep, expected in ((None, (8.9355, 8.9248)), (torch.tensor([[True, True, False]]), (1.6089, 0.3911))):
        out = plain(asks, asked, keep)[0, 0].detach()
        assert torch.allclose(out, torch.tensor(expected), atol=1e-3), (
            f"with keep = {keep} token 0 should become {expected}; "
            f"yours is {[round(c, 4) for c in out.tolist()]}: compare with the table of weights"
        )
    print("CrossAttention: the walk-through comes out as the lesson says, with padding and without")

    x, context = torch.randn(2, 5, 10), torch.randn(2, 5, 14)
    keep = torch.tensor([[True, True, True, False, False], [True, True, True, True, True]])
    louder = context.clone()
    louder[0, 3:] = 40 * torch.randn(2, 14)
    moved = (layer(x, context, keep) - layer(x, louder, keep)).abs().amax(dim=(1, 2))
    assert moved[0] < 1e-5, (
        "the padding of sequence 0 was rewritten, and its output moved: the padding still has a weight"
    )
    alone = layer(x[:1], context[:1, :3])
    assert torch.allclose(layer(x, context, keep)[:1], alone, atol=1e-5), (
        "sequence 0 with its padding cut off should give the same as with keep: what else is hidden?"
    )
    print("CrossAttention: padding changes nothing, and everything else counts")

# %% [markdown]
# ### Predict before you run
#
# The tokens of the context are shuffled, and `keep` with them. How much of the output changes: all of it, only the
# tokens next to the padding, nothing?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        torch.manual_seed(11)
        asking = CrossAttention(d_query=10, d_context=14, d_out=12, num_heads=3)
        x, context, keep = torch.randn(1, 4, 10), torch.randn(1, 6, 14), torch.tensor([[True] * 4 + [False] * 2])
        order = torch.randperm(6)
        apart = (asking(x, context, keep) - asking(x, context[:, order], keep[:, order])).abs().max().item()
    except NotImplementedError:
        print("CrossAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"Nothing but round-off, {apart:.0e}: a sum over keys does not know their order.")
        print("Where a token stands must be written into the token, and exercise 3 is about that")

# %% [markdown]
# ## Going further
#
# **Where it is used.** In the first transformer the half that writes, the *decoder*, has one such attention in each
# layer: the translation asks the original text ([Vaswani and others, 2017](https://arxiv.org/abs/1706.03762)). In
# Perceiver a few hundred queries read tens of thousands of pixels ([Jaegle and others,
# 2021](https://arxiv.org/abs/2103.03206)). In Stable Diffusion each place in the picture asks 77 tokens of text ([its
# settings](https://huggingface.co/stabilityai/stable-diffusion-2/blob/main/text_encoder/config.json) say so).
#
# **Both masks at once.** Self-attention over padded sentences needs the causal mask, too. A query may look where *both*
# masks allow it: `causal & keep[:, None, None, :]`, of shape `(B, 1, T, T)`. Be careful if the padding stands in front.
# The first row then has no key that it may look at, and a softmax over nothing but −∞ is NaN.
#
# **True does not always mean real.** PyTorch's own attention function, `scaled_dot_product_attention`, reads a
# boolean mask as you read `keep`. `nn.MultiheadAttention` has a `key_padding_mask` in which True means *ignore this
# token*. Look it up each time.
#
# ## Onward
#
# You now have two sides, each with its own length. Next you make the keys and values cheaper to keep:
# [2 · Grouped queries](02_grouped_query_attention.ipynb).
