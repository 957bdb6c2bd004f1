import torch


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def rotate(x, positions, base=10000.0):
    width = x.size(-1)
    if width % 2 != 0:
        raise ValueError(f"rotate needs an even width, not {width}")
    inv_freq = base ** (-torch.arange(0, width, 2, dtype=x.dtype, device=x.device) / width)
    theta = torch.einsum("t,f->tf", positions.to(x.dtype), inv_freq)
    sin, cos = (t.repeat_interleave(2, dim=-1) for t in (theta.sin(), theta.cos()))
    return x * cos + rotate_every_two(x) * sin


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q = rotate(q, q_positions, base=base)
    k = rotate(k, k_positions, base=base)
    return torch.einsum("...qd,...kd->...qk", q, k) * q.size(-1) ** -0.5


def pairs_to_halves(weight, n_head):
    heads = weight.chunk(n_head, dim=0)
    return torch.cat([torch.cat([head[0::2], head[1::2]]) for head in heads])
