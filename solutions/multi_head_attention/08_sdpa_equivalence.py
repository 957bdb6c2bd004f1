# %% [markdown]
# # 8 · The fast path, and how you know
#
# *About 45 minutes. You need: [7 · The fused QKV](07_fused_qkv.ipynb). After this: a model of your own.*
#
# All that you wrote by hand is one function in PyTorch: `F.scaled_dot_product_attention`, SDPA for short. It takes q,
# k and v as `(B, nh, T, hd)`, the shape that you already have. It is usually faster than the path by hand. And where
# it has a *fused kernel*, one program on the processor that does all the steps, it keeps no (T, T) square in memory.
#
# Calling it is half of this exercise. The other half is to *know* that your call is right. So your module keeps both
# paths, and a flag says which one runs:
#
# ```text
# x ─▶ T ≤ block_size? ─▶ qkv ─▶ heads
#  ├─ flash=True    SDPA
#  └─ flash=False   scores, mask,
#                   softmax, sum
#                   (T × T, only here)
#  ▶ join ─▶ proj ─▶ dropout
# ```
#
# All that comes before and after the two paths is shared, the weights too: one module, one set of weights.
#
# ## Four things to know about SDPA
#
# **It scales for you.** SDPA divides by √hd, which it reads off the last axis of q. If you divide as well, the scores
# are divided twice, by hd in all. Nothing looks wrong: with hd = 16 the scores are a quarter of what they should be,
# and every head spreads its attention too evenly.
#
# **It does not know about `eval()`.** Its `dropout_p` is a number, not a module. Give it the probability while
# `self.training` is true, and 0.0 otherwise. If you forget, the model answers differently every time, even in eval
# mode.
#
# **It can mask for you.** With `is_causal=True` you need no mask at all. If you give a mask of your own, two things
# can go wrong. In a boolean mask True means *may look*, while in `masked_fill` True means *hide*. And a mask is
# itself a (T, T) tensor, which you want to avoid here; it may also lead to a slower kernel.
#
# **It does not know your `block_size`.** The path by hand fails when T is larger than the mask. SDPA has no mask, so
# it gives an answer with no error, even for positions the model was never made for. Refuse such a T before the paths
# part, so that both refuse it.
#
# ## What you need of PyTorch
#
# - `F.scaled_dot_product_attention(q, k, v, …)`: its `dropout_p` counts in eval mode, too.
# - `module.training`, `module.train()`, `module.eval()`: the mode, and how it is set.
# - `x.abs()`, `x.max()`: sizes without signs, and the largest number.

# %% tags=["setup"]
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% [markdown]
# ## Your turn: `CausalSelfAttention`, with two paths
#
# Copy your module of exercise 7 in here, add the flag, and write the second path. Keep the four things in mind.


# %% tags=["solution"]
class CausalSelfAttention(nn.Module):
    """Attend causally with n_head heads, through PyTorch's own function or by hand.

    Attributes:
        qkv: Linear layer from n_embd to three times n_embd, without bias: queries, keys, values, in order.
        proj: Linear layer from n_embd to n_embd, without bias.
        flash: Whether forward goes through PyTorch's own function. May be changed at any time.
    """

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0, flash: bool = True) -> None:
        """Make what both paths need.

        Args:
            n_embd: Channels C of each token, in and out.
            n_head: How many heads share the channels evenly.
            block_size: The most tokens that forward accepts, on either path.
            dropout: In training, the probability in [0, 1) that a weight is dropped; the same for an output channel.
            flash: Which path to start with.

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
        self.dropout = dropout
        self.flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        visible = torch.ones(block_size, block_size, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)  # for the path by hand
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token attend to itself and the tokens before it, on the path that flash names.

        With flash it makes no (T, T) tensor of its own; without flash the arithmetic is written out. The results agree.

        Args:
            x: (B, T, C), floating point, T at most block_size. Not changed.

        Returns:
            (B, T, C), in the dtype and on the device of x.

        Raises:
            ValueError: T exceeds block_size, on either path; the message names both numbers.
        """
        ### BEGIN SOLUTION
        B, T, C = x.shape
        if self.block_size < T:
            raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")

        q, k, v = self.qkv(x).split(C, dim=-1)  # (B, T, C) each
        q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        k = k.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)
        v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)

        if self.flash:
            dropout_p = self.dropout if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)  # (B, nh, T, hd)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)
            scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)
            y = self.attn_dropout(scores.softmax(dim=-1)) @ v  # (B, nh, T, hd)

        y = y.transpose(1, 2).reshape(B, T, C)  # (B, T, C)
        return self.resid_dropout(self.proj(y))  # (B, T, C)
        ### END SOLUTION


