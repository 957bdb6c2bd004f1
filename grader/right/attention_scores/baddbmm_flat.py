import torch

def _flat(t):
    return t.reshape(-1, t.shape[-2], t.shape[-1])

def attention_scores(q, k):
    lead = q.shape[:-2]
    qf, kf = _flat(q), _flat(k)
    out = torch.baddbmm(
        torch.empty(1, 1, 1, dtype=q.dtype, device=q.device),
        qf, kf.transpose(1, 2),
        beta=0, alpha=qf.size(2) ** -0.5,
    )
    return out.reshape(*lead, q.shape[-2], k.shape[-2])

def attention_weights(scores):
    top = scores.amax(dim=-1, keepdim=True).detach()   # only for stability, cancels out
    e = torch.exp(scores - top)
    return e / e.sum(dim=-1, keepdim=True)

def attend(q, k, v):
    w = attention_weights(attention_scores(q, k))
    ctx = torch.bmm(_flat(w), _flat(v))
    return ctx.reshape(*q.shape[:-1], v.shape[-1])

def simplified_attention(x):
    # attend() scales, so undo it by making the queries larger
    return attend(x * x.shape[-1] ** 0.5, x, x)
