import math

import torch


def window_mask(T_q, T_k, window, device=None):
    if window <= 0:
        raise ValueError("the window must be positive, not %d" % window)
    if T_k < T_q:
        raise ValueError("more queries (%d) than keys (%d)" % (T_q, T_k))
    table = []
    for i in range(T_q):
        position = T_k - T_q + i
        line = []
        for j in range(T_k):
            line.append(j <= position and position - j <= window - 1)
        table.append(line)
    return torch.tensor(table, dtype=torch.bool, device=device)


def local_attention(q, k, v, window):
    T_q, T_k = q.shape[-2], k.shape[-2]
    answers = []
    for i in range(T_q):
        end = T_k - T_q + i + 1
        start = max(0, end - window)
        near_k, near_v = k[..., start:end, :], v[..., start:end, :]
        scores = (q[..., i : i + 1, :] * near_k).sum(-1) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        answers.append((weights.unsqueeze(-1) * near_v).sum(-2))
    return torch.stack(answers, dim=-2)
