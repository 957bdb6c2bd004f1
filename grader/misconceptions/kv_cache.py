"""Wrong attempts at attention with a cache, each an edit of the reference."""

from manyheads.checks import Mutant

from ._mutants import (
    FILLS_TRIED,
    HEADS_NOT_JOINED,
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    insert_before,
    mutants,
    values_transposed,
)

# Lines of the reference.
QKV_LAYER = "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)"
PROJ_LAYER = "self.proj = nn.Linear(n_embd, n_embd, bias=False)"
SIZES = "B, T, C = x.shape"
CUT = "q, k, v = self.qkv(x).split(C, dim=-1)"
Q = "q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)"
K = "k = k.view(B, T, self.n_head, self.head_dim).transpose(1, 2)\n"
V = "v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)\n"
PAST = "past = 0 if cache is None else cache[0].shape[2]"
TOO_LONG = "if past + T > self.block_size:"
JOINED_IF = "if cache is not None:"
JOINED_K = "k = torch.cat([cache[0], k], dim=2)  # (B, nh, past + T, hd)"
JOINED_V = "v = torch.cat([cache[1], v], dim=2)"
QUERY = "query = torch.arange(past, past + T, device=x.device)[:, None]  # (T, 1)"
KEY = "key = torch.arange(past + T, device=x.device)  # (past + T,)"
SCALE = "/ math.sqrt(self.head_dim)"
MASK = ".masked_fill(key > query, -math.inf)"
SOFTMAX = ".softmax(dim=-1)"
GATHER = "y = weights @ v  # (B, nh, T, hd)"
MERGE = "y = y.transpose(1, 2).reshape(B, T, C)  # (B, T, C)"
PROJECTED = "self.proj(y), (k, v)"
RETURNED = "return self.proj(y), (k, v)"

# Heads from channels in another way.
SPLIT_WITHOUT_TRANSPOSE = "{0} = {0}.reshape(B, self.n_head, T, self.head_dim)"
HEADS_INTERLEAVED = "{0} = {0}.view(B, T, self.head_dim, self.n_head).permute(0, 3, 1, 2)"

LAST_KEPT = (4, 2, 3)  # how many tokens a cache holds that is cut to a fixed length
SDPA = "y = nn.functional.scaled_dot_product_attention(q, k, v, {})"
KEPT_THEN_RETURNED = "self.kept = (k, v)\n        return self.proj(y), "
GIVEN_LIST = "cache = [] if cache is None else cache\n        "
PAST_OF_LIST = {
    PAST: GIVEN_LIST + "past = cache[0].shape[2] if cache else 0",
    JOINED_IF: "if cache:",
}


def split_edit(template, names="qkv"):
    """Return an edit that cuts these of q, k and v into heads in this way."""
    lines = {"q": Q, "k": K, "v": V}
    return {lines[name]: template.format(name) + ("" if name == "q" else "\n") for name in names}


def join_past_edit(keys, values):
    """Return an edit that joins the past and the new tokens in another way."""
    return {JOINED_K: f"k = torch.cat({keys})", JOINED_V: f"v = torch.cat({values})"}


def kept_whole(axis):
    """Return an edit that keeps keys and values as (B, T, C).

    They are joined along this axis, and cut into heads afterwards.
    """
    return {
        K: f"k = k if cache is None else torch.cat([cache[0], k], dim={axis})\n",
        V: f"v = v if cache is None else torch.cat([cache[1], v], dim={axis})\n        cache ="
        " (k, v)\n",
        PAST: "past = k.shape[1] - T",
        JOINED_IF: "if True:",
        RETURNED: "return self.proj(y), cache",
        JOINED_K: "k = k.reshape(B, -1, self.n_head, self.head_dim).transpose(1, 2)",
        JOINED_V: "v = v.reshape(B, -1, self.n_head, self.head_dim).transpose(1, 2)",
    }


