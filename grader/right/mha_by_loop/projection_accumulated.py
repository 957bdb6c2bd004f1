import math
import torch


# the output projection distributes over the heads:
#   concat(h0, h1, ...) @ Wo.T  ==  h0 @ Wo[:, :hd].T + h1 @ Wo[:, hd:2hd].T + ...
def mha_by_loop(mha, x):
    n_tok = x.size(1)
    hd = mha.head_dim
    C = hd * mha.n_head
    w_out = mha.proj.weight
    qkv = torch.nn.functional.linear(x, mha.qkv.weight)
    q_all, k_all, v_all = torch.tensor_split(qkv, 3, dim=2)
    total = torch.zeros_like(x)
    mask = torch.tril(x.new_ones(n_tok, n_tok)) == 0
    for h in range(mha.n_head):
        idx = range(h * hd, h * hd + hd)
        sel = torch.tensor(list(idx), device=x.device)
        q = q_all.index_select(2, sel)
        k = k_all.index_select(2, sel)
        v = v_all.index_select(2, sel)
        att = torch.bmm(q, k.permute(0, 2, 1))
        att = att / math.sqrt(hd)
        att = att.masked_fill(mask, torch.finfo(att.dtype).min)
        att = torch.softmax(att, 2)
        ctx = torch.bmm(att, v)
        total = total + ctx @ w_out.index_select(1, sel).t()
    return total
