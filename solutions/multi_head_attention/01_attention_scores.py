# %% [markdown]
# # 1 · Attention scores
#
# *About 50 minutes. You need: matrix products, and a little of PyTorch's tensors. After this:
# [2 · The causal mask](02_causal_mask.ipynb).*
#
# ## What attention is for
#
# Before attention, a model read word by word, and kept all it had read in one vector, a row of numbers of fixed size.
# Each new word changed that vector, so what stood far back was slowly forgotten. Each step waited for the one before.
# With attention, every word looks at all words at once. In GPT-2, which writes text, attention is the only place
# where information passes from one word to another.
#
# ```text
# before: step by step, in one vector
# Your→journey→starts→with→one→step
#
# attention: each word looks at all
# Your journey starts with one step
#  ▲      ▲      ▲     ▲    ▲   ▲
#  └──────┴──┬───┴─────┴────┴───┘
#         journey
# ```
#
# ## The bare idea, with numbers
#
# Attention takes three moves: **compare, share out, mix**. Here are six words, *Your journey starts with one step*,
# each a row of numbers:
#
# ```text
#     Your      0.43  0.15  0.89
#     journey   0.55  0.87  0.66
#     starts    0.57  0.85  0.64
#     with      0.22  0.58  0.33
#     one       0.77  0.25  0.10
#     step      0.05  0.80  0.55
# ```
#
# **Compare.** Each word is three numbers (a model learns them; these are made up). *journey* asks: which words matter
# to me? The score of two words is the dot product of their two rows: it is large where both have large numbers in the
# same columns. With *Your* that is 0.55 · 0.43 + 0.87 · 0.15 + 0.66 · 0.89 = 0.9544.
#
# **Share out.** The weights are the softmax of the scores: e to the power of each score, divided by the sum of these
# six powers. Scores and weights of *journey*:
#
# | word | score | weight |
# |---|---|---|
# | Your | 0.9544 | 0.1385 |
# | journey | 1.4950 | 0.2379 |
# | starts | 1.4754 | 0.2333 |
# | with | 0.8434 | 0.1240 |
# | one | 0.7070 | 0.1082 |
# | step | 1.0865 | 0.1581 |
# | sum | | 1 |
#
# **Mix.** Add up the six vectors, each times its weight. You get (0.4419, 0.6515, 0.5683), *journey* as seen in its
# sentence: its context vector, or answer.
#
# Now all six: T tokens (here, words) with C channels each (here, three). Each word meets each word: this makes a
# (T, T) table of dot products, and one matrix product fills it:
#
# ```text
# x        (T, C)
#   ↓ compare
# scores   (T, T)
#   ↓ share out
# weights  (T, T)
#   ↓ mix the rows of x
# answers  (T, C)
# ```
#
# Each row belongs to the word that asks, so the softmax runs along the row.
#
# ## What you need of PyTorch
#
# - `a @ b`: the matrix product of the last two axes, for each index of the axes before them.
# - `x.transpose(-2, -1)`, or `x.mT`: the last two axes change places.
# - `torch.softmax(x, dim=…)`: shares along that axis, which sum to 1.

# %% tags=["setup"]
import math

import torch

# %% [markdown]
# ## Your turn: `simplified_attention`
#
# Here nothing is learned and no word is hidden. Other axes may stand in front of T and C (`...` in the docstring),
# such as a batch of B sequences. So count axes from the end: the last is −1, the one before it −2. (`.T` reverses
# *all* axes, which is wrong as soon as there is a batch.)


