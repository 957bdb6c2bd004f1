# %% [markdown]
# # 5 · The weight split
#
# *About 50 minutes. You need: [3 · Self-attention](03_self_attention.ipynb) and [4 · The reshape
# dance](04_reshape_dance.ipynb). After this: [6 · One head at a time](06_mha_by_loop.ipynb).*
#
# Your honest causal head and your reshape dance become the module that every GPT is built around. First the idea,
# a walk through with numbers, and what lurks; then you write it.
#
# ## Many small layers, or one that is cut
#
# The plain way to get `num_heads` heads is to keep a list of `num_heads` small attention modules, call each,
# and concatenate what they say. It is correct, and slow: every head launches its own little matrix products.
#
# The better way starts from one observation. `nn.Linear` stores its weight as `(out, in)`, one *row* for each
# output channel, and rows do not know of each other. Stack the rows of several small layers, and the tall
# layer answers with their answers laid side by side: head 0's channels, then head 1's. They learn as
# separate layers do, too: the gradient of a row comes from its own output channel and from no other.
#
# As Vaswani and others wrote it in 2017, with W^O for the last layer:
#
# ```text
# head_h = softmax(Q_h K_hᵀ / √hd) V_h
# answer = Concat(head_0, …) W^O
# ```
#
# ![W_query times one token gives four numbers; cut after the second row they are two queries, and each
# head shares out for itself](figures/05_weight_split.svg)
#
# So you make **one** layer of width `d_out`, and *cut its output* into heads. That cut is the weight split:
# the heads are separate because of where you cut, and not because they live in separate objects. It only
# works if the cut comes out even. 768 channels give 12 heads of 64; they do not give 7 heads of anything.
# Refuse it when the module is *made*, with both numbers in the message; a `view` error in the middle of a
# training night tells nobody what went wrong.
#
# `d_in` and `d_out` need not be equal. The heads are cut from `d_out`, so `head_dim` is `d_out // num_heads`,
# and `d_in` disappears after the first line of your forward pass.
#
# ## One walk through, with numbers
#
# Six tokens, `d_in = d_out = 4`, two heads, so `head_dim = 2`. For the first two tokens the three layers
# give:
#
# | vector | head 0 | head 1 |
# |---|---|---|
# | q_0 | −0.3506, −1.0175 | −0.2295, −0.1465 |
# | q_1 | −0.5866, −1.0891 | 1.0656, −0.9749 |
# | k_0 | 0.3377, −1.2272 | −1.1369, −0.8416 |
# | k_1 | 0.3797, −0.2600 | −0.7065, 0.0536 |
# | v_0 | 0.6602, 0.3820 | −0.8079, 0.0283 |
# | v_1 | 0.6702, 1.1632 | −0.3440, −0.9635 |
#
# Take token 1 (it may look at tokens 0 and 1, at nothing later):
#
# | token 1 | head 0 | head 1 |
# |---|---|---|
# | q_1 · k_0 | 1.1384 | −0.3910 |
# | q_1 · k_1 | 0.0604 | −0.8052 |
# | ÷ √2, softmax | 0.6818, 0.3182 | 0.5727, 0.4273 |
# | weighted v | 0.6634, 0.6306 | −0.6097, −0.3955 |
#
# The same token, two different distributions: head 0 leans on the past twice as hard as on the present, head
# 1 hardly minds. One head could never have said both. Each dot product sums `head_dim` terms, so √`head_dim`
# is what you undo. With √`d_out` = 2 the first pair would read 0.6316, 0.3684: flatter, plausible, and wrong.
# Nothing crashes. Trained from scratch, a small model does not even mind: it makes its weights larger. A model that
# has learned with the right root does: its loss goes from 1.57 to 1.77 ([the gallery of silent bugs](../../docs/gallery.md)).
#
# Joined again, token 1 carries `[0.6634, 0.6306, -0.6097, -0.3955]`: head 0's answer, then head 1's. Token 0
# sees itself alone, so before the last layer it carries exactly its own value row, `v_0`. Remember that: the
# first token is the cheapest test you will ever write.
#
# The shapes, for `x` of shape (2, 6, 4):
#
# ```text
# x          (B, T, d_in)    2, 6, 4
# q, k, v    (B, T, d_out)   2, 6, 4
# cut        (B, nh, T, hd)  2, 2, 6, 2
# scores     (B, nh, T, T)   2, 2, 6, 6
# context    (B, nh, T, hd)  2, 2, 6, 2
# joined     (B, T, d_out)   2, 6, 4
# out_proj   (B, T, d_out)   2, 6, 4
# ```
#
# There is one square of scores for each head of each sequence; only in `out_proj` do heads meet. Trained from scratch
# without that layer, our small model was worse by 0.03; in a trained one that loses it, the loss goes from 1.57 to 3.58.
#
# ## Why contiguous?
#
# A tensor is a flat strip of numbers and a recipe of *strides*: how far to step for the next index on each
# axis. `transpose` rewrites the recipe and leaves the strip alone. For the context above, one sequence:
#
# | context | shape | strides |
# |---|---|---|
# | as computed | (1, 2, 6, 2) | (24, 12, 2, 1) |
# | tokens ahead again | (1, 6, 2, 2) | (24, 2, 12, 1) |
#
# To fuse the last two axes into one of 4, you would need a single step that goes 0, 1, then on to head 1. But
# head 1 lies 12 numbers away, not 2. No stride says "1, then 11, then 1", so `view`, which never copies,
# refuses: *view size is not compatible with input tensor's size and stride*. A copy in the new order has to
# be made. You can ask for it (`contiguous`), or let `reshape` make it in silence. Either is right here. The
# habit of writing `view` wherever a free relabelling is meant pays off: it either is free, or it complains.
#
# Beware the cure that silences the complaint: fusing the axes *without* moving heads back beside channels
# first. The shapes look right, the code runs, the model learns garbage.
#
# ## What else lurks
#
# - **The mask has the size of the context, and your input seldom does.** Cut it to the T you were given. And
#   when T is *longer* than the context, say so: slicing past the end does not fail in Python, and what comes
#   instead is a puzzling message about sizes 6 and 7.
# - **The mask is not a weight.** It must travel when the module moves to another device, and no optimiser may
#   see it. There is a word for such a tensor: a *buffer*. By default it is saved with the weights, in the module's
#   `state_dict`; made with `persistent=False`, it is left out there, and made anew where the weights are loaded.
# - **Dropout acts on the weights after the softmax**, in training only. With p = 0.2 survivors grow by 1.25
#   (0.6818 becomes 0.8523), so a row no longer sums to 1; only on average it does.
# - **`out_proj` has a bias; the other three have one only if `qkv_bias` asks.** For GPT-2 small's width that
#   is 4 × 589,824 = 2,359,296 weights, and 768 more for that one bias.
# - **Wake the parent first.** An `nn.Module` that was never initialised cannot take layers in:
#   `AttributeError: cannot assign module before Module.__init__() call`.
#
# (The one-big-layer form is the one in Raschka, *Build a Large Language Model (From Scratch)*, chapter 3; the
# idea of heads is from Vaswani et al. 2017.)

