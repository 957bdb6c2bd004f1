"""The ways in which query heads share heads of keys and values.

These heads are cut, repeated, weighed and counted, rightly and wrongly.
"""


def tiled(t, s):
    return t.repeat(1, s.nh // s.nkv, 1, 1)


# Heads of keys or values to as many as there are queries: (B, nkv, T, hd) -> (B, nh, T, hd).
GROUPS = {
    "shared": lambda t, s: t.repeat_interleave(s.nh // s.nkv, dim=1),
    "tiled": tiled,
    "first_only": lambda t, s: t[:, :1].expand(-1, s.nh, -1, -1),
    "last_only": lambda t, s: t[:, -1:].expand(-1, s.nh, -1, -1),
    "mean": lambda t, s: t.mean(1, keepdim=True).expand(-1, s.nh, -1, -1),
    "sum": lambda t, s: t.sum(1, keepdim=True).expand(-1, s.nh, -1, -1),
    "reversed": lambda t, s: t.flip(1).repeat_interleave(s.nh // s.nkv, dim=1),
    "not_repeated": lambda t, s: t,
    "by_tokens": lambda t, s: t.repeat_interleave(s.nh // s.nkv, dim=2),
    "by_batch": lambda t, s: t.repeat_interleave(s.nh // s.nkv, dim=0),
    "flattened": lambda t, s: t.repeat_interleave(s.nh // s.nkv),
    "as_often_as_sets": lambda t, s: t.repeat_interleave(s.nkv, dim=1),
    "as_often_as_heads": lambda t, s: t.repeat_interleave(s.nh, dim=1),
    "stretched": lambda t, s: t.expand(-1, s.nh, -1, -1),
    "expanded_over_batch": lambda t, s: (
        t[None].expand(s.nh // s.nkv, *t.shape).reshape(s.B, s.nh, *t.shape[2:])
    ),
    "rolled": lambda t, s: t.roll(1, 1).repeat_interleave(s.nh // s.nkv, dim=1),
    "channels_cut": lambda t, s: (
        t.transpose(1, 2).repeat(1, 1, s.nh // s.nkv, 1).reshape(s.B, s.nh, s.T, s.hd)
    ),
}


def kv_heads(t, s):
    return t.unflatten(-1, (s.nkv, s.hd)).transpose(1, 2)


def pair(t, s, *order):
    return t.permute(*order).unbind(0)


# The projection z (B, T, 2 · nkv · hd) to k and v, each (B, nkv, T, hd).
PACKS = {
    "keys_then_values": lambda z, s: [kv_heads(t, s) for t in z.chunk(2, -1)],
    "values_then_keys": lambda z, s: [kv_heads(t, s) for t in z.chunk(2, -1)][::-1],
    "per_set": lambda z, s: pair(z.unflatten(-1, (s.nkv, 2, s.hd)), s, 3, 0, 2, 1, 4),
    "per_set_swapped": lambda z, s: pair(z.unflatten(-1, (s.nkv, 2, s.hd)), s, 3, 0, 2, 1, 4)[::-1],
    "per_channel": lambda z, s: pair(z.unflatten(-1, (s.nkv, s.hd, 2)), s, 4, 0, 2, 1, 3),
    "sets_innermost": lambda z, s: pair(z.unflatten(-1, (2, s.hd, s.nkv)), s, 2, 0, 4, 1, 3),
    "straight": lambda z, s: [t.reshape(s.B, s.nkv, s.T, s.hd) for t in z.chunk(2, -1)],
    "sets_before_tokens": lambda z, s: z.reshape(s.B, 2 * s.nkv, s.T, s.hd).chunk(2, 1),
    "pair_outermost": lambda z, s: z.reshape(2, s.B, s.T, s.nkv, s.hd).transpose(2, 3),
}

# The queries' heads counted off in the other order: (B, nh, T, hd) -> the same shape.
REGROUPS = {
    "no": lambda t, s: t,
    "groups_outermost": lambda t, s: t.unflatten(1, (s.nkv, -1)).transpose(1, 2).flatten(1, 2),
    "sets_innermost": lambda t, s: t.unflatten(1, (-1, s.nkv)).transpose(1, 2).flatten(1, 2),
}
# Scores with an axis for the sets and one for the group, (B, nkv, group, T, T), to weights.
OVER = {
    "sets": lambda a: a.softmax(1),
    "group": lambda a: a.softmax(2),
    "queries_of_group": lambda a: a.flatten(2, 3).softmax(2),
}
# How many bytes a cache takes, wrongly. hd: head_dim.
BYTES = (
    "2 * n_layer * n_head * hd * T * bytes_per_number",
    *(
        f"{n}n_layer * {heads} * hd * T * bytes_per_number"
        for n in ("", "3 * ")
        for heads in ("n_kv_head", "n_head")
    ),
    "n_layer * (n_head + 2 * n_kv_head) * hd * T * bytes_per_number",
    "numbers",
    "2 * numbers",
    "4 * numbers",
    *(
        f"numbers * bytes_per_number // {too_many}"
        for too_many in ("n_layer", "T", "hd", "n_kv_head")
    ),
    *(
        f"2 * n_layer * {sets} * hd * T * bytes_per_number"
        for sets in ("(n_head // n_kv_head)", "n_head * n_kv_head")
    ),
    "numbers * T * bytes_per_number",
    *(f"n_layer * {heads} * T * T * bytes_per_number" for heads in ("n_head", "n_kv_head")),
    *(f"numbers * bytes_per_number{unit}" for unit in (" * 8", " // 1024", " // 1024**2")),
    "2 * n_layer * (n_kv_head + hd) * T * bytes_per_number",
    "2 * n_layer * n_kv_head * hd * n_head * hd * bytes_per_number",
)
