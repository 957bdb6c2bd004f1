import math

import torch


def rotate(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"expected an even head_dim, got {d}")
    pos = positions.to(device=x.device, dtype=torch.float32)
    out = []
    for i in range(d // 2):
        w = math.pow(base, -2.0 * i / d)
        c, s = torch.cos(pos * w).to(x.dtype), torch.sin(pos * w).to(x.dtype)
        out += [x[..., 2 * i] * c - x[..., 2 * i + 1] * s, x[..., 2 * i] * s + x[..., 2 * i + 1] * c]
    return torch.stack(out, dim=-1)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    # one query at a time, turned by how far it is from every key
    rows = []
    for t, m in enumerate(q_positions):
        query = q[..., t : t + 1, :].expand_as(k)
        rows.append((rotate(query, m - k_positions, base) * k).sum(-1))
    return torch.stack(rows, -2) / math.sqrt(q.shape[-1])


def pairs_to_halves(weight, n_head):
    W = weight.view(n_head, -1, weight.size(1))
    return torch.cat((W[:, ::2], W[:, 1::2]), 1).view(weight.size())
