# %% [markdown]
# # 2 · The causal mask
#
# *About 35 minutes. You need: [1 · Attention scores](01_attention_scores.ipynb). After this:
# [3 · Self-attention as a module](03_self_attention.ipynb).*
#
# A language model learns by guessing the next word. If it can see that word while it guesses, it has nothing to
# learn. The loss falls wonderfully, and afterwards the model cannot write a sentence. The causal mask is the hand
# that covers the rest of the page. (*Causal* means: what comes later changes nothing that came before.)
#
# ## Who may see whom
#
# Rows are queries (who looks), columns are keys (who is looked at). A word may look at itself and at the words before
# it. Here is the table of the first exercise again, behind its mask:
#
# ![The table of the first exercise behind the mask: what lies above the diagonal is hidden, each row sums to 1
# again](figures/02_causal_mask.svg)
#
# The diagonal matters. *Your* has no past: if you hide the diagonal too, its row is empty. The softmax of an empty
# row is NaN, and one NaN (*not a number*) is enough to spoil the whole network. Showing one column too
# many is worse, because there is no error: each word then sees exactly the word it should predict.
#
# **Which way is True?** Here, True means *may look*, as in PyTorch's own `F.scaled_dot_product_attention`. In its
# `nn.MultiheadAttention` a boolean mask says the opposite: True means *hidden*. You will meet both, so read the docs
# each time. A mask the wrong way round shows each word only the future, and the last word nothing. PyTorch does not
# complain.
#
# ## What you need of PyTorch
#
# - `torch.ones(m, n, dtype=torch.bool)`: a table of True; `device=` says where it lies.
# - `x.tril()`: keeps what stands on the diagonal and below; all else becomes False or 0.
# - `x.masked_fill(mask, value)`: a copy of x, with that value where the mask is True.

# %% tags=["setup"]
import torch

# %% [markdown]
# ## Your turn: `causal_mask`
#
# PyTorch has helpers for the lower and the upper triangle of a matrix. Pick one, and take care of the diagonal.
#
# The mask must be boolean. `~` turns True into False and False into True. On a float mask `~` is an error, and on an
# integer mask it is a surprise (~1 is −2). And make it on the device you are given, or it is in the wrong place when
# the model is on a GPU (a graphics card, which computes faster).


