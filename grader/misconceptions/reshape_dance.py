"""The wrong ways to do the reshape dance, each an edit of the reference."""

from manyheads.checks import edit

from ._mutants import both, mutants

# Lines of the reference.
OF_X, OF_Y = "B, T, C = x.shape", "B, nh, T, hd = y.shape"
REFUSED = "if C % n_head != 0:"
RAISED = 'raise ValueError(f"{C} channels cannot be divided evenly among {n_head} heads")'
VIEWED, SPLIT = "x.view(B, T, n_head, C // n_head)", "x.transpose(1, 2)"
MERGED = "y.transpose(1, 2).contiguous().view(B, T, nh * hd)"
DEF_SPLIT, DEF_MERGE = (
    "def split_heads(x: torch.Tensor, n_head: int)",
    "def merge_heads(y: torch.Tensor)",
)

# Ways to split, and to merge.
FOLDED = "x.view(B * n_head, T, hd)"
STRAIGHT, BEHIND = "x.view(B, n_head, T, hd)", "x.view(B, T, n_head, hd)"
HEADS, DEALT = f"{BEHIND}.transpose(1, 2)", "x.view(B, T, hd, n_head)"
INTERLEAVED, STACKED = f"{DEALT}.permute(0, 3, 1, 2)", "torch.stack(x.chunk(n_head, dim=-1))"
SWAPPED_VIEWED, BATCH_AFTER = (
    "x.transpose(1, 2).view(B, n_head, T, hd)",
    "x.reshape(n_head, B, T, hd).transpose(0, 1)",
)
TO_TOKENS = ".reshape(B, T, nh * hd)"
JOINED, FLAT, IN_VIEW = f"y{TO_TOKENS}", "y.flatten(2)", "y.transpose(1, 2).view(B, T, nh * hd)"
BATCH_VIEWED = f"y.reshape(nh, B, T, hd).permute(1, 2, 0, 3){TO_TOKENS}"
FROM_BATCH = f"y.transpose(0, 1).reshape(B, nh, T, hd).transpose(1, 2){TO_TOKENS}"


def split(text):
    return edit(f"return {SPLIT}", f"return {text}", {f"x = {VIEWED}": "hd = C // n_head"})


def merge(text):
    return edit(f"return {MERGED}", f"return {text}")


def permuted(*order):
    return merge(f"y.permute{order}{TO_TOKENS}")


def moved(method):
    """Return edits that order the heads differently, in the split and in the merge."""
    return split(f"{HEADS}.{method}"), merge(f"y.{method}.transpose(1, 2){TO_TOKENS}")


def splits(id_, *texts):
    return mutants(id_, *map(split, texts))


def merges(id_, *texts):
    return mutants(id_, *map(merge, texts))


def sizes_in(line, sizes, viewed, **defaults):
    """Return an edit with hard-coded sizes in place of a line that reads them.

    Args:
        viewed: the change of the view, if there is one.
        defaults: the texts that read the sizes.
    """
    B, T, C, nh = (sizes.get(name, size) for name, size in defaults.items())
    heads = "n_head" if viewed else "nh"
    hd, viewed_heads = sizes.get("hd", f"C // {heads}"), sizes.get("viewed_nh", heads)
    return edit(
        line,
        f"B, T, C, {heads} = {B}, {T}, {C}, {nh}\n    hd, {heads} = {hd}, {viewed_heads}",
        viewed,
    )


def fixed(*choices):
    """Yield mutants with hard-coded sizes: in both functions, in the first, in the second."""
    for sizes in choices:
        viewed = {VIEWED: "x.view(B, T, n_head, hd)"}
        split_edit = sizes_in(
            OF_X, sizes, viewed, B="x.shape[0]", T="x.shape[1]", C="x.shape[2]", nh="n_head"
        )
        merge_edit = sizes_in(
            OF_Y,
            sizes,
            {},
            B="y.shape[0]",
            T="y.shape[2]",
            C="y.shape[1] * y.shape[3]",
            nh="y.shape[1]",
        )
        yield from mutants("hard_coded_shape", both(split_edit, merge_edit), split_edit, merge_edit)


def in_either(id_, *pairs):
    """Return mutants with the same fault in one function (the likeliest way) or in both."""
    return mutants(id_, *pairs[0], *(both(*pair) for pair in pairs))


