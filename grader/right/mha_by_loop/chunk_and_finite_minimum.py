import torch


def mha_by_loop(mha, x):
    q, k, v = mha.qkv(x).chunk(3, dim=-1)
    qs, ks, vs = (t.chunk(mha.n_head, dim=-1) for t in (q, k, v))
    T = x.size(1)
    future = torch.ones(T, T, device=x.device).triu(diagonal=1).bool()
    heads = []
    for qh, kh, vh in zip(qs, ks, vs):
        scores = torch.bmm(qh, kh.mT) * mha.head_dim**-0.5
        scores.masked_fill_(future, torch.finfo(scores.dtype).min)
        heads.append(torch.bmm(scores.softmax(-1), vh))
    return mha.proj(torch.cat(heads, -1))
