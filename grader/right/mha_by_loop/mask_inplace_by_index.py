import torch

masks = {}


def causal(T, device):
    """True where hidden; made once for every T."""
    if (T, device) not in masks:
        masks[T, device] = torch.ones(T, T, device=device).triu(1) > 0
    return masks[T, device]


def mha_by_loop(mha, x):
    assert x.ndim == 3, "x must be (B, T, C)"
    T, hd = x.shape[1], mha.head_dim
    q, k, v = torch.chunk(x @ mha.qkv.weight.T, 3, dim=-1)
    result = None
    for h in range(mha.n_head):
        own = range(h * hd, (h + 1) * hd)
        scores = q[..., own] @ k[..., own].mT
        scores = scores / torch.sqrt(torch.tensor(float(hd)))
        scores[:, causal(T, x.device)] = -torch.inf
        head = scores.softmax(dim=-1) @ v[..., own]
        result = head if result is None else torch.cat((result, head), dim=-1)
    return result @ mha.proj.weight.T
