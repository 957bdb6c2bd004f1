import torch


def rotate(x, positions, base=10000.0, *, interleaved=True):
    hd = x.shape[-1]
    if hd % 2:
        raise ValueError("hd is odd: %s" % hd)
    channel = torch.arange(hd, device=x.device)
    partner = channel ^ 1
    sign = torch.where(channel % 2 == 0, -1.0, 1.0).to(x)
    angle = positions[:, None].to(x) * torch.pow(base, -(channel - channel % 2).to(x) / hd)
    return x * angle.cos() + x[..., partner] * sign * angle.sin()


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = (rotate(t, p, base) for t, p in ((q, q_positions), (k, k_positions)))
    return (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).transpose(-2, -1)


def pairs_to_halves(weight, n_head):
    C, C_in = weight.shape
    index = torch.arange(C).reshape(n_head, C // n_head // 2, 2).mT.reshape(C, 1).expand(C, C_in)
    return weight.gather(0, index.to(weight.device))
