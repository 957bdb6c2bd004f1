# %% [markdown]
# # 3 · Self-attention as a module
#
# *About 45 minutes. You need: [1 · Attention scores](01_attention_scores.ipynb), [2 · The causal
# mask](02_causal_mask.ipynb), and what an `nn.Module` is. After this:
# [4 · The reshape dance](04_reshape_dance.ipynb).*
#
# Functions cannot learn; modules can. Here the first two exercises become one `nn.Module`: one attention with learned
# weights, called a *head* (exercise 4 shows several), with a mask and dropout.
#
# ## Three projections of one input
#
# In *self*-attention queries, keys and values all come from the same x. Three learned matrices (*projections*) turn
# it into three vectors; each is an `nn.Linear` from d_in channels to d_out:
#
# ![x goes through W_query, W_key and W_value; q and k make the masked weights, and these mix
# v](figures/03_self_attention.svg)
#
# ```text
# x        (B, T, d_in)
# q, k, v  (B, T, d_out)
# scores   (B, T, T)
# weights  (B, T, T)
# answer   (B, T, d_out)
# ```
#
# The dot product of a query and a key runs over d_out channels, so divide the scores by the square root of *that*
# width. With d_in = d_out you cannot see the mistake; with 768 in and 64 out you would divide by 27.7 where 8 is
# right.
#
# ## Where the mask lives
#
# The mask depends on nothing but its size. So make it once, for the longest sequence that you accept
# (`context_length`), and in `forward` cut it to the T tokens that came. (Making it anew in each forward pass, on x's
# device, is right, too.)
#
# How should the module keep it?
#
# - *As a plain attribute* it stays behind when the weights move to the GPU (`.to("cuda")`), and the first forward
#   pass complains about two devices.
# - *As an `nn.Parameter`* it moves, but it counts as learned: training could change a mask of floats, and for a
#   boolean one PyTorch raises an error.
# - *As a **buffer*** it moves with the module and is not learned. Look up `register_buffer`.
#
# If T is larger than `context_length`, raise an error that names both. PyTorch does not do it for you: slicing past
# the end of a tensor is no error.
#
# ## Dropout, on the weights
#
# In training, each *attention weight* is struck out (set to 0) with probability p, and the others are multiplied by
# `1 / (1 − p)`, so that the average stays the same. In eval mode (`.eval()`, when training is over) nothing is struck
# out. `nn.Dropout` does that by itself; `F.dropout` does not know which mode your module is in until you tell it.
#
# ## Before you start
#
# - Call `super().__init__()` first. Otherwise the first layer you assign raises
#   `AttributeError: cannot assign module before Module.__init__() call`.
# - Keep your layers as attributes of the module. A layer in a plain list is not trained, not moved by `.to` and not
#   saved.
#
# ## What you need of PyTorch
#
# - `nn.Linear(a, b, bias=…)`: a layer from a channels to b. Call it like a function.
# - `self.register_buffer("name", tensor)`: the name comes first, and makes an attribute.
# - `nn.Dropout(p)`: drops in training mode alone. Call it, too.

# %% tags=["setup"]
import math

import torch
from torch import nn

# %% [markdown]
# ## Your turn: `CausalAttention`
#
# Write out the few lines of the first two exercises once more; you need nothing else from those files. Name the three
# layers as the docstring does, because the grader, which tests your code, loads its own weights into them.