# %% tags=["setup"]
import torch
from torch import nn

# %% [markdown]
# ## Your turn: `MultiHeadAttention`
#
# First what the module *owns*, then what it *does*. Write the shape at the end of each line.


# %% tags=["solution"]
class MultiHeadAttention(nn.Module):
    """Attend causally with several heads cut from three full-width projections.

    Attributes:
        W_query, W_key, W_value: Linear layers from d_in to d_out; a bias only where qkv_bias asks for one.
        out_proj: Linear layer from d_out to d_out, with a bias. It mixes the heads.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, num_heads: int, dropout: float = 0.0, qkv_bias: bool = False
    ) -> None:
        """Make the four layers, the dropout and whatever holds the causal mask.

        Args:
            d_in: Channels of each incoming token.
            d_out: Channels of each outgoing token, all heads together.
            context_length: The most tokens that forward accepts.
            num_heads: How many heads share the d_out channels evenly.
            dropout: Probability in [0, 1) that an attention weight is dropped while training.
            qkv_bias: Whether the query, key and value layers have a bias.

        Raises:
            ValueError: num_heads does not divide d_out; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token gather from itself and its past, once for each head.

        Args:
            x: (B, T, d_in), floating point, T at most context_length. Left as it was.

        Returns:
            (B, T, d_out), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds context_length; the message names both numbers.
        """
        # YOUR CODE HERE
        raise NotImplementedError("write this part")


# %% [markdown]
# ### See for yourself: `MultiHeadAttention`
#
# First what the module owns: shapes, a count of parameters, and what it refuses. Then the walk-through above,
# with its weights loaded and `out_proj` set to pass everything through, plus 10 (which is taken off again),
# so that your numbers can stand beside the lesson's. Last the causality probe: rewrite the future, and see
# that the past has not noticed.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(5)
    layer = MultiHeadAttention(d_in=6, d_out=12, context_length=7, num_heads=3).eval()
    n = sum(p.numel() for p in layer.parameters())
    assert n == 372, f"3 × 72 + 144 + 12 = 372 parameters are expected, yours has {n}: a bias or a mask too many?"
    for tokens in (7, 4, 1):
        shape = tuple(layer(torch.randn(2, tokens, 6)).shape)
        assert shape == (2, tokens, 12), f"(2, {tokens}, 6) should become (2, {tokens}, 12), yours is {shape}"
    print("MultiHeadAttention: 372 parameters, and a short input is as welcome as a full one")

    for what, refused in (
        ("12 channels in 5 heads", lambda: MultiHeadAttention(6, 12, 7, 5)),
        ("8 tokens in a context of 7", lambda: layer(torch.randn(1, 8, 6))),
    ):
        try:
            refused()
        except (ValueError, AssertionError, RuntimeError) as error:
            print(f"MultiHeadAttention refuses {what}: {error}")
        else:
            raise AssertionError(f"{what} went through; the docstring asks for a ValueError")

# %% tags=["check"]
if __name__ == "__main__":
    six_tokens = torch.tensor(
        [
            [-1.4208, 0.5254, 0.0145, -1.0520],
            [-1.3243, -0.2664, 2.0347, -0.2241],
            [-0.6319, 0.8668, 0.3893, -0.0230],
            [0.7506, 0.0992, -0.2964, 0.4428],
            [0.5634, -0.8032, -0.3909, 0.4640],
            [1.2728, 0.6727, -0.2302, -0.7652],
        ]
    )
    lesson = {
        "W_query.weight": torch.tensor(
            [
                [0.1118, -0.4581, -0.2810, -0.0504],
                [0.4673, 0.0952, -0.1767, 0.3812],
                [-0.1484, -0.0739, 0.4602, 0.3879],
                [0.2999, 0.3496, -0.2486, -0.0946],
            ]
        ),
        "W_key.weight": torch.tensor(
            [
                [-0.3001, -0.4434, -0.0820, -0.1382],
                [0.4897, -0.3804, 0.1761, 0.3176],
                [0.4293, -0.1651, -0.0434, 0.4178],
                [0.2808, 0.0722, 0.2693, 0.4605],
            ]
        ),
        "W_value.weight": torch.tensor(
            [
                [-0.1242, -0.0797, 0.1834, -0.4971],
                [-0.4361, -0.2864, 0.2599, 0.0864],
                [0.3415, -0.1870, 0.0523, 0.2140],
                [0.0108, 0.3178, -0.4126, 0.1115],
            ]
        ),
        "out_proj.weight": torch.eye(4),
        "out_proj.bias": torch.full((4,), 10.0),
    }
    two_heads = MultiHeadAttention(4, 4, context_length=6, num_heads=2).eval()
    two_heads.load_state_dict(lesson, strict=False)
    seen = two_heads(six_tokens[None])[0].detach() - 10.0
    for token, expected in (
        (0, [0.6602, 0.3820, -0.8079, 0.0283]),
        (1, [0.6634, 0.6306, -0.6097, -0.3955]),
        (5, [0.0820, -0.0047, -0.1558, -0.1262]),
    ):
        assert torch.allclose(seen[token], torch.tensor(expected), atol=1e-3), (
            f"token {token} should carry {expected}, "
            f"yours carries {[round(c, 4) for c in seen[token].tolist()]}: "
            "compare with the table of the walk-through, one row at a time"
        )
    print("MultiHeadAttention: the six tokens come out as the lesson says")

    before = torch.randn(1, 7, 6)
    after = before.clone()
    after[:, 4:] = torch.randn(1, 3, 6)
    moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
    assert moved[:4].max() < 1e-6, "tokens 0…3 changed when tokens 4…6 were rewritten: somebody sees the future"
    assert moved[4:].min() > 1e-6, "tokens 4…6 were rewritten and their output stayed: nobody sees the present"

    dropped = MultiHeadAttention(6, 12, 7, 3, dropout=0.5)
    same = torch.equal(dropped.eval()(before), dropped(before))
    assert same, "in eval mode two calls must agree to the last bit: dropout is for training only"
    assert not torch.equal(dropped.train()(before), dropped(before)), (
        "in training, dropout should make two calls differ"
    )
    print("MultiHeadAttention: the past is safe from the future, and dropout sleeps in eval mode")

# %% [markdown]
# ### Predict before you run
#
# Two modules of 768 channels, one with 12 heads, one with a single head. Which of them has more parameters,
# and how many more?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        many, one = (MultiHeadAttention(768, 768, context_length=8, num_heads=heads) for heads in (12, 1))
    except NotImplementedError:
        print("MultiHeadAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        sizes = [sum(p.numel() for p in module.parameters()) for module in (many, one)]
        print(f"12 heads: {sizes[0]:,}; 1 head: {sizes[1]:,}. A cut of the channels adds no parameter")
        print("(it costs time and memory all the same: there is one square of scores for each head)")

# %% [markdown]
# ## Onward
#
# It runs, it is fast, and it asks for some faith. Win it in
# [6 · One head at a time](06_mha_by_loop.ipynb).
