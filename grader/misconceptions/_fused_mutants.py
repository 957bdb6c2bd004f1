"""Mutants that the exercises with a fused projection, and with grouped queries, have in common."""

from manyheads.checks import Mutant

from . import _attention_edits as edit
from ._attention_edits import (
    MASK,
    SCALE,
    SOFTMAX,
    ZERO_FILLED,
    combined_edits,
    replacements,
    split_edit,
    splits,
)
from ._module_edits import SIZES, insert_after, insert_before, on_a_device
from ._mutants import FILLS_TRIED, SCALES_TRIED, SUPER_INIT_LATE, mutants

PRODUCT = "q @ k.transpose(-2, -1)"


def heads(joined, tensors="qkv"):
    """Return mutants of the joined heads and of the last layer.

    Args:
        joined: the text of the argument of proj.
        tensors: the texts of the tensors that are split into heads.
    """
    projected = f"self.proj({joined})"
    return (
        *mutants("merge_wrong_axes", *edit.WRONG_AXES, replacing=edit.JOINED),
        *combined_edits(
            "heads_interleaved",
            [split_edit(edit.INTERLEAVED, tensors)],
            ({}, {edit.JOINED: edit.HEADS_LAST}),
        ),
        *mutants("heads_one_width", *edit.AVERAGED, replacing=edit.JOINED),
        *mutants("heads_averaged", *edit.AVERAGES, replacing=edit.JOINED),
        *mutants("heads_reversed", *edit.REVERSED, replacing=edit.JOINED),
        *mutants("view_not_contiguous", *edit.NOT_CONTIGUOUS[1:], replacing=edit.JOINED),
        Mutant("proj_transposed", f"{joined} @ self.proj.weight", replacing=projected),
        Mutant("proj_twice", f"self.proj({projected})", replacing=projected),
    )


OVER_AXES = (
    *mutants(
        "softmax_wrong_axis",
        edit.OVER_HEADS,
        edit.OVER_BATCH,
        *replacements(
            SOFTMAX,
            "scores.flatten(-2).softmax(dim=-1).view_as(scores)",
            "scores.flatten().softmax(dim=0).view_as(scores)",
            "scores.flatten(1).softmax(dim=-1).view_as(scores)",
            edit.OVER_ONE_HEAD,
        ),
        edit.OVER_BATCH_AND_HEADS,
    ),
    Mutant(
        "softmax_query_axis",
        f"({edit.EXPONENTIALS} / {edit.EXPONENTIALS}.sum(-2, keepdim=True))",
        replacing=SOFTMAX,
    ),
    *mutants(
        "softmax_wrong_axis",
        "scores.softmax(dim=1).nan_to_num(0.0)",
        "scores.softmax(dim=0).nan_to_num(0.0)",
        replacing=SOFTMAX,
    ),
)
WRONG_AXES_FINITE = combined_edits(
    "softmax_wrong_axis",
    (edit.OVER_HEADS, edit.OVER_BATCH, edit.OVER_BATCH_AND_HEADS),
    [edit.LOW_FILL],
)
NO_SOFTMAX = (
    *mutants(
        "softmax_missing",
        "scores",
        ZERO_FILLED,
        f"({ZERO_FILLED} / {ZERO_FILLED}.sum(-1, keepdim=True))",
        "(scores / scores.sum(-1, keepdim=True))",
        f"({ZERO_FILLED} / {ZERO_FILLED}.abs().sum(-1, keepdim=True))",
        "scores.exp()",
        "scores.sigmoid()",
        replacing=SOFTMAX,
    ),
    *combined_edits(
        "softmax_missing",
        (edit.NO_SOFTMAX, edit.DIVIDED_BY_SUM, edit.SIGMOID),
        (edit.ZERO_FILL, edit.LOW_FILL, edit.NO_MASK),
    ),
    *mutants(
        "softmax_missing",
        f"nn.functional.normalize({ZERO_FILLED}, dim=-1)",
        f"({ZERO_FILLED} / T)",
        edit.EXPONENTIALS,
        replacing=SOFTMAX,
    ),
)
FILLED = (
    *mutants("mask_zero_fill", *edit.fill_edits(1e-3, -1e-3, 0.01, -0.01, 0.1, -0.1)),
    *mutants(
        "mask_weak_fill",
        *edit.fill_edits(*edit.WEAK),
        *edit.added_mask_edits(*edit.WEAK_ADDED, -50.0),
    ),
    *combined_edits("mask_weak_fill", ({}, edit.SCALED_LATER), edit.LOW_FILLS),
)
ADDED = (
    *mutants("mask_added", edit.ADD_SEEN, edit.ADD_HIDDEN, edit.REVERSED_MASK | edit.ADD_SEEN),
    *combined_edits("mask_added", (edit.ADD_SEEN, edit.ADD_HIDDEN), [edit.SCALED_LATER]),
    *combined_edits(
        "mask_weak_fill",
        (*edit.fill_edits(*edit.WEAK[:3]), *edit.added_mask_edits(*edit.WEAK_ADDED[:2])),
        [edit.SCALED_LATER],
    ),
)
FLOOR = 'torch.div({0}, math.sqrt(self.head_dim), rounding_mode="floor")'
ROUNDED_SCORES = mutants(
    "scale_rounded",
    {f"{PRODUCT}{SCALE}": FLOOR.format(PRODUCT)},
    {SCALE: f" /{SCALE[1:]}"},
    {SCALE: "", SOFTMAX: f"{FLOOR.format('scores')}.softmax(dim=-1)"},
    {SCALE: "", SOFTMAX: f"(scores /{SCALE[1:]}).softmax(dim=-1)"},
)
ROUNDED = (*mutants("scale_rounded", *edit.ROUNDED, replacing=SCALE), *ROUNDED_SCORES)


