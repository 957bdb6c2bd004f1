# %% [markdown]
# # 2 · Grouped queries
#
# *About 45 minutes. You need: the first assignment up to its exercise 7, the fused QKV. After this:
# [3 · Rotary positions](03_rotary.ipynb).*
#
# Twelve heads ask twelve questions. Must they also keep twelve sets of keys and values to look the answers up
# in? Most large models today say no: several query heads share one set. Training hardly notices, and the
# memory that generation needs shrinks to a quarter or an eighth.
#
# ## Your turn: `GroupedQueryAttention`
#
# Your module of the fused QKV, with two changes: keys and values come from a layer of their own, which is
# narrower, and one step more stands between the cut into heads and the scores.

# %% tags=["setup"]
import math

import torch
from torch import nn


# %% tags=["solution"]
class GroupedQueryAttention(nn.Module):
    """Attend causally with n_head query heads that share n_kv_head heads of keys and values.

    Attributes:
        q: Linear layer from n_embd to n_embd, without bias.
        kv: Linear layer from n_embd to 2 · n_kv_head · head_dim, without bias: all keys, then all values.
        proj: Linear layer from n_embd to n_embd, without bias.
    """

    def __init__(self, n_embd: int, n_head: int, n_kv_head: int, block_size: int) -> None:
        """Make the three layers and whatever holds the causal mask.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many query heads share the channels evenly.
            n_kv_head: How many heads of keys and values there are. Each serves n_head / n_kv_head query heads.
            block_size: The most tokens that forward accepts.

        Raises:
            ValueError: n_head does not divide n_embd, or n_kv_head does not divide n_head; the message names both.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token gather from itself and its past; query head h reads head h // (n_head / n_kv_head).

        Args:
            x: (B, T, C), floating point, T at most block_size. Left as it was.

        Returns:
            (B, T, C), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds block_size; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ## Who reads whom
#
# The query heads stand in a row and are counted off in groups of `n_head / n_kv_head`. The first group reads
# the first set of keys and values, the second group the second: head h reads set `h // group`. With four
# query heads and two sets:
#
# | query head | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | reads set | 0 | 0 | 1 | 1 |
#
# To compute with it, make as many heads of keys and values as there are of queries, by writing each set down
# `group` times. PyTorch has two functions for writing things down several times, and one of them is wrong here.
# The order 0, 0, 1, 1 says every *entry* twice; the order 0, 1, 0, 1 says the whole *row* twice. With the second,
# every shape is right, the loss falls, and a model whose weights came from elsewhere talks nonsense.
#
# ![Four query heads over two sets: heads 0 and 1 read set 0, heads 2 and 3 read set 1. A token alone comes out as
# 10, 10, 20, 20; tiled it would be 10, 20, 10, 20](figures/02_grouped_query_attention.svg)
#
# One number decides what you have:
#
# | n_kv_head | name | sets kept |
# |---|---|---|
# | n_head | multi-head attention | one for each query head |
# | between | grouped-query attention | one for each group |
# | 1 | multi-query attention | one for all |
#
# Both ends hide the mistake. With as many sets as heads, a group has one head and nothing is repeated; with a
# single set, both orders are 0, 0, 0, 0. Test in the middle, and with sizes that are not all 2.
#
# ## The narrow layer
#
# `kv` makes `2 · n_kv_head · hd` channels of every token: first all keys, then all values.
#
# ```text
# x           (B, T, C)
# kv(x)       (B, T, 2·n_kv_head·hd)
#
# first half  k: set 0, set 1, …
# second half v: set 0, set 1, …
# ```
#
# The width of a head is C / `n_head`, for queries, keys and values alike: a set is exactly as wide as the heads
# that read it. What shrinks is how many sets there are. So √hd is what you divide by, as always.
#
# The smallest case again: one token, four query heads, two sets, hd = 1, and `proj` passes everything on. A token
# alone sees itself with weight 1, whatever the scores are. Say set 0 has the value 10 for it and set 1 the
# value 20. Then it carries `[10, 10, 20, 20]`: two heads have read set 0 and two have read set 1.
#
# ## What lurks
#
# - **A new axis goes in front, or behind?** Who repeats by hand, with `expand`, inserts an axis and fuses it with
#   the heads. Behind the sets: 0, 0, 1, 1. In front of them: 0, 1, 0, 1.
# - **Two counts to refuse.** `n_head` must divide `n_embd`, and `n_kv_head` must divide `n_head`. Four sets for
#   six heads is no group at all; say so when the module is made, with both numbers.
# - **`repeat_interleave` without an axis** flattens everything first. Name the axis.
# - The heads of queries are not touched: they are cut, asked, and joined as before.
#
# (Multi-query attention is from Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, 2019; groups
# are from Ainslie et al., *GQA*, 2023. Llama 2 70B, Llama 3 and Mistral 7B keep 8 sets.)

# %% [markdown]
# ### See for yourself: `GroupedQueryAttention`
#
# The three layers and what is refused; the token alone, which tells the two orders apart; and the past, which does
# not notice an edited future.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(2)
    layer = GroupedQueryAttention(n_embd=48, n_head=6, n_kv_head=2, block_size=16).eval()
    owned = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert owned == {"q.weight": (48, 48), "kv.weight": (32, 48), "proj.weight": (48, 48)}, (
        f"three weights are expected, kv of 2 · 2 · 8 = 32 rows; yours: {owned}"
    )
    for length in (16, 5, 1):
        shape = tuple(layer(torch.randn(3, length, 48)).shape)
        assert shape == (3, length, 48), f"(3, {length}, 48) should keep its shape, yours is {shape}"
    print("GroupedQueryAttention: three weights, any T up to 16")

    for what, refused in (
        ("48 channels in 5 heads", lambda: GroupedQueryAttention(48, 5, 1, 16)),
        ("6 heads with 4 sets", lambda: GroupedQueryAttention(48, 6, 4, 16)),
        ("17 tokens in a block of 16", lambda: layer(torch.randn(1, 17, 48))),
    ):
        try:
            refused()
        except (ValueError, AssertionError, RuntimeError) as error:
            print(f"GroupedQueryAttention refuses {what}: {error}")
        else:
            raise AssertionError(f"{what} went through; the docstring asks for a ValueError")

# %% tags=["check"]
if __name__ == "__main__":
    alone = GroupedQueryAttention(n_embd=4, n_head=4, n_kv_head=2, block_size=8).eval()
    tens = torch.zeros(4, 4)
    tens[2, 0], tens[3, 1] = 10.0, 10.0  # rows 0 and 1 make keys, rows 2 and 3 the two values
    alone.load_state_dict({"kv.weight": tens, "proj.weight": torch.eye(4)}, strict=False)
    told = alone(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]]))[0, 0].tolist()
    assert told != [10.0, 20.0, 10.0, 20.0], (
        "heads 0, 1, 2, 3 read sets 0, 1, 0, 1: the row is repeated, not its entries"
    )
    assert told == [10.0, 10.0, 20.0, 20.0], f"a token alone should carry [10, 10, 20, 20]; yours carries {told}"
    print("GroupedQueryAttention: heads 0 and 1 read set 0, heads 2 and 3 read set 1")

    before = torch.randn(1, 9, 48)
    after = before.clone()
    after[:, 6:] = torch.randn(1, 3, 48)
    moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
    assert moved[:6].max() < 1e-6, "tokens 0…5 changed when tokens 6…8 were rewritten: somebody sees the future"
    assert moved[6:].min() > 1e-6, "tokens 6…8 were rewritten and their output stayed: nobody sees the present"
    print("GroupedQueryAttention: edit the future, the past stays")

# %% [markdown]
# ### Predict before you run
#
# GPT-2 small is 768 channels wide and has 12 heads. Give it 4 sets of keys and values in place of 12. What is left
# of the attention's parameters: a third, a half, two thirds?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        counts = [
            sum(p.numel() for p in GroupedQueryAttention(768, 12, sets, block_size=8).parameters()) for sets in (12, 4)
        ]
    except NotImplementedError:
        print("GroupedQueryAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(
            f"{counts[1]:,} of {counts[0]:,}, two thirds: q and proj keep their C² each, and kv shrinks from 2C² to ⅔C²"
        )

# %% [markdown]
# ## Your turn: `kv_cache_bytes`
#
# The parameters are not the point, though. A model that writes, token by token, keeps the keys and values of all
# tokens so far, so that it need not compute them again: the *KV cache*, which you build in exercise 4. It is kept in
# every layer, and it grows with every token. How many bytes are that?
#
# Llama 2 70B has 80 layers, 64 query heads of 128 channels, and two bytes for a number. For one sequence of 4096
# tokens:
#
# | n_kv_head | cache |
# |---|---|
# | 64 | 10,737,418,240 bytes, 10 GiB |
# | 8, as it was built | 1,342,177,280 bytes, 1.25 GiB |
# | 1 | 167,772,160 bytes, 160 MiB |
#
# Ten sequences at once with the first line are 100 GiB, which no single card of 80 GiB holds, and the weights are not
# even counted. `n_head` is an argument, and in the end it does not matter. Why not?


# %% tags=["solution"]
def kv_cache_bytes(n_layer: int, n_head: int, n_kv_head: int, head_dim: int, T: int, bytes_per_number: int = 2) -> int:
    """Count the bytes of one sequence's keys and values, in all layers.

    Args:
        n_layer: Attention layers of the model.
        n_head: Query heads of each layer.
        n_kv_head: Heads of keys and values of each layer.
        head_dim: Channels of each head.
        T: Tokens of the sequence.
        bytes_per_number: How many bytes one number takes: 2 in bfloat16.

    Returns:
        The number of bytes, a Python int.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `kv_cache_bytes`
