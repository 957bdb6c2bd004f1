"""As in Llama: a pair is a complex number, and turning it is a product."""

import math

import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    assert hd % 2 == 0, f"hd must be even, got {hd}"
    freqs = 1.0 / (base ** (torch.arange(0, hd, 2, device=x.device)[: (hd // 2)].float() / hd))
    freqs = torch.outer(positions, freqs)
    freqs_cis = torch.polar(torch.ones_like(freqs), freqs)  # complex64
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis).flatten(-2).type_as(x)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    xq, xk = rotate(q, q_positions, base), rotate(k, k_positions, base)
    return torch.matmul(xq, xk.transpose(-2, -1)) / math.sqrt(q.shape[-1])


def pairs_to_halves(weight, n_head):
    dim1, dim2 = weight.shape
    return weight.view(n_head, dim1 // n_head // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)
