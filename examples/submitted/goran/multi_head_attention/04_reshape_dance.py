import torch


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """Deal the channels out to the heads, a block of neighbours to each.

    Args:
        x: (B, T, C), any dtype.
        n_head: number of heads, at least 1; must divide C.

    Returns:
        (B, n_head, T, C // n_head): head h holds channels h·hd … (h+1)·hd − 1 of every position.

    Raises:
        ValueError: if n_head does not divide C; the message names both numbers.
    """
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError(f"{C} channels cannot be divided evenly among {n_head} heads")
    x = x.view(B, T, n_head, C // n_head)  # (B, T, nh, hd)
    return x.transpose(1, 2)  # (B, nh, T, hd)


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    """Lay the heads' answers side by side again: the inverse of split_heads.

    Args:
        y: (B, nh, T, hd), any dtype.

    Returns:
        (B, T, nh·hd): channels h·hd … (h+1)·hd − 1 of every position come from head h.
    """
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).contiguous().view(B, T, nh * hd)  # (B, T, C)
