import torch


def online_softmax(scores, block):
    log_sum = None
    for piece in scores.split(block, -1):
        here = piece.logsumexp(-1, keepdim=True)
        log_sum = here if log_sum is None else torch.logaddexp(log_sum, here)
    return torch.cat([(piece - log_sum).exp() for piece in scores.split(block, -1)], -1)


def tiled_attention(q, k, v, block_q, block_k):
    T, scale = q.size(-2), q.size(-1) ** -0.5
    ys, sums = [], []
    for i in range(0, T, block_q):
        rows = q[..., i : i + block_q, :] * scale
        last = i + rows.size(-2)
        y = lse = None
        for j in range(0, last, block_k):
            stop = min(j + block_k, last)
            tile = rows @ k[..., j:stop, :].transpose(-2, -1)
            late = torch.arange(j, stop, device=q.device) > torch.arange(i, last, device=q.device)[:, None]
            tile = tile.masked_fill(late, float("-1e30"))
            here = tile.logsumexp(-1, keepdim=True)
            part = (tile - here).exp() @ v[..., j:stop, :]
            if y is None:
                y, lse = part, here
            else:
                both = torch.logaddexp(lse, here)
                y = y * (lse - both).exp() + part * (here - both).exp()
                lse = both
        ys.append(y)
        sums.append(lse[..., 0])
    return torch.cat(ys, -2), torch.cat(sums, -1)
