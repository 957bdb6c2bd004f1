import torch


def mha_by_loop(mha, x):
    T = x.shape[1]
    wq, wk, wv = mha.qkv.weight.unflatten(0, (3, mha.n_head, mha.head_dim)).unbind(0)
    hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)

    def head(q_w, k_w, v_w):
        scores = (x @ q_w.mT) @ (x @ k_w.mT).mT / mha.head_dim**0.5
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ (x @ v_w.mT)

    joined = torch.vmap(head)(wq, wk, wv)  # (nh, B, T, hd)
    return mha.proj(joined.movedim(0, 2).flatten(2))
