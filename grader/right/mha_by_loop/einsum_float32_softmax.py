import torch


def mha_by_loop(mha, x):
    """einsum for everything, and the softmax in float32 as the papers do"""
    T = x.shape[1]
    w = mha.qkv.weight.view(3, mha.n_head, mha.head_dim, -1)
    keep = torch.arange(T, device=x.device)[:, None] >= torch.arange(T, device=x.device)[None, :]
    outs = []
    for h in range(mha.n_head):
        q, k, v = (torch.einsum("btc,dc->btd", x, w[i, h]) for i in range(3))
        s = torch.einsum("bqd,bkd->bqk", q, k) / mha.head_dim**0.5
        s = torch.where(keep, s, torch.tensor(float("-inf"), device=x.device, dtype=s.dtype))
        a = torch.softmax(s, dim=-1, dtype=torch.float32).to(x.dtype)
        outs.append(torch.einsum("bqk,bkd->bqd", a, v))
    return torch.einsum("btc,dc->btd", torch.cat(outs, dim=-1), mha.proj.weight)
