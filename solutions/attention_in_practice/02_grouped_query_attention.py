# %% [markdown]
# # 2 · Grouped queries
#
# *About 45 minutes. You need: the first assignment up to its exercise 7, the fused QKV. After this:
# [3 · Rotary positions](03_rotary.ipynb).*
#
# A model that writes text keeps the keys and values of all tokens so far (exercise 4 says why), and they take much
# memory. Must twelve query heads really have twelve heads of keys and values? Many large models of today say no:
# several query heads share a pair, one head of keys and one of values. This page calls it a *set*.
#
# ## Who reads which set
#
# Divide the query heads into groups of `group = n_head // n_kv_head` heads, in order. The first group reads the first
# set, the second group reads the second. So query head h reads set `h // group`. With four query heads and two sets:
#
# | query head | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | reads set | 0 | 0 | 1 | 1 |
#
# ## The narrow layer
#
# Queries have a layer of their own, `q`, which is as wide as ever. Keys and values come from a narrower one, `kv`. It
# makes `2 · n_kv_head · hd` channels of every token: first all keys, then all values.
#
# ```text
# x           (B, T, C)
# kv(x)       (B, T, 2·n_kv_head·hd)
#
# first half  k: set 0, set 1, …
# second half v: set 0, set 1, …
# ```
#
# A set is just as wide as the heads that read it: hd = C / `n_head` channels. So you divide scores by √hd, as always.
#
# ## From sets to heads
#
# Scores need as many heads of keys as of queries. So repeat each set `group` times, along the axis of the heads.
# PyTorch has two functions that repeat, and their orders differ:
#
# | order of the sets | what is repeated |
# |---|---|
# | 0, 0, 1, 1 | each set, before the next: right |
# | 0, 1, 0, 1 | the whole list of sets: wrong here |
#
# With the wrong order every shape is right, and training goes as usual. But a model whose weights come from elsewhere
# writes nonsense, because its heads read the wrong sets.
#
# ![Four query heads over two sets: heads 0 and 1 read set 0, heads 2 and 3 read set 1. A token alone comes out as 10,
# 10, 20, 20; with the whole row repeated it would be 10, 20, 10, 20](figures/02_grouped_query_attention.svg)
#
# ## Your turn: `GroupedQueryAttention`
#
# Start from your module of the fused QKV. Two things change: the layers `q` and `kv` take the place of one, and the
# sets are repeated before the scores.
#
# - **Refuse wrong counts** when the module is made. `n_head` must divide `n_embd`, and `n_kv_head` must divide
#   `n_head`. Six heads cannot share four sets evenly.
# - **Name the axis.** `repeat_interleave` without one flattens the whole tensor first.
# - **If you use `expand`,** add the new axis *behind* the sets, then join the two. In front of them you get 0, 1, 0, 1.
#
# ## What you need of PyTorch
#
# - `x.repeat_interleave(2, dim=…)`: a, b becomes a, a, b, b along that axis.
# - `x.chunk(n, dim=…)`: n pieces. `x.split(n, dim=…)`: pieces of size n.
# - `a // b`: division without the remainder, a whole number.

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
        """Make the three layers and the causal mask.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many query heads share the channels evenly.
            n_kv_head: How many heads of keys and values there are. Each serves n_head / n_kv_head query heads.
            block_size: The most tokens that forward accepts.

        Raises:
            ValueError: n_head does not divide n_embd, or n_kv_head does not divide n_head; the message names both.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        if n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} cannot be shared out evenly among n_kv_head = {n_kv_head}")
        self.n_head = n_head
        self.n_kv_head = n_kv_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        visible = torch.ones(block_size, block_size, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)  # True where the query may look
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token attend to itself and the tokens before it.

        Query head h reads the keys and values of set h // group, where group = n_head // n_kv_head.

        Args:
            x: (B, T, C), floating point, T at most block_size. Not changed.

        Returns:
            (B, T, C), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds block_size; the message names both numbers.
        """
        ### BEGIN SOLUTION
        B, T, C = x.shape
        if self.block_size < T:
            raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")

        k, v = self.kv(x).chunk(2, dim=-1)  # (B, T, n_kv_head · hd) each
        q = self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2)  # (B, n_kv_head, T, hd)
        v = v.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2)  # (B, n_kv_head, T, hd)

        group = self.n_head // self.n_kv_head
        k = k.repeat_interleave(group, dim=1)  # (B, nh, T, hd): heads 0, 0, …, 1, 1, …
        v = v.repeat_interleave(group, dim=1)  # (B, nh, T, hd)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)
        scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)
        y = scores.softmax(dim=-1) @ v  # (B, nh, T, hd)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))  # (B, T, C)
        ### END SOLUTION


