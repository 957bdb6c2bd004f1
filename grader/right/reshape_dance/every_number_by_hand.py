import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError(f"C = {C}, n_head = {n_head}")
    hd = C // n_head
    rows = []
    for b in range(B):
        for h in range(n_head):
            for t in range(T):
                rows.append(torch.stack([x[b, t, h * hd + d] for d in range(hd)]))
    return torch.stack(rows).view(B, n_head, T, hd)


def merge_heads(y):
    B, nh, T, hd = y.shape
    rows = []
    for b in range(B):
        for t in range(T):
            rows.append(torch.stack([y[b, c // hd, t, c % hd] for c in range(nh * hd)]))
    return torch.stack(rows).view(B, T, nh * hd)
