# %% [markdown]
# # 4 · The reshape dance
#
# *About 40 minutes. You need: shapes and axes; no attention yet. After this:
# [5 · The weight split](05_weight_split.ipynb).*
#
# Take the sentence *The letters in the drawer smell of rain*. The word *smell* must find *letters* (what smells?) and
# *drawer* (where?). One head has one softmax, so what *smell* gives to one word it takes from the other. With several
# heads, each with a few channels of its own, it can look at both (Vaswani et al. 2017).
#
# First the channels must be divided among the heads. That takes two short calls, the reshape dance. Done wrong, **the
# shapes look right, the code runs, and the model learns garbage.**
#
# ## What we have and what we want
#
# B = 2 sequences, T = 8 positions, C = 64 channels, nh = n_head = 4. Each head gets hd = 64 / 4 = 16 channels
# (`head_dim`) of *every* position:
#
# ```text
# │  0–15  │ 16–31  │ 32–47  │ 48–63  │
#   head 0   head 1   head 2   head 3
#
# have  (B, T, C)        (2, 8, 64)
# want  (B, nh, T, hd)   (2, 4, 8, 16)
# ```
#
# Why the heads first? `@` multiplies the last two dimensions and treats all others as a batch. With (T, hd) at the
# end, 2 · 4 = 8 independent attentions run in one call. With (nh, hd) at the end, you would compare heads, not tokens.
#
# ## The memory does not care about your shapes
#
# A tensor is one long tape of numbers. Each dimension has a *stride*: how many numbers one step goes on. Our x has
# strides (512, 64, 1): the next sequence is 512 numbers on, the next position 64, the next channel 1.
#
# Two tools change the strides and leave the tape alone:
#
# - **view** reads the same tape, in the same order, in new dimensions. It can cut one dimension into two
#   *neighbouring* ones, or join two neighbours. It never reorders.
# - **transpose** swaps two dimensions together with their strides. It changes the reading order; no number moves.
#
# So first cut the channel axis where it is. Then swap heads and positions.
#
# | tensor | shape | strides |
# |---|---|---|
# | x | (2, 8, 64) | (512, 64, 1) |
# | channels cut | (2, 8, 4, 16) | (512, 64, 16, 1) |
# | heads moved ahead | (2, 4, 8, 16) | (512, 16, 64, 1) |
#
# In the last line, a step along the positions goes 64 numbers on, to the *same* channels of the next position.
#
# ## What you need of PyTorch
#
# - `x.view(2, 3, 4)`: the same numbers in the same order, read in other axes.
# - `x.transpose(1, 2)`: two axes change places, and no number moves in memory.
# - `x.contiguous()`: a copy whose numbers lie in the order of its axes.

# %% tags=["setup"]
import torch

# %% [markdown]
# ## Your turn: `split_heads`
#
# Cut, then swap. Take B, T and C from the tensor you are given.
#
# Refuse a number of heads that does not divide C, and name both numbers: 64 channels for 5 heads would be 12.8 each.
# (`//` rounds down without a warning.)


