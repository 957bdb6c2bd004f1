# %% [markdown]
# # 5 · The weight split
#
# *About 50 minutes. You need: [3 · Self-attention](03_self_attention.ipynb) and [4 · The reshape
# dance](04_reshape_dance.ipynb). After this: [6 · One head at a time](06_mha_by_loop.ipynb).*
#
# You have a causal head (exercise 3) and you can cut channels into heads (exercise 4). Put the two together and
# you have multi-head attention, the module that every GPT is built around.
#
# ## One layer, cut into heads
#
# You could keep a list of small attention modules, and join their answers. That is correct, but slow.
#
# `nn.Linear` keeps its weight as `(out, in)`: one *row* for each output channel, and each row makes one output
# number. Take head 0's query weight and put head 1's below it: one matrix. One product then gives a longer vector:
# head 0's numbers, then head 1's.
#
# ![W_query times one token gives four numbers; cut after the second row they are two queries, and each head shares
# out for itself](figures/05_weight_split.svg)
#
# So you make **one** layer of width `d_out` and *cut its output* into heads. That cut is the weight split.
#
# ## Three steps
#
# Run the cell *See for yourself* after each step: it says ✓, and an error shows what to do next. After step 1,
# `forward` still ends in the stub's `raise`. After step 2, it returns the weighted values, (B, nh, T, hd). The
# numbers: two sequences of six tokens, `d_in = d_out = 4`, two heads (nh = 2).
#
# **Step 1: your own layers.** Three layers make q, k and v from x. The two widths may differ: only `d_out` is cut
# into heads, so `head_dim = d_out // num_heads`. If `num_heads` does not divide `d_out` (768 channels, 7 heads),
# raise an error in `__init__`.
#
# **Step 2: the heads.** Cut q, k and v as in exercise 4. Then comes exercise 3, with a head axis in front: scores
# over √hd, mask, softmax, dropout, weights times v.
#
# **Step 3: join.** Move the heads back beside their channels, lay them side by side, and let `out_proj` mix them.
#
# ```text
# 1 x         (B, T, d_in)   2, 6, 4
#   q, k, v   (B, T, d_out)  2, 6, 4
# 2 q, k, v   (B, nh, T, hd) 2, 2, 6, 2
#   scores    (B, nh, T, T)  2, 2, 6, 6
#   context   (B, nh, T, hd) 2, 2, 6, 2
# 3 joined    (B, T, d_out)  2, 6, 4
#   out_proj  (B, T, d_out)  2, 6, 4
# ```
#
# ## Before you type
#
# - **Call `super().__init__()` first.** Otherwise the first layer you assign raises
#   `AttributeError: cannot assign module before Module.__init__() call`.
# - **The mask is a buffer**, as in exercise 3: it moves with the module and is not learned. Make it for the longest
#   input, then cut it to your T. Refuse a T beyond that.
# - **Divide by √`head_dim`**, for each dot product sums `head_dim` terms.
# - **`out_proj` has a bias.** The other three have one only if `qkv_bias` is true.
#
# ## What you need of PyTorch
#
# - `nn.Linear(a, b, bias=…)`: a layer from a channels to b.
# - `x.view(…)`, `x.transpose(…)`, `x.contiguous()`: as in exercise 4.
# - `self.register_buffer("name", tensor)`, `x.masked_fill(mask, value)`: as in exercises 2 and 3.

# %% tags=["setup"]
import torch
from torch import nn

# %% [markdown]
# ## Your turn: `MultiHeadAttention`
#
# First what the module *owns*, then what it *does*. Write the shape at the end of each line.


