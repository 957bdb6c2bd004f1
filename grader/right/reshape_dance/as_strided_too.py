import torch


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """Only the note about the strides changes."""
    B, T, C = x.size()
    if C % n_head > 0:
        raise ValueError(f"{n_head} heads cannot share {C} channels evenly")
    hd = C // n_head
    sb, st, sc = x.stride()
    return x.as_strided((B, n_head, T, hd), (sb, hd * sc, st, sc))


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    B, nh, T, hd = y.size()
    return torch.empty((B, T, nh, hd), dtype=y.dtype, device=y.device).copy_(y.permute(0, 2, 1, 3)).view(B, T, -1)
