import math
import torch

def online_softmax(scores, block):
    m, s = torch.full_like(scores[..., :1], -math.inf), torch.zeros_like(scores[..., :1])
    for part in scores.split(block, -1):
        m = torch.maximum(m, part.amax(-1, keepdim=True))
        s = s + (part - m).exp().sum(-1, keepdim=True)
    return (scores - m).exp() / s

def tiled_attention(q, k, v, block_q, block_k):
    ys, sums = [], []
    for i in range(0, q.shape[-2], block_q):
        rows = q[..., i : i + block_q, :] / math.sqrt(q.shape[-1])
        m, s, y = torch.full_like(rows[..., :1], -math.inf), torch.zeros_like(rows[..., :1]), 0.0
        for j in range(0, min(i + block_q, k.shape[-2]), block_k):
            keys, values = k[..., j : j + block_k, :], v[..., j : j + block_k, :]
            later = torch.arange(j, j + keys.shape[-2]) > torch.arange(i, i + rows.shape[-2])[:, None]
            scores = (rows @ keys.mT).masked_fill(later, -math.inf)
            higher = torch.maximum(m, scores.amax(-1, keepdim=True))
            p, factor = (scores - higher).exp(), (m - higher).exp()
            m, s, y = higher, s * factor + p.sum(-1, keepdim=True), y * factor + p @ values
        ys.append(y / s)
        sums.append((m + s.log()).squeeze(-1))
    return torch.cat(ys, -2), torch.cat(sums, -1)
