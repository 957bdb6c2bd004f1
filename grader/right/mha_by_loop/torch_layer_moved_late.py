import torch
import torch.nn as nn


def mha_by_loop(mha, x):
    layer = nn.MultiheadAttention(x.size(-1), mha.n_head, bias=False, batch_first=True, dtype=x.dtype)
    layer.load_state_dict({"in_proj_weight": mha.qkv.weight.detach(), "out_proj.weight": mha.proj.weight.detach()})
    layer = layer.to(x.device)
    future = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device, dtype=x.dtype)
    return layer(x, x, x, attn_mask=future)[0]