# %% tags=["solution"]
def simplified_attention(x: torch.Tensor) -> torch.Tensor:
    """Let every token look at every token, with nothing to learn: softmax(x xᵀ) x.

    Args:
        x: tokens, (..., T, C), a float dtype; any number of leading dimensions, or none.

    Returns:
        One context vector for each token, (..., T, C), in the dtype (type of number, such as float32) and on the
        device (CPU or GPU) of x.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)
    return weights @ x  # (..., T, C)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `simplified_attention`
#
# Run the cell; or type `course check attention_scores` in a terminal, which tests more. First comes *journey*, with
# the numbers of the lesson, then the other five words. Then the sentence and its reverse in a batch: a neighbour in
# the batch must change nothing.

# %% tags=["check"]
if __name__ == "__main__":
    sentence = torch.tensor(
        [
            [0.43, 0.15, 0.89],  # Your
            [0.55, 0.87, 0.66],  # journey
            [0.57, 0.85, 0.64],  # starts
            [0.22, 0.58, 0.33],  # with
            [0.77, 0.25, 0.10],  # one
            [0.05, 0.80, 0.55],  # step
        ]
    )
    expected = torch.tensor(
        [
            [0.4421, 0.5931, 0.5790],
            [0.4419, 0.6515, 0.5683],
            [0.4431, 0.6496, 0.5671],
            [0.4304, 0.6298, 0.5510],
            [0.4671, 0.5910, 0.5266],
            [0.4177, 0.6503, 0.5645],
        ]
    )
    context = simplified_attention(sentence)
    assert context.shape == (6, 3), f"six words in, six context vectors out: (6, 3), not {tuple(context.shape)}"
    assert torch.allclose(context[1], expected[1], atol=2e-4), (
        f"journey should become (0.4419, 0.6515, 0.5683); yours is {context[1].detach()}. Do its six weights sum to 1?"
    )
    assert torch.allclose(context, expected, atol=2e-4), "journey is right, but another word is not: see expected"

    batch = torch.stack([sentence, sentence.flip(0)])
    both = simplified_attention(batch)
    assert both.shape == (2, 6, 3), f"a batch keeps its leading dimension: (2, 6, 3), not {tuple(both.shape)}"
    assert torch.allclose(both[0], context, atol=1e-5), "a second sentence in the batch changed the first one"
    print("simplified_attention: journey now knows its sentence")

# %% [markdown]
# ## Three roles instead of one
#
# So far one vector does three jobs. A *transformer*, the kind of model that GPT-2 is, gives each job a vector of its
# own: the **query** q (what am I looking for?), the **key** k (what can I be found by?) and the **value** v (what do
# I hand over when I am chosen?). Think of a library: the query is your question, the keys are the cards in the
# catalogue, the values are the books. You compare with the cards; you carry home the books. In exercise 3 you see
# where q, k and v come from: three learned matrices make them from the word's own vector.
#
# There may be more keys than queries, or fewer. With T_q queries and T_k keys the scores are a (T_q, T_k) table. When
# you try something out, take 2 queries and 3 keys: with 3 and 3, a swapped axis gives the same shape, and you would
# not notice.
#
# ## Why you divide by a square root
#
# Queries and keys have hd channels each. (hd is short for `head_dim`. One attention with its own q, k and v is called
# a *head*; exercise 4 has several.) A dot product over hd channels is a sum of hd products. Suppose each channel is
# random, with mean 0 and typical size 1. A sum of 64 such products typically has size √64 = 8, and scores of that
# size are bad for softmax:
#
# | scores | softmax | what it is |
# |---|---|---|
# | 8, 0, −8 | 0.9997, 0.0003, 0.0000 | one winner, hard to change |
# | 1, 0, −1 | 0.6652, 0.2447, 0.0900 | a choice that can still change |
#
# A model learns by small changes of its scores. Where one weight is nearly 1, such small changes hardly move the
# weights.
#
# Dividing by √hd brings that size back to 1, whatever hd is (Vaswani et al. 2017). Take the root of hd, the number of
# channels in q, not of C.

# %% [markdown]
# ## Your turn: `attention_scores`
#
# Read hd off the tensor that you are given, so that the function is right for any hd.


# %% tags=["solution"]
def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Score every query against every key: their dot product over √hd.

    Args:
        q: queries, (..., T_q, hd), a float dtype.
        k: keys, (..., T_k, hd), of the same dtype, with the same leading dimensions (or none).

    Returns:
        Scaled scores, (..., T_q, T_k): row i holds query i against each key.
    """
    ### BEGIN SOLUTION
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `attention_scores`
#
# Two queries, three keys, hd = 4, so the divisor is 2. By hand: the first query, 1 2 3 4, and the first key, 1 1 1 1,
# have the dot product 10, hence a score of 5. You get the other five numbers in the same way.

