import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError(f"C={C} n_head={n_head}")
    channel = torch.arange(C, device=x.device).reshape(n_head, C // n_head)
    return x[:, :, channel].transpose(1, 2)  # (B, T, nh, hd) -> (B, nh, T, hd)


def merge_heads(y):
    B, nh, T, hd = y.shape
    c = torch.arange(nh * hd, device=y.device)
    return y[:, c // hd, :, c % hd].permute(1, 2, 0)
