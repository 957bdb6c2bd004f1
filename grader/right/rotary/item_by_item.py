import math
import torch

def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2 == 1:
        raise ValueError(f"hd = {hd} is odd")
    rows = []
    for t in range(x.shape[-2]):
        p = int(positions[t])
        channels = []
        for i in range(hd // 2):
            angle = p * base ** (-2 * i / hd)
            c, s = math.cos(angle), math.sin(angle)
            a = x[..., t, 2 * i]
            b = x[..., t, 2 * i + 1]
            channels.append(a * c - b * s)
            channels.append(a * s + b * c)
        rows.append(torch.stack(channels, dim=-1))
    return torch.stack(rows, dim=-2)

def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q = rotate(q, q_positions, base)
    k = rotate(k, k_positions, base)
    rows = []
    for i in range(q.shape[-2]):
        rows.append((q[..., i : i + 1, :] * k).sum(dim=-1))
    return torch.stack(rows, dim=-2) / math.sqrt(q.shape[-1])

def pairs_to_halves(weight, n_head):
    rows = torch.arange(weight.shape[0], device=weight.device).reshape(n_head, -1, 2)
    order = [int(row) for head in rows for which in (0, 1) for row in head[:, which]]
    return weight[order]