#
# The three lines of the table, and that `n_head` changes nothing.

# %% tags=["check"]
if __name__ == "__main__":
    for sets, expected in ((64, 10_737_418_240), (8, 1_342_177_280), (1, 167_772_160)):
        count = kv_cache_bytes(80, 64, sets, 128, 4096)
        assert type(count) is int, f"an int is expected, yours is a {type(count).__name__}"
        assert count == expected, f"with {sets} sets {expected:,} bytes are expected; yours are {count:,}"
    assert kv_cache_bytes(80, 128, 8, 128, 4096) == expected * 8, "more query heads should not need a larger cache"
    assert kv_cache_bytes(80, 64, 8, 128, 4096, bytes_per_number=4) == expected * 16, "4 bytes a number: twice as much"
    print("kv_cache_bytes: 10 GiB, 1.25 GiB, 160 MiB")

# %% [markdown]
# ### Predict before you run: the cache
#
# An answer of 4096 tokens fits into 1.25 GiB. Somebody halves the number of query heads, somebody else halves the
# number of sets, a third halves the length. Whose cache shrinks, and by how much?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        shares = [
            kv_cache_bytes(80, heads, sets, 128, T) / kv_cache_bytes(80, 64, 8, 128, 4096)
            for heads, sets, T in ((32, 8, 4096), (64, 4, 4096), (64, 8, 2048))
        ]
    except NotImplementedError:
        print("kv_cache_bytes is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"to {shares[0]:g}, {shares[1]:g} and {shares[2]:g} of it. A query is asked once and forgotten;")
        print("keys and values are what the next token wants to see again")

# %% [markdown]
# ## Onward
#
# Heads now share what they read. None of them knows yet how far away it was written:
# [3 · Rotary positions](03_rotary.ipynb).