def returned(*templates):
    """Return pairs of edits: either function returns something else than its answer, {0}."""
    return [
        (
            edit(f"return {SPLIT}", f"return {template.format(SPLIT)}"),
            merge(template.format(MERGED)),
        )
        for template in templates
    ]


def written_into(*writes):
    """Yield pairs of edits: either function changes its argument."""
    for write in writes:
        lines = (("x", OF_X, SPLIT), ("y", OF_Y, MERGED))
        after = f"\n    given{write}\n    return z"
        yield [
            edit(line, f"given = {t}\n    {line}", {f"return {z}": f"z = {z}{after}"})
            for t, line, z in lines
        ]


def unpacked(n):
    """Return an edit that unpacks n heads: `first, second, … = y.unbind(1)`."""
    message = f"not enough values to unpack (expected {n}, got {{y.shape[1]}})"
    return edit(OF_Y, f'{OF_Y}\n    if nh != {n}:\n        raise ValueError(f"{message}")')


def joined(n):
    return merge(f'__import__("einops").rearrange(y, "b h t d -> b t (h d)", h={n})')


TURNED, FORTH, BACK = moved("flip(1)"), moved("roll(1, 1)"), moved("roll(-1, 1)")
TWO_BY_EIGHT = {"B": 2, "T": 8}

