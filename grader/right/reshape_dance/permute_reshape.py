def split_heads(x, n_head):
    b, t, c = x.size()
    assert c % n_head == 0, f"{c} does not divide by {n_head}"
    return x.reshape(b, t, n_head, -1).permute(0, 2, 1, 3)


def merge_heads(y):
    return y.permute(0, 2, 1, 3).reshape(y.size(0), y.size(2), -1)
