# %% [markdown]
# # 3 · Self-attention as a module
#
# *About 45 minutes. You need: [1 · Attention scores](01_attention_scores.ipynb), [2 · The causal
# mask](02_causal_mask.ipynb), and what an `nn.Module` is. After this:
# [4 · The reshape dance](04_reshape_dance.ipynb).*
#
# Functions forget; modules learn. In this exercise the pieces of the first two become one `nn.Module`: a
# single causal head with weights of its own, a mask that knows its place, and dropout that knows when to
# sleep.
#
# ## Three projections of one input
#
# In *self*-attention queries, keys and values all come from the same x. What tells them apart is three
# learned matrices, each an `nn.Linear` from d_in to d_out:
#
# ![x goes through W_query, W_key and W_value; q and k make the masked weights, and these mix
# v](figures/03_self_attention.svg)
#
# That is 3 · d_in · d_out parameters. From 3 channels to 2 there are 18; at GPT-2's 768 to 768 each matrix
# has 589,824. There is no projection after the mix: with one head there are no opinions to reconcile yet.
#
# Keep d_in and d_out apart in your mind. The dot product of a query and a key runs over d_out channels, so
# that is the width whose square root the scores are divided by. With d_in = d_out the slip cannot be seen;
# with 768 in and 64 out you would divide by 27.7 where 8 is right.
#
# ## A number to hold on to
#
# Set all three matrices to the identity (d_in = d_out = 3), and feed the six words of the first exercise.
# Then *journey* has the scaled scores 0.5510 with *Your* and 0.8631 with itself, may see nobody else, and
# spends 0.4226 and 0.5774. Out comes (0.4993, 0.5657, 0.7572). Without the division by √3 it would have
# been 0.3680 and 0.6320; without the mask, a mix of all six words.
#
# ## Where the mask lives
#
# The mask depends on nothing but its size, so build it once, for the longest sequence that you will ever
# accept (`context_length`), and cut it to the T of the day. Two things can go wrong here.
#
# *It is not cut.* Then a sentence shorter than the context fails with "The size of tensor a (6) must match
# the size of tensor b (4)".
#
# *It stays behind.* A tensor kept as a plain attribute does not move when somebody calls `.to("cuda")`: the
# weights leave, the mask remains, and the first forward pass complains about two devices. An `nn.Parameter`
# does move, but it also turns up in `parameters()`, as something to be trained and weighed. What you want
# is the third kind, a **buffer**: it moves with the module and is not learned. Look up `register_buffer`.
# (A mask built afresh in each forward pass, on the device of x, is right as well.)
#
# And what if T is *beyond* the context? Slicing past the end of a tensor is not an error in PyTorch; you
# simply get less than you asked for. If you are lucky, two sizes clash a line later with a message about
# broadcasting. If the context is 1, nothing clashes at all: a (1, 1) mask broadcasts over everything, and
# every word sees the future. Refuse early, and name both numbers.
#
# ## Dropout, on the weights
#
# In training each *attention weight* is struck out with probability p, and the survivors are multiplied by
# 1 / (1 − p), so that the expected value stays. With p = 0.5 *journey*'s pair (0.4226, 0.5774) comes out as
# one of these, each a quarter of the time:
#
# ```text
# (0.8452, 1.1548)      (0.8452, 0)
# (0, 1.1548)           (0, 0)
# ```
#
# So in training a row need not sum to 1. Where it is placed matters: on the scores, a struck-out entry
# would be a 0, and a score of 0 still gets its share; on the finished output, single channels vanish where
# whole glances at a word should. And it must sleep in eval mode. `nn.Dropout` sees to that by itself; its
# functional twin does not know which mode your module is in until you tell it.
#
# ## Before you start
#
# The parent's constructor must run before anything else in yours. Forget it, and the first layer you assign
# raises `AttributeError: cannot assign module before Module.__init__() call`. And keep your layers as
# attributes of the module: a layer hidden in a plain list is invisible to the optimiser, to `.to` and to
# `state_dict`.

# %% tags=["setup"]
import math

import torch
from torch import nn

# %% [markdown]
# ## Your turn: `CausalAttention`
#
# Nothing from the first two files is needed here: write out the few lines once more, it is good for the
# hands. Name the three layers as the docstring does, and the grader can lend you its weights.


# %% tags=["solution"]
class CausalAttention(nn.Module):
    """Attend with one causal head, with learned projections and no output projection.

    Attributes:
        W_query: linear layer from d_in to d_out channels.
        W_key: likewise, for the keys.
        W_value: likewise, for the values.
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
        # YOUR CODE HERE
        raise NotImplementedError("write this part")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix, for each token, the values of itself and the tokens before it.

        Args:
            x: tokens, (B, T, d_in), in the dtype and on the device of the weights; T at most context_length.

        Returns:
            Context vectors, (B, T, d_out).

        Raises:
            ValueError: if T is larger than context_length; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: the numbers
#
# The six words with identity matrices, as in the lesson; the sentence is shorter than the context, on
# purpose. Then a head with one channel in and four out: the second token's two scores, divided by √4, are 0
# and log 3, so its shares are 1/4 and 3/4.

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
# What a module owes its users: the past does not move when the future is edited, too long a sequence is
# refused, only the three layers are learned, everything moves together, and dropout sleeps in eval mode.

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

    glances = CausalAttention(d_in=5, d_out=7, context_length=6, dropout=0.5)
    with torch.no_grad():
        asleep = torch.equal(glances.eval()(before), glances.eval()(before))
        awake = not torch.allclose(glances.train()(before), glances.eval()(before))
        nothing = CausalAttention(d_in=5, d_out=7, context_length=6, dropout=1.0).train()(before)
    assert asleep, "in eval mode the same input should give the same output: dropout is still awake"
    assert awake, "in training mode dropout=0.5 should change the output: is it used at all?"
    assert torch.equal(nothing, torch.zeros(2, 6, 7)), "with every weight struck out nothing is left to mix: zeros"
    print("CausalAttention: good habits, too")

# %% [markdown]
# ### Predict before you run
#
# *Your journey starts with one step*, and then *journey Your starts with one step*: the first two words
# have changed places. The last word sees all six in both sentences. By how much does its answer change?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        head = CausalAttention(d_in=3, d_out=4, context_length=6).eval()
        said = torch.randn(1, 6, 3)
        change = (head(said) - head(said[:, [1, 0, 2, 3, 4, 5]]))[0, -1].abs().max()
    except NotImplementedError:
        print("CausalAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"the last word's answer changes by {change:.6f}: attention adds up what it sees, in whatever order;")
        print("where a word stands, it does not know unless somebody writes it into the words")

# %% [markdown]
# ## Onward
#
# One head has one focus. To have several, its channels must be dealt out: go on with
# [4 · The reshape dance](04_reshape_dance.ipynb).
