"""Wrong attempts at attention with a cache, each an edit of the reference."""

from manyheads.checks import edit

from ._mutants import (
    FILLS_TRIED,
    HEADS_NOT_JOINED,
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    at,
    changed,
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
STRAIGHT = "{0} = {0}.reshape(B, self.n_head, T, self.head_dim)"
DEALT = "{0} = {0}.view(B, T, self.head_dim, self.n_head).permute(0, 3, 1, 2)"

LAST_KEPT = (4, 2, 3)  # how many tokens a cache holds that is cut to a fixed length
SDPA = "y = nn.functional.scaled_dot_product_attention(q, k, v, {})"
KEEP = "self.kept = (k, v)\n        return self.proj(y), "
GIVEN_LIST = "cache = [] if cache is None else cache\n        "
PAST_OF_LIST = {
    PAST: GIVEN_LIST + "past = cache[0].shape[2] if cache else 0",
    JOINED_IF: "if cache:",
}


def split(template, names="qkv", extra_changes=None):
    """Return an edit that cuts these of q, k and v into heads in this way."""
    lines = {"q": Q, "k": K, "v": V}
    return changed(
        {lines[name]: template.format(name) + ("" if name == "q" else "\n") for name in names}
        | (extra_changes or {})
    )


def joined(keys, values):
    """Return an edit that joins the past and the new tokens in another way."""
    return edit(JOINED_K, f"k = torch.cat({keys})", {JOINED_V: f"v = torch.cat({values})"})


def kept_whole(axis):
    """Return an edit that keeps keys and values as (B, T, C).

    They are joined along this axis, and cut into heads afterwards.
    """
    return edit(
        K,
        f"k = k if cache is None else torch.cat([cache[0], k], dim={axis})\n",
        {
            V: (
                f"v = v if cache is None else torch.cat([cache[1], v], dim={axis})\n        cache ="
                " (k, v)\n"
            ),
            PAST: "past = k.shape[1] - T",
            JOINED_IF: "if True:",
            RETURNED: "return self.proj(y), cache",
            JOINED_K: "k = k.reshape(B, -1, self.n_head, self.head_dim).transpose(1, 2)",
            JOINED_V: "v = v.reshape(B, -1, self.n_head, self.head_dim).transpose(1, 2)",
        },
    )


def x_kept(cached, cat_args, answer):
    """Return an edit that keeps x in place of keys and values."""
    line = (
        f"{cached} x if cache is None else torch.cat({cat_args})\n        x, cache = cached, None"
    )
    return insert_before(SIZES, line, {RETURNED: f"return self.proj(y){answer}, cached"})


def by_default(extra_changes):
    """Return an edit whose cache is a list in the signature, which outlives the call."""
    return edit("x: torch.Tensor, cache=None", "x: torch.Tensor, cache=[]", extra_changes)


def filled(id_, *fills):
    """Return a group of texts for `at`: each hides these keys with this number."""
    return id_, *(f".masked_fill({fill})" for fill in fills)


MUTANTS = (
    # the tokens of the past and of the chunk that a call may see
    *mutants(
        "cache_mask_top_left",
        edit(QUERY, "query = torch.arange(T, device=x.device)[:, None]"),
        edit(GATHER, SDPA.format("is_causal=True")),
        edit(GATHER, SDPA.format("is_causal=T > 1")),
        edit(QUERY, "query = torch.arange(T, device=x.device)[:, None] + (past if T == 1 else 0)"),
    ),
    *mutants(
        "cache_not_causal_in_chunk",
        edit(MASK, ".masked_fill((key > query) & (past == 0), -math.inf)"),
        edit(GATHER, SDPA.format("is_causal=cache is None")),
    ),
    *mutants("mask_missing", edit(MASK, ""), edit(GATHER, SDPA.format("is_causal=False"))),
    *at(
        QUERY,
        (
            "cache_mask_off_by_one",
            *(
                f"query = torch.arange(past, past + T, device=x.device)[:, None] {step} int(past"
                " > 0)"
                for step in "-+"
            ),
        ),
    ),
    *at(
        PAST,
        (
            "cache_mask_off_by_one",
            *(f"past = 0 if cache is None else cache[0].shape[2] {step} 1" for step in "-+"),
        ),
    ),
    *mutants(
        "cache_wrong_axis",
        *(
            joined(f"[cache[0], k], dim={axis}", f"[cache[1], v], dim={axis}")
            for axis in (1, 0, -1)
        ),
        kept_whole(-1),
        kept_whole(0),
        x_kept("size, cached = len(x),", "[cache, x]", "[-size:]"),
        x_kept("size, cached = len(x),", "[cache, x]", "[:size]"),
        x_kept("cached =", "[cache, x]", ""),
    ),
    *at(
        RETURNED,
        (
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
        ),
    ),
    *at(
        RETURNED,
        (
            "cache_overwritten",
            *(f"return self.proj(y), (k[:, :, -{n}:], v[:, :, -{n}:])" for n in LAST_KEPT),
        ),
    ),
    # The cache is a block that is filled slot by slot, but the next slot does not move on.
    *(
        (
            "cache_overwritten",
            edit(
                PAST,
                "past, slot = (0, 0) if cache is None else cache[2:]",
                {
                    JOINED_IF: (
                        "full = [t.new_zeros(B, self.n_head, self.block_size, self.head_dim) for t"
                        " in (k, v)]\n        full = full if cache is None else [t.clone() for t in"
                        " cache[:2]]\n        if True:"
                    ),
                    JOINED_K: (
                        "full[0][:, :, slot : slot + T], full[1][:, :, slot : slot + T] = k, v\n"
                        "            k = full[0][:, :, : past + T]"
                    ),
                    JOINED_V: "v = full[1][:, :, : past + T]",
                    RETURNED: f"return self.proj(y), (*full, past + T, {slot})",
                },
            ),
        )
        for slot in ("T if past == 0 else slot", "0")
    ),
    *mutants(
        "cache_ignored",
        insert_before(SIZES, "cache = None"),
        # The same, but the tokens are counted.
        edit(
            JOINED_IF,
            "if False:",
            {
                KEY: "key = torch.arange(past, past + T, device=x.device)",
                PAST: "past = cache or 0",
                RETURNED: "return self.proj(y), past + T",
            },
        ),
    ),
    *mutants(
        "cache_order",
        x_kept("new, cached = x.shape[1],", "[x, cache], dim=1", "[:, -new:]"),
        joined("[k, cache[0]], dim=2", "[v, cache[1]], dim=2"),
        edit(RETURNED, "return self.proj(y), (v, v)"),
        edit(JOINED_V, "v = torch.cat([v, cache[1]], dim=2)"),
        edit(JOINED_K, "k = torch.cat([k, cache[0]], dim=2)"),
        joined("[cache[1], k], dim=2", "[cache[0], v], dim=2"),
    ),
    # All tokens are kept and computed again: right, and as slow as without a cache.
    ("cache_recomputed", x_kept("new, cached = x.shape[1],", "[cache, x], dim=1", "[:, -new:]")),
    *at(
        TOO_LONG,
        ("cache_length_unchecked", "if T > self.block_size:"),
        ("context_unchecked", "if False:", "if past and past + T > self.block_size:"),
    ),
    *mutants(
        "cache_shared",
        # Kept on the module, or in a default.
        insert_before(SIZES, 'cache = getattr(self, "kept", None)', {RETURNED: f"{KEEP}(k, v)"}),
        insert_before(
            SIZES, 'cache = cache or getattr(self, "kept", None)', {RETURNED: f"{KEEP}(k, v)"}
        ),
        insert_before(
            SIZES, "cache = None if cache is None else self.kept", {RETURNED: f"{KEEP}self.kept"}
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
                RETURNED: f"{KEEP}None",
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
        edit(
            MASK,
            ".masked_fill(self.hidden, -math.inf)",
            {KEY: KEY + '\n        self.hidden = getattr(self, "hidden", key > query)'},
        ),
        insert_before(SIZES, 'x = x[: getattr(self, "size", len(x))]\n        self.size = len(x)'),
    ),
    # The mask of the first call once more, added to the scores.
    (
        "state_kept",
        edit(
            "weights = scores" + MASK,
            "weights = (scores + self.hidden)",
            {
                KEY: (
                    KEY + '\n        if not hasattr(self, "hidden"):\n            self.hidden ='
                    " torch.zeros(T, past + T, dtype=x.dtype, device=x.device).masked_fill(key >"
                    " query, -math.inf)"
                )
            },
        ),
    ),
    # Changed in place.
    *mutants(
        "cache_changed",
        edit(
            PAST,
            PAST_OF_LIST[PAST],
            PAST_OF_LIST | {RETURNED: "cache[:] = [k, v]\n        return self.proj(y), cache"},
        ),
        edit(
            PAST,
            "past = 0 if cache is None else cache[2]",
            {
                JOINED_IF: (
                    "if cache is None:\n            cache = [k.new_zeros(B, self.n_head,"
                    ' self.block_size, self.head_dim) for _ in "kv"]\n        if True:'
                ),
                JOINED_K: (
                    "cache[0][:, :, past : past + T], cache[1][:, :, past : past + T] = k.detach(),"
                    " v.detach()\n            k = torch.cat([cache[0][:, :, :past], k], dim=2)"
                ),
                JOINED_V: "v = torch.cat([cache[1][:, :, :past], v], dim=2)",
                RETURNED: "return self.proj(y), (cache[0], cache[1], past + T)",
            },
        ),
        edit(
            RETURNED,
            "if cache is not None:\n            cache[0].zero_()\n        return self.proj(y),"
            " (k, v)",
        ),
    ),
    *at(
        SCALE,
        ("scale_sqrt_c", "/ math.sqrt(C)", "/ math.sqrt(3 * C)"),
        ("scale_missing", ""),
        ("scale_no_sqrt", "/ self.head_dim"),
        ("scale_c", "/ C"),
        ("scale_multiplied", "* math.sqrt(self.head_dim)", "* self.head_dim"),
        ("scale_sqrt_heads", "/ math.sqrt(self.n_head)"),
        ("scale_heads", "/ self.n_head"),
        (
            "scale_sqrt_tokens",
            *(f"/ math.sqrt({tokens})" for tokens in ("T", "past + T", "self.block_size")),
        ),
        ("scale_tokens", "/ T", "/ (past + T)", "/ self.block_size"),
        ("scale_wrong_axis", "/ math.sqrt(B)", "/ math.sqrt(B * self.n_head)"),
        (
            "scale_rounded",
            *(
                f"/ {rounding}(math.sqrt(self.head_dim))"
                for rounding in ("int", "round", "math.ceil")
            ),
            "// math.sqrt(self.head_dim)",
        ),
        (
            "scale_precedence",
            "/ self.head_dim ** 1 / 2",
            "/ (self.head_dim ** 1 / 2)",
            "/ (self.head_dim ** 1 // 2)",
            "* self.head_dim ** 1 / 2",
            "/ (C / self.n_head ** 0.5)",
            "/ (C // self.n_head ** 0.5)",
            "/ math.sqrt(C // self.n_head ** 0.5)",
        ),
        (
            "scale_constant",
            *(f"/ {c}" for c in (8, 64, 4, 2, 10, 16, 32, "math.sqrt(512)", "math.sqrt(768)")),
        ),
        ("scores_ignored", "* 0"),
    ),
    ("scale_twice", edit(SCALE, "/ math.sqrt(self.head_dim) / math.sqrt(self.head_dim)")),
    (
        "scale_after_softmax",
        edit(SCALE, "", {SOFTMAX: ".softmax(dim=-1) / math.sqrt(self.head_dim)"}),
    ),
    *at(
        SOFTMAX,
        ("scale_after_softmax", ".softmax(dim=-1) / math.sqrt(self.head_dim)"),
        ("softmax_query_axis", ".softmax(dim=-2)"),
        ("softmax_missing", ".exp()", ".sigmoid()", ""),
        (
            "softmax_wrong_axis",
            ".softmax(dim=1)",
            ".softmax(dim=0)",
            ".flatten(0, 1).softmax(0).unflatten(0, (B, self.n_head))",
            *(f".flatten({axes}).softmax(-1).view(B, self.n_head, T, -1)" for axes in (2, 1, "")),
        ),
    ),
    ("softmax_missing", edit(MASK + SOFTMAX, ".masked_fill(key > query, 0.0)")),
    # The hidden keys, and the number that is filled in.
    *at(
        MASK,
        filled(
            "mask_reversed",
            "key < query, -math.inf",
            "key <= query, -math.inf",
            "key <= query, -1e9",
        ),
        filled(
            "mask_excludes_self",
            "key >= query, -math.inf",
            "key >= query, -1e30",
            "key >= query.clamp(min=1), -math.inf",
        ),
        filled("mask_peeks_one", "key > query + 1, -math.inf"),
        filled("mask_peeks_ahead", "key > query + 2, -math.inf", "key > query + 3, -math.inf"),
        filled("mask_plus_inf", "key > query, math.inf"),
        filled("mask_high_fill", "key > query, 1e9"),
        filled(
            "mask_weak_fill",
            "key > query, -1.0",
            "key > query, -10.0",
            "key > query, scores.min()",
            "key > query, float(scores.detach().min()) - 1",
        ),
    ),
    (
        "mask_excludes_self",
        edit(MASK + SOFTMAX, ".masked_fill(key >= query, -math.inf).softmax(dim=-1).nan_to_num()"),
    ),
    *at(
        "weights = scores" + MASK,
        ("mask_added", "weights = (scores + (key <= query))", "weights = (scores + (key > query))"),
        ("mask_zero_fill", "weights = (scores * (key <= query))"),
        ("mask_weak_fill", "weights = (scores + (key > query) * -10.0)"),
        (
            "mask_nan",
            *(
                f"weights = (scores {operation})"
                for operation in (
                    "+ (key > query) * -math.inf",
                    "* torch.where(key > query, -math.inf, 1.0)",
                )
            ),
        ),
    ),
    ("mask_after_softmax", edit(MASK + SOFTMAX, ".softmax(dim=-1).masked_fill(key > query, 0.0)")),
    ("mask_nan", edit(MASK + SOFTMAX, ".softmax(dim=-1).masked_fill(key > query, -math.inf)")),
    ("mask_sdpa_inverted", edit(GATHER, SDPA.format("key > query"))),
    (
        "mask_reversed",
        edit(MASK + SOFTMAX, ".masked_fill(key <= query, -math.inf).softmax(dim=-1).nan_to_num()"),
    ),
    (
        "mask_not_sliced",
        edit(
            KEY,
            "key = torch.arange(self.block_size, device=x.device)",
            {QUERY: "query = torch.arange(self.block_size, device=x.device)[:, None]"},
        ),
    ),
    (
        "mask_not_moved",
        edit(
            QKV_LAYER,
            QKV_LAYER + "\n        self.hidden = torch.ones(block_size, block_size).triu(1).bool()",
            {MASK: ".masked_fill(self.hidden[past : past + T, : past + T], -math.inf)"},
        ),
    ),
    (
        "mask_not_moved",
        edit(
            QKV_LAYER,
            QKV_LAYER + "\n        self.hidden = {}",
            {MASK: ".masked_fill(self.hidden.setdefault((past, T), key > query), -math.inf)"},
        ),
    ),
    (
        "mask_is_parameter",
        edit(
            QKV_LAYER,
            QKV_LAYER
            + "\n        self.hidden = nn.Parameter(torch.ones(block_size, block_size).triu(1),"
            " requires_grad=False)",
            {MASK: ".masked_fill(self.hidden[past : past + T, : past + T] > 0, -math.inf)"},
        ),
    ),
    ("wrong_view", split(STRAIGHT)),
    ("wrong_view_both", split(STRAIGHT, extra_changes={MERGE: "y = y.reshape(B, T, C)"})),
    *mutants("wrong_view_values", *(split(STRAIGHT, names) for names in ("v", "k", "q", "kv"))),
    *at(
        MERGE,
        ("merge_no_transpose", "y = y.reshape(B, T, C)"),
        (
            "merge_wrong_axes",
            *(
                f"y = y.permute({axes}).reshape(B, T, C)"
                for axes in ("0, 2, 3, 1", "0, 3, 2, 1", "0, 3, 1, 2", "0, 1, 3, 2")
            ),
        ),
        (
            "heads_reversed",
            *(
                f"y = y.{method}.transpose(1, 2).reshape(B, T, C)"
                for method in ("flip(1)", "roll(1, 1)", "roll(-1, 1)")
            ),
        ),
        (
            "heads_one_width",
            *(f"y = y{reduction}" for reduction in (".mean(1)", ".sum(1)", "[:, -1]")),
        ),
        (
            "heads_averaged",
            *(
                f"y = y.{mix}(1).repeat{suffix}"
                for suffix in ("(1, 1, self.n_head)", "_interleave(self.n_head, -1)")
                for mix in ("mean", "sum")
            ),
        ),
        (
            "heads_mix_batch",
            *(
                f"y = y.{prefix}permute(1, 2, 0, 3).reshape(B, T, C)"
                for prefix in ("", "reshape(self.n_head, B, T, -1).")
            ),
        ),
    ),
    *mutants(
        "heads_interleaved",
        split(DEALT),
        split(DEALT, extra_changes={MERGE: "y = y.permute(0, 2, 3, 1).reshape(B, T, C)"}),
        *(split(DEALT, name) for name in "kv"),
    ),
    (
        "heads_and_width_swapped",
        split("{0} = {0}.view(B, T, self.head_dim, self.n_head).transpose(1, 2)"),
    ),
    *at(
        CUT,
        (
            "qkv_order",
            *(
                f"{order} = self.qkv(x).split(C, dim=-1)"
                for order in ("k, q, v", "v, k, q", "q, v, k", "k, v, q", "v, q, k")
            ),
        ),
        (
            "qkv_packed_per_head",
            (
                "q, k, v = (part.flatten(2) for part in self.qkv(x).view(B, T, self.n_head, 3,"
                " self.head_dim).unbind(3))"
            ),
        ),
    ),
    *mutants(
        "values_wrong_source",
        edit(GATHER, "y = weights @ k"),
        edit(JOINED_V, "v = torch.cat([cache[0], v], dim=2)"),
        edit(V, "v = x.view(B, T, self.n_head, self.head_dim).transpose(1, 2)\n"),
        edit(V, "v = q\n"),
    ),
    *SCORES_WRONG_SOURCE,
    *at(GATHER, ("heads_share_weights", "y = weights.mean(1, keepdim=True) @ v")),
    *at(
        PROJECTED,
        ("proj_missing", "y, (k, v)"),
        ("proj_twice", "self.proj(self.proj(y)), (k, v)"),
        ("proj_transposed", "y @ self.proj.weight, (k, v)"),
    ),
    *mutants(
        "proj_bias",
        *(edit(line, line.replace(", bias=False", "")) for line in (QKV_LAYER, PROJ_LAYER)),
    ),
    ("view_not_contiguous", edit(MERGE, "y = y.transpose(1, 2).view(B, T, C)")),
    ("divisibility_unchecked", edit("if n_embd % n_head != 0:", "if False:")),
    ("super_init_missing", edit("super().__init__()\n        if n_embd", "if n_embd")),
    (
        "params_extra",
        edit(QKV_LAYER, QKV_LAYER + "\n        self.scale = nn.Parameter(torch.ones(3))"),
    ),
    (
        "params_not_registered",
        edit(
            PROJ_LAYER,
            "self.layers = [nn.Linear(n_embd, n_embd, bias=False)]",
            {PROJECTED: "self.layers[0](y), (k, v)"},
        ),
    ),
    *mutants(
        "gradient_cut",
        edit(CUT, "q, k, v = self.qkv(x).detach().split(C, dim=-1)"),
        edit(GATHER, "y = weights.detach() @ v"),
        insert_before(PAST, "k, v = k.detach(), v.detach()"),
    ),
    ("input_mutated", edit(SIZES, SIZES + "\n        x *= 1.0\n        x += 1e-3")),
    *mutants(
        "hard_coded_dtype",
        edit(CUT, "q, k, v = self.qkv(x).float().split(C, dim=-1)"),
        edit(PROJECTED, "self.proj(y).float(), (k, v)"),
    ),
    *mutants(
        "hard_coded_device",
        edit(
            QUERY,
            "query = torch.arange(past, past + T)[:, None]",
            {KEY: "key = torch.arange(past + T)"},
        ),
        insert_before(SIZES, "x = x.cpu()"),
    ),
    ("hard_coded_shape", insert_before(SIZES, "x = x[:1]")),
    ("keys_not_transposed", edit("scores = q @ k.transpose(-2, -1)", "scores = q @ k")),
    values_transposed(),
    *at(
        CUT,
        (
            "weight_not_transposed",
            "q, k, v = (x @ w for w in self.qkv.weight.chunk(3))",
            "q, k, v = (x @ self.qkv.weight.view(C, 3 * C)).split(C, dim=-1)",
        ),
        (
            "qkv_sliced_by_columns",
            "q, k, v = (x @ w for w in self.qkv.weight.T.reshape(3, C, C))",
            "q, k, v = (x @ self.qkv.weight.view(C, 3 * C)[:, i::3] for i in range(3))",
        ),
        ("qkv_packed_per_head", "q, k, v = self.qkv(x).view(B, T, C, 3).unbind(-1)"),
        ("qkv_mix_batch", "q, k, v = self.qkv(x).view(3, B, T, C)"),
        ("reshape_out_of_order", "q, k, v = self.qkv(x).view(B, 3, T, C).unbind(1)"),
    ),
    *at(
        RETURNED,
        (
            "interface",
            "return self.proj(y)",
            "return (k, v), self.proj(y)",
            "return self.proj(y), k, v",
        ),
        (
            "hard_coded_dtype",
            *(f"return self.proj(y), (k.{half}(), v.{half}())" for half in ("half", "bfloat16")),
        ),
        ("output_rounded", *(f"return self.proj(y).round(decimals={n}), (k, v)" for n in (3, 2))),
        ("dropout_extra", "return nn.functional.dropout(self.proj(y), 0.1, self.training), (k, v)"),
        ("params_not_registered", "return nn.Linear(C, C, bias=False).to(y)(y), (k, v)"),
    ),
    *(
        (
            "heads_missing_transpose",
            edit(
                Q,
                "",
                {
                    K: "pass\n",
                    V: "pass\n",
                    MASK: mask,
                    MERGE: f"y = y{turned}.reshape(B, T, C)",
                    CUT: (
                        "q, k, v = (t.view(B, T, self.n_head, self.head_dim) for t in"
                        " self.qkv(x).split(C, dim=-1))"
                    ),
                    PAST: "past = 0 if cache is None else cache[0].shape[1]",
                    JOINED_K: "k = torch.cat([cache[0], k], dim=1)",
                    JOINED_V: "v = torch.cat([cache[1], v], dim=1)",
                },
            ),
        )
        for mask in (MASK, "")
        for turned in ("", ".transpose(1, 2)")
    ),
    (
        "heads_mix_batch",
        edit(
            Q,
            "q, k, v = (t.reshape(self.n_head, B, T, -1).transpose(0, 1) for t in (q, k, v))",
            {K: "pass\n", V: "pass\n"},
        ),
    ),
    (
        "proj_bias",
        edit(
            QKV_LAYER,
            "self.qkv = nn.Linear(n_embd, 3 * n_embd)",
            {PROJ_LAYER: "self.proj = nn.Linear(n_embd, n_embd)"},
        ),
    ),
    *mutants(
        "params_extra",
        edit(
            PROJ_LAYER,
            "self.c_proj = nn.Linear(n_embd, n_embd, bias=False)",
            {PROJECTED: "self.c_proj(y), (k, v)"},
        ),
        edit(
            QKV_LAYER,
            "self.q, self.k, self.v = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(3))",
            {CUT: "q, k, v = self.q(x), self.k(x), self.v(x)"},
        ),
    ),
    (
        "softmax_missing",
        edit(SOFTMAX, "", {GATHER: "y = weights / weights.sum(-1, keepdim=True) @ v"}),
    ),
    HEADS_NOT_JOINED,
    ("dropout_always_on", edit(GATHER, "y = nn.functional.dropout(weights, 0.1) @ v")),
    ("dropout_extra", edit(GATHER, "y = nn.functional.dropout(weights, 0.1, self.training) @ v")),
)

# parametric mutants: the number can have any value
FAMILIES = (
    ("scale_constant", lambda c: edit(SCALE, f"* {c!r}"), SCALES_TRIED),
    ("mask_weak_fill", lambda c: edit(MASK, f".masked_fill(key > query, {-c!r})"), FILLS_TRIED),
)