def x_kept(cached, cat_args, answer):
    """Return an edit that keeps x in place of keys and values."""
    line = (
        f"{cached} x if cache is None else torch.cat({cat_args})\n        x, cache = cached, None"
    )
    return insert_before(SIZES, line, {RETURNED: f"return self.proj(y){answer}, cached"})


def by_default(changes):
    """Return an edit whose cache is a list in the signature, which outlives the call."""
    return {"x: torch.Tensor, cache=None": "x: torch.Tensor, cache=[]"} | changes


def fill_mutants(id_, *fills):
    """Return mutants that hide other keys, or hide them with another number."""
    return mutants(id_, *(f".masked_fill({fill})" for fill in fills), replacing=MASK)


MUTANTS = (
    # the tokens of the past and of the chunk that a call may see
    *mutants(
        "cache_mask_top_left",
        {QUERY: "query = torch.arange(T, device=x.device)[:, None]"},
        {GATHER: SDPA.format("is_causal=True")},
        {GATHER: SDPA.format("is_causal=T > 1")},
        {QUERY: "query = torch.arange(T, device=x.device)[:, None] + (past if T == 1 else 0)"},
    ),
    *mutants(
        "cache_not_causal_in_chunk",
        {MASK: ".masked_fill((key > query) & (past == 0), -math.inf)"},
        {GATHER: SDPA.format("is_causal=cache is None")},
    ),
    *mutants("mask_missing", {MASK: ""}, {GATHER: SDPA.format("is_causal=False")}),
    *mutants(
        "cache_mask_off_by_one",
        *(
            f"query = torch.arange(past, past + T, device=x.device)[:, None] {step} int(past > 0)"
            for step in "-+"
        ),
        replacing=QUERY,
    ),
    *mutants(
        "cache_mask_off_by_one",
        *(f"past = 0 if cache is None else cache[0].shape[2] {step} 1" for step in "-+"),
        replacing=PAST,
    ),
    *mutants(
        "cache_wrong_axis",
        *(
            join_past_edit(f"[cache[0], k], dim={axis}", f"[cache[1], v], dim={axis}")
            for axis in (1, 0, -1)
        ),
        kept_whole(-1),
        kept_whole(0),
        x_kept("size, cached = len(x),", "[cache, x]", "[-size:]"),
        x_kept("size, cached = len(x),", "[cache, x]", "[:size]"),
        x_kept("cached =", "[cache, x]", ""),
    ),
    *mutants(
        "cache_overwritten",
        *(
            f"return self.proj(y), {cache}"
            for cache in (
                "(k[:, :, -T:], v[:, :, -T:])",
                "(k[:, :, :T], v[:, :, :T])",
                "cache if cache is not None else (k, v)",
                "(k[:, :, -max(past, T) :], v[:, :, -max(past, T) :])",
                "(k[:, :, -1:], v[:, :, -1:])",
            )
        ),
        replacing=RETURNED,
    ),
    *mutants(
        "cache_overwritten",
        *(f"return self.proj(y), (k[:, :, -{n}:], v[:, :, -{n}:])" for n in LAST_KEPT),
        replacing=RETURNED,
    ),
    # The cache is a block that is filled slot by slot, but the next slot does not move on.
    *(
        Mutant(
            "cache_overwritten",
            {
                PAST: "past, slot = (0, 0) if cache is None else cache[2:]",
                JOINED_IF: (
                    "full = [t.new_zeros(B, self.n_head, self.block_size, self.head_dim) for t"
                    " in (k, v)]\n        full = full if cache is None else [t.clone() for t in"
                    " cache[:2]]\n        if True:"
                ),
                JOINED_K: "full[0][:, :, slot : slot + T], full[1][:, :, slot : slot + T] = k, v\n"
                "            k = full[0][:, :, : past + T]",
                JOINED_V: "v = full[1][:, :, : past + T]",
                RETURNED: f"return self.proj(y), (*full, past + T, {slot})",
            },
        )
        for slot in ("T if past == 0 else slot", "0")
    ),
    *mutants(
        "cache_ignored",
        insert_before(SIZES, "cache = None"),
        # The same, but the tokens are counted.
        {
            JOINED_IF: "if False:",
            KEY: "key = torch.arange(past, past + T, device=x.device)",
            PAST: "past = cache or 0",
            RETURNED: "return self.proj(y), past + T",
        },
    ),
    *mutants(
        "cache_order",
        x_kept("new, cached = x.shape[1],", "[x, cache], dim=1", "[:, -new:]"),
        join_past_edit("[k, cache[0]], dim=2", "[v, cache[1]], dim=2"),
        {RETURNED: "return self.proj(y), (v, v)"},
        {JOINED_V: "v = torch.cat([v, cache[1]], dim=2)"},
        {JOINED_K: "k = torch.cat([k, cache[0]], dim=2)"},
        join_past_edit("[cache[1], k], dim=2", "[cache[0], v], dim=2"),
    ),
    # All tokens are kept and computed again: right, and as slow as without a cache.
    Mutant(
        "cache_recomputed", x_kept("new, cached = x.shape[1],", "[cache, x], dim=1", "[:, -new:]")
    ),
    Mutant("cache_length_unchecked", "if T > self.block_size:", replacing=TOO_LONG),
    *mutants(
        "context_unchecked",
        "if False:",
        "if past and past + T > self.block_size:",
        replacing=TOO_LONG,
    ),
    *mutants(
        "cache_shared",
        # Kept on the module, or in a default.
        insert_before(
            SIZES, 'cache = getattr(self, "kept", None)', {RETURNED: f"{KEPT_THEN_RETURNED}(k, v)"}
        ),
        insert_before(
            SIZES,
            'cache = cache or getattr(self, "kept", None)',
            {RETURNED: f"{KEPT_THEN_RETURNED}(k, v)"},
        ),
        insert_before(
            SIZES,
            "cache = None if cache is None else self.kept",
            {RETURNED: f"{KEPT_THEN_RETURNED}self.kept"},
        ),
        by_default(
            PAST_OF_LIST | {RETURNED: "cache[:] = [k, v]\n        return self.proj(y), cache"}
        ),
        by_default(
            PAST_OF_LIST | {RETURNED: "cache[:] = [k, v]\n        return self.proj(y), (k, v)"}
        ),
        # The same, but no cache is returned. Then a mask of the longest context refuses too many
        # tokens.
        insert_before(
            SIZES,
            'cache = getattr(self, "kept", None)',
            {
                RETURNED: f"{KEPT_THEN_RETURNED}None",
                TOO_LONG: "if False:",
                MASK: (
                    ".masked_fill(torch.ones(self.block_size, self.block_size,"
                    " device=x.device).triu(1).bool()[past : past + T, : past + T], -math.inf)"
                ),
            },
        ),
        # The list of the default is filled once, and not written to again.
        by_default(
            PAST_OF_LIST
            | {
                RETURNED: (
                    "if cache:\n            cache = [k, v]\n        else:\n            cache += [k,"
                    " v]\n        return self.proj(y), cache"
                )
            }
        ),
        # … and joined before the tokens are counted, so that later calls fail elsewhere.
        by_default(
            {
                PAST: (
                    f"{GIVEN_LIST}k, v = (torch.cat([old, new], dim=2) for old, new in zip(cache,"
                    " (k, v))) if cache else (k, v)\n        past = k.shape[2] - T"
                ),
                JOINED_IF: "if False:",
                RETURNED: "cache[:] = [k, v]\n        return self.proj(y), cache",
            }
        ),
        by_default(
            {
                PAST: (
                    f"{GIVEN_LIST}cache.append((k, v))\n        k, v = (torch.cat(parts, dim=2) for"
                    " parts in zip(*cache))\n        past = k.shape[2] - T"
                ),
                JOINED_IF: "if False:",
                RETURNED: "return self.proj(y), cache",
            }
        ),
        by_default(
            {
                SIZES: (
                    f"{GIVEN_LIST}cache.append(x)\n        new, x = x.shape[1], torch.cat(cache,"
                    f" dim=1)\n        {SIZES}"
                ),
                PAST: "past = 0",
                JOINED_IF: "if False:",
                RETURNED: "return self.proj(y)[:, -new:], cache",
            }
        ),
    ),
    # Kept on the module: the mask of the first call, and its batch.
    *mutants(
        "state_kept",
        {
            MASK: ".masked_fill(self.hidden, -math.inf)",
            KEY: KEY + '\n        self.hidden = getattr(self, "hidden", key > query)',
        },
        insert_before(SIZES, 'x = x[: getattr(self, "size", len(x))]\n        self.size = len(x)'),
    ),
    # The mask of the first call once more, added to the scores.
    Mutant(
        "state_kept",
        {
            "weights = scores" + MASK: "weights = (scores + self.hidden)",
            KEY: KEY + '\n        if not hasattr(self, "hidden"):\n            self.hidden ='
            " torch.zeros(T, past + T, dtype=x.dtype, device=x.device).masked_fill(key >"
            " query, -math.inf)",
        },
    ),
    # Changed in place.
    *mutants(
        "cache_changed",
        {PAST: PAST_OF_LIST[PAST]}
        | PAST_OF_LIST
        | {RETURNED: "cache[:] = [k, v]\n        return self.proj(y), cache"},
        {
            PAST: "past = 0 if cache is None else cache[2]",
            JOINED_IF: "if cache is None:\n            cache = [k.new_zeros(B, self.n_head,"
            ' self.block_size, self.head_dim) for _ in "kv"]\n        if True:',
            JOINED_K: (
                "cache[0][:, :, past : past + T], cache[1][:, :, past : past + T] = k.detach(),"
                " v.detach()\n            k = torch.cat([cache[0][:, :, :past], k], dim=2)"
            ),
            JOINED_V: "v = torch.cat([cache[1][:, :, :past], v], dim=2)",
            RETURNED: "return self.proj(y), (cache[0], cache[1], past + T)",
        },
        {
            RETURNED: (
                "if cache is not None:\n            cache[0].zero_()\n        return self.proj(y),"
                " (k, v)"
            )
        },
    ),
    *mutants("scale_sqrt_c", "/ math.sqrt(C)", "/ math.sqrt(3 * C)", replacing=SCALE),
    Mutant("scale_missing", "", replacing=SCALE),
    Mutant("scale_no_sqrt", "/ self.head_dim", replacing=SCALE),
    Mutant("scale_c", "/ C", replacing=SCALE),
    *mutants("scale_multiplied", "* math.sqrt(self.head_dim)", "* self.head_dim", replacing=SCALE),
    Mutant("scale_sqrt_heads", "/ math.sqrt(self.n_head)", replacing=SCALE),
    Mutant("scale_heads", "/ self.n_head", replacing=SCALE),
    *mutants(
        "scale_sqrt_tokens",
        *(f"/ math.sqrt({tokens})" for tokens in ("T", "past + T", "self.block_size")),
        replacing=SCALE,
    ),
    *mutants("scale_tokens", "/ T", "/ (past + T)", "/ self.block_size", replacing=SCALE),
    *mutants("scale_wrong_axis", "/ math.sqrt(B)", "/ math.sqrt(B * self.n_head)", replacing=SCALE),
    *mutants(
        "scale_rounded",
        *(f"/ {rounding}(math.sqrt(self.head_dim))" for rounding in ("int", "round", "math.ceil")),
        "// math.sqrt(self.head_dim)",
        replacing=SCALE,
    ),
    *mutants(
        "scale_precedence",
        "/ self.head_dim ** 1 / 2",
        "/ (self.head_dim ** 1 / 2)",
        "/ (self.head_dim ** 1 // 2)",
        "* self.head_dim ** 1 / 2",
        "/ (C / self.n_head ** 0.5)",
        "/ (C // self.n_head ** 0.5)",
        "/ math.sqrt(C // self.n_head ** 0.5)",
        replacing=SCALE,
    ),
    *mutants(
        "scale_constant",
        *(f"/ {c}" for c in (8, 64, 4, 2, 10, 16, 32, "math.sqrt(512)", "math.sqrt(768)")),
        replacing=SCALE,
    ),
    Mutant("scores_ignored", "* 0", replacing=SCALE),
    Mutant("scale_twice", "/ math.sqrt(self.head_dim) / math.sqrt(self.head_dim)", replacing=SCALE),
    Mutant(
        "scale_after_softmax", {SCALE: "", SOFTMAX: ".softmax(dim=-1) / math.sqrt(self.head_dim)"}
    ),
    Mutant("scale_after_softmax", ".softmax(dim=-1) / math.sqrt(self.head_dim)", replacing=SOFTMAX),
    Mutant("softmax_query_axis", ".softmax(dim=-2)", replacing=SOFTMAX),
    *mutants("softmax_missing", ".exp()", ".sigmoid()", "", replacing=SOFTMAX),
    *mutants(
        "softmax_wrong_axis",
        ".softmax(dim=1)",
        ".softmax(dim=0)",
        ".flatten(0, 1).softmax(0).unflatten(0, (B, self.n_head))",
        *(f".flatten({axes}).softmax(-1).view(B, self.n_head, T, -1)" for axes in (2, 1, "")),
        replacing=SOFTMAX,
    ),
    Mutant("softmax_missing", ".masked_fill(key > query, 0.0)", replacing=MASK + SOFTMAX),
    # The hidden keys, and the number that is filled in.
    *fill_mutants(
        "mask_reversed",
        "key < query, -math.inf",
        "key <= query, -math.inf",
        "key <= query, -1e9",
    ),
    *fill_mutants(
        "mask_excludes_self",
        "key >= query, -math.inf",
        "key >= query, -1e30",
        "key >= query.clamp(min=1), -math.inf",
    ),
    *fill_mutants("mask_peeks_one", "key > query + 1, -math.inf"),
    *fill_mutants("mask_peeks_ahead", "key > query + 2, -math.inf", "key > query + 3, -math.inf"),
    *fill_mutants("mask_plus_inf", "key > query, math.inf"),
    *fill_mutants("mask_high_fill", "key > query, 1e9"),
    *fill_mutants(
        "mask_weak_fill",
        "key > query, -1.0",
        "key > query, -10.0",
        "key > query, scores.min()",
        "key > query, float(scores.detach().min()) - 1",
    ),
    Mutant(
        "mask_excludes_self",
        ".masked_fill(key >= query, -math.inf).softmax(dim=-1).nan_to_num()",
        replacing=MASK + SOFTMAX,
    ),
    *mutants(
        "mask_added",
        "weights = (scores + (key <= query))",
        "weights = (scores + (key > query))",
        replacing="weights = scores" + MASK,
    ),
    Mutant(
        "mask_zero_fill", "weights = (scores * (key <= query))", replacing="weights = scores" + MASK
    ),
    Mutant(
        "mask_weak_fill",
        "weights = (scores + (key > query) * -10.0)",
        replacing="weights = scores" + MASK,
    ),
    *mutants(
        "mask_nan",
        *(
            f"weights = (scores {operation})"
            for operation in (
                "+ (key > query) * -math.inf",
                "* torch.where(key > query, -math.inf, 1.0)",
            )
        ),
        replacing="weights = scores" + MASK,
    ),
    Mutant(
        "mask_after_softmax",
        ".softmax(dim=-1).masked_fill(key > query, 0.0)",
        replacing=MASK + SOFTMAX,
    ),
    Mutant(
        "mask_nan", ".softmax(dim=-1).masked_fill(key > query, -math.inf)", replacing=MASK + SOFTMAX
    ),
    Mutant("mask_sdpa_inverted", SDPA.format("key > query"), replacing=GATHER),
    Mutant(
        "mask_reversed",
        ".masked_fill(key <= query, -math.inf).softmax(dim=-1).nan_to_num()",
        replacing=MASK + SOFTMAX,
    ),
    Mutant(
        "mask_not_sliced",
        {
            KEY: "key = torch.arange(self.block_size, device=x.device)",
            QUERY: "query = torch.arange(self.block_size, device=x.device)[:, None]",
        },
    ),
    Mutant(
        "mask_not_moved",
        {
            QKV_LAYER: QKV_LAYER
            + "\n        self.hidden = torch.ones(block_size, block_size).triu(1).bool()",
            MASK: ".masked_fill(self.hidden[past : past + T, : past + T], -math.inf)",
        },
    ),
    Mutant(
        "mask_not_moved",
        {
            QKV_LAYER: QKV_LAYER + "\n        self.hidden = {}",
            MASK: ".masked_fill(self.hidden.setdefault((past, T), key > query), -math.inf)",
        },
    ),
    Mutant(
        "mask_is_parameter",
        {
            QKV_LAYER: QKV_LAYER
            + "\n        self.hidden = nn.Parameter(torch.ones(block_size, block_size).triu(1),"
            " requires_grad=False)",
            MASK: ".masked_fill(self.hidden[past : past + T, : past + T] > 0, -math.inf)",
        },
    ),
    Mutant("wrong_view", split_edit(SPLIT_WITHOUT_TRANSPOSE)),
    Mutant(
        "wrong_view_both", split_edit(SPLIT_WITHOUT_TRANSPOSE) | {MERGE: "y = y.reshape(B, T, C)"}
    ),
    *mutants(
        "wrong_view_values",
        *(split_edit(SPLIT_WITHOUT_TRANSPOSE, names) for names in ("v", "k", "q", "kv")),
    ),
    Mutant("merge_no_transpose", "y = y.reshape(B, T, C)", replacing=MERGE),
    *mutants(
        "merge_wrong_axes",
        *(
            f"y = y.permute({axes}).reshape(B, T, C)"
            for axes in ("0, 2, 3, 1", "0, 3, 2, 1", "0, 3, 1, 2", "0, 1, 3, 2")
        ),
        replacing=MERGE,
    ),
    *mutants(
        "heads_reversed",
        *(
            f"y = y.{method}.transpose(1, 2).reshape(B, T, C)"
            for method in ("flip(1)", "roll(1, 1)", "roll(-1, 1)")
        ),
        replacing=MERGE,
    ),
    *mutants(
        "heads_one_width",
        *(f"y = y{reduction}" for reduction in (".mean(1)", ".sum(1)", "[:, -1]")),
        replacing=MERGE,
    ),
    *mutants(
        "heads_averaged",
        *(
            f"y = y.{mix}(1).repeat{suffix}"
            for suffix in ("(1, 1, self.n_head)", "_interleave(self.n_head, -1)")
            for mix in ("mean", "sum")
        ),
        replacing=MERGE,
    ),
    *mutants(
        "heads_mix_batch",
        *(
            f"y = y.{prefix}permute(1, 2, 0, 3).reshape(B, T, C)"
            for prefix in ("", "reshape(self.n_head, B, T, -1).")
        ),
        replacing=MERGE,
    ),
    *mutants(
        "heads_interleaved",
        split_edit(HEADS_INTERLEAVED),
        split_edit(HEADS_INTERLEAVED) | {MERGE: "y = y.permute(0, 2, 3, 1).reshape(B, T, C)"},
        *(split_edit(HEADS_INTERLEAVED, name) for name in "kv"),
    ),
    Mutant(
        "heads_and_width_swapped",
        split_edit("{0} = {0}.view(B, T, self.head_dim, self.n_head).transpose(1, 2)"),
    ),
    *mutants(
        "qkv_order",
        *(
            f"{order} = self.qkv(x).split(C, dim=-1)"
            for order in ("k, q, v", "v, k, q", "q, v, k", "k, v, q", "v, q, k")
        ),
        replacing=CUT,
    ),
    Mutant(
        "qkv_packed_per_head",
        "q, k, v = (part.flatten(2) for part in self.qkv(x).view(B, T, self.n_head, 3,"
        " self.head_dim).unbind(3))",
        replacing=CUT,
    ),
    *mutants(
        "values_wrong_source",
        {GATHER: "y = weights @ k"},
        {JOINED_V: "v = torch.cat([cache[0], v], dim=2)"},
        {V: "v = x.view(B, T, self.n_head, self.head_dim).transpose(1, 2)\n"},
        {V: "v = q\n"},
    ),
    *SCORES_WRONG_SOURCE,
    Mutant("heads_share_weights", "y = weights.mean(1, keepdim=True) @ v", replacing=GATHER),
    Mutant("proj_missing", "y, (k, v)", replacing=PROJECTED),
    Mutant("proj_twice", "self.proj(self.proj(y)), (k, v)", replacing=PROJECTED),
    Mutant("proj_transposed", "y @ self.proj.weight, (k, v)", replacing=PROJECTED),
    *mutants(
        "proj_bias",
        *({line: line.replace(", bias=False", "")} for line in (QKV_LAYER, PROJ_LAYER)),
    ),
    Mutant("view_not_contiguous", "y = y.transpose(1, 2).view(B, T, C)", replacing=MERGE),
    Mutant("divisibility_unchecked", "if False:", replacing="if n_embd % n_head != 0:"),
    Mutant("super_init_missing", "if n_embd", replacing="super().__init__()\n        if n_embd"),
    Mutant(
        "params_extra",
        QKV_LAYER + "\n        self.scale = nn.Parameter(torch.ones(3))",
        replacing=QKV_LAYER,
    ),
    Mutant(
        "params_not_registered",
        {
            PROJ_LAYER: "self.layers = [nn.Linear(n_embd, n_embd, bias=False)]",
            PROJECTED: "self.layers[0](y), (k, v)",
        },
    ),
    *mutants(
        "gradient_cut",
        {CUT: "q, k, v = self.qkv(x).detach().split(C, dim=-1)"},
        {GATHER: "y = weights.detach() @ v"},
        insert_before(PAST, "k, v = k.detach(), v.detach()"),
    ),
    Mutant("input_mutated", SIZES + "\n        x *= 1.0\n        x += 1e-3", replacing=SIZES),
    *mutants(
        "hard_coded_dtype",
        {CUT: "q, k, v = self.qkv(x).float().split(C, dim=-1)"},
        {PROJECTED: "self.proj(y).float(), (k, v)"},
    ),
    *mutants(
        "hard_coded_device",
        {
            QUERY: "query = torch.arange(past, past + T)[:, None]",
            KEY: "key = torch.arange(past + T)",
        },
        insert_before(SIZES, "x = x.cpu()"),
    ),
    Mutant("hard_coded_shape", insert_before(SIZES, "x = x[:1]")),
    Mutant("keys_not_transposed", "scores = q @ k", replacing="scores = q @ k.transpose(-2, -1)"),
    values_transposed(),
    *mutants(
        "weight_not_transposed",
        "q, k, v = (x @ w for w in self.qkv.weight.chunk(3))",
        "q, k, v = (x @ self.qkv.weight.view(C, 3 * C)).split(C, dim=-1)",
        replacing=CUT,
    ),
    *mutants(
        "qkv_sliced_by_columns",
        "q, k, v = (x @ w for w in self.qkv.weight.T.reshape(3, C, C))",
        "q, k, v = (x @ self.qkv.weight.view(C, 3 * C)[:, i::3] for i in range(3))",
        replacing=CUT,
    ),
    Mutant(
        "qkv_packed_per_head", "q, k, v = self.qkv(x).view(B, T, C, 3).unbind(-1)", replacing=CUT
    ),
    Mutant("qkv_mix_batch", "q, k, v = self.qkv(x).view(3, B, T, C)", replacing=CUT),
    Mutant(
        "reshape_out_of_order", "q, k, v = self.qkv(x).view(B, 3, T, C).unbind(1)", replacing=CUT
    ),
    *mutants(
        "interface",
        "return self.proj(y)",
        "return (k, v), self.proj(y)",
        "return self.proj(y), k, v",
        replacing=RETURNED,
    ),
    *mutants(
        "hard_coded_dtype",
        *(f"return self.proj(y), (k.{half}(), v.{half}())" for half in ("half", "bfloat16")),
        replacing=RETURNED,
    ),
    *mutants(
        "output_rounded",
        *(f"return self.proj(y).round(decimals={n}), (k, v)" for n in (3, 2)),
        replacing=RETURNED,
    ),
    Mutant(
        "dropout_extra",
        "return nn.functional.dropout(self.proj(y), 0.1, self.training), (k, v)",
        replacing=RETURNED,
    ),
    Mutant(
        "params_not_registered",
        "return nn.Linear(C, C, bias=False).to(y)(y), (k, v)",
        replacing=RETURNED,
    ),
    *(
        Mutant(
            "heads_missing_transpose",
            {
                Q: "",
                K: "pass\n",
                V: "pass\n",
                MASK: mask,
                MERGE: f"y = y{turned}.reshape(B, T, C)",
                CUT: "q, k, v = (t.view(B, T, self.n_head, self.head_dim) for t in"
                " self.qkv(x).split(C, dim=-1))",
                PAST: "past = 0 if cache is None else cache[0].shape[1]",
                JOINED_K: "k = torch.cat([cache[0], k], dim=1)",
                JOINED_V: "v = torch.cat([cache[1], v], dim=1)",
            },
        )
        for mask in (MASK, "")
        for turned in ("", ".transpose(1, 2)")
    ),
    Mutant(
        "heads_mix_batch",
        {
            Q: "q, k, v = (t.reshape(self.n_head, B, T, -1).transpose(0, 1) for t in (q, k, v))",
            K: "pass\n",
            V: "pass\n",
        },
    ),
    Mutant(
        "proj_bias",
        {
            QKV_LAYER: "self.qkv = nn.Linear(n_embd, 3 * n_embd)",
            PROJ_LAYER: "self.proj = nn.Linear(n_embd, n_embd)",
        },
    ),
    *mutants(
        "params_extra",
        {
            PROJ_LAYER: "self.c_proj = nn.Linear(n_embd, n_embd, bias=False)",
            PROJECTED: "self.c_proj(y), (k, v)",
        },
        {
            QKV_LAYER: (
                "self.q, self.k, self.v = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(3))"
            ),
            CUT: "q, k, v = self.q(x), self.k(x), self.v(x)",
        },
    ),
    Mutant(
        "softmax_missing", {SOFTMAX: "", GATHER: "y = weights / weights.sum(-1, keepdim=True) @ v"}
    ),
    HEADS_NOT_JOINED,
    Mutant("dropout_always_on", "y = nn.functional.dropout(weights, 0.1) @ v", replacing=GATHER),
    Mutant(
        "dropout_extra",
        "y = nn.functional.dropout(weights, 0.1, self.training) @ v",
        replacing=GATHER,
    ),
)

# parametric mutants: the number can have any value
FAMILIES = (
    (
        "scale_constant",
        lambda c: Mutant("scale_constant", f"* {c!r}", replacing=SCALE),
        SCALES_TRIED,
    ),
    (
        "mask_weak_fill",
        lambda c: Mutant("mask_weak_fill", f".masked_fill(key > query, {-c!r})", replacing=MASK),
        FILLS_TRIED,
    ),
)
