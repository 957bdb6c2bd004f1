import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa


def mha_by_loop(mha, x):
    width = mha.n_head * mha.head_dim
    projected = mha.qkv(x)
    queries = projected[:, :, :width]
    keys = projected[:, :, width : 2 * width]
    values = projected[:, :, 2 * width :]
    answer = None
    for q, k, v in zip(
        queries.split(mha.head_dim, dim=-1),
        keys.split(mha.head_dim, dim=-1),
        values.split(mha.head_dim, dim=-1),
    ):
        out = sdpa(q, k, v, is_causal=True)
        answer = out if answer is None else torch.cat((answer, out), dim=-1)
    return mha.proj(answer)
