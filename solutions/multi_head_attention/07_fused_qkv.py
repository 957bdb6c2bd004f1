# %% [markdown]
# # 7 · The fused QKV
#
# *About 50 minutes. You need: [5 · The weight split](05_weight_split.ipynb) and [6 · One head at a
# time](06_mha_by_loop.ipynb). After this: [8 · The fast path](08_sdpa_equivalence.ipynb).*
#
# In exercise 5 three layers read the same x. GPT-2 *fuses* them: a single layer, three times as wide, whose output is
# cut into q, k and v (hence *QKV*). So does nanoGPT, Karpathy's short GPT. The result is the same, but one large
# product is usually faster than three.
#
# ## The names change
#
# From here on the course uses GPT-2's names:
#
# | exercise 5 | here |
# |---|---|
# | `d_in` and `d_out` | `n_embd` for both, in short C |
# | `num_heads` | `n_head` |
# | `context_length` | `block_size` |
# | `W_query`, `W_key`, `W_value` | one layer, `qkv`, without bias |
# | `out_proj`, with a bias | `proj`, without |
# | dropout on the weights | on the weights and on the output |
#
# ## Three steps
#
# Run *See for yourself* after each step: it says ✓, and an error shows your next task. After step 1, `forward` still
# ends in the stub's `raise`; after step 2, it returns y, (B, nh, T, hd). The numbers: two sequences of 8 tokens,
# C = 64, four heads.
#
# **Step 1: your own layers.** `qkv` gives each token 3C channels: first C for q, then C for k, then C for v, as in
# the stacked weight of exercise 6. Cut them into three. (`split(C, dim=-1)`, `chunk(3, dim=-1)` and
# slices do the same.)
#
# ```text
# channels  0 … C−1    q  h0 h1 h2 h3
#           C … 2C−1   k  h0 h1 h2 h3
#           2C … 3C−1  v  h0 h1 h2 h3
# ```
#
# **Step 2: the heads.** The reshape dance for q, k and v; then scores over √hd, mask, softmax, dropout, weights times
# v. (PyTorch's own function waits for exercise 8.)
#
# **Step 3: join.** Move the heads back beside their channels, then `proj`, then the second dropout.
#
# ```text
# 1 x        (B, T, C)      2, 8, 64
#   qkv(x)   (B, T, 3C)     2, 8, 192
#   q, k, v  (B, T, C)      2, 8, 64
# 2 q, k, v  (B, nh, T, hd) 2, 4, 8, 16
#   scores   (B, nh, T, T)  2, 4, 8, 8
#   y        (B, nh, T, hd) 2, 4, 8, 16
# 3 joined   (B, T, C)      2, 8, 64
#   proj     (B, T, C)      2, 8, 64
# ```
#
# ## Before you type
#
# - **√hd, not √C.** Here √16 = 4, not √64 = 8.
# - **Keep q, k, v in this order.** If you swap k and v, every shape is still right. A network you train yourself
#   would even learn; one that loads GPT-2's weights would write nonsense.
# - **The mask is a buffer** of `block_size` × `block_size`. Slice it to the T you got, and refuse a larger T
#   yourself, with both numbers.
# - **`super().__init__()` comes first**, or the first layer you assign raises an AttributeError.
#
# ## What you need of PyTorch
#
# - `x.split(n, dim=…)`: pieces of size n. `x.chunk(n, dim=…)`: n pieces.
# - `x.reshape(…)`: a `view` where one is possible, else a copy.
# - `nn.Dropout(p)`: drops in training mode alone.

# %% tags=["setup"]
import math

import torch
from torch import nn

# %% [markdown]
# ## Your turn: `CausalSelfAttention`
#
# `forward` takes about ten lines. Write the shape at the end of each.


