import torch, math
from torch import einsum

def attention_weights(scores):
    """exp(s - logsumexp(s)) is the softmax, and never overflows."""
    lse = torch.logsumexp(scores, dim=-1, keepdim=True)
    return (scores - lse).exp()

def simplified_attention(x):
    s = einsum("...ic,...jc->...ij", x, x)
    return einsum("...ij,...jc->...ic", attention_weights(s), x)

def attention_scores(q, k):
    # spread the root over both sides: hd ** 1/4 each
    root4 = math.pow(q.shape[-1], 0.25)
    return einsum("...id,...jd->...ij", q / root4, k / root4)

def attend(q, k, v):
    a = attention_weights(attention_scores(q, k))
    return einsum("...ij,...jd->...id", a, v)
