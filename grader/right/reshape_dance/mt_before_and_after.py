def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError(f"{C} channels, {n_head} heads")
    # channels first, cut them, then turn the last two over
    return x.mT.view(B, n_head, C // n_head, T).mT


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.mT.reshape(B, nh * hd, T).mT
