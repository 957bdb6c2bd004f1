import math

import torch


def simplified_attention(x: torch.Tensor) -> torch.Tensor:
    """Let every token look at every token, with nothing to learn: softmax(x xᵀ) x.

    Args:
        x: tokens, (..., T, C), a float dtype; any number of leading dimensions, none included.

    Returns:
        One context vector for each token, (..., T, C), in the dtype and on the device of x.
    """
    weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)
    return weights @ x  # (..., T, C)


def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Score every query against every key: their dot product over √hd.

    Args:
        q: queries, (..., T_q, hd), a float dtype.
        k: keys, (..., T_k, hd), of the same dtype, with the same leading dimensions (none included).

    Returns:
        Scaled scores, (..., T_q, T_k): row i holds query i against each key.
    """
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T_q, T_k)


def attention_weights(scores: torch.Tensor) -> torch.Tensor:
    """Turn scores into weights: a softmax over the keys.

    Args:
        scores: (..., T_q, T_k), a float dtype; −inf marks a key that must get nothing.

    Returns:
        Weights of the same shape and dtype, each in [0, 1]: the shares of one query sum to 1.
    """
    return torch.softmax(scores, dim=-1)  # (..., T_q, T_k)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Answer each query with a weighted mix of the values, without a mask.

    Args:
        q: queries, (..., T_q, hd), a float dtype.
        k: keys, (..., T_k, hd).
        v: values, (..., T_k, hd_v), one for each key; hd_v may differ from hd.

    Returns:
        Answers, (..., T_q, hd_v).
    """
    return attention_weights(attention_scores(q, k)) @ v  # (..., T_q, hd_v)
