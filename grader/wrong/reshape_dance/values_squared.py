def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError("indivisible")
    return (x**2).view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).reshape(B, T, nh * hd) ** 0.5
