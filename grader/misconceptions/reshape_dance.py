"""The wrong ways to do the reshape dance, each an edit of the reference."""

from manyheads.checks import Mutant

from ._mutants import (
    mutants,
)

# Texts of the reference.
SIZES_OF_X = "B, T, C = x.shape"
SIZES_OF_Y = "B, nh, T, hd = y.shape"
REFUSED = "if C % n_head != 0:"
RAISED = 'raise ValueError(f"{C} channels cannot be divided evenly among {n_head} heads")'
VIEWED = "x.view(B, T, n_head, C // n_head)"
SPLIT = "x.transpose(1, 2)"
MERGED = "y.transpose(1, 2).contiguous().view(B, T, nh * hd)"
DEF_SPLIT = "def split_heads(x: torch.Tensor, n_head: int)"
DEF_MERGE = "def merge_heads(y: torch.Tensor)"

# Wrong splits and merges that several mutants have.
SPLIT_WITHOUT_TRANSPOSE = "x.view(B, n_head, T, hd)"
ONLY_VIEWED = "x.view(B, T, n_head, hd)"
HEADS = f"{ONLY_VIEWED}.transpose(1, 2)"  # right
HEADS_LAST = "x.view(B, T, hd, n_head)"
HEADS_INTERLEAVED = f"{HEADS_LAST}.permute(0, 3, 1, 2)"
TRANSPOSED_THEN_VIEWED = "x.transpose(1, 2).view(B, n_head, T, hd)"
HEADS_BEFORE_BATCH = "x.reshape(n_head, B, T, hd).transpose(0, 1)"
HEADS_STACKED = "torch.stack(x.chunk(n_head, dim=-1))"
STACKED_THEN_VIEWED = f"{HEADS_STACKED}.view(B, n_head, T, hd)"
BATCH_TIMES_HEADS = "x.view(B * n_head, T, hd)"
TO_TOKENS = ".reshape(B, T, nh * hd)"
MERGED_WITHOUT_TRANSPOSE = f"y{TO_TOKENS}"
NOT_CONTIGUOUS = "y.transpose(1, 2).view(B, T, nh * hd)"
HEADS_AS_BATCH = f"y.reshape(nh, B, T, hd).permute(1, 2, 0, 3){TO_TOKENS}"
HEADS_FROM_BATCH = f"y.transpose(0, 1).reshape(B, nh, T, hd).transpose(1, 2){TO_TOKENS}"


def split_heads_edit(text):
    """Return the edit by which split_heads returns this."""
    return {f"return {SPLIT}": f"return {text}", f"x = {VIEWED}": "hd = C // n_head"}


def merge(text):
    """Return the edit by which merge_heads returns this."""
    return {f"return {MERGED}": f"return {text}"}


def permutation_text(*order):
    return merge(f"y.permute{order}{TO_TOKENS}")


def splits(id_, *texts):
    return mutants(id_, *map(split_heads_edit, texts))


def merges(id_, *texts):
    return mutants(id_, *map(merge, texts))


def split_in_order(method):
    return split_heads_edit(f"{HEADS}.{method}")


def merge_in_order(method):
    return merge(f"y.{method}.transpose(1, 2){TO_TOKENS}")


def hard_coded(sizes, afterwards="pass"):
    """Return mutants that overwrite sizes: in both functions, in the first, in the second.

    Args:
        sizes: a statement before the width of a head is computed.
        afterwards: a statement after that.
    """
    lines = f"\n    {sizes}\n    hd = C // nh\n    {afterwards}"
    split_edit = {
        SIZES_OF_X: SIZES_OF_X + lines.replace("nh", "n_head"),
        VIEWED: "x.view(B, T, n_head, hd)",
    }
    merge_edit = {SIZES_OF_Y: f"{SIZES_OF_Y}\n    C = nh * hd{lines}"}
    return mutants("hard_coded_shape", split_edit | merge_edit, split_edit, merge_edit)


def return_edits(template):
    """Return edits of both functions: each returns something else than its answer, {0}."""
    return (
        {f"return {SPLIT}": f"return {template.format(SPLIT)}"},
        merge(template.format(MERGED)),
    )


def written_into(method):
    """Return edits of both functions: each changes its argument in place."""
    after = f"\n    given.{method}\n    return out"
    return (
        {
            SIZES_OF_X: f"given = x\n    {SIZES_OF_X}",
            f"return {SPLIT}": f"out = {SPLIT}{after}",
        },
        {
            SIZES_OF_Y: f"given = y\n    {SIZES_OF_Y}",
            f"return {MERGED}": f"out = {MERGED}{after}",
        },
    )


def in_either(id_, *pairs):
    """Return mutants with the same fault in one function (the likeliest way) or in both."""
    return mutants(id_, *pairs[0], *(of_split | of_merge for of_split, of_merge in pairs))