# %% tags=["solution"]
def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """Divide the channels among the heads: each head gets a block of neighbours.

    Args:
        x: (B, T, C), any dtype.
        n_head: number of heads, at least 1; must divide C.

    Returns:
        (B, n_head, T, C // n_head): head h holds channels h·hd … (h+1)·hd − 1 of every position.

    Raises:
        ValueError: if n_head does not divide C; the message names both numbers.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `split_heads`
#
# Every number of this x is its own address: 10000 · batch + 100 · position + channel. So 10523 lives in batch 1, at
# position 5, in channel 23, and you can see at once which number is in the wrong place.

# %% tags=["check"]
if __name__ == "__main__":
    batch = torch.arange(2).view(2, 1, 1)
    position = torch.arange(8).view(1, 8, 1)
    channel = torch.arange(64).view(1, 1, 64)
    x = (10000 * batch + 100 * position + channel).float()  # (2, 8, 64), each number its address

    heads = split_heads(x, 4)
    assert heads.shape == (2, 4, 8, 16), f"(B, nh, T, hd) should be (2, 4, 8, 16), not {tuple(heads.shape)}"
    for b, h, t in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 1, 5), (1, 3, 7)):
        start = 10000 * b + 100 * t + 16 * h
        found = heads[b, h, t].tolist()
        assert found == list(range(start, start + 16)), (
            f"batch {b}, head {h}, position {t} should hold channels {16 * h}…{16 * h + 15} of position {t}, "
            f"that is {start}…{start + 15}; yours begins {found[:3]} and ends with {found[-1]}"
        )
    try:
        split_heads(x, 5)
        refused = False
    except (ValueError, AssertionError):
        refused = True
    except RuntimeError:
        refused = False
    assert refused, "64 channels do not divide among 5 heads: refuse with a ValueError that names both numbers"
    print("split_heads: every number is where its address says")

# %% [markdown]
# ### Predict before you run
#
# There is a shortcut: `view` straight to (2, 4, 8, 16), without the swap. It gives the same shape as your function.
# The same x has 2 · 8 · 64 = 1,024 numbers. How many of them does the shortcut have in the right place: none, a few,
# half?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        x = torch.arange(1024).view(2, 8, 64)
        agree = int((split_heads(x, 4) == x.reshape(2, 4, 8, 16)).sum())
    except NotImplementedError:
        print("split_heads is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"{agree} of 1,024 numbers: the first 16 and the last 16 of each sequence, and nothing between them")

# %% [markdown]
# ## The shortcut that lies
#
# The shape of the shortcut is right, and there is no error. But its strides are (512, 128, 16, 1): a step along the
# "positions" goes only 16 numbers on.
#
# | head 0 | right: channels | the shortcut: channels |
# |---|---|---|
# | position 0 | 0–15 of position 0 | 0–15 of position 0 |
# | position 1 | 0–15 of position 1 | 16–31 of position 0 (!) |
# | position 2 | 0–15 of position 2 | 32–47 of position 0 (!) |
#
# Here it is in small, with two heads of two channels:
#
# ![A tape of four positions with four channels each; the dance gives each head its own channels of every position,
# the shortcut gives head 0 all of positions a and b](figures/04_reshape_dance.svg)
#
# The first row of the table agrees by luck, so do not trust the first few numbers. In truth head 0 got the
# first 8 · 16 = 128 numbers of the tape: all of positions 0 and 1 and nothing else. Head 3 has all of positions 6 and
# 7.
#
# It gets worse when the way back repeats the mistake. Then split and merge undo each other *exactly*, and the
# attention in between is even causal. So two common tests pass. Yet the eight positions have fallen apart into four
# pairs, and position 2 can never look at position 1. So do not test a split by undoing it. Test it by asking **where
# each number came from**, as the check above does.
#
# There is another order that looks fine: deal the channels out like cards, every fourth one to the same head. It has
# the right shape and keeps positions whole. But head h no longer has a block of neighbours, and weights that were
# trained elsewhere would end up in the wrong heads.
#
# ## The way back
#
# After attention each head has its answer, (T, hd), and we want the heads' answers side by side again: at each
# position first head 0's 16 channels, then head 1's, up to C = 64. It is the same dance in reverse: the heads go back
# beside the channels, and then the two are joined.
#
# This time there is a catch. After the swap the strides are (512, 16, 128, 1) for a newly computed y of shape (2, 4,
# 8, 16): the numbers of one position are scattered over the tape, head by head, 128 apart. No single stride can read
# them as 64 neighbours, so `view` gives up:
#
# > RuntimeError: view size is not compatible with input tensor's size and stride
#
# Here the numbers must really be copied into their new order. One method puts them in order, and then `view` works;
# another method does both. Either is right. Be glad of the error. If you make it go away by leaving out the swap,
# each row holds 64 numbers of one head, from several positions, and there is no error.
#
# ## Your turn: `merge_heads`


# %% tags=["solution"]
def merge_heads(y: torch.Tensor) -> torch.Tensor:
    """Lay the heads' answers side by side again: the inverse of split_heads.

    Args:
        y: (B, nh, T, hd), any dtype.

    Returns:
        (B, T, nh·hd): channels h·hd … (h+1)·hd − 1 of every position come from head h.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `merge_heads`
#
# Addresses again, this time as the heads hold them. The round trip comes last, because alone it proves little.

# %% tags=["check"]
if __name__ == "__main__":
    b = torch.arange(2).view(2, 1, 1, 1)
    h = torch.arange(4).view(1, 4, 1, 1)
    t = torch.arange(8).view(1, 1, 8, 1)
    d = torch.arange(16).view(1, 1, 1, 16)
    answers = (10000 * b + 100 * t + 16 * h + d).float()  # (2, 4, 8, 16), each number its address

    merged = merge_heads(answers)
    assert merged.shape == (2, 8, 64), f"(B, T, C) should be (2, 8, 64), not {tuple(merged.shape)}"
    for b, t in ((0, 0), (0, 1), (1, 5)):
        start = 10000 * b + 100 * t
        found = merged[b, t].tolist()
        assert found == list(range(start, start + 64)), (
            f"batch {b}, position {t} should read {start}…{start + 63}, the heads in order; "
            f"in yours channel 1 is {found[1]:.0f}, channel 16 {found[16]:.0f} and channel 63 {found[63]:.0f}"
        )
    there_and_back = torch.randn(3, 5, 12)
    assert torch.equal(merge_heads(split_heads(there_and_back, 4)), there_and_back), (
        "split and merge should undo each other"
    )
    print("merge_heads: home again, in order")

# %% [markdown]
# ## Onward
#
# Split, merge, and no number is lost. Put attention between the two: go on with
# [5 · The weight split](05_weight_split.ipynb).