# %% tags=["check"]
if __name__ == "__main__":
    q = torch.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[1.0, 1.0, 1.0, 1.0], [4.0, 3.0, 2.0, 1.0], [1.0, -1.0, 1.0, -1.0]])
    expected = torch.tensor([[5.0, 10.0, -1.0], [1.0, 4.0, 1.0]])
    scores = attention_scores(q, k)
    assert scores.shape == (2, 3), f"two queries, three keys: (2, 3), not {tuple(scores.shape)}"
    assert torch.allclose(scores, expected, atol=1e-5), (
        f"expected {expected.tolist()}, got {scores.tolist()}: "
        "is every number off by the same factor, and what is that factor made of?"
    )
    several = attention_scores(q.expand(3, 5, 2, 4), k.expand(3, 5, 3, 4))
    assert several.shape == (3, 5, 2, 3), f"leading dimensions stay: (3, 5, 2, 3), not {tuple(several.shape)}"
    assert torch.allclose(several[2, 4], expected, atol=1e-5), "leading dimensions must not change the numbers"
    print("attention_scores: divided by the root of the number of products")

# %% [markdown]
# ### What a wrong divisor costs
#
# Say C is 64 and hd is 16. If you divide by √64 = 8 instead of √16 = 4, the scores are half as large as they should
# be, and the weights (0.6652, 0.2447, 0.0900) become (0.5065, 0.3072, 0.1863). You get no error. We call such a
# mistake a *silent bug*.
#
# We tried it with a small model (C = 64 and hd = 16) that reads *Alice's Adventures in Wonderland* and guesses each
# next character. Trained with the wrong divisor, it learned larger q and k and was just as good. A finished model
# whose divisor we changed got worse: its error, the *loss*, rose from 1.57 to 1.77. A loss of 1.57 means that it
# typically gives the right character a chance of 21 % (e^−1.57); 1.77 means 17 % ([the gallery of silent
# bugs](../../docs/gallery.md)).
#
# Other mistakes are dividing by hd itself, multiplying by √hd, and dividing after the softmax, so that rows no longer
# sum to 1.
#
# *Usual sizes.* The smallest GPT-2 has C = 768 channels and hd = 64, and reads at most T = 1024 tokens. In exercise 7
# you make it and its larger sisters.
#
# ## Your turn: `attention_weights`
#
# One query gives away one unit of attention over all its keys. Which axis do the keys lie on? Say it aloud before you
# type it. Do not divide each row by its plain sum (scores may be negative, but shares may not), and do not make the
# whole table sum to 1.


# %% tags=["solution"]
def attention_weights(scores: torch.Tensor) -> torch.Tensor:
    """Turn scores into weights: a softmax over the keys.

    Args:
        scores: (..., T_q, T_k), a float dtype; −inf (minus infinity) marks a key that must get nothing.

    Returns:
        Weights of the same shape and dtype, each in [0, 1]: the shares of one query sum to 1.
    """
    ### BEGIN SOLUTION
    return torch.softmax(scores, dim=-1)  # (..., T_q, T_k)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `attention_weights`
#
# Scores that are natural logarithms make softmax easy to do in your head: e to the power of log 1, log 2 and log 5 is
# 1, 2 and 5, which makes shares of 1/8, 2/8 and 5/8.

# %% tags=["check"]
if __name__ == "__main__":
    scores = torch.tensor([[1.0, 2.0, 5.0], [3.0, 3.0, 6.0]]).log()
    weights = attention_weights(scores)
    assert weights.shape == (2, 3), f"the shape of the scores is kept: (2, 3), not {tuple(weights.shape)}"
    totals = [round(total, 4) for total in weights.sum(dim=1).tolist()]
    assert totals == [1.0, 1.0], f"each query has one unit to spend; yours spend {totals}"
    expected = torch.tensor([[0.125, 0.25, 0.625], [0.25, 0.25, 0.5]])
    assert torch.allclose(weights, expected, atol=1e-5), f"expected {expected.tolist()}, got {weights.tolist()}"
    four = attention_weights(torch.zeros(2, 3, 4, 5))
    assert torch.allclose(four, torch.full((2, 3, 4, 5), 0.2)), (
        "five equal keys get a fifth each, in any batch and head"
    )
    print("attention_weights: every query spends exactly one")

