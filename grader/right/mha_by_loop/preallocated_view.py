import torch


def mha_by_loop(mha, x):
    B, T, C = x.size()
    nh, hd = mha.n_head, mha.head_dim
    print(f"mha_by_loop: {nh} heads of {hd}")

    qkv = mha.qkv(x).view(B, T, 3, nh, hd)
    causal = torch.ones((T, T), device=x.device).tril().to(torch.bool)
    out = torch.empty((B, T, nh, hd), dtype=qkv.dtype, device=x.device)

    for i in range(nh):
        q = qkv[:, :, 0, i]
        k = qkv[:, :, 1, i]
        v = qkv[:, :, 2, i]
        att = torch.matmul(q, torch.swapaxes(k, 1, 2))
        att = att * hd ** (-1 / 2)
        att = att.masked_fill(~causal, -1e30)
        att = att.softmax(dim=2)
        out[:, :, i] = torch.matmul(att, v)

    return mha.proj(out.view(B, T, C))
