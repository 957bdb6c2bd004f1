import torch
from torch import nn


def mha_by_loop(mha, x):
    """torch has a layer for it: give it our weights."""
    C, T = x.shape[2], x.shape[1]
    layer = nn.MultiheadAttention(C, mha.n_head, bias=False, batch_first=True)
    layer = layer.to(device=x.device, dtype=x.dtype).eval()
    with torch.no_grad():
        layer.in_proj_weight.copy_(mha.qkv.weight)
        layer.out_proj.weight.copy_(mha.proj.weight)
    mask = torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), 1)
    out, _ = layer(x, x, x, attn_mask=mask, need_weights=False)
    return out
