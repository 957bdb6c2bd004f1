# %% [markdown]
# # 4 · The reshape dance
#
# *About 40 minutes. You need: shapes and axes; no attention yet. After this:
# [5 · The weight split](05_weight_split.ipynb).*
#
# Take the sentence *The letters in the drawer smell of rain*. The word *smell* has to find *letters*, far
# back, to know that it is plural; it would also like a glance at *drawer*, which is close by. One head has
# one softmax, and one softmax is one focus: whatever *smell* gives to the one it takes from the other. So a
# transformer keeps several heads, each with a few channels of its own, and lets them look in different
# directions at the same time (Vaswani et al. 2017).
#
# Before they can look, the channels must be dealt out to them. That takes two moves, known as the reshape
# dance. They are two short calls, and the most treacherous in the course: done wrong, **the shapes look
# right, the code runs, and the model learns garbage.**
#
# ## What we have and what we want
#
# B = 2 sequences, T = 8 positions, C = 64 channels, n_head = 4. Each head gets head_dim hd = 64 / 4 = 16
# channels: head 0 the channels 0–15 of *every* position, head 1 the channels 16–31, and so on.
#
# ```text
# │  0–15  │ 16–31  │ 32–47  │ 48–63  │
#   head 0   head 1   head 2   head 3
#
# have  (B, T, C)        (2, 8, 64)
# want  (B, nh, T, hd)   (2, 4, 8, 16)
# ```
#
# Why must the heads stand before the positions? Because `@` multiplies the last two dimensions and treats
# all the others as a batch. With (T, hd) at the end, 2 · 4 = 8 independent little attentions run in one
# call, and no head ever meets another. With (nh, hd) at the end, the product would compare heads with heads
# at one position: tokens would never meet.
#
# ## The memory does not care about your shapes
#
# A tensor is one long tape of numbers with a note on how to read it. The note is the strides: how many
# numbers to skip for a step along each dimension. Our x of shape (2, 8, 64) has strides (512, 64, 1): its
# tape begins with the 64 channels of position 0, and then come those of position 1.
#
# Two tools change the note and leave the tape alone:
#
# - **view** reads the same tape, in the same order, in new dimensions. It can cut one dimension into two
#   *neighbouring* ones, or join two neighbours, and it never reorders anything.
# - **transpose** swaps two dimensions together with their strides. It reorders, still without moving a
#   number.
#
# Now the honest way: first cut the channel axis in place, so that each position holds its heads, then let
# heads and positions change seats.
#
# | tensor | shape | strides |
# |---|---|---|
# | x | (2, 8, 64) | (512, 64, 1) |
# | channels unpacked | (2, 8, 4, 16) | (512, 64, 16, 1) |
# | heads moved ahead | (2, 4, 8, 16) | (512, 16, 64, 1) |
#
# Read the last line: a step along the positions skips 64 numbers, to the *same* channels of the next
# position. Just as it should be.
#
# ## The shortcut that lies
#
# The shape you want is known, so why not view straight to it? You get (2, 4, 8, 16), and not a word of
# complaint. But the strides are now (512, 128, 16, 1): a step along the "positions" skips 16 numbers.
#
# | head 0 | right: channels | the shortcut: channels |
# |---|---|---|
# | position 0 | 0–15 of position 0 | 0–15 of position 0 |
# | position 1 | 0–15 of position 1 | 16–31 of position 0 (!) |
# | position 2 | 0–15 of position 2 | 32–47 of position 0 (!) |
#
# In small, with two heads of two channels, and the whole tape to look at:
#
# ![A tape of four positions with four channels each; the dance gives each head its own channels of every
# position, the shortcut gives head 0 all of positions a and b](figures/04_reshape_dance.svg)
#
# The first cell agrees, by luck, and so a glance at the first numbers will reassure you. In truth head 0
# was given the first 8 · 16 = 128 numbers of the tape: all of positions 0 and 1 and nothing else. Head 3
# has all of positions 6 and 7.
#
# It gets worse when the way back makes the matching mistake. Split and merge then undo each other
# *exactly*, and the attention in between is even causal, so two favourite tests pass. Yet the eight
# positions have fallen apart into four islands of two, and position 2 can never look at position 1. Do not
# test a split by undoing it. Test it by asking **where each number came from**, as the check below does.
#
# Another order that looks fine is to deal the channels out like cards, every fourth one to the same head.
# It has the right shape and keeps positions whole, but head h no longer owns a neighbouring block, and
# pretrained weights would end up in the wrong heads.
#
# ## When it does not divide
#
# 64 channels among 5 heads would be 12.8 each. GPT-2 small has 768 = 12 · 64; somebody with 768 and 7
# should hear of it at once and in plain words, with both numbers. Mind that `//` rounds down without a
# sound.

# %% tags=["setup"]
import torch

# %% [markdown]
# ## Your turn: `split_heads`
#
# Cut, then swap. Take B, T and C from the tensor you are given.


# %% tags=["solution"]
def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """Deal the channels out to the heads, a block of neighbours to each.

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
# Every number of this x is its own address: 10000 · batch + 100 · position + channel. So 10523 lives in
# batch 1, at position 5, in channel 23, and you can see at once who has wandered off.

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
# The same x, of 2 · 8 · 64 = 1,024 numbers. The shortcut and your function give the same shape. How many
# numbers does the shortcut have in the right place: none, a few, half?

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
# ## The way back
#
# After attention each head has its answer, (T, hd), and the answers are to lie side by side again: at each
# position first head 0's 16 channels, then head 1's, up to C = 64. It is the same dance in reverse: the
# heads go back beside the channels, and then the two are joined.
#
# This time there is a catch. After the swap the note says strides (512, 16, 128, 1) for a fresh y of shape
# (2, 4, 8, 16): the numbers of one position are scattered over the tape, 128 apart. No note with a single
# stride can read them as 64 neighbours, so `view` gives up:
#
# > RuntimeError: view size is not compatible with input tensor's size and stride
#
# Somebody must really copy the numbers into their new order, for the first time in this story. There is a
# method that does just that and one that does it if needed; find either. An error is the friendly outcome
# here. Whoever makes it go away by leaving out the swap has joined 64 numbers of one head and several
# positions, and is back among the silent bugs.
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
# Addresses again, this time as the heads hold them. The round trip comes last, because alone it proves
# little.

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
# Split, merge, and no number lost. Put attention between the two: go on with
# [5 · The weight split](05_weight_split.ipynb).
