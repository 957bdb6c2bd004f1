from einops import rearrange


def split_heads(x, n_head):
    channels = x.shape[-1]
    assert channels % n_head == 0, f"{channels} channels, {n_head} heads"
    return rearrange(x, "batch token (head dim) -> batch head token dim", head=n_head)


def merge_heads(y):
    return rearrange(y, "batch head token dim -> batch token (head dim)")
