import torch
from einops import einsum, rearrange


def mha_by_loop(mha, x):
    q, k, v = rearrange(mha.qkv(x), "b t (three h d) -> three h b t d", three=3, h=mha.n_head)
    t = x.shape[1]
    causal = torch.tril(x.new_ones(t, t)).bool()
    answers = []
    for q_h, k_h, v_h in zip(q.unbind(0), k.unbind(0), v.unbind(0)):
        scores = einsum(q_h, k_h, "b i d, b j d -> b i j") / (mha.head_dim**0.5)
        scores = scores.masked_fill(~causal, -torch.inf)
        answers.append(einsum(scores.softmax(-1), v_h, "b i j, b j d -> b i d"))
    return mha.proj(rearrange(answers, "h b t d -> b t (h d)"))
