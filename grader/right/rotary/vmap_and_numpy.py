import numpy as np
import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2 == 1:
        raise ValueError(f"hd={hd}")
    speeds = torch.from_numpy(np.power(float(base), -np.arange(0, hd, 2) / hd)).to(x)

    def one(token, position):
        angle = position * speeds
        a, b = token[..., 0::2], token[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    return torch.vmap(one, in_dims=(-2, 0), out_dims=-2)(x, positions)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = rotate(q, q_positions, base), rotate(k, k_positions, base)
    lead = q.shape[:-2]
    q, k = q.reshape(-1, *q.shape[-2:]), k.reshape(-1, *k.shape[-2:])
    return torch.bmm(q, k.mT).div(q.shape[-1] ** 0.5).reshape(*lead, q.shape[-2], k.shape[-2])


def pairs_to_halves(weight, n_head):
    three = weight.reshape(n_head, weight.size(0) // n_head, weight.size(1))
    return torch.cat((three[:, ::2], three[:, 1::2]), 1).reshape(-1, weight.size(1))