def heads_unpacked(n):
    """Return an edit that unpacks n heads: `first, second, … = y.unbind(1)`."""
    message = f"not enough values to unpack (expected {n}, got {{y.shape[1]}})"
    return {SIZES_OF_Y: f'{SIZES_OF_Y}\n    if nh != {n}:\n        raise ValueError(f"{message}")'}


def heads_rearranged(n):
    return merge(f'__import__("einops").rearrange(y, "b h t d -> b t (h d)", h={n})')


MUTANTS = (
    *splits("wrong_view", SPLIT_WITHOUT_TRANSPOSE),
    *merges("merge_no_transpose", MERGED_WITHOUT_TRANSPOSE, "y.flatten(2)"),
    # After its halves, because a file may have one function that is not written yet.
    Mutant(
        "wrong_view_both",
        split_heads_edit(SPLIT_WITHOUT_TRANSPOSE) | merge(MERGED_WITHOUT_TRANSPOSE),
    ),
    Mutant("heads_interleaved", split_heads_edit(HEADS_INTERLEAVED) | permutation_text(0, 2, 3, 1)),
    *splits("heads_interleaved", HEADS_INTERLEAVED),
    *splits("heads_missing_transpose", ONLY_VIEWED),
    Mutant("heads_missing_transpose", split_heads_edit(ONLY_VIEWED) | merge("y.flatten(2)")),
    Mutant(
        "heads_missing_transpose", split_heads_edit(ONLY_VIEWED) | merge(MERGED_WITHOUT_TRANSPOSE)
    ),
    *merges("view_not_contiguous", NOT_CONTIGUOUS, "y.transpose(2, 3).view(B, T, nh * hd)"),
    *splits("view_not_contiguous", TRANSPOSED_THEN_VIEWED, f"{HEADS}.view(B * n_head, T, hd)"),
    Mutant("view_not_contiguous", split_heads_edit(TRANSPOSED_THEN_VIEWED) | merge(NOT_CONTIGUOUS)),
    *mutants(
        "divisibility_unchecked",
        "if False:",
        "x = x[..., : C // n_head * n_head]\n    if False:",
        "x = torch.nn.functional.pad(x, (0, -C % n_head))\n    C = x.shape[2]\n    if False:",
        replacing=REFUSED,
    ),
    Mutant("divisibility_unchecked", "return None", replacing=RAISED),
    Mutant("divisibility_unchecked", "if n_head > C:", replacing=REFUSED),
    Mutant("refuses_allowed", "if n_head % C != 0:", replacing=REFUSED),
    Mutant("divisibility_unchecked", "if T % n_head != 0:", replacing=REFUSED),
    Mutant("divisibility_unchecked", "if B % n_head != 0:", replacing=REFUSED),
    *merges("size_wrong_axis", "y.transpose(1, 2).reshape(B, nh, T * hd)"),
    *splits(
        "reshape_out_of_order",
        "x.reshape(B, n_head, hd, T).transpose(2, 3)",
        f"{SPLIT_WITHOUT_TRANSPOSE}.transpose(1, 2)",
        "x.transpose(1, 2).reshape(B, n_head, T, hd)",
        f"{ONLY_VIEWED}.transpose(1, 3).reshape(B, n_head, T, hd)",
        f"{ONLY_VIEWED}.transpose(2, 3).reshape(B, n_head, T, hd)",
    ),
    *splits("heads_mix_batch", BATCH_TIMES_HEADS, HEADS_BEFORE_BATCH),
    *splits("wrong_view", BATCH_TIMES_HEADS),
    Mutant("heads_mix_batch", split_heads_edit(HEADS_BEFORE_BATCH) | merge(HEADS_AS_BATCH)),
    *splits("heads_mix_batch", "x.view(n_head, B, T, hd)", HEADS_STACKED, STACKED_THEN_VIEWED),
    Mutant("heads_mix_batch", split_heads_edit(STACKED_THEN_VIEWED) | merge(HEADS_FROM_BATCH)),
    *splits("heads_mix_batch", f"{HEADS}.reshape(B * n_head, T, hd)"),
    *merges(
        "heads_mix_batch",
        HEADS_AS_BATCH,
        HEADS_FROM_BATCH,
        "torch.cat(list(y.unbind(1)), dim=0)",
        "torch.cat(list(y), dim=-1)",
    ),
    *splits("heads_interleaved", f"{HEADS_LAST}.transpose(2, 3)", f"{HEADS_LAST}.transpose(1, 3)"),
    *splits("heads_and_width_swapped", f"{HEADS_LAST}.transpose(1, 2)"),
    *merges(
        "heads_averaged",
        "y.mean(1)",
        "y.sum(1)",
        "y.mean(1).repeat(1, 1, nh)",
        "y.sum(1).repeat(1, 1, nh)",
    ),
    *mutants(
        "heads_reversed",
        split_in_order("flip(1)") | merge_in_order("flip(1)"),
        split_in_order("flip(1)"),
        merge_in_order("flip(1)"),
        split_in_order("roll(1, 1)") | merge_in_order("roll(-1, 1)"),
        split_in_order("roll(-1, 1)") | merge_in_order("roll(1, 1)"),
        split_in_order("roll(1, 1)"),
        split_in_order("roll(-1, 1)"),
        merge_in_order("roll(1, 1)"),
        merge_in_order("roll(-1, 1)"),
    ),
    Mutant("merge_wrong_axes", permutation_text(0, 2, 3, 1)),
    Mutant("heads_interleaved", permutation_text(0, 2, 3, 1)),
    *mutants(
        "merge_wrong_axes",
        permutation_text(0, 1, 3, 2),
        merge("y.transpose(2, 3).flatten(2)"),
        permutation_text(0, 3, 2, 1),
        merge("y.transpose(1, 3).flatten(2)"),
        permutation_text(0, 3, 1, 2),
        merge("y.permute(0, 3, 1, 2).flatten(2)"),
    ),
    *mutants("heads_mix_batch", permutation_text(1, 0, 2, 3), permutation_text(1, 2, 0, 3)),
    *mutants(
        "merge_wrong_axes",
        permutation_text(1, 0, 2, 3),
        permutation_text(1, 2, 0, 3),
        permutation_text(2, 0, 1, 3),
        permutation_text(2, 1, 0, 3),
        permutation_text(3, 1, 2, 0),
    ),
    *merges("merge_no_transpose", "torch.cat(list(y.unbind(1)), dim=1)"),
    *hard_coded("B, T, C = 2, 8, 64"),
    *hard_coded("B, T, C, nh = 2, 8, 64, 4"),
    *hard_coded("B, T, nh = 2, 8, 4", afterwards="hd = 16"),
    *hard_coded("B = 2"),
    *hard_coded("B = 1"),
    *hard_coded("B, T = -1, 8"),
    *hard_coded("T = 8"),
    *hard_coded("B, T = 2, -1"),
    *hard_coded("B, T = 2, 8"),
    *hard_coded("T = 1024"),
    *hard_coded("nh = 4"),
    *hard_coded("pass", afterwards="nh = 4"),
    *hard_coded("nh = 2"),
    *hard_coded("pass", afterwards="nh = 2"),
    *hard_coded("nh = 8"),
    *hard_coded("nh = 12"),
    *hard_coded("pass", afterwards="hd = 16"),
    *hard_coded("pass", afterwards="hd = 64"),
    *hard_coded("pass", afterwards="hd = 8"),
    *hard_coded("C = 64"),
    *hard_coded("C = 768"),
    *mutants("hard_coded_shape", *map(heads_unpacked, (4, 2, 3, 8))),
    *mutants("hard_coded_shape", *map(heads_rearranged, (12, 4, 2, 8))),
    Mutant("hard_coded_shape", {REFUSED: "if False:", VIEWED: "x.view(B, T, -1, 16)"}),
    Mutant("hard_coded_shape", {REFUSED: "if False:", VIEWED: "x.view(B, T, -1, 64)"}),
    *in_either(
        "gradient_cut",
        return_edits("{0}.detach()"),
        return_edits("torch.cat([{0}[:, :1].detach(), {0}[:, 1:]], dim=1)"),
    ),
    *in_either(
        "input_mutated",
        written_into("transpose_(1, 2)"),
        written_into("detach().zero_()"),
        written_into("detach().mul_(2)"),
        written_into("detach()[:, 0].zero_()"),
    ),
    *in_either(
        "hard_coded_dtype",
        return_edits("{0}.float()"),
        return_edits("{0}.double()"),
        return_edits("{0}.half()"),
        return_edits("{0}.bfloat16()"),
        return_edits("{0}.long()"),
    ),
    *in_either(
        "hard_coded_device",
        return_edits("{0}.cpu()"),
        return_edits("{0} + torch.zeros({0}.shape, dtype={0}.dtype)"),
    ),
    *in_either(
        "interface",
        return_edits("({0},)"),
        return_edits("{0}.tolist()"),
        return_edits("{0}.detach().cpu().numpy()"),
        return_edits("None"),
    ),
    Mutant(
        "interface",
        {
            DEF_SPLIT: "def split_heads(x, num_heads)",
            SIZES_OF_X: f"n_head = num_heads\n    {SIZES_OF_X}",
        },
    ),
    Mutant("interface", "def split_heads(n_head, x)", replacing=DEF_SPLIT),
    Mutant("interface", "def split_heads(x, n_head, head_dim)", replacing=DEF_SPLIT),
    Mutant(
        "interface",
        {DEF_SPLIT: "def split_heads(x)", SIZES_OF_X: f"n_head = 4\n    {SIZES_OF_X}"},
    ),
    Mutant("interface", "def merge_heads(y, n_head)", replacing=DEF_MERGE),
    Mutant("interface", "def merge_heads(y, B, T, C)", replacing=DEF_MERGE),
    Mutant("interface", "def split(x, n_head)", replacing=DEF_SPLIT),
    Mutant("interface", "def merge(y)", replacing=DEF_MERGE),
)
