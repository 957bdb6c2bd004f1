def split_heads(x, n_head):
    B, T, C = x.shape
    try:
        assert C % n_head == 0
    except AssertionError:
        raise ValueError(f"{C} is not divisible by {n_head}")
    hd = C // n_head
    x = x.view(B, T, n_head, hd)
    x = x.transpose(1, 2).reshape(B * n_head, T, hd)  # a detour over (B·nh, T, hd)
    return x.view(B, n_head, T, hd)


def merge_heads(y):
    B, nh, T, hd = y.shape
    y = y.transpose(2, 1)
    y = y.clone(memory_format=__import__("torch").contiguous_format)
    return y.view(B, T, nh * hd)
