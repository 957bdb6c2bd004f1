import torch


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    head_dim, rest = divmod(x.size(-1), n_head)
    if rest:
        raise ValueError(f"{x.size(-1)} channels do not divide among {n_head} heads")
    return x.unflatten(-1, (n_head, head_dim)).movedim(-2, -3)


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    return y.movedim(-3, -2).flatten(start_dim=-2)