def not_sliced(weights):
    """Return mutants that do not cut the mask to the length of the input.

    Args:
        weights: the text of the weights.
    """
    einsum = edit.einsum(weights)
    stretched = "self.visible.expand(*scores.shape[:-1], T)"
    return mutants(
        "mask_not_sliced",
        {MASK: "self.visible[:T]"} | einsum,
        {MASK: stretched},
        edit.WHOLE_MASK | einsum,
        edit.WHOLE_MASK | einsum | edit.FLATTENED,
    )


def wrong_sizes(weights):
    """Return mutants that take a size from the wrong axis.

    Args:
        weights: the text of the weights.
    """
    einsum = edit.einsum(weights)
    return (
        *combined_edits("size_wrong_axis", ({}, einsum), (edit.CUT_TO_BATCH, edit.MADE_FOR_HEADS)),
        *combined_edits(
            "size_wrong_axis",
            (edit.MADE_FOR_BATCH, edit.MADE_FOR_HEADS),
            [einsum | edit.FLATTENED],
        ),
        Mutant("size_wrong_axis", edit.SIZES_OF_TRANSPOSED, replacing=edit.JOINED),
    )


WITH_THE_BATCH = mutants(
    "qkv_mix_batch",
    *(
        f"{edit.BY_THREE}.permute{order}.reshape(3, B, self.n_head, T, -1).transpose(2, 3)"
        f"{edit.TO_THREE}"
        for order in ((0, 2, 3, 1, 4), (0, 3, 2, 1, 4))
    ),
    f"[{edit.BY_THREE}.transpose(1, 2)[i] for i in range(3)]",
    replacing=edit.CUT,
)
WRONG_CUTS = (
    *mutants(
        "qkv_mix_batch",
        f"self.qkv(x){edit.TO_THREE}",
        edit.THREE_STRAIGHT,
        replacing=edit.CUT,
    ),
    *mutants(
        "reshape_out_of_order",
        "self.qkv(x).reshape(B, 3, T, C).transpose(0, 1)",
        f"self.qkv(x).reshape(B, 3, self.n_head, T, -1).permute(1, 0, 3, 2, 4){edit.TO_THREE}",
        edit.HEADS_BEFORE_TOKENS,
        f"self.qkv(x).reshape(B, self.n_head, 3, T, -1).permute(2, 0, 3, 1, 4){edit.TO_THREE}",
        *(
            {edit.CUT: cut} | edit.JOINED_STRAIGHT
            for cut in (edit.THREE_STRAIGHT, edit.HEADS_BEFORE_TOKENS)
        ),
        replacing=edit.CUT,
    ),
)
HEADS_ASTRAY = (
    *splits(
        "heads_mismatched",
        f"{edit.SPLIT}.flip(1)",
        f"{edit.SPLIT}.roll(1, 1)",
        tensors=("v", "q", "k", "qk"),
    ),
    *splits(
        "heads_mix_batch",
        edit.HEADS_BEFORE_BATCH,
        f"{edit.VIEWED}.permute(2, 0, 1, 3){edit.TO_HEADS}",
    ),
    *splits("reshape_out_of_order", "{0}.reshape(T, B, self.n_head, -1).permute(1, 2, 0, 3)"),
    *combined_edits(
        "heads_mix_batch",
        (split_edit(edit.HEADS_BEFORE_BATCH), {}),
        replacements(edit.JOINED, *edit.MIXED_WITH_BATCH[:2]),
    ),
    Mutant("heads_mix_batch", edit.MIXED_WITH_BATCH[2], replacing=edit.JOINED),
)
PACKED = (
    *mutants(
        "qkv_packed_per_head",
        "self.qkv(x).view(B, T, C, 3).unbind(-1)",
        f"self.qkv(x).view(B, T, -1, 3, self.n_head).permute(3, 0, 1, 4, 2){edit.TO_THREE}",
        f"self.qkv(x).view(B, T, -1, self.n_head, 3).permute(4, 0, 1, 3, 2){edit.TO_THREE}",
        f"[{edit.LINEAR}(x, w) for w in {edit.WEIGHT}.view(C, 3, C).unbind(1)]",
        *(f"[{edit.PER_HEAD}[i] for i in {order}]" for order in edit.ORDERS),
        replacing=edit.CUT,
    ),
    *mutants(
        "qkv_sliced_by_columns",
        f"[{edit.LINEAR}(x, w) for w in {edit.WEIGHT}.reshape(C, 3 * C).split(C, dim=1)]",
        f"[{edit.LINEAR}(x, {edit.WEIGHT}.reshape(C, 3 * C)[:, i::3]) for i in range(3)]",
        f"[{edit.LINEAR}(x, {edit.WEIGHT}[:, i * C : (i + 1) * C]) for i in range(3)]",
        f"[{edit.LINEAR}(x, w) for w in {edit.WEIGHT}.mT.reshape(3, C, C)]",
        f"[x @ w for w in {edit.WEIGHT}.mT.reshape(3, C, C)]",
        replacing=edit.CUT,
    ),
    *mutants(
        "weight_not_transposed",
        f"[x @ w for w in {edit.WEIGHT}.chunk(3)]",
        f"[x @ {edit.WEIGHT}[:C], *self.qkv(x).split(C, dim=-1)[1:]]",
        f"(x @ {edit.WEIGHT}.view(C, 3 * C)).split(C, dim=-1)",
        replacing=edit.CUT,
    ),
)
STATE_KEPT = mutants(
    "state_kept",
    *edit.made_in_forward(edit.KEPT_FROM_FIRST, f"{edit.KEPT_FROM_FIRST}[:T, :T]"),
    insert_before(SIZES, 'x = x[: vars(self).setdefault("first_batch", len(x))]'),
    insert_before(
        SIZES,
        'self.most = max(getattr(self, "most", 0), x.shape[1])\n'
        "        x = x * x.shape[1] / self.most",
    ),
)
MASK_ON_DEFAULT_DEVICE = mutants(
    "hard_coded_device", *edit.made_in_forward("torch.ones(T, T, dtype=torch.bool).tril()")
)
CHUNKS = {edit.CUT: "self.qkv(x).chunk(3, dim=-1)"}
HARD_CODED = (
    *mutants("hard_coded_shape", *map(edit.heads_hard_coded, (4, 2, 8, 12, 6, 3))),
    *mutants("hard_coded_shape", *map(edit.width_hard_coded, (64, 16, 8, 4))),
    *edit.hard_coded("B = 1", "B = 2", "B = 4", "B = 8"),
    *edit.hard_coded("T = 4", "T = 6", "T = 8", "T = 10", "T = 16"),
    *mutants(
        "hard_coded_shape",
        # The projection is still cut into three.
        *(insert_after(edit.REFUSED, f"C = {C}") | CHUNKS for C in (64, 12, 768)),
        insert_after(edit.REFUSED, "T = self.block_size"),
        insert_after(edit.REFUSED, "B, T, C = 2, 8, 64") | CHUNKS | edit.heads_hard_coded(4),
    ),
    *MASK_ON_DEFAULT_DEVICE,
    *on_a_device(SIZES),
)

