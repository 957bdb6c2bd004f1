# %% [markdown]
# # 6 · One head at a time
#
# *About 35 minutes. You need: [3 · Self-attention](03_self_attention.ipynb), and, if possible,
# [5 · The weight split](05_weight_split.ipynb). After this: [7 · The fused QKV](07_fused_qkv.ipynb).*
#
# In exercise 5 all heads went through one batched product. Is a `(B, nh, T, hd)` tensor *really* `nh` independent
# attentions? Or did you mix them somewhere between two transposes?
#
# To be sure, write it a second time, so plainly that you can see that it is right, and compare. A slow version that
# you trust is called an *oracle*. Yours is a Python loop over the heads. In it no tensor has a head axis, so nothing
# can be reshaped wrongly.
#
# ## What you are given
#
# Your function gets `mha`, a module that holds weights and has no forward pass:
#
# | name | what it is |
# |---|---|
# | `mha.qkv` | Linear, C → 3C, no bias; its weight is (3C, C) |
# | `mha.proj` | Linear, C → C, no bias; its weight is (C, C) |
# | `mha.n_head` | nh |
# | `mha.head_dim` | hd = C // nh |
#
# The three projections are stacked in one weight, *queries, then keys, then values*, C rows each. Here with C = 4 and
# two heads:
#
# ![The stacked weight of twelve rows: head 1 owns the last two rows of each block of four, and its answer stands
# beside head 0's](figures/06_mha_by_loop.svg)
#
# (The picture uses the example after the function.)
#
# ## Two cuts
#
# There are two cuts, and they are not the same cut.
#
# 1. The *weight* is cut along its rows into three. That makes q, k and v.
# 2. Each *projected tensor* is cut along its channels into `nh`. That makes heads: head h has channels
#    `h·hd … (h+1)·hd − 1`. For C = 64 and 4 heads, head 2 has channels 32 … 47 of q, of k and of v.
#
# Then each head does what you know from exercise 3: scores over √hd, mask, softmax, weights times v. Every token sees
# itself and its past. Build the mask for the T that came in, on the device of `x`; `mha` has none for you.
#
# The answers of the heads, (B, T, hd) each, go side by side, in order, into the output projection. They are not
# summed and not averaged: the projection mixes them, and it has to know which answer came from which head.
#
# If you multiply by hand, remember that `nn.Linear` keeps its weight as (out, in). The product needs it transposed.
# Where the weight is C × C, the wrong way round runs just as well, and gives you other numbers.
#
# ## What you need of PyTorch
#
# - `x[..., a:b]`: the channels from a to b − 1 of every token.
# - `x.split(n, dim=…)`: pieces of size n. `x.chunk(n, dim=…)`: n pieces.
# - `torch.cat(pieces, dim=…)`: joins a list of tensors along an axis.

# %% tags=["setup"]
import math

import torch
from torch import nn

# %% [markdown]
# ## Your turn: `mha_by_loop`
#
# It may be slow, but it must be obvious. Use the weights as they are, so that training reaches them.


