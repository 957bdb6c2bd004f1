import torch

def split_heads(x, n_head):
    batch = x.shape[0]
    tokens = x.shape[1]
    channels = x.shape[2]
    if channels != (channels // n_head) * n_head:
        raise ValueError("cannot split %d channels in %d heads" % (channels, n_head))
    head_dim = channels // n_head
    result = torch.zeros(batch, n_head, tokens, head_dim, dtype=x.dtype, device=x.device)
    for h in range(n_head):
        start = h * head_dim
        stop = start + head_dim
        result[:, h] = x[:, :, start:stop]
    return result

def merge_heads(y):
    parts = []
    for h in range(y.shape[1]):
        parts.append(y[:, h, :, :])
    return torch.cat(parts, dim=2)