# %% [markdown]
# ### Rows and columns
#
# ![The six words as a table of 6 × 6 weights: each row sums to 1, the column of journey to
# 1.30](figures/01_attention_scores.svg)
#
# (The six words and their numbers are from Raschka, *Build a Large Language Model (From Scratch)*, chapter 3.)
#
# Rows ask and columns answer. *journey* gives *starts* nearly as much as it gives itself, because their vectors are
# nearly the same. A row of the weights sums to 1; a column need not. The column of *journey* sums to 1.2970, because
# many words look at it. A softmax over the wrong axis is a silent bug, too: every shape is right, and the code runs,
# but the shares of a word no longer sum to 1.
#
# ### Predict before you run
#
# *journey* scored 0.9544, 1.4950, 1.4754, 0.8434, 0.7070 and 1.0865, and gave *starts* nearly as much as it gave
# itself. Now every score is ten times as large. How large is the largest weight then: about 0.24, about 0.5, or
# about 0.9? Say a number, and why, before you run the cell.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        loud = attention_weights(10 * torch.tensor([[0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]]))[0]
    except NotImplementedError:
        print("attention_weights is not written yet, so the answer waits. Keep your guess.")
    else:
        print(
            f"journey gives {loud[1]:.2f} to itself, {loud[2]:.2f} to starts and {1 - loud[1] - loud[2]:.2f} to the rest:"
        )
        print("softmax sees differences, and 14.950 is only 0.196 ahead of 14.754")

# %% [markdown]
# ## Your turn: `attend`
#
# You have both halves; now join them, and let the weights mix the *values*:
#
# $$ \mathrm{attend}(q, k, v) = \mathrm{softmax}(q\,k^\top / \sqrt{hd})\; v $$
#
# A value may be wider or narrower than a key: v is (..., T_k, hd_v), and so the answer is (..., T_q, hd_v). If you mix
# the keys by mistake, you will not notice as long as keys and values have the same shape.


# %% tags=["solution"]
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Answer each query with a weighted mix of all values: no key is hidden.

    Args:
        q: queries, (..., T_q, hd), a float dtype.
        k: keys, (..., T_k, hd).
        v: values, (..., T_k, hd_v), one for each key; hd_v may differ from hd.

    Returns:
        Answers, (..., T_q, hd_v).
    """
    ### BEGIN SOLUTION
    return attention_weights(attention_scores(q, k)) @ v  # (..., T_q, hd_v)
    ### END SOLUTION


# %% [markdown]
# ### See for yourself: `attend`
#
# A query of zeros has no preference, so it must get the plain mean of the values. The other query is made so that its
# two scores are 0 and log 3: its shares are then 1/4 and 3/4.

# %% tags=["check"]
if __name__ == "__main__":
    k = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    v = torch.tensor([[4.0, 0.0, 2.0], [0.0, 8.0, 2.0]])
    q = torch.tensor([[0.0, 0.0, 0.0, 0.0], [2 * math.log(3), 0.0, 0.0, 0.0]])
    answers = attend(q, k, v)
    assert answers.shape == (2, 3), f"two queries, values three wide: (2, 3), not {tuple(answers.shape)}"
    assert torch.allclose(answers[0], torch.tensor([2.0, 4.0, 2.0]), atol=1e-5), (
        f"without a preference the answer is the mean of the values, 2 4 2; yours is {answers[0].detach()}"
    )
    assert torch.allclose(answers[1], torch.tensor([1.0, 6.0, 2.0]), atol=1e-5), (
        f"a quarter of the first value and three of the second make 1 6 2; yours is {answers[1].detach()}"
    )
    print("attend: compare with the cards, carry home the books")

# %% [markdown]
# ## Onward
#
# Here every word saw the whole sentence, the words after it too. Go on with
# [2 · The causal mask](02_causal_mask.ipynb).
