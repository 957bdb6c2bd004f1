def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError("indivisible")
    return x[:, None, :, : C // n_head].expand(B, n_head, T, C // n_head)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y[:, 0].repeat(1, 1, nh)
