import torch


def softmax(z):
    z = torch.exp(z - torch.max(z, dim=1, keepdim=True)[0])
    return z / torch.sum(z, dim=1, keepdim=True)


def single(q, k, v):
    # all of them (T, hd)
    T, hd = q.shape
    s = torch.einsum("id,jd->ij", q, k) / torch.sqrt(torch.tensor(hd, dtype=q.dtype, device=q.device))
    s = s + torch.triu(torch.full((T, T), float("-inf"), dtype=q.dtype, device=q.device), 1)
    return torch.einsum("ij,jd->id", softmax(s), v)


def mha_by_loop(mha, x):
    batch = []
    for seq in x:
        q, k, v = mha.qkv(seq).unflatten(-1, (3, -1)).unbind(-2)
        parts = []
        h = 0
        while h < mha.n_head:
            start, stop = h * mha.head_dim, (h + 1) * mha.head_dim
            parts.append(single(q[:, start:stop], k[:, start:stop], v[:, start:stop]))
            h += 1
        batch.append(torch.hstack(parts))
    return mha.proj(torch.stack(batch))
