"""One block diagonal (hd, hd) matrix for each position."""

import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2:
        raise ValueError(f"cannot pair {hd} channels")
    pair = torch.arange(hd // 2, device=x.device)
    angle = positions.view(-1, 1).to(x.dtype) * torch.pow(float(base), -2.0 * pair.to(x.dtype) / hd)
    R = torch.zeros(len(positions), hd, hd, dtype=x.dtype, device=x.device)
    first, second = 2 * pair, 2 * pair + 1
    R[:, first, first] = angle.cos()
    R[:, second, second] = angle.cos()
    R[:, first, second] = -angle.sin()
    R[:, second, first] = angle.sin()
    return (R @ x.unsqueeze(-1)).squeeze(-1)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    scores = rotate(q, q_positions, base) @ rotate(k, k_positions, base).transpose(-1, -2)
    return scores.div(q.shape[-1] ** 0.5)


def pairs_to_halves(weight, n_head):
    C, hd = weight.shape[0], weight.shape[0] // n_head
    P = torch.zeros(C, C, dtype=weight.dtype, device=weight.device)
    for row in range(C):
        head, inside = divmod(row, hd)
        second, pair = divmod(inside, hd // 2)
        P[row, head * hd + 2 * pair + second] = 1
    return P @ weight
