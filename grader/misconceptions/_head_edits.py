"""Wrong ways to split channels into heads and to merge the heads, as texts.

In a split, {t} stands for the tensor, (B, T, C), and {T} for its length. A merge follows
`(weights @ v)`, (B, nh, T, hd), and the reference reshapes its result to (B, T, C). The names are
those of references with `self.num_heads`.
"""

HEADS = "{t}.view(B, {T}, self.num_heads, self.head_dim)"
STRAIGHT = "{t}.reshape(B, self.num_heads, {T}, self.head_dim)"
HD_FIRST = "{t}.reshape(B, self.num_heads, self.head_dim, {T}).transpose(2, 3)"
HEADS_LAST = "{t}.view(B, {T}, self.head_dim, self.num_heads)"
INTERLEAVED = f"{HEADS_LAST}.permute(0, 3, 1, 2)"
SIZES_SWAPPED = f"{HEADS_LAST}.transpose(1, 2)"
BATCH_AFTER_HEADS = "{t}.reshape(self.num_heads, B, {T}, self.head_dim).transpose(0, 1)"
TO_HEADS = ".reshape(B, self.num_heads, {T}, self.head_dim)"
BATCH_SWAPPED = f"{HEADS}.permute(2, 0, 1, 3){TO_HEADS}"
BATCH_AND_TOKENS = "{t}.reshape({T}, B, self.num_heads, self.head_dim).permute(1, 2, 0, 3)"
NOT_CONTIGUOUS = f"{HEADS}.transpose(1, 2).view(B * self.num_heads, {{T}}, -1)"
FIRST_FOR_ALL = f"{HEADS}.transpose(1, 2)[:, :1].expand(-1, self.num_heads, -1, -1)"
OUT_OF_ORDER = (
    HD_FIRST,
    f"{{t}}.transpose(1, 2){TO_HEADS}",
    f"{HEADS}.transpose(2, 3){TO_HEADS}",
    f"{HEADS}.transpose(1, 3){TO_HEADS}",
    f"{HEADS}.transpose(1, 2).reshape(B, {{T}}, self.num_heads, self.head_dim).transpose(1, 2)",
)
PARTS = ("v", "q", "k", "qk", "qv", "kv")

TRANSPOSED = "v).transpose(1, 2)"
MERGED_STRAIGHT = {TRANSPOSED: "v)"}


def merges(*methods):
    """Return edits that call this in place of `transpose(1, 2)`."""
    return [{TRANSPOSED: f"v).{method}"} for method in methods]


def permutation_text(*orders):
    return merges(*(f"permute({', '.join(order)})" for order in orders))


REVERSED = merges(
    "flip(1).transpose(1, 2)", "roll(1, 1).transpose(1, 2)", "roll(-1, 1).transpose(1, 2)"
)
[LAST_AXES] = permutation_text("0231")
[BATCH_VIEWED] = merges("reshape(self.num_heads, B, -1, self.head_dim).permute(1, 2, 0, 3)")
AVERAGED = ("mean(1)", "sum(1)")
REPEATED = (".repeat(1, 1, self.num_heads)", ".repeat_interleave(self.num_heads, -1)")
AVERAGED_AGAIN = [mean + repeated for repeated in REPEATED for mean in AVERAGED]