# %% tags=["solution"]
def mha_by_loop(mha: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Compute causal multi-head attention one head after another.

    Args:
        mha: Holds qkv (Linear, C to 3C, no bias; rows stacked queries, keys, values), proj (Linear, C to C,
            no bias), n_head and head_dim, with C = n_head · head_dim. It has no forward pass.
        x: (B, T, C), in the dtype and on the device of the weights. Not changed.

    Returns:
        (B, T, C): the heads' answers side by side, in order, then projected. No dropout.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `mha_by_loop`
#
# There is no batched module in this file to compare with (you write one in exercise 7). So the check uses weights
# whose answer is known beforehand. The first ones you can follow by hand.
#
# C = 4, two heads of 2, three tokens. The queries and the values are the tokens themselves. Each head sees two
# channels of a token, and the token's key there is (second channel, 0). So the dot product of a query and a key is
# one product: *the first channel of the token that asks, times the second channel of the token that is asked*.
#
# ```text
#              head 0    head 1
#   token 0    [1  0  |  2  1]
#   token 1    [2  1  |  1  0]
#   token 2    [1  3  |  0  2]
# ```
#
# Token 2 in head 0: its first channel is 1, and the second channels so far are 0, 1, 3. Scores 0, 1, 3; divided by √2
# they are 0, 0.7071, 2.1213; softmax makes 0.0879, 0.1784, 0.7337. The weighted values come to (1.1784, 2.3794).
#
# Token 2 in head 1: its first channel is 0, so all three scores are 0, and the weights are ⅓, ⅓, ⅓. It gets the plain
# mean of (2, 1), (1, 0), (0, 2), which is (1, 1). *A query of zeros asks nothing, so it gets the average.* That makes
# a good test, and the check uses it as well.
#
# | token | head 0 says | head 1 says |
# |---|---|---|
# | 0 | 1, 0 | 2, 1 |
# | 1 | 1.8044, 0.8044 | 1.6698, 0.6698 |
# | 2 | 1.1784, 2.3794 | 1, 1 |
#
# Each row of that table, read from left to right, is what goes into the output projection.

# %% tags=["check"]
if __name__ == "__main__":

    def make_module(query, key, value, proj, n_head):
        """Return a module of weights as the exercise describes it."""
        width = proj.shape[0]
        made = nn.Module()
        made.qkv, made.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        made.load_state_dict({"qkv.weight": torch.cat([query, key, value]), "proj.weight": proj})
        made.n_head, made.head_dim = n_head, width // n_head
        return made

    def rounded(row):
        """Return a row of numbers, fit to be read."""
        return [round(number, 4) for number in row.tolist()]

    tokens = torch.tensor([[[1.0, 0, 2, 1], [2, 1, 1, 0], [1, 3, 0, 2]]])
    second_channel = torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    out = mha_by_loop(make_module(torch.eye(4), second_channel, torch.eye(4), torch.eye(4), n_head=2), tokens)
    assert out.shape == (1, 3, 4), f"(1, 3, 4) in should be (1, 3, 4) out, yours is {tuple(out.shape)}"
    table = torch.tensor([[1, 0, 2, 1], [1.8044, 0.8044, 1.6698, 0.6698], [1.1784, 2.3794, 1, 1]])
    for token in range(3):
        assert torch.allclose(out[0, token], table[token], atol=1e-3), (
            f"token {token} should be {rounded(table[token])}, yours is {rounded(out[0, token])}: "
            "work through the lesson's table, then through the usual suspects below"
        )
    print("mha_by_loop: the table of three tokens, number for number")

    turned = torch.eye(4).roll(1, dims=1)  # output channel i reads joined channel i + 1
    out = mha_by_loop(make_module(torch.eye(4), second_channel, torch.eye(4), turned, n_head=2), tokens)
    assert torch.allclose(out[0], table.roll(-1, dims=1), atol=1e-3), (
        "with a projection that moves every channel one place to the left, the table should move "
        "one place to the left: look at how the output projection is applied"
    )
    print("mha_by_loop: the output projection the right way round")

    torch.manual_seed(6)
    x = torch.randn(2, 5, 12)
    random_w, zeros, eye = torch.randn(12, 12), torch.zeros(12, 12), torch.eye(12)
    out = mha_by_loop(make_module(zeros, random_w, eye, eye, n_head=3), x)
    for token in range(5):
        assert torch.allclose(out[:, token], x[:, : token + 1].mean(dim=1), atol=1e-5), (
            f"queries of zeros should give token {token} the plain mean of tokens 0…{token}: "
            "the mask, or the order of q, k, v?"
        )
    print("mha_by_loop: a query of zeros gets the average of the past")

    silent = torch.eye(12)
    silent[8:] = 0  # the last of three heads has no values
    full = mha_by_loop(make_module(random_w, random_w.T, eye, eye, n_head=3), x)
    out = mha_by_loop(make_module(random_w, random_w.T, silent, eye, n_head=3), x)
    assert out[..., 8:].abs().max() == 0, "head 2 was given no values, so channels 8…11 should be 0: heads in order?"
    assert torch.allclose(out[..., :8], full[..., :8], atol=1e-5), "silencing head 2 changed what heads 0 and 1 say"

    learner = make_module(random_w, random_w.T, eye, eye, n_head=3)
    mha_by_loop(learner, x).square().sum().backward()
    assert learner.qkv.weight.grad is not None, "no gradient reached qkv: was the weight detached on the way?"
    print("mha_by_loop: heads keep to themselves, and gradients find their way back")

# %% [markdown]
# ### The usual suspects
#
# When the loop and a batched module disagree, it is nearly always one of these, in this order:
#
# 1. **The scale.** Every score is a sum of `hd` products, so divide by √hd. For C = 64 and 4 heads that is 4, not √64
#    = 8.
# 2. **The cut of the stacked weight.** Rows, not columns; first all C rows of q, then k, then v; not head by head.
# 3. **A weight that is not transposed.** Look at the projection at the end as well.
# 4. **Dropout left on** in the module that you compare with. Call `.eval()` on it.
# 5. **The mask.** Each token sees itself and its past.
#
# And how close counts as equal? In float32 the two should differ by about 1e-7, since sums are taken in another
# order. Count a difference under 1e-5 as equal. 1e-2 is not "rounding": look for a suspect from the list.
#
# ### Why it works
#
# Head 1 never read a number of head 0, and head 0 none of head 1. *That* is what "independent" means, and in a loop
# you can see it. It also shows what heads are free to do: each may learn to look at something else. Nothing in the
# code says what to look at. You will read that one head learns grammar and another one meaning, but seldom with a
# measurement. In exercise 7 you see what eight heads of one small model really look at.
#
# ### Predict before you run
#
# A sentence that says the same word three times. The mask lets the first see one word, and the third see three. The
# weights are random. By how much do the three answers differ?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        mha = nn.Module()
        mha.qkv, mha.proj = nn.Linear(4, 12, bias=False), nn.Linear(4, 4, bias=False)
        mha.n_head, mha.head_dim = 2, 2
        answers = mha_by_loop(mha, torch.randn(1, 1, 4).repeat(1, 3, 1))[0].detach()
    except NotImplementedError:
        print("mha_by_loop is not written yet, so the answer waits. Keep your guess.")
    else:
        print(
            f"by {(answers - answers[0]).abs().max():.6f}: a mean of equal values is that value, however many there are"
        )

# %% [markdown]
# ## Onward
#
# Now you have an oracle. Use it on the fast version: the last cell of [7 · The fused QKV](07_fused_qkv.ipynb) runs
# your loop on your own batched module, and prints how far they are apart.