MUTANTS = (
    *splits("wrong_view", STRAIGHT),
    *merges("merge_no_transpose", JOINED, FLAT),
    # After its halves, because a file may have one function that is not written yet.
    ("wrong_view_both", both(split(STRAIGHT), merge(JOINED))),
    ("heads_interleaved", both(split(INTERLEAVED), permuted(0, 2, 3, 1))),
    *splits("heads_interleaved", INTERLEAVED),
    *splits("heads_missing_transpose", BEHIND),
    *mutants(
        "heads_missing_transpose", *(both(split(BEHIND), merge(text)) for text in (FLAT, JOINED))
    ),
    *merges("view_not_contiguous", IN_VIEW, "y.transpose(2, 3).view(B, T, nh * hd)"),
    *splits("view_not_contiguous", SWAPPED_VIEWED, f"{HEADS}.view(B * n_head, T, hd)"),
    ("view_not_contiguous", both(split(SWAPPED_VIEWED), merge(IN_VIEW))),
    *mutants(
        "divisibility_unchecked",
        edit(REFUSED, "if False:"),
        edit(REFUSED, "x = x[..., : C // n_head * n_head]\n    if False:"),
        edit(
            REFUSED,
            "x = torch.nn.functional.pad(x, (0, -C % n_head))\n    C = x.shape[2]\n    if False:",
        ),
        edit(RAISED, "return None"),
        edit(REFUSED, "if n_head > C:"),
    ),
    ("refuses_allowed", edit(REFUSED, "if n_head % C != 0:")),
    *mutants(
        "divisibility_unchecked", *(edit(REFUSED, f"if {size} % n_head != 0:") for size in "TB")
    ),
    *merges("size_wrong_axis", "y.transpose(1, 2).reshape(B, nh, T * hd)"),
    *splits(
        "reshape_out_of_order",
        "x.reshape(B, n_head, hd, T).transpose(2, 3)",
        f"{STRAIGHT}.transpose(1, 2)",
        "x.transpose(1, 2).reshape(B, n_head, T, hd)",
        *(f"{BEHIND}.transpose({axes}).reshape(B, n_head, T, hd)" for axes in ("1, 3", "2, 3")),
    ),
    *splits("heads_mix_batch", FOLDED, BATCH_AFTER),
    *splits("wrong_view", FOLDED),
    ("heads_mix_batch", both(split(BATCH_AFTER), merge(BATCH_VIEWED))),
    *splits(
        "heads_mix_batch", "x.view(n_head, B, T, hd)", STACKED, f"{STACKED}.view(B, n_head, T, hd)"
    ),
    ("heads_mix_batch", both(split(f"{STACKED}.view(B, n_head, T, hd)"), merge(FROM_BATCH))),
    *splits("heads_mix_batch", f"{HEADS}.reshape(B * n_head, T, hd)"),
    *merges(
        "heads_mix_batch",
        BATCH_VIEWED,
        FROM_BATCH,
        "torch.cat(list(y.unbind(1)), dim=0)",
        "torch.cat(list(y), dim=-1)",
    ),
    *splits("heads_interleaved", f"{DEALT}.transpose(2, 3)", f"{DEALT}.transpose(1, 3)"),
    *splits("heads_and_width_swapped", f"{DEALT}.transpose(1, 2)"),
    *merges(
        "heads_averaged",
        "y.mean(1)",
        "y.sum(1)",
        "y.mean(1).repeat(1, 1, nh)",
        "y.sum(1).repeat(1, 1, nh)",
    ),
    *mutants(
        "heads_reversed",
        both(*TURNED),
        *TURNED,
        both(FORTH[0], BACK[1]),
        both(BACK[0], FORTH[1]),
        FORTH[0],
        BACK[0],
        FORTH[1],
        BACK[1],
    ),
    *((id_, permuted(0, 2, 3, 1)) for id_ in ("merge_wrong_axes", "heads_interleaved")),
    *mutants(
        "merge_wrong_axes",
        permuted(0, 1, 3, 2),
        merge("y.transpose(2, 3).flatten(2)"),
        permuted(0, 3, 2, 1),
        merge("y.transpose(1, 3).flatten(2)"),
        permuted(0, 3, 1, 2),
        merge("y.permute(0, 3, 1, 2).flatten(2)"),
    ),
    *mutants("heads_mix_batch", permuted(1, 0, 2, 3), permuted(1, 2, 0, 3)),
    *mutants(
        "merge_wrong_axes",
        permuted(1, 0, 2, 3),
        permuted(1, 2, 0, 3),
        permuted(2, 0, 1, 3),
        permuted(2, 1, 0, 3),
        permuted(3, 1, 2, 0),
    ),
    *merges("merge_no_transpose", "torch.cat(list(y.unbind(1)), dim=1)"),
    *fixed(
        TWO_BY_EIGHT | {"C": 64},
        TWO_BY_EIGHT | {"C": 64, "nh": 4},
        TWO_BY_EIGHT | {"nh": 4, "hd": 16},
    ),
    *fixed(
        {"B": 2},
        {"B": 1},
        {"B": -1, "T": 8},
        {"T": 8},
        {"B": 2, "T": -1},
        TWO_BY_EIGHT,
        {"T": 1024},
    ),
    *fixed({"nh": 4}, {"viewed_nh": 4}, {"nh": 2}, {"viewed_nh": 2}, {"nh": 8}, {"nh": 12}),
    *fixed({"hd": 16}, {"hd": 64}, {"hd": 8}, {"C": 64}, {"C": 768}),
    *mutants(
        "hard_coded_shape",
        *map(unpacked, (4, 2, 3, 8)),
        *map(joined, (12, 4, 2, 8)),
        *(edit(REFUSED, "if False:", {VIEWED: f"x.view(B, T, -1, {hd})"}) for hd in (16, 64)),
    ),
    *in_either(
        "gradient_cut",
        *returned("{0}.detach()", "torch.cat([{0}[:, :1].detach(), {0}[:, 1:]], dim=1)"),
    ),
    *in_either(
        "input_mutated",
        *written_into(
            ".transpose_(1, 2)", ".detach().zero_()", ".detach().mul_(2)", ".detach()[:, 0].zero_()"
        ),
    ),
    *in_either(
        "hard_coded_dtype",
        *returned(*(f"{{0}}.{to}()" for to in ("float", "double", "half", "bfloat16", "long"))),
    ),
    *in_either(
        "hard_coded_device", *returned("{0}.cpu()", "{0} + torch.zeros({0}.shape, dtype={0}.dtype)")
    ),
    *in_either(
        "interface", *returned("({0},)", "{0}.tolist()", "{0}.detach().cpu().numpy()", "None")
    ),
    *mutants(
        "interface",
        edit(DEF_SPLIT, "def split_heads(x, num_heads)", {OF_X: f"n_head = num_heads\n    {OF_X}"}),
        *(
            edit(DEF_SPLIT, f"def split_heads({names})")
            for names in ("n_head, x", "x, n_head, head_dim")
        ),
        edit(DEF_SPLIT, "def split_heads(x)", {OF_X: f"n_head = 4\n    {OF_X}"}),
        *(edit(DEF_MERGE, f"def merge_heads({names})") for names in ("y, n_head", "y, B, T, C")),
        edit(DEF_SPLIT, "def split(x, n_head)"),
        edit(DEF_MERGE, "def merge(y)"),
    ),
)
