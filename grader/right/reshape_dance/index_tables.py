import torch


def split_heads(x, n_head):
    C = x.shape[-1]
    if C % n_head:
        raise ValueError(f"C = {C}, n_head = {n_head}: no even split")
    table = torch.arange(C, device=x.device).reshape(n_head, -1)
    return x[:, :, table].swapaxes(1, 2)


def merge_heads(y):
    nh, hd = y.shape[1], y.shape[3]
    c = torch.arange(nh * hd, device=y.device)
    picked = y[:, c // hd, :, c % hd]
    return picked.permute(1, 2, 0)