# %% tags=["solution"]
def causal_mask(T: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Say who may see whom in a sequence of T tokens.

    Args:
        T: number of tokens, at least 1.
        device: where to make the mask; None is PyTorch's default device.

    Returns:
        A mask of dtype bool, (T, T): True where the query (row) may attend to the key (column). A token may
        attend to itself.
    """
    ### BEGIN SOLUTION
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()  # (T, T)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `causal_mask`
#
# Four tokens, drawn with a ● where a token may look, and then the mask for a single token, which must at least see
# itself. The device check uses "meta", a pretend device that every machine has: its tensors have a shape and no data.

# %% tags=["check"]
if __name__ == "__main__":
    mask = causal_mask(4)
    assert mask.dtype == torch.bool, f"the mask should be boolean; yours is {mask.dtype}"
    assert mask.shape == (4, 4), f"four tokens make a (4, 4) mask, not {tuple(mask.shape)}"
    drawn = ["".join("●" if seen else "·" for seen in row) for row in mask.tolist()]
    assert drawn[0][0] == "●", f"the first token must see itself; your mask, one row per query: {drawn}"
    assert drawn == ["●···", "●●··", "●●●·", "●●●●"], f"each token sees itself and the past; yours: {drawn}"
    assert causal_mask(1).tolist() == [[True]], "a single token sees itself"
    assert causal_mask(3, device="meta").device.type == "meta", "the mask should be built on the device asked for"
    print("causal_mask: itself and the past, nothing else")

# %% [markdown]
# ## Where the mask goes, and what it puts there
#
# The hidden scores become −inf *before* the softmax. Since e^(−inf) = 0, a hidden key gets exactly nothing, and the
# keys that are left share exactly 1. Here is *journey* again, with its scores from the first exercise (they are not
# scaled there; that makes no difference to the mask):
#
# | key | score | masked | weight |
# |---|---|---|---|
# | Your | 0.9544 | 0.9544 | 0.3680 |
# | journey | 1.4950 | 1.4950 | 0.6320 |
# | starts | 1.4754 | −inf | 0 |
# | with | 0.8434 | −inf | 0 |
# | one | 0.7070 | −inf | 0 |
# | step | 1.0865 | −inf | 0 |
# | sum | | | 1 |
#
# ## Your turn: `mask_scores`
#
# Broadcasting saves you work: shapes are lined up from the right, so one (T, T) mask serves scores of shape
# (B, nh, T, T) for every sequence and every head (nh is the number of heads).
#
# PyTorch's filling functions have three traps. First, a function whose name ends in `_` changes the tensor itself.
# The scores are not yours, so return a new tensor. Second, a function without the `_` returns its result, and if you
# do not keep it, nothing has happened. Third, all of them fill where their mask is True, and True in our mask
# means visible.


# %% tags=["solution"]
def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Hide what may not be seen: −inf wherever the mask is False.

    Args:
        scores: (..., T_q, T_k), a float dtype; not changed.
        mask: bool, broadcastable to the shape of the scores; True where the query may attend to the key.

    Returns:
        A new tensor of the shape and dtype of the scores.
    """
    ### BEGIN SOLUTION
    return scores.masked_fill(~mask, float("-inf"))  # (..., T_q, T_k)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `mask_scores`
#
# Two queries and three keys, under a mask that is not causal: the visible scores do not change at all, the hidden
# ones become −inf, and your argument is not changed.

# %% tags=["check"]
if __name__ == "__main__":
    scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    allowed = torch.tensor([[True, False, True], [False, True, True]])
    masked = mask_scores(scores, allowed)
    assert masked.shape == (2, 3), f"masking keeps the shape: (2, 3), not {tuple(masked.shape)}"
    assert scores.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "the caller's scores were overwritten"
    assert masked[allowed].tolist() == [1.0, 3.0, 5.0, 6.0], (
        f"where the mask is True the score stays, 1 3 5 6; yours are {masked[allowed].tolist()}"
    )
    hidden = [masked[0, 1].item(), masked[1, 0].item()]
    assert max(hidden) < -1e3, f"where the mask is False there should be −inf; yours are {hidden}"
    stacked = mask_scores(scores.expand(2, 4, 2, 3), allowed)
    assert stacked.shape == (2, 4, 2, 3), f"one mask serves every batch and head; got {tuple(stacked.shape)}"
    assert torch.equal(stacked[1, 3], masked), "every batch and head should be masked alike"
    print("mask_scores: what is hidden is −inf, and your argument is not changed")

# %% [markdown]
# ## Your turn: `causal_weights`
#
# Put the two together and share out. T can be read off the scores, and so can the device. In which order do masking
# and softmax come? If in doubt, sum a row.


# %% tags=["solution"]
def causal_weights(scores: torch.Tensor) -> torch.Tensor:
    """Share out each query's attention over itself and the past.

    Args:
        scores: (..., T, T), a float dtype, already scaled; not changed.

    Returns:
        Weights of the same shape and dtype: rows sum to 1, with 0 above the diagonal.
    """
    ### BEGIN SOLUTION
    mask = causal_mask(scores.shape[-1], device=scores.device)  # (T, T)
    return torch.softmax(mask_scores(scores, mask), dim=-1)  # (..., T, T)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `causal_weights`
#
# First *Your*, *journey* (with the numbers of the table above) and *starts*. Then four tokens without preferences: the
# first gives all to itself, the next 1/2 to each that it sees, then 1/3, then 1/4. Last comes a test that you will
# meet again and again: **edit the future, and the past must not change.**

# %% tags=["check"]
if __name__ == "__main__":
    scores = torch.tensor([[0.9995, 0.9544, 0.9422], [0.9544, 1.4950, 1.4754], [0.9422, 1.4754, 1.4570]])
    weights = causal_weights(scores)
    assert weights.shape == (3, 3), f"weights have the shape of the scores, (3, 3), not {tuple(weights.shape)}"
    assert not weights.isnan().any(), "there is a NaN: does some row hide every key, or meet 0 · inf?"
    totals = [round(total, 4) for total in weights.sum(dim=1).tolist()]
    assert totals == [1.0, 1.0, 1.0], f"rows sum to 1 even under a mask; yours sum to {totals}"
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.3680, 0.6320, 0.0], [0.2284, 0.3893, 0.3822]])
    assert torch.allclose(weights, expected, atol=2e-4), f"expected {expected.tolist()}, got {weights.tolist()}"

    even = causal_weights(torch.zeros(2, 5, 4, 4))
    assert torch.allclose(even[1, 2, 3], torch.full((4,), 0.25)), "the fourth token should give a quarter to each"

    edited = scores.clone()
    edited[0, 1:] = 30.0
    edited[1, 2:] = 30.0
    assert torch.allclose(causal_weights(edited), weights, atol=1e-6), "hidden scores were edited, and weights moved"
    print("causal_weights: the rest of the page is covered")

# %% [markdown]
# ### Why −inf, and why before
#
# Here are two mistakes, with the weights of *journey*:
#
# | weight of | 0 in place of −inf | masked after softmax |
# |---|---|---|
# | Your | 0.2349 | 0.1385 |
# | journey | 0.4033 | 0.2379 |
# | starts, with, one, step | 0.0904 each | 0 |
# | sum | 1 | 0.3764 |
#
# - **Zero is a score like any other.** e^0 is 1, not 0: 36 % of *journey*'s attention goes to the future.
# - **−10 is not enough either.** Each hidden word still gets a little (here under 0.00001), and a test that allows
#   large errors does not notice. If a trained model's own scores are below −10, the hidden words even win.
# - **After the softmax is too late.** The hidden words have already taken their shares, and *journey* has only 0.3764
#   left to give.
# - **Multiplying a mask of zeros and ones by −inf** does not help: 0 · (−inf) is NaN. Adding such a mask is no help
#   either: it changes scores by 1 and hides nothing.
# - **+inf** turns the row into NaN: PyTorch subtracts the largest score first, and ∞ − ∞ has no value.
#
# ### Predict before you run
#
# Six words without any preference: all scores are 0. Every *row* still gives away exactly 1. How much does the first
# word *receive* in all, down its column? And how much the last one?

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        received = causal_weights(torch.zeros(6, 6)).sum(dim=0)
    except NotImplementedError:
        print("causal_weights is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"the first word receives {received[0]:.2f}, the last one {received[-1]:.2f}:")
        print("every word sees the first one, and only the last word sees the last")

# %% [markdown]
# ## Onward
#
# These three functions have nothing to learn and keep nothing. Go on with
# [3 · Self-attention as a module](03_self_attention.ipynb).