# for a fused projection and for grouped queries
LIKELY = (
    Mutant("softmax_query_axis", edit.OVER_QUERIES),
    Mutant("product_turned", "k @ q.transpose(-2, -1)", replacing=PRODUCT),
    Mutant("mask_zero_fill", edit.ZERO_FILL),
    Mutant("mask_after_softmax", edit.AFTER_SOFTMAX),
    Mutant("mask_reversed", edit.INVERTED),
    Mutant("mask_excludes_self", edit.WITHOUT_SELF),
    Mutant("mask_peeks_one", edit.PEEKS_ONE),
    *mutants("mask_peeks_ahead", edit.PEEKS_TWO, edit.PEEKS_THREE),
    Mutant("view_not_contiguous", edit.NOT_CONTIGUOUS[0], replacing=edit.JOINED),
    SUPER_INIT_LATE,
)
AXES_MASKED_OR_NOT = (
    *OVER_AXES,
    *combined_edits("softmax_wrong_axis", (edit.OVER_HEADS, edit.OVER_BATCH), [edit.NO_MASK]),
    *WRONG_AXES_FINITE,
)
MASK_AS_ATTRIBUTE = {edit.BUFFER: "self.visible = visible"}
MASK_NOT_MOVED = mutants(
    "mask_not_moved",
    MASK_AS_ATTRIBUTE,
    *edit.made_in_forward(f'vars(self).setdefault(f"mask_{{T}}", {edit.MADE_IN_FORWARD})'),
)
MASK_IS_PARAMETER = mutants(
    "mask_is_parameter",
    *(
        {
            edit.BUFFER: f"self.visible = nn.Parameter(visible.float(), requires_grad={learned})",
            MASK: f"{MASK}.bool()",
        }
        for learned in (False, True)
    ),
)
NAN = edit.masking_edits(
    f"scores + (~{MASK}).to(scores.dtype) * {edit.INF}",
    f"scores * torch.where({MASK}, 1.0, {edit.INF}).to(scores.dtype)",
    f"scores * torch.where({MASK}, 0.0, {edit.INF}).to(scores.dtype)",
)
AFTER_SOFTMAX_NAN = edit.after_softmax(f".masked_fill(~{MASK}, {edit.INF})")
CONTEXT_OPEN, CONTEXT_CUT = (
    {edit.TOO_LONG: "False"} | edit.made_in_forward(edit.MADE_IN_FORWARD)[0],
    {edit.REFUSED: "x, T = x[:, : self.block_size], self.block_size"},
)