# %% tags=["solution"]
class MultiHeadAttention(nn.Module):
    """Attend causally with several heads; three layers make q, k and v for all of them.

    Attributes:
        W_query, W_key, W_value: Linear layers from d_in to d_out; a bias only where qkv_bias asks for one.
        out_proj: Linear layer from d_out to d_out, with a bias. It mixes the heads.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, num_heads: int, dropout: float = 0.0, qkv_bias: bool = False
    ) -> None:
        """Make the four layers, the dropout and the causal mask.

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
        """Let every token attend to itself and the tokens before it, once for each head.

        Args:
            x: (B, T, d_in), floating point, T at most context_length. Not changed.

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
# First the three steps, one ✓ each, with other sizes than in the lesson. Then what the module refuses.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(5)
    layer = MultiHeadAttention(d_in=6, d_out=12, context_length=7, num_heads=3).eval()
    n = sum(p.numel() for p in layer.parameters())
    assert n == 372, f"3 × 72 + 144 + 12 = 372 parameters are expected, yours has {n}: a bias or a mask too many?"
    print("✓ step 1: your own layers, with 372 parameters. The stub's raise is forward's last line until step 2:")

    x = torch.randn(2, 7, 6)
    context = layer(x)
    assert isinstance(context, torch.Tensor), f"forward returned {context}, not a tensor: is a return missing?"
    if context.dim() == 4:
        shape = tuple(context.shape)
        assert shape == (2, 3, 7, 4), f"after step 2 (B, nh, T, hd) should be (2, 3, 7, 4), yours is {shape}"
        print("✓ step 2: the heads, (B, nh, T, hd) = (2, 3, 7, 4). Now join them:")
    for tokens in (7, 4, 1):
        shape = tuple(layer(torch.randn(2, tokens, 6)).shape)
        assert shape == (2, tokens, 12), f"(2, {tokens}, 6) should become (2, {tokens}, 12), yours is {shape}"
    edited = x.clone()
    edited[:, 0] += 1
    moved = (layer(edited) - layer(x)).abs().amax(dim=(0, 2))  # (T,): how far the answer at each token moves
    assert (moved > 1e-6).all(), "token 0 was rewritten, and later tokens answer as before: step 2 is not done"
    with torch.no_grad():
        layer.out_proj.bias += 10
        shift = (layer(x) - context).mean().item()
        layer.out_proj.weight.copy_(torch.eye(12))  # now each head's channels stay where joining puts them
        before = layer(x)
        layer.W_query.weight[:4] += 1  # what head 0 asks, and no other
        moved = ((layer(x) - before).abs() > 1e-6).view(-1, 3, 4).any(-1).any(0).tolist()  # (3,): by head
    assert 9 < shift < 11, f"out_proj's bias grew by 10, and your answer by {shift:.1f}: return what out_proj makes"
    assert moved == [True, False, False], f"only head 0 asks otherwise, and these heads answer otherwise: {moved}"
    print("✓ step 3: joined, (B, T, d_out) = (2, 7, 12), and a short input works as well as a full one")

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

# %% [markdown]
# ### One walk through, with numbers
#
# If a number does not come out as it should, follow it here. (`course trace weight_split --values` prints the same
# steps of *your* code, with other numbers.) One sequence of six tokens, `d_in = d_out = 4`, two heads. The tokens x
# and the weights are in the check below. For the first two tokens the three layers give:
#
# | vector | head 0 | head 1 |
# |---|---|---|
# | q_0 | −0.3506, −1.0175 | −0.2294, −0.1465 |
# | q_1 | −0.5865, −1.0892 | 1.0657, −0.9749 |
# | k_0 | 0.3376, −1.2272 | −1.1368, −0.8416 |
# | k_1 | 0.3797, −0.2600 | −0.7065, 0.0536 |
# | v_0 | 0.6602, 0.3820 | −0.8078, 0.0283 |
# | v_1 | 0.6703, 1.1633 | −0.3440, −0.9635 |
#
# Token 1 may look at tokens 0 and 1, not at later tokens:
#
# | token 1 | head 0 | head 1 |
# |---|---|---|
# | q_1 · k_0 | 1.1386 | −0.3910 |
# | q_1 · k_1 | 0.0606 | −0.8052 |
# | ÷ √2, softmax | 0.6819, 0.3181 | 0.5727, 0.4273 |
# | weighted v | 0.6634, 0.6306 | −0.6096, −0.3955 |
#
# It is the same token, with two different patterns: head 0 gives the past twice as much as the present, head 1 gives
# both nearly the same. One head could not do both.
#
# Now all six tokens, rounded to two places. First the cut of q:
#
# ```text
# q            (1, 6, 4)
#   -0.35 -1.02 -0.23 -0.15
#   -0.59 -1.09  1.07 -0.97
#   -0.58 -0.29  0.20  0.02
#    0.10  0.58 -0.08  0.29
#    0.52  0.43 -0.02 -0.06
#   -0.06  0.41 -0.64  0.75
#
# q in heads   (1, 2, 6, 2)
#   head 0          head 1
#   -0.35 -1.02     -0.23 -0.15
#   -0.59 -1.09      1.07 -0.97
#   -0.58 -0.29      0.20  0.02
#    0.10  0.58     -0.08  0.29
#    0.52  0.43     -0.02 -0.06
#   -0.06  0.41     -0.64  0.75
# ```
#
# Each head compares its own queries with its own keys, and so gets a square of weights of its own:
#
# ```text
# weights      (1, 2, 6, 6)
#   head 0
#   1.00 0    0    0    0    0
#   0.68 0.32 0    0    0    0
#   0.34 0.28 0.38 0    0    0
#   0.18 0.27 0.22 0.33 0    0
#   0.16 0.22 0.16 0.21 0.26 0
#   0.12 0.16 0.15 0.20 0.21 0.18
#   head 1
#   1.00 0    0    0    0    0
#   0.57 0.43 0    0    0    0
#   0.31 0.34 0.35 0    0    0
#   0.22 0.26 0.25 0.26 0    0
#   0.21 0.20 0.20 0.19 0.20 0
#   0.17 0.22 0.19 0.15 0.13 0.15
# ```
#
# Weights times v gives two columns for each head. Joined, they are four again:
#
# ```text
# joined       (1, 6, 4)
#    0.66  0.38 -0.81  0.03
#    0.66  0.63 -0.61 -0.40
#    0.45  0.50 -0.50 -0.28
#    0.19  0.27 -0.28 -0.16
#    0.10  0.23 -0.17 -0.13
#    0.08  0.00 -0.16 -0.13
# ```
#
# Row 1 is token 1: head 0's answer, then head 1's. Row 0 is token 0, which sees itself alone, so it is exactly its
# own value v_0. Remember that: the first token makes a cheap test.
#
# The check loads these weights. Here `out_proj` only adds 10, which shows whether you call it; the check then
# subtracts the 10. Last, it rewrites the future: the past must not change.

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
            f"token {token} should be {expected}, "
            f"yours is {[round(c, 4) for c in seen[token].tolist()]}: "
            "compare with the table of the walk-through, one row at a time"
        )
    print("MultiHeadAttention: the six tokens come out as the lesson says")

    before = torch.randn(1, 7, 6)
    after = before.clone()
    after[:, 4:] = torch.randn(1, 3, 6)
    moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
    assert moved[:4].max() < 1e-6, "tokens 0…3 changed when tokens 4…6 were rewritten: the future leaks into the past"
    assert moved[4:].min() > 1e-6, "tokens 4…6 were rewritten and their output stayed: a token must see itself"

    dropped = MultiHeadAttention(6, 12, 7, 3, dropout=0.5)
    same = torch.equal(dropped.eval()(before), dropped(before))
    assert same, "in eval mode two calls must agree to the last bit: dropout is for training only"
    assert not torch.equal(dropped.train()(before), dropped(before)), (
        "in training, dropout should make two calls differ"
    )
    print("MultiHeadAttention: the past is safe from the future, and dropout is off in eval mode")

# %% [markdown]
# ### Predict before you run
#
# Two modules of 768 channels, one with 12 heads, one with a single head. Which of them has more parameters, and how
# many more?

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
# ### Why it works
#
# Raschka, *Build a Large Language Model (From Scratch)*, chapter 3, cuts one big layer, too. The heads are from
# Vaswani and others (2017), who wrote them as below. Concat lays the heads side by side, and W^O is the transposed
# weight of `out_proj`:
#
# $$ \mathrm{head}_h = \mathrm{softmax}(Q_h K_h^\top / \sqrt{hd})\; V_h $$
#
# $$ \mathrm{answer} = \mathrm{Concat}(\mathrm{head}_0, \dots)\; W^O $$
#
# The heads are separate because of *where you cut*, not because they are separate objects. Training keeps them
# separate: the gradient of a row comes through its own output number alone.
#
# **What heads cost.** Each head compares T tokens with T tokens over hd channels: T² · hd multiplications. All heads
# together make T² · C, whatever their number, so the products cost roughly what one big head costs. What grows is the
# number of squares to mask and to keep. For 1,024 tokens in float32, one head has a square of 4.2 MB, and twelve
# heads have 50 MB.
#
# **What `out_proj` is for.** Before it, head 0's channels know nothing of head 1's. Without it, each head could
# change only its own hd channels of the answer. In `out_proj` every output channel reads all heads, so what one head
# finds can change any channel. (A head gives hd numbers for each token, so what it adds is a mix of only hd vectors.
# Linear algebra says: its *rank* is at most hd.)
#
# We left it out of the small model of exercise 1. When it was missing from the start, the loss was worse by 0.03: the
# other layers learn to do without. Take it out of a trained model, and the loss goes from 1.57 to 3.58, because the
# layers after it expect the mixed channels. The right character then typically gets 3 % in place of 21 % ([the
# gallery of silent bugs](../../docs/gallery.md)).
#
# **Shape in, shape out.** With `d_in = d_out`, what comes out has the shape of what went in. So the output of one
# layer can be the input of the next: GPT-2 stacks 12 of them in its small model, and 48 in its largest, each followed
# by a network that works on every token alone.
#
# ### When it does not work
#
# - **`mat1 and mat2 shapes cannot be multiplied (200x512 and 768x768)`.** The last axis of x is not `d_in`. The first
#   pair is your x, with batch and tokens counted together (2 · 100 tokens of 512 channels); the second is the layer,
#   768 in and 768 out. Print `x.shape` one line above.
# - **`The size of tensor a (6) must match the size of tensor b (4)`.** The mask was not cut to T: here T is 4 and
#   `context_length` is 6 (`masked_fill_` prints them swapped). With six tokens such a module runs; with four it stops
#   here. Seven tokens fail, too: the message then names 6 and 7. Slicing `mask[:7]` is no error in Python, so check T
#   yourself.
# - **`view size is not compatible with input tensor's size and stride`.** You joined the heads with `view` after a
#   `transpose`; the next section says why that cannot work. Do not fix it by leaving out the transpose: the error
#   goes, the shapes look right, and the answer is wrong.
# - **Weights too even.** Divide by √`head_dim`: with C = 64 channels in 4 heads that is √16 = 4, not √64 = 8. With
#   √`d_out` = 2 in place of √2, token 1's first pair would be 0.6316, 0.3684. Nothing crashes. Trained so from the
#   start, the small model is just as good: it learns larger q and k. A model trained with the right root and then
#   given the wrong one goes from a loss of 1.57 to 1.77.
# - **Rows that do not sum to 1, in training.** That is right. Usual dropouts are 0 to 0.2. With 0.2 some weights are
#   struck out, and the others become 1.25 times as large (0.6819 becomes 0.8523); the sum is 1 only on average.
# - **A count of parameters that is off.** For GPT-2 small's width it is 4 × 589,824 = 2,359,296 weights, and 768 more
#   for the one bias.
#
# ### Why contiguous?
#
# *Contiguous* means: the numbers lie in memory in the order in which the shape reads them. A tensor is a tape of
# numbers with *strides*: how many numbers to step for the next index on each axis. `transpose` changes the strides
# and leaves the tape alone. For the context above:
#
# | context | shape | strides |
# |---|---|---|
# | as computed | (1, 2, 6, 2) | (24, 12, 2, 1) |
# | tokens ahead again | (1, 6, 2, 2) | (24, 2, 12, 1) |
#
# The four numbers of token 0 lie at places 0, 1, 12, 13 of the tape: the gaps are 1, 11, 1, but a stride is one fixed
# gap. `view` never copies, so it refuses. Make the copy yourself (`contiguous`), or let `reshape` make it where it is
# needed. Both are right. `view` has one advantage: where it works, you know that nothing was copied.
#
# ### Going further
#
# A buffer is saved with the weights, in the module's `state_dict`, the dictionary that `torch.save` writes to a file.
# With `persistent=False` the buffer is not saved; the module makes it again.
#
# In exercise 7 you write this module as GPT-2 does, and the names change. It helps to know which is which:
#
# | here | in exercise 7 |
# |---|---|
# | `d_in` and `d_out` | `n_embd`, for both |
# | `num_heads` | `n_head` |
# | `context_length` | `block_size` |
# | `W_query`, `W_key`, `W_value` | one layer, `qkv` |
# | `out_proj`, with a bias | `proj`, without |

# %% [markdown]
# ## Onward
#
# It runs, and it is fast. But is it *really* several independent heads? Convince yourself in
# [6 · One head at a time](06_mha_by_loop.ipynb).
