import torch

def _one_head(q, k, v):
    n = q.shape[-2]
    s = torch.einsum("bid,bjd->bij", q, k).div(q.shape[-1] ** 0.5)
    s = s + torch.triu(torch.full((n, n), torch.finfo(s.dtype).min / 2, dtype=s.dtype, device=s.device), 1)
    return s.softmax(-1) @ v

def mha_by_loop(mha, x):
    sections = mha.qkv(x).split([mha.head_dim] * (3 * mha.n_head), dim=-1)
    n = mha.n_head
    triples = zip(sections[:n], sections[n:2 * n], sections[2 * n:])
    return mha.proj(torch.concat([_one_head(*t) for t in triples], dim=-1))