def mask_mutants(weights):
    """Return mutants of the mask.

    Args:
        weights: the text of the weights.
    """
    return (
        *FILLED,
        *mutants("mask_plus_inf", *edit.fill_edits("math.inf")),
        *mutants("mask_high_fill", *edit.fill_edits(1e9), *edit.added_mask_edits(1e9)),
        *mutants(
            "mask_nan",
            *NAN,
            AFTER_SOFTMAX_NAN,
            edit.NO_MASK
            | {SOFTMAX: f"({edit.WEIGHTS_HIDDEN} / {edit.WEIGHTS_HIDDEN}.sum(-1, keepdim=True))"},
        ),
        Mutant("mask_after_softmax", edit.after_softmax(f".masked_fill(~{MASK}, -1e9)")),
        *ADDED,
        Mutant("mask_not_sliced", edit.WHOLE_MASK),
        *not_sliced(weights),
        *MASK_NOT_MOVED,
        *MASK_IS_PARAMETER,
        *mutants("context_unchecked", CONTEXT_OPEN, CONTEXT_CUT),
        *wrong_sizes(weights),
    )


# parametric mutants: the number can have any value
FAMILIES = (
    (
        "scale_constant",
        lambda c: Mutant("scale_constant", f" * {c}", replacing=SCALE),
        SCALES_TRIED,
    ),
    ("mask_weak_fill", lambda c: Mutant("mask_weak_fill", edit.fill_edits(-c)[0]), FILLS_TRIED),
    (
        "mask_weak_fill",
        lambda c: Mutant("mask_weak_fill", edit.added_mask_edits(-c)[0]),
        FILLS_TRIED,
    ),
    (
        "mask_weak_fill",
        lambda c: Mutant(
            "mask_weak_fill", edit.fill_edits(f"float(scores.detach().min()) - {c}")[0]
        ),
        FILLS_TRIED,
    ),
)