# %% tags=["solution"]
class CausalSelfAttention(nn.Module):
    """Attend causally with n_head heads; one layer makes q, k and v for all of them, as in GPT-2.

    Attributes:
        qkv: Linear layer from n_embd to three times n_embd, without bias: queries, keys, values, in order.
        proj: Linear layer from n_embd to n_embd, without bias.
    """

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0) -> None:
        """Make the two layers, both dropouts and the causal mask.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many heads share the channels evenly.
            block_size: The most tokens that forward accepts.
            dropout: In training, the probability in [0, 1) that a weight is dropped; the same for an output channel.

        Raises:
            ValueError: n_head does not divide n_embd; the message names both numbers.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        visible = torch.ones(block_size, block_size, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)  # True where the query may look
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token attend to itself and those before it, without PyTorch's own attention function.

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

        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)
        scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)
        weights = self.attn_dropout(scores.softmax(dim=-1))  # (B, nh, T, T)

        y = weights @ v  # (B, nh, T, hd)
        y = y.transpose(1, 2).reshape(B, T, C)  # (B, T, C)
        return self.resid_dropout(self.proj(y))  # (B, T, C)
        ### END SOLUTION


# %% [markdown]
# ### See for yourself: `CausalSelfAttention`
#
# First the three steps, one ✓ each, and the refusals. Then four properties that you can test without a second
# version; you read about them after the check.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(7)
    layer = CausalSelfAttention(n_embd=64, n_head=4, block_size=32).eval()
    owned = {name: p.numel() for name, p in layer.named_parameters()}
    assert owned == {"qkv.weight": 12_288, "proj.weight": 4_096}, (
        f"two weights are expected, qkv of 12,288 and proj of 4,096; yours: {owned}"
    )
    print(f"✓ step 1: your own layers, with {sum(owned.values()):,} parameters = 4 · 64²")
    print("(the stub's raise is forward's last line until step 2)")

    x = torch.randn(2, 8, 64)
    y = layer(x)
    assert isinstance(y, torch.Tensor), f"forward returned {y}, not a tensor: is a return missing?"
    if y.dim() == 4:
        assert tuple(y.shape) == (2, 4, 8, 16), f"after step 2 y should be (2, 4, 8, 16), yours is {tuple(y.shape)}"
        print("✓ step 2: the heads, (B, nh, T, hd) = (2, 4, 8, 16). Now join them:")
    for length in (32, 8, 1):
        shape = tuple(layer(torch.randn(2, length, 64)).shape)
        assert shape == (2, length, 64), f"(2, {length}, 64) should keep its shape, yours is {shape}"
    edited = x.clone()
    edited[:, 0] += 1
    moved = (layer(edited) - layer(x)).abs().amax(dim=(0, 2))  # (T,): how far the answer at each token moves
    assert (moved > 1e-6).all(), "token 0 was rewritten, and later tokens answer as before: step 2 is not done"
    with torch.no_grad():
        layer.proj.weight *= 2
        grown = (layer(x) / y).mean().item()
        layer.proj.weight /= 2
    assert 1.9 < grown < 2.1, f"proj's weight was doubled, and your answer times {grown:.1f}: return what proj makes"
    print("✓ step 3: joined, (B, T, C) = (2, 8, 64), and any T up to 32 works")

    for what, refused in (
        ("64 channels in 5 heads", lambda: CausalSelfAttention(64, 5, 32)),
        ("33 tokens with a block_size of 32", lambda: layer(torch.randn(1, 33, 64))),
    ):
        try:
            refused()
        except (ValueError, AssertionError, RuntimeError) as error:
            print(f"CausalSelfAttention refuses {what}: {error}")
        else:
            raise AssertionError(f"{what} went through; the docstring asks for a ValueError")

    plain = {"proj.weight": torch.eye(12)}
    plain["qkv.weight"] = torch.cat([torch.zeros(12, 12), torch.randn(12, 12), torch.eye(12)])
    average = CausalSelfAttention(n_embd=12, n_head=3, block_size=8).eval()
    average.load_state_dict(plain, strict=False)
    x = torch.randn(2, 5, 12)
    out = average(x)
    for token in range(5):
        assert torch.allclose(out[:, token], x[:, : token + 1].mean(dim=1), atol=1e-5), (
            f"queries of zeros should give token {token} the plain mean of tokens 0…{token}: "
            "look at the order of q, k, v, at the mask, and at how heads are split and joined"
        )
    print("CausalSelfAttention: a query of zeros gets the average of the past")

    plain["qkv.weight"] = torch.cat([torch.eye(12)] * 3)
    average.load_state_dict(plain, strict=False)
    pair = torch.stack([torch.zeros(12), torch.ones(12)])[None]
    out = average(pair)[0, 1]
    assert torch.allclose(out, torch.full((12,), 0.8808), atol=1e-3), (
        "a token of ones after a token of zeros should become 0.8808 in every channel (hd = 4); "
        f"yours is {out.min().item():.4f} … {out.max().item():.4f}: by what did you divide the scores?"
    )
    print("CausalSelfAttention: scores of the right size")

    before = torch.randn(1, 8, 64)
    after = before.clone()
    after[:, 5:] = torch.randn(1, 3, 64)
    moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
    assert moved[:5].max() < 1e-6, "tokens 0…4 changed when tokens 5…7 were rewritten: the future leaks into the past"
    assert moved[5:].min() > 1e-6, "tokens 5…7 were rewritten and their output stayed: a token must see itself"
    print("CausalSelfAttention: edit the future, the past stays")

    doubled_twice = CausalSelfAttention(n_embd=12, n_head=3, block_size=8, dropout=0.5)
    doubled_twice.load_state_dict(plain, strict=False)
    ones = torch.ones(400, 1, 12)
    seen = doubled_twice.train()(ones).unique().tolist()
    assert seen == [0.0, 4.0], f"in training at p = 0.5, ones should become 0 or 4 and nothing else; yours: {seen}"
    assert torch.equal(doubled_twice.eval()(ones), ones), "in eval mode, ones should stay ones: is dropout still on?"
    print("CausalSelfAttention: two dropouts in training, none in eval mode")

# %% [markdown]
# ### Four properties
#
# The check has tested these:
#
# - Where all queries are zero, every token gets the average of its past.
# - A token of ones after a token of zeros becomes 0.8808.
# - The past does not change when the future is edited.
# - Under both dropouts at p = 0.5, each channel of a single token becomes 0 or four times itself.
#
# You can do the second one in your head. C = 12, three heads, so hd = 4; q, k and v are the tokens themselves. The
# second token scores 0 for the first and 1 + 1 + 1 + 1 = 4 for itself, in every head. 4 / √4 = 2, softmax gives
# 0.1192 and 0.8808, so every channel becomes 0.8808. Divided by √12 it would be 0.7604; not divided at all, 0.9820.
#
# ### Two dropouts
#
# The first falls on the *weights*, after the softmax: for this training step, some tokens do not see some others. The
# second falls on the *output*, after the projection. Both work in training only, so that the model does not rely on
# single words or numbers.
#
# Each dropout at p = 0.5 gives 0 or 2×, so the two give 0 or 4×. To see it, take a single token, and choose weights
# so that v and `proj` do not change it. It can only look at itself, with weight 1, so each output channel is 0, or 4
# times what came in, and never 2 times. If you see a 2, one of the two dropouts is missing.
#
# ### Predict before you run
#
# One token, three heads, p = 0.5, in training. An output channel is 0 if the second dropout strikes it, or if the
# first has struck the token's weight in all three heads. How many of the channels are 0: a half, a little more, three
# quarters?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        layer = CausalSelfAttention(n_embd=12, n_head=3, block_size=8, dropout=0.5).train()
        zeros = (layer(torch.randn(4000, 1, 12)) == 0).float().mean()
    except NotImplementedError:
        print("CausalSelfAttention is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"{zeros:.2f} of them. In theory 1/2 + 1/2 · 1/8 = 0.56: the projection mixes the heads,")
        print("so a channel is 0 before the second dropout only if all three heads lost their weight")

# %% [markdown]
# ### Why it works
#
# **The two versions side by side.** With the same weights, a bias of zero and no dropout they give the same numbers:
#
# | | exercise 5 | here |
# |---|---|---|
# | layers that read x | three, C rows each | one, 3C rows |
# | how you get q, k, v | three products | one product, then a cut |
# | biases | `out_proj`; others if asked | none |
# | dropouts | on the weights | on the weights, on the output |
# | parameters | 4 C² + C | 4 C² |
# | good for | reading | speed: one large product in place of three |
#
# **Why one product is faster than three.** x is read from memory once, not three times, and one large product keeps a
# GPU busier than three small ones.
#
# **Count it.** No biases anywhere, and nothing else is learned:
#
# | C = 64 | weight | parameters |
# |---|---|---|
# | fused projection | 192 × 64 | 12,288 |
# | output projection | 64 × 64 | 4,096 |
# | together | 4 C² | **16,384** |
#
# *Attention costs four C × C matrices*, however many heads you cut them into. If your count is larger, look for a
# bias that you did not switch off (192 + 64 = 256 more), or for a mask that became a parameter.
#
# **Why √hd.** Suppose the numbers in q and k are random, with mean 0 and typical size 1. With hd = 16 a score is a
# sum of 16 products, and typically has size √16 = 4. Divided by √16 = 4 it has size 1 again, and softmax neither
# shares out evenly nor gives all to one. √C = 8 divides by twice as much as it should. We tried that with the small
# model of exercise 1. Trained so from the start, it was just as good; a model that had learned with √hd and was then
# given √C went from a loss of 1.57 to 1.77, from 21 % to 17 % for the right character ([the gallery of silent
# bugs](../../docs/gallery.md)).
#
# (Untrained layers make q and k smaller than x. So where x has typical size 1, scores first have a size of about ⅓,
# and grow in training.)
#
# **Why a buffer.** Which token may see which is known when the module is made, so the mask is made once. It is not
# learned, so it is no parameter. But it must be where the computation is: a plain attribute stays on the CPU when the
# module moves to a GPU, and you read *Expected all tensors to be on the same device*. A buffer moves along. And since
# you cut it, five tokens get a mask of 5 × 5: so a text may grow token by token.
#
# ### What heads look at
#
# You may read that one head learns grammar, another one meaning, a third one position. Such lists seldom come with a
# measurement, and nothing in the code tells a head what to look for. So we measured: a model of two *blocks* (a block
# is this module, then a network for each token alone) was trained for 600 steps on *Alice's Adventures in Wonderland*,
# character by character.
#
# ![What eight heads of a trained model look at from the last letter of cabinet: head 0 of block 1 one letter back
# with 0.98, head 3 of block 2 at the blank before the word with 0.40](figures/07_fused_qkv.svg)
#
# From the last letter of *cabinet*, head 0 of block 1 looks one letter back and nearly nowhere else (heads count from
# 0, blocks from 1). Head 3 of block 2 looks at the gaps between words, most of all at the one where this word began.
# That is one model and one text; yours may differ. Train it and see: `course train fused_qkv`, then
# `course plot fused_qkv`.
#
# ### Going further: what you will meet in other people's code
#
# - **All heads at once.** `view(B, T, 3, nh, hd).permute(2, 0, 3, 1, 4)` splits the channels first into q, k, v, and
#   then each of these into heads, which is right here. (`permute` puts all axes into a new order, as `transpose` does
#   with two.) In einops, a library for such moves, it is `rearrange(qkv, "b t (n h d) -> n b h t d", n=3, h=nh)`. The
#   grader takes both.
# - **Packed per head.** `view(B, T, nh, 3, hd).permute(3, 0, 2, 1, 4)` looks similar, but splits first into heads,
#   and then each head into q, k, v: q, k, v of head 0, then q, k, v of head 1. Some published models store their
#   weights so. This one does not.
# - **`mask == 0`** where the mask holds floats. Comparing floats with `==` is risky after arithmetic. Here it is
#   safe: `tril(ones)` writes exact zeros and ones, and nothing writes into the mask afterwards.
# - **Weights the other way round.** GPT-2's own layers have biases, and keep their weights as (in, out), where
#   `nn.Linear` has (out, in). To load them you would have to handle both.

# %% [markdown]
# ## Your turn: `gpt2_attention`
#
# The function takes the name of a model and returns its attention module. All it needs are the columns n_embd and
# n_head; the rest is there to compare with what you read elsewhere. (*Layers* says how many such modules the model
# stacks.)
#
# | name | n_embd | n_head | hd | layers |
# |---|---|---|---|---|
# | small | 768 | 12 | 64 | 12 |
# | medium | 1024 | 16 | 64 | 24 |
# | large | 1280 | 20 | 64 | 36 |
# | xl | 1600 | 25 | 64 | 48 |
#
# | name | 4 C² | parameters in all |
# |---|---|---|
# | small | 2,359,296 | 124,439,808 |
# | medium | 4,194,304 | 354,823,168 |
# | large | 6,553,600 | 774,030,080 |
# | xl | 10,240,000 | 1,557,611,200 |
#
# The `block_size` of all four is 1024. In GPT-2 a head is 64 channels wide, always.
#
# You will meet tables that give medium 24 heads and large 36. Those are the numbers of *layers*, in the wrong column.
# You can see it without looking it up: 1024 / 24 and 1280 / 36 are not whole, so your own module refuses them. You
# will also read of 117M, 345M and 762M parameters for the first three. The GPT-2 paper (Radford and others, *Language
# Models are Unsupervised Multitask Learners*, 2019) says so, but if you count, they have 124, 355 and 774 million.
#
# (The paper gives the widths, the layers, and the 50,257 different tokens that GPT-2 knows. [Hugging Face's
# settings](https://huggingface.co/docs/transformers/model_doc/gpt2) give the heads, and a dropout of 0.1. With its
# biases one attention layer of GPT-2 has 4 C² + 4 C parameters: 3 C for q, k and v, and C for the output.)
#
# If you type `"big"`, the message should list the valid names.


# %% tags=["solution"]
def gpt2_attention(size: str) -> CausalSelfAttention:
    """Make the attention module of one of the four GPT-2 models, without dropout.

    Args:
        size: "small", "medium", "large" or "xl".

    Returns:
        A CausalSelfAttention with a block_size of 1024 tokens and that model's width and number of heads.

    Raises:
        ValueError: size is none of the four; the message lists them.
    """
    ### BEGIN SOLUTION
    sizes = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in sizes:
        raise ValueError(f"no GPT-2 of size {size!r}; there are {', '.join(sizes)}")
    n_embd, n_head = sizes[size]
    return CausalSelfAttention(n_embd, n_head, block_size=1024)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `gpt2_attention`
#
# The width can be read off the weight. The number of heads cannot: any cut of C has the same parameters. So the check
# makes one head behave differently. Only channel 0 has a non-zero query and key, so only the head that owns channel 0
# differs from the plain average. It has 64 channels.

# %% tags=["check"]
if __name__ == "__main__":
    for name, width in (("small", 768), ("medium", 1024), ("large", 1280), ("xl", 1600)):
        layer = gpt2_attention(name).eval()
        shape = tuple(layer.qkv.weight.shape)
        assert shape == (3 * width, width), f"{name} should have a qkv weight of {(3 * width, width)}, yours: {shape}"

        first_only = torch.zeros(width, width)
        first_only[0, 0] = 1.0
        weights = {"qkv.weight": torch.cat([first_only, first_only, torch.eye(width)]), "proj.weight": torch.eye(width)}
        layer.load_state_dict(weights, strict=False)
        x = torch.arange(2.0 * width).view(1, 2, width) / width + 1.0
        different = ((layer(x)[0, 1] - x[0].mean(dim=0)).abs() > 1e-2).sum().item()
        assert different == 64, (
            f"a head of {name} should be 64 channels wide; in yours {different} channels share a head"
        )
        print(f"gpt2_attention: {name}, {width // 64} heads of 64, {4 * width * width:,} parameters")

    try:
        gpt2_attention("big")
    except (ValueError, AssertionError) as error:
        unnamed = [name for name in ("small", "medium", "large", "xl") if name not in str(error)]
        assert not unnamed, f'the refusal of "big" should list all four names; it leaves out {unnamed}'
        print(f"gpt2_attention refuses what it does not know: {error}")
    else:
        raise AssertionError('gpt2_attention("big") went through; the docstring asks for a ValueError')

# %% [markdown]
# ### Ask your oracle
#
# If you have written [exercise 6](06_mha_by_loop.ipynb) in the file beside this one, your loop can check your batched
# module: the same weights, the same input, two ways to the answer. In float32 they should be about 1e-7 apart.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        import importlib.util
        from pathlib import Path

        beside = Path(globals().get("__file__", "07_fused_qkv.py")).resolve().with_name("06_mha_by_loop.py")
        loop = importlib.util.module_from_spec(importlib.util.spec_from_file_location("loop", beside))
        loop.__loader__.exec_module(loop)
        torch.manual_seed(67)
        batched, x = CausalSelfAttention(n_embd=64, n_head=4, block_size=32).eval(), torch.randn(2, 32, 64)
        batched.n_head, batched.head_dim = 4, 16
        with torch.no_grad():
            gap = (loop.mha_by_loop(batched, x) - batched(x)).abs().max().item()
    except NotImplementedError:
        print("CausalSelfAttention or mha_by_loop is not written yet, so the comparison waits.")
    except FileNotFoundError:
        print("06_mha_by_loop.py is not beside this file, so the comparison waits.")
    else:
        print(f"loop and batch are at most {gap:.1e} apart; 1e-5 is the line")

# %% [markdown]
# ## GPT-2 with your attention
#
# Your `CausalSelfAttention` *is* the attention of GPT-2, without the biases. So GPT-2 can write with it. In a terminal,
# or in a cell with `%` before the command:
#
#     course gpt2 "The capital of France is"
#     course plot fused_qkv --gpt2
#
# The first command puts your class into all twelve blocks of GPT-2 small, with the published weights. GPT-2 continues
# the text twice: first with its own attention, then with yours. Now make a famous mistake on purpose: divide by √C, leave
# the mask out, or use `view` where `transpose` is needed. Every shape stays right, and GPT-2 writes nonsense. The second
# command draws the twelve heads of one block. If something has to be installed first, the command says what.
#
# ## Onward
#
# You have written all of the arithmetic yourself. Next, let PyTorch do it, and prove that nothing changed: go on with
# [8 · The fast path, and how you know](08_sdpa_equivalence.ipynb).
