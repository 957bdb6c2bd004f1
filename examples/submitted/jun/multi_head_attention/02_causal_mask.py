import torch


def causal_mask(T: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Say who may see whom in a sequence of T tokens.

    Args:
        T: number of tokens, at least 1.
        device: where the mask shall live; None is PyTorch's default device.

    Returns:
        A mask of dtype bool, (T, T): True where the query (row) may attend to the key (column). A token may
        attend to itself.
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()  # (T, T)


def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Hide what may not be seen: −inf wherever the mask is False.

    Args:
        scores: (..., T_q, T_k), a float dtype; left as it was.
        mask: bool, broadcastable to the shape of the scores; True where the query may attend to the key.

    Returns:
        A new tensor of the shape and dtype of the scores.
    """
    return scores.masked_fill(~mask, float("-inf"))  # (..., T_q, T_k)


def causal_weights(scores: torch.Tensor) -> torch.Tensor:
    """Share out each query's attention over itself and the past.

    Args:
        scores: (..., T, T), a float dtype, already scaled; left as it was.

    Returns:
        Weights of the same shape and dtype: rows sum to 1, and above the diagonal stands 0.
    """
    mask = causal_mask(scores.shape[-1], device=scores.device)  # (T, T)
    return torch.softmax(mask_scores(scores, mask), dim=-1)  # (..., T, T)