# %% tags=["solution"]
class CausalAttention(nn.Module):
    """Attend with one causal head: three learned layers, none after the mix.

    Attributes:
        W_query: linear layer from d_in to d_out channels.
        W_key: the same, for the keys.
        W_value: the same, for the values.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float = 0.0, qkv_bias: bool = False
    ) -> None:
        """Set up the three projections, the dropout and the mask.

        Args:
            d_in: channels of an input token.
            d_out: channels of an output token, and the width of queries, keys and values.
            context_length: the largest number of tokens that a sequence may have.
            dropout: probability in [0, 1] that an attention weight is struck out, in training only.
            qkv_bias: whether the three projections have a bias.
        """
        ### BEGIN SOLUTION
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", mask)  # True: may look
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix each token's own value with those of the tokens before it.

        Args:
            x: tokens, (B, T, d_in), in the dtype and on the device of the weights; T at most context_length.

        Returns:
            Context vectors, (B, T, d_out).

        Raises:
            ValueError: if T is larger than context_length; the message names both numbers.
        """
        ### BEGIN SOLUTION
        T = x.shape[1]
        if self.context_length < T:
            raise ValueError(f"{T} tokens do not fit a context of {self.context_length}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)  # each (B, T, d_out)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))  # (B, T, T)
        return weights @ v  # (B, T, d_out)
        ### END SOLUTION


# %% [markdown]
# ### See for yourself: the numbers
#
# Set all three matrices to the identity (d_in = d_out = 3), and feed the six words of the first exercise. Then
# *journey* has the scaled scores 0.5510 with *Your* and 0.8631 with itself, and sees no other word. It gives them
# 0.4226 and 0.5774. The answer is (0.4993, 0.5657, 0.7572). Without the division by √3 the weights would be 0.3680
# and 0.6320; without the mask, the answer would mix all six words.
#
# The check does just that; the sentence is shorter than `context_length`, on purpose. Then comes a head with one
# channel in and four out: the second token's two scores, divided by √4, are 0 and log 3, so its shares are 1/4 and
# 3/4.

# %% tags=["check"]
if __name__ == "__main__":
    sentence = torch.tensor(
        [
            [
                [0.43, 0.15, 0.89],  # Your
                [0.55, 0.87, 0.66],  # journey
                [0.57, 0.85, 0.64],  # starts
                [0.22, 0.58, 0.33],  # with
                [0.77, 0.25, 0.10],  # one
                [0.05, 0.80, 0.55],  # step
            ]
        ]
    )
    head = CausalAttention(d_in=3, d_out=3, context_length=10)
    with torch.no_grad():
        for layer in (head.W_query, head.W_key, head.W_value):
            layer.weight.copy_(torch.eye(3))
        context = head(sentence)
    assert context.shape == (1, 6, 3), f"(B, T, d_out) should be (1, 6, 3), not {tuple(context.shape)}"
    for word, row in (
        (0, [0.4300, 0.1500, 0.8900]),
        (1, [0.4993, 0.5657, 0.7572]),
        (5, [0.4219, 0.6231, 0.5507]),
    ):
        assert torch.allclose(context[0, word], torch.tensor(row), atol=2e-4), (
            f"word {word} should become {row}; yours is {context[0, word]}. Mask? Scale? Softmax?"
        )

    head = CausalAttention(d_in=1, d_out=4, context_length=2)
    length = math.sqrt(2 * math.log(3))
    with torch.no_grad():
        for layer in (head.W_query, head.W_key):
            layer.weight.copy_(torch.tensor([[1.0], [0.0], [0.0], [0.0]]))
        head.W_value.weight.copy_(torch.tensor([[4.0], [8.0], [12.0], [16.0]]) / length)
        answer = head(torch.tensor([[[0.0], [length]]]))[0, 1]
    assert torch.allclose(answer, torch.tensor([3.0, 6.0, 9.0, 12.0]), atol=1e-4), (
        f"one channel in, four out: expected 3 6 9 12, got {answer}. Over how many channels does a score sum?"
    )
    print("CausalAttention: the numbers of the lesson")

# %% [markdown]
# ### See for yourself: the habits
#
# What you expect of a module: the past does not change when the future is edited, a sequence that is too
# long is refused, only the three layers are learned, everything moves together, and dropout stops in eval mode.

# %% tags=["check"]
if __name__ == "__main__":
    head = CausalAttention(d_in=5, d_out=7, context_length=6).eval()
    before = torch.randn(2, 6, 5)
    after = before.clone()
    after[:, 4:] = torch.randn(2, 2, 5)
    with torch.no_grad():
        old, new = head(before), head(after)
    assert torch.allclose(old[:, :4], new[:, :4], atol=1e-6), "tokens 4 and 5 were edited, and an earlier one moved"
    assert not torch.allclose(old[:, 4:], new[:, 4:]), "tokens 4 and 5 were edited, and their own output did not move"

    try:
        head(torch.randn(2, 9, 5))
        refused = False
    except (ValueError, AssertionError, RuntimeError):
        refused = True
    assert refused, "nine tokens do not fit a context of six: say so, with a ValueError that names both"

    learned = sum(parameter.numel() for parameter in head.parameters())
    assert learned == 105, f"three layers of 5 × 7 make 105 parameters; yours has {learned}. Is the mask among them?"
    biased = sum(parameter.numel() for parameter in CausalAttention(5, 7, 6, qkv_bias=True).parameters())
    assert biased == 126, f"with qkv_bias=True there are 3 × 7 more, 126; yours has {biased}"

    stranded = False
    try:
        head.to("meta")(torch.empty(2, 4, 5, device="meta"))
    except RuntimeError as error:
        stranded = "expected device" in str(error)
    assert not stranded, "the module moved to another device, and some tensor stayed behind: is the mask a buffer?"

    half = CausalAttention(d_in=5, d_out=7, context_length=6, dropout=0.5)
    with torch.no_grad():
        is_off = torch.equal(half.eval()(before), half.eval()(before))
        is_on = not torch.allclose(half.train()(before), half.eval()(before))
        all_struck = CausalAttention(d_in=5, d_out=7, context_length=6, dropout=1.0).train()(before)
    assert is_off, "in eval mode the same input should give the same output: dropout is still on"
    assert is_on, "in training mode dropout=0.5 should change the output: is it used at all?"
    assert torch.equal(all_struck, torch.zeros(2, 6, 7)), "with every weight struck out nothing is left to mix: zeros"
    print("CausalAttention: good habits, too")

# %% [markdown]
# ### Why it works
#
# **Parameters.** Three matrices have 3 · d_in · d_out parameters. From 3 channels to 2 there are 18; at GPT-2's 768
# to 768 each matrix has 589,824. There is no projection after the mix: it would join the answers of several heads,
# and here there is only one.
#
# **A mask that is not cut.** A sentence shorter than `context_length` then fails with "The size of tensor a (6) must
# match the size of tensor b (4)". 6 is `context_length`, 4 your T; `masked_fill_` prints them swapped.
#
# **A T that is not refused.** With luck, the next line fails because two sizes do not fit. With a `context_length` of
# 1 there is no error at all: a (1, 1) mask broadcasts over everything, and every word sees the future.
#
# **Where dropout falls.** With p = 0.5 *journey*'s pair (0.4226, 0.5774) becomes one of these, each a quarter of the
# time:
#
# ```text
# (0.8452, 1.1548)      (0.8452, 0)
# (0, 1.1548)           (0, 0)
# ```
#
# So in training a row need not sum to 1. Dropout on the scores would be wrong: a struck-out score is a 0, and a score
# of 0 still gets its share. On the finished output it would delete single numbers, instead of hiding a whole word.
#
# ### Predict before you run
#
# *Your journey starts with one step*, and then *journey Your starts with one step*: the first two words have changed
# places. The last word sees all six in both sentences. By how much does its answer change?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        head = CausalAttention(d_in=3, d_out=4, context_length=6).eval()
        said = torch.randn(1, 6, 3)
        change = (head(said) - head(said[:, [1, 0, 2, 3, 4, 5]]))[0, -1].abs().max()
    except NotImplementedError:
        print("CausalAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"the last word's answer changes by {change:.6f}: attention adds up what it sees, in any order;")
        print("the last word sees the same six words, and nothing tells it their places")

# %% [markdown]
# ## Onward
#
# One head has one focus. For several heads, divide the channels among them: go on with [4 · The reshape
# dance](04_reshape_dance.ipynb).
