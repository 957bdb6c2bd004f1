import torch


def rotate(x, positions, base=10000.0):
    T, hd = x.shape[-2:]
    if hd % 2:
        raise ValueError(f"hd = {hd} is odd")
    theta = base ** (-torch.arange(0, hd, 2, device=x.device, dtype=torch.float64) / hd)
    angle = torch.arange(T, device=x.device)[:, None] * theta
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    return rotate(q, q_positions, base) @ rotate(k, k_positions, base).mT / q.shape[-1] ** 0.5


def pairs_to_halves(weight, n_head):
    rows = weight.unflatten(0, (n_head, -1))
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1).flatten(0, 1)
