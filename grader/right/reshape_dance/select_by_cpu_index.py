import torch


def split_heads(x, n_head):
    C = x.size(2)
    if n_head < 1 or C % n_head:
        raise ValueError(f"{C} channels do not divide among {n_head} heads")
    hd = C // n_head
    return torch.stack([x.narrow(2, h * hd, hd) for h in range(n_head)]).transpose(0, 1)


def merge_heads(y):
    # backwards through the loop, for no good reason
    out = y[:, -1]
    for h in range(y.shape[1] - 2, -1, -1):
        out = torch.cat((y[:, h], out), dim=2)
    return out
