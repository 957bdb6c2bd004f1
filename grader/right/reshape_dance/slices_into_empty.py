import torch

print("exercise 4")


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C=} {n_head=}")
    hd = C // n_head
    out = torch.empty(B, n_head, T, hd, dtype=x.dtype, device=x.device)
    for h in range(n_head):
        out[:, h] = x[:, :, h * hd : (h + 1) * hd]
    return out


def merge_heads(y):
    B, nh, T, hd = y.shape
    out = y.new_zeros(B, T, nh * hd)
    for h in range(nh):
        out[:, :, h * hd : (h + 1) * hd] = y[:, h, :, :]
    print("merged", out.shape)
    return out