# %% [markdown]
# ### See for yourself: `CausalSelfAttention`
#
# Both paths take the same inputs and refuse the same ones. Then the check looks at what *autograd*, the part of
# PyTorch that computes gradients, stores for later. By hand there is at least one (T, T) square among the stored
# tensors; on the fast path there should be none.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(8)
    layer = CausalSelfAttention(n_embd=48, n_head=4, block_size=20).eval()
    assert layer.flash is True, "the fast path should be the default: flash is True unless it is given"
    owned = sum(p.numel() for p in layer.parameters())
    assert owned == 4 * 48 * 48, f"4 · 48² = 9,216 parameters are expected on either path, yours has {owned}"

    def squares_kept(length):
        """Count the floating (T, T) tensors that autograd keeps."""
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            layer(torch.randn(2, length, 48))
        return sum(t.is_floating_point() and tuple(t.shape[-2:]) == (length, length) for t in kept)

    for path, layer.flash in (("flash", True), ("by hand", False)):
        for length in (20, 7, 1):
            shape = tuple(layer(torch.randn(2, length, 48)).shape)
            assert shape == (2, length, 48), f"{path}: (2, {length}, 48) should keep its shape, yours is {shape}"
        try:
            layer(torch.randn(1, 21, 48))
        except (ValueError, AssertionError, RuntimeError) as error:
            print(f"CausalSelfAttention, {path}, refuses 21 tokens: {error}")
        else:
            raise AssertionError(
                f"{path}: 21 tokens went through with a block_size of 20; the docstring asks for a ValueError"
            )

        before = torch.randn(1, 9, 48)
        after = before.clone()
        after[:, 6:] = torch.randn(1, 3, 48)
        moved = (layer(before) - layer(after)).abs().amax(dim=(0, 2))
        assert moved[:6].max() < 1e-6, f"{path}: tokens 0…5 changed with the future: it leaks into the past"
        assert moved[6:].min() > 1e-6, f"{path}: tokens 6…8 were rewritten and their output stayed"

        dropped = CausalSelfAttention(48, 4, 20, dropout=0.5, flash=layer.flash)
        assert not torch.equal(dropped(before), dropped(before)), f"{path}: in training, dropout should be at work"
        dropped.eval()
        assert torch.equal(dropped(before), dropped(before)), (
            f"{path}: dropout is still on in eval mode; what turns it off?"
        )

        squares = squares_kept(19)
        remark = ": with is_causal=True SDPA makes none" if layer.flash and squares else ""
        print(
            f"CausalSelfAttention, {path}: the past is safe, dropout is off in eval mode, {squares} square(s) kept{remark}"
        )

# %% [markdown]
# ### Why it works
#
# The path by hand makes a square of scores for every head of every sequence, writes it to memory, reads it back to
# mask it, again for the softmax, again for the sum. The square grows with T². With B = 16, nh = 12, T = 4096 and
# float32 that is 16 · 12 · 4096 · 4096 · 4 bytes, about 12.9 GB, for one layer.
#
# A fused kernel such as FlashAttention works in tiles. It takes a few rows of q and a few of k and v at a time, keeps
# the maximum and the sum so far (a *running* maximum and sum) for the softmax, and never has the whole square in
# memory. The same numbers come out; memory grows with T.
#
# ![By hand 144 scores are in memory at once; fused, 16 at a time, while a running maximum and a running sum are
# carried along](figures/08_sdpa_equivalence.svg)
#
# How much faster is that? Here are times from an A100, a large GPU:
#
# | T | by hand | SDPA | times faster | square not made |
# |---|---|---|---|---|
# | 256 | 0.31 ms | 0.11 ms | 2.8 | 3 MB |
# | 1024 | 3.9 ms | 0.9 ms | 4.3 | 50 MB |
# | 4096 | 71 ms | 11 ms | 6.5 | 805 MB |
#
# Source of the times: Kader Mohideen, *Day 5 — Multi-Head Attention: Many Perspectives in Parallel*, a post. It
# gives neither the batch, nor the heads, nor the dtype, so we could not repeat the measurement. The last column is
# arithmetic for one sequence, 12 heads and float32: 12 · T² · 4 bytes. On your machine the times will differ, so
# measure: `course bench` prints both, and this A100 beside them.
#
# Which kernel runs depends on the dtype. On a GPU, PyTorch's FlashAttention needs 16-bit floats (float16 or
# bfloat16); in float32 SDPA takes its memory-efficient kernel, which makes no square either. A CPU has a fused
# kernel, too, also for float32, so you can expect a gain there. With dropout it takes a plain path, which does keep
# squares.
#
# What does it cost to scale twice? We trained the small model of exercise 1 from the start with the double division:
# it was no worse. Another model learned with √hd. Then we divided its scores twice, and it went from a loss of 1.57
# to 2.55 ([the gallery of silent bugs](../../docs/gallery.md)). The loss is minus the natural logarithm of the right
# character's probability, on average (in the gallery: *cross-entropy*, in *nats*).
#
# ## Your turn: `max_path_difference`
#
# Two calls and one subtraction. How close counts as equal? Not every digit need agree. The fused kernel adds in
# another order, and with floating-point numbers the order of a sum changes its last digits. In float32, with the
# module of the check below (64 channels, 4 heads, 16 tokens, a dropout of 0.3) and eight random starts:
#
# | largest difference | what it means |
# |---|---|
# | about 1e-7 | round-off; all is well |
# | up to 1e-5 | still round-off, for larger numbers or longer sums |
# | 0.1 to 0.2 | a scale done twice |
# | 0.5 to 0.8 | dropout left on |
# | 0.8 to 1.0 | no mask on one of the paths, or you compare different things |
#
# For a fair comparison:
#
# - Dropout must be *off*. Dropout is random: the paths would differ even if both are right.
# - No gradients: you do not need them here, and they keep every square in memory.
# - Leave no trace. If you call the function in the middle of training, you want the module back unchanged: same flag,
#   same mode, same weights. That holds even if a path raises an exception half way. (`try` has a keyword for this.)
#
# A path compared with itself gives 0.0, always, and proves nothing. Make sure that the flag really changes between
# the two calls.


