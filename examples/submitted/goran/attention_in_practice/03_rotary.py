import torch


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2 != 0:
        raise ValueError(f"hd must be even, got {hd}")
    inv_freq = 1.0 / (base ** (torch.arange(0, hd, 2, device=x.device).double() / hd))
    freqs = positions[:, None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos().to(x.dtype) + rotate_half(x) * emb.sin().to(x.dtype)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q = rotate(q, q_positions, base)
    k = rotate(k, k_positions, base)
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


def pairs_to_halves(weight, n_head):
    C, C_in = weight.shape
    return weight.view(n_head, C // n_head // 2, 2, C_in).transpose(1, 2).reshape(C, C_in)
