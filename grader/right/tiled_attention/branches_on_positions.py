"""Whether a tile is all future is asked of tensors of positions; the state is a dataclass."""

import torch
from dataclasses import dataclass


@dataclass
class Running:
    m: torch.Tensor
    s: torch.Tensor
    o: torch.Tensor

    @classmethod
    def empty(cls, q, width):
        base = q[..., :1].detach()
        return cls(torch.full_like(base, -torch.inf), torch.zeros_like(base), base.new_zeros(*base.shape[:-1], width))

    def add(self, s, v):
        m = torch.maximum(self.m, s.amax(-1, keepdim=True).detach())
        p, f = torch.exp(s - m), torch.exp(self.m - m)
        return Running(m, self.s * f + p.sum(-1, keepdim=True), self.o * f + p @ v)

    @property
    def y(self):
        return self.o / self.s

    @property
    def lse(self):
        return (self.m + self.s.log()).squeeze(-1)


def online_softmax(scores, block):
    m = torch.tensor(float("-inf"), dtype=scores.dtype, device=scores.device).expand(scores.shape[:-1] + (1,))
    s = torch.zeros_like(scores[..., 0:1])
    i = 0
    while i < scores.shape[-1]:
        x = scores[..., i : i + block]
        n = torch.maximum(m, x.max(-1, keepdim=True)[0])
        s = s * torch.exp(m - n) + torch.sum(torch.exp(x - n), -1, keepdim=True)
        m = n
        i += block
    w = [torch.exp(scores[..., i : i + block] - m) / s for i in range(0, scores.shape[-1], block)]
    return torch.cat(w, dim=-1)


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    q = q / hd**0.5
    pos = torch.arange(T, device=q.device)
    rows = []
    for qi, pi in zip(q.split(block_q, -2), pos.split(block_q)):
        state = Running.empty(qi, v.shape[-1])
        for kj, vj, pj in zip(k.split(block_k, -2), v.split(block_k, -2), pos.split(block_k)):
            if pj[0] > pi[-1]:
                break
            state = state.add((qi @ kj.mT).masked_fill(pj > pi.unsqueeze(-1), float("-inf")), vj)
        rows.append(state)
    return torch.cat([r.y for r in rows], -2), torch.cat([r.lse for r in rows], -1)

