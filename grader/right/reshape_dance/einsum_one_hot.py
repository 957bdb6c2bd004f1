import torch


def selector(n_head, hd, like):
    """S[h, d, c] is 1 where channel c is number d of head h."""
    return torch.eye(n_head * hd, dtype=like.dtype, device=like.device).view(n_head, hd, n_head * hd)


def split_heads(x, n_head):
    if x.shape[-1] % n_head:
        raise ValueError(f"n_head={n_head} does not divide C={x.shape[-1]}")
    return torch.einsum("btc,hdc->bhtd", x, selector(n_head, x.shape[-1] // n_head, x))


def merge_heads(y):
    return torch.einsum("bhtd,hdc->btc", y, selector(y.shape[1], y.shape[3], y))