# %% [markdown]
# ### See for yourself: `GroupedQueryAttention`
#
# First the three layers, and what is refused. Then a single token that tells the two orders apart: four query heads,
# two sets, hd = 1, and a `proj` that passes everything on. A token alone looks only at itself, with weight 1,
# whatever its scores are. Set 0 has the value 10 for it, and set 1 the value 20. So it must become
# `[10, 10, 20, 20]`. Last, the future is edited, and the past must stay.

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
        ("17 tokens with a block_size of 16", lambda: layer(torch.randn(1, 17, 48))),
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
    out = alone(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]]))[0, 0].tolist()
    assert out != [10.0, 20.0, 10.0, 20.0], (
        "heads 0, 1, 2, 3 read sets 0, 1, 0, 1: the row is repeated, not its entries"
    )
    assert out == [10.0, 10.0, 20.0, 20.0], f"a token alone should become [10, 10, 20, 20]; yours is {out}"
    print("GroupedQueryAttention: heads 0 and 1 read set 0, heads 2 and 3 read set 1")

    before = torch.randn(1, 9, 48)
    after = before.clone()
    after[:, 6:] = torch.randn(1, 3, 48)
    moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
    assert moved[:6].max() < 1e-6, "tokens 0…5 changed when tokens 6…8 were rewritten: the future leaks into the past"
    assert moved[6:].min() > 1e-6, "tokens 6…8 were rewritten and their output stayed: a token must see itself"
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
# ## Three names, and why to test in the middle
#
# How many sets there are gives the method its name:
#
# | n_kv_head | name | sets |
# |---|---|---|
# | n_head | multi-head attention | one for each query head |
# | between | grouped-query attention | one for each group |
# | 1 | multi-query attention | one for all |
#
# The first and the last row hide a wrong order. With as many sets as heads, each group has one head, and nothing is
# repeated. With a single set, both orders are 0, 0, 0, 0. So test with a number between, as the check above does.

# %% [markdown]
# ## Your turn: `kv_cache_bytes`
#
# Saving parameters is not the main gain. While a model writes, it keeps the keys and values of all tokens so far, so
# that it need not compute them again. This is the *KV cache*, and you build it in exercise 4. Every layer has one,
# and it grows with every token. How many bytes is that?
#
# Take Llama 2 70B (70 billion parameters): 80 layers, 64 query heads of 128 channels, and two bytes for a number. For
# one sequence of 4096 tokens:
#
# | n_kv_head | cache |
# |---|---|
# | 64 | 10,737,418,240 bytes, 10 GiB |
# | 8, as it was built | 1,342,177,280 bytes, 1.25 GiB |
# | 1 | 167,772,160 bytes, 160 MiB |
#
# Ten such sequences with 64 sets each need 100 GiB. No single GPU with 80 GiB of memory holds that, and the weights
# are not even counted. `n_head` is one of the arguments, but the result does not depend on it. Why not?


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
    ### BEGIN SOLUTION
    numbers = 2 * n_layer * n_kv_head * head_dim * T  # a key and a value for each token, set and layer
    return numbers * bytes_per_number
    ### END SOLUTION


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
# The cache of 4096 tokens with 8 sets takes 1.25 GiB. Now change one thing: halve the number of query heads, or the
# number of sets, or the length. In which of the three cases does the cache shrink, and to what share?

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
# ## Sources
#
# One set for all heads is from Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*
# ([2019](https://arxiv.org/abs/1911.02150)). Groups are from Ainslie and others, *GQA*
# ([2023](https://arxiv.org/abs/2305.13245)), who found answers nearly as good as with one set for each head. Llama 2
# 70B ([Touvron and others, 2023](https://arxiv.org/abs/2307.09288)), Llama 3
# ([2024](https://arxiv.org/abs/2407.21783)) and Mistral 7B ([2023](https://arxiv.org/abs/2310.06825)) have 8 sets.
# The sizes of Llama 2 70B are those of the settings that come with its weights.
#
# ## Onward
#
# Your heads now share what they read. None of them knows yet how far away a token stands:
# [3 · Rotary positions](03_rotary.ipynb).