# %% tags=["solution"]
def max_path_difference(module: CausalSelfAttention, x: torch.Tensor) -> float:
    """Measure how far the fast path and the path by hand are apart.

    Dropout is off and no gradients are recorded meanwhile. Afterwards the module has the flag, the mode
    and the weights that it had before.

    Args:
        module: Any CausalSelfAttention, training or not, on either path.
        x: (B, T, C), T at most the module's block_size. Not changed.

    Returns:
        The largest absolute difference between the two outputs, as a Python float.
    """
    ### BEGIN SOLUTION
    flash, modes = module.flash, [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with torch.inference_mode():
            module.flash = True
            fast = module(x)  # (B, T, C)
            module.flash = False
            by_hand = module(x)  # (B, T, C)
    finally:
        module.flash = flash
        for part, training in modes:
            part.training = training
    return (fast - by_hand).abs().max().item()
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `max_path_difference`
#
# Modules in training mode and in eval mode, on either path, with a dropout of 0.3: the difference should be small
# every time, and each module should be unchanged.

# %% tags=["check"]
if __name__ == "__main__":
    torch.manual_seed(88)
    x = torch.randn(2, 16, 64)
    for flash, training in ((True, True), (False, True), (True, False), (False, False)):
        layer = CausalSelfAttention(64, 4, block_size=32, dropout=0.3, flash=flash).train(training)
        weights = {name: p.detach().clone() for name, p in layer.named_parameters()}
        gap = max_path_difference(layer, x)
        assert isinstance(gap, float), f"a Python float is expected, yours is {type(gap).__name__}"
        assert gap < 1e-5, f"the paths are {gap:.1e} apart; see the table of differences in the lesson"
        assert layer.flash is flash, f"flash was {flash} before the call and is {layer.flash} after it"
        assert layer.training is training, f"training was {training} before the call and is {layer.training} after it"
        for name, p in layer.named_parameters():
            assert torch.equal(p, weights[name]), f"{name} changed during the comparison"
            assert p.grad is None, f"{name} has a gradient after the comparison; none should be recorded"
        print(f"max_path_difference: {gap:.1e} from flash={flash}, training={training}, and nothing disturbed")

# %% [markdown]
# ### Predict before you run
#
# In float32 the two paths are about 1e-7 apart. Now the same module in float64, with about nine more digits. Does the
# difference stay, shrink a little, or shrink a great deal?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        torch.manual_seed(64)
        forked = CausalSelfAttention(64, 4, block_size=32)
        x = torch.randn(2, 32, 64)
        apart = [max_path_difference(forked, x), max_path_difference(forked.double(), x.double())]
    except NotImplementedError:
        print("CausalSelfAttention or max_path_difference is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"{apart[0]:.0e} in float32, {apart[1]:.0e} in float64: what shrinks with the digits was round-off;")
        print("a real mistake would be as large as before")

# %% [markdown]
# ### Going further
#
# Keep this habit: *write the plain version until you understand it, swap in the fast one, and check the one against
# the other with numbers.* That is the difference between "I use FlashAttention" and "I know that my call is right".
#
# ## Onward
#
# That was the last of the eight. See your own module learn (`course train sdpa_equivalence`), look into its heads
# (`course plot sdpa_equivalence`), and measure what the fast path saves you (`course bench`).
#
# And let GPT-2 write with it: `course gpt2 "Once upon a time"` now puts this class, with your fast path, into all of
# GPT-2's blocks. The text should be the same as with exercise 7, for the two paths differ by round-off only.
#
# Real models add padding, shared keys, positions and a cache. These are in the second assignment: *Attention in
# practice*.
