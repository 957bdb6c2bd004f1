"""Wrong attempts at tiled attention, each an edit of the reference."""

from manyheads.checks import Mutant

from ._mutants import (
    FILLS_TRIED,
    SCALES_TRIED,
    mutants,
)

# Lines of the reference. First online_softmax.
PIECES = "for piece in scores.split(block, dim=-1):  # (..., block), the last one may be shorter"
ONLINE_HIGHER = "higher = torch.maximum(highest, piece.amax(-1, keepdim=True))"
ONLINE_TOTAL = (
    "total = total * (highest - higher).exp() + (piece - higher).exp().sum(-1, keepdim=True)"
)
ONLINE_KEPT = ".sum(-1, keepdim=True)\n        highest = higher\n    parts"
PARTS = "parts = [(piece - highest).exp() / total for piece in scores.split(block, dim=-1)]"
WEIGHTS = "return torch.cat(parts, dim=-1)  # (..., T)"
HIGHEST = "highest = torch.full_like(scores[..., :1], -math.inf)  # (..., 1)"
ONLINE_BODY = HIGHEST + "\n    total = torch.zeros_like(highest)  # (..., 1)\n    " + PIECES

# Then tiled_attention.
SIZES = "T, hd = q.shape[-2:]"
TOPS = "for top in range(0, T, block_q):"
LEFTS = "for left in range(0, bottom, block_k):  # what lies further right is all future"
SCALE = "/ math.sqrt(hd)"
KEYS = "keys, values = k[..., left : left + block_k, :], v[..., left : left + block_k, :]"
PRODUCT = "(rows @ keys.transpose(-2, -1))"
MASK = ".masked_fill(key > query, -math.inf)"
FINITE = ".masked_fill(key > query, -1e30)"
TILE = f"tile = {PRODUCT}{MASK}"
START = "highest, total, gathered = torch.full_like(rows[..., :1], -math.inf), 0.0, 0.0"
HIGHER = "higher = torch.maximum(highest, tile.amax(-1, keepdim=True))"
FIX_AND_SHARES = "fix, shares = (highest - higher).exp(), (tile - higher).exp()"
TOTAL = "total = total * fix + shares.sum(-1, keepdim=True)"
GATHERED = "gathered = gathered * fix + shares @ values"
KEPT = "            highest = higher\n        answers"
ANSWERS = "answers.append(gathered / total)"
SUMS = "sums.append((highest + total.log()).squeeze(-1))"
RETURNED = "return torch.cat(answers, dim=-2), torch.cat(sums, dim=-1)"

# texts that several edits share
PIECE_MAX, TILE_MAX = "piece.amax(-1, keepdim=True)", "tile.amax(-1, keepdim=True)"
UP_TO_BOTTOM = {KEYS: KEYS.replace("left + block_k", "min(left + block_k, bottom)")}
FUTURE_TOO = {LEFTS: "for left in range(0, T, block_k):"}
NOT_DIVIDED = {ANSWERS: "answers.append(gathered)"}
TOTAL_WITHOUT_FIX = "total = total + shares.sum(-1, keepdim=True)"
GATHERED_WITHOUT_FIX = "gathered = gathered + shares @ values"
ONLINE_TOTAL_WITHOUT_FIX = "total = total + (piece - higher).exp().sum(-1, keepdim=True)"
SHARES_FROM_TILE_MAX = (
    f"(tile - {TILE_MAX}.clamp(min=-1e30)).exp()"  # measured from the tile's own maximum
)
DIAGONAL_CONDITIONS = (
    "left == top",
    "left > top",
    "left >= top",
    "top // block_q == left // block_k",
)
WHOLE_PIECES = "for piece in scores.split(block, dim=-1)[: scores.shape[-1] // block]:"
ONE_BLOCK = (
    "for piece in scores[..., : max(scores.shape[-1] // block, 1) * block].split(block, dim=-1):"
)
FULL_ROWS = "for top in range(0, T // block_q * block_q, block_q):"
ONE_FULL_ROW = "for top in range(0, max(T // block_q, 1) * block_q, block_q):"
TO_HALVES = ("half().to(t)", "bfloat16().to(t)")


def log_sums(id_, *texts):
    """Return mutants with something else than the logarithms of the sums."""
    return mutants(id_, *(f"sums.append({text}.squeeze(-1))" for text in texts), replacing=SUMS)


def line_edit(line, old, new):
    """Return an edit of a part of this line."""
    return {line: line.replace(old, new)}


def insert_before(line, text, more_changes=None):
    return {line: f"{text}\n    {line}"} | (more_changes or {})


def of_the_block(total, gathered):
    """Return mutants that measure each block from its own maximum.

    Args:
        total: the text that corrects the total, or "".
        gathered: the text that corrects the gathered values, or "".
    """
    shares_line = (
        "fix, shares, new = (highest - higher).exp(), (tile - own).exp(), (own - higher).exp()"
    )
    lines = {
        FIX_AND_SHARES: f"own = {TILE_MAX}\n            {shares_line}",
        TOTAL: TOTAL + total,
        GATHERED: GATHERED + gathered,
    }
    return [
        Mutant("tile_max_not_carried", {MASK: fill} | lines | far)
        for fill in (MASK, FINITE)
        for far in ({}, FUTURE_TOO)
    ]


def masked_where(mask, *conditions):
    """Yield edits that mask some tiles only."""
    for condition in conditions:
        yield {
            TILE: f"tile = {PRODUCT[1:-1]}\n            if {condition}:\n                tile ="
            f" tile{mask}"
        }


def with_zeros(tops, remainder):
    """Return an edit that computes the rows up to here, and gives zeros for the rest."""
    return {
        TOPS: tops,
        RETURNED: f"rest = {remainder}\n    answers.append(v.new_zeros(*v.shape[:-2], rest,"
        f" v.shape[-1]))\n    sums.append(q.new_zeros(*q.shape[:-2], rest))\n    {RETURNED}",
    }


MUTANTS = (
    *mutants(
        "tile_no_rescale",
        {TOTAL: TOTAL_WITHOUT_FIX, GATHERED: GATHERED_WITHOUT_FIX},
        {GATHERED: GATHERED_WITHOUT_FIX},
        {GATHERED: f"{GATHERED_WITHOUT_FIX} / total"} | NOT_DIVIDED,
        {TOTAL: TOTAL_WITHOUT_FIX},
        {ONLINE_TOTAL: ONLINE_TOTAL_WITHOUT_FIX},
        # The weights are kept as the first pass made them.
        insert_before(
            HIGHEST,
            "made = []",
            {
                ONLINE_KEPT: ONLINE_KEPT.replace(
                    "higher\n", "higher\n        made.append((piece - highest).exp())\n"
                ),
                WEIGHTS: "return torch.cat(made, dim=-1) / total",
            },
        ),
    ),
    # The factor turned over, or for the new block as well.
    *mutants(
        "tile_rescaled_wrong",
        {
            "fix, shares = (highest - higher).exp()": (
                "fix, shares = (higher - highest).exp().nan_to_num(posinf=0.0)"
            )
        },
        line_edit(
            ONLINE_TOTAL,
            "(highest - higher).exp()",
            "(higher - highest).exp().nan_to_num(posinf=0.0)",
        ),
        {GATHERED: "gathered = (gathered + shares @ values) * fix"},
        {TOTAL: "total = (total + shares.sum(-1, keepdim=True)) * fix"},
        {
            ONLINE_TOTAL: (
                "total = (total + (piece - higher).exp().sum(-1, True)) * (highest - higher).exp()"
            )
        },
    ),
    *mutants(
        "tile_max_not_carried",
        {
            FIX_AND_SHARES: "fix, shares = highest - higher, (tile - higher).exp()",
            TOTAL: TOTAL_WITHOUT_FIX,
            GATHERED: GATHERED_WITHOUT_FIX,
            HIGHER: f"higher = {TILE_MAX}.clamp(min=-1e30)",
        },
    ),
    *of_the_block("", ""),
    Mutant(
        "tile_max_not_carried",
        line_edit(ONLINE_TOTAL, "(piece - higher)", f"(piece - {PIECE_MAX})"),
    ),
    *of_the_block(" * new", ""),
    *of_the_block("", " * new"),
    Mutant("tile_diagonal_unmasked", "", replacing=MASK),
    Mutant("mask_missing", {MASK: ""} | FUTURE_TOO),
    *mutants(
        "tile_max_not_carried",
        {KEPT: "        answers", SUMS: "sums.append((higher + total.log()).squeeze(-1))"},
        {ONLINE_KEPT: ".sum(-1, keepdim=True)\n    highest = higher\n    parts"},
        line_edit(PARTS, "(piece - highest)", f"(piece - {PIECE_MAX})"),
        {PARTS: f"last = {PIECE_MAX}\n    " + PARTS.replace("(piece - highest)", "(piece - last)")},
        {SUMS: f"sums.append(({TILE_MAX} + total.log()).squeeze(-1))"},
        # The block's own maximum kept in place of the running one.
        line_edit(KEPT, "highest = higher", f"highest = {TILE_MAX}"),
        line_edit(ONLINE_KEPT, "highest = higher", f"highest = {PIECE_MAX}"),
        # Measured from the block's own maximum, with and without a factor for what came before.
        {ONLINE_TOTAL: ONLINE_TOTAL_WITHOUT_FIX, ONLINE_HIGHER: f"higher = {PIECE_MAX}"},
        {
            ONLINE_HIGHER: f"higher = {PIECE_MAX}",
            ONLINE_KEPT: ONLINE_KEPT.replace("= higher", "= torch.maximum(highest, higher)"),
        },
        *(
            {
                MASK: fill,
                HIGHER: f"higher = {TILE_MAX}",
                KEPT: KEPT.replace("= higher", "= torch.maximum(highest, higher)"),
            }
            for fill in (MASK, FINITE)
        ),
        *(
            {FIX_AND_SHARES: f"fix, shares = {fix}, {SHARES_FROM_TILE_MAX}"}
            for fix in ("1.0", "(highest - higher).exp()")
        ),
        {HIGHER: f"higher = {TILE_MAX}.clamp(min=-1e30)"},
        {ONLINE_TOTAL: f"total = total + (piece - {PIECE_MAX}).exp().sum(-1, keepdim=True)"},
    ),
    # Large scores are compared with zero or more, with nothing, with the first block, or with the
    # first score.
    *mutants(
        "tile_overflow",
        {HIGHEST: "highest = torch.zeros_like(scores[..., :1])"},
        {
            ONLINE_HIGHER: "higher = torch.zeros_like(highest)",
            HIGHEST: "highest = torch.zeros_like(scores[..., :1])",
        },
        {
            ONLINE_HIGHER: "higher = highest",
            HIGHEST: "highest = scores[..., :block].amax(-1, keepdim=True)",
        },
        {ONLINE_HIGHER: "higher = highest", HIGHEST: "highest = scores[..., :1]"},
        # Each block's own maximum, with the right factor for what came before.
        {ONLINE_HIGHER: f"higher = {PIECE_MAX}"},
    ),
    *mutants(
        "tile_divided_each",
        {ANSWERS: "answers.append(gathered)", GATHERED: f"{GATHERED} / total"},
        {
            ANSWERS: "answers.append(gathered)",
            GATHERED: "gathered = (gathered * fix + shares @ values) / total",
        },
        {GATHERED: f"{GATHERED} / shares.sum(-1, keepdim=True).clamp(min=1e-30)"},
        {
            ANSWERS: "answers.append(gathered)",
            GATHERED: f"{GATHERED_WITHOUT_FIX} / shares.sum(-1, keepdim=True).clamp(min=1e-30)",
        },
        *(
            {
                PARTS: "parts = [part / part.sum(-1, keepdim=True) for part in "
                f"((piece - {high}).exp() for piece in scores.split(block, dim=-1))]"
            }
            for high in (PIECE_MAX, "highest")
        ),
        # Divided in the first pass, by the sum so far.
        insert_before(
            HIGHEST,
            "made = []",
            {
                ONLINE_KEPT: ONLINE_KEPT.replace(
                    "higher\n", "higher\n        made.append((piece - highest).exp() / total)\n"
                ),
                WEIGHTS: "return torch.cat(made, dim=-1)",
            },
        ),
        {GATHERED: f"{GATHERED} / shares.sum(-1, keepdim=True)"},
        {
            ANSWERS: "answers.append(gathered)",
            GATHERED: "gathered = gathered + tile.softmax(-1) @ values",
        },
        # means of the tiles' answers: over all tiles, or pair by pair
        *(
            {
                MASK: fill,
                GATHERED: "gathered = gathered + tile.softmax(-1).nan_to_num() @ values",
                ANSWERS: "answers.append(gathered / len(range(0, bottom, block_k)))",
            }
            for fill in (MASK, FINITE)
        ),
        *(
            {MASK: fill}
            | {
                GATHERED: (
                    "answer = tile.softmax(-1).nan_to_num() @ values\n"
                    "            gathered = answer if left == 0 else (gathered + answer) / 2"
                )
            }
            | NOT_DIVIDED
            for fill in (MASK, FINITE)
        ),
        {GATHERED: "gathered = (gathered * fix + shares @ values) / total"},
        {GATHERED: f"{GATHERED} / total"},
        *(
            {
                ANSWERS: "answers.append(gathered)",
                GATHERED: f"gathered = gathered * fix + {answer} @ values",
            }
            for answer in ("tile.softmax(-1)", "tile.softmax(-1).nan_to_num()")
        ),
        line_edit(PARTS, "(piece - highest).exp()", "piece.softmax(-1)"),
    ),
    *mutants(
        "tile_not_divided",
        {ANSWERS: "answers.append(gathered)"},
        line_edit(PARTS, " / total", ""),
    ),
    *mutants(
        "tile_divided_twice",
        {ANSWERS: "answers.append(gathered / total / total)"},
        line_edit(PARTS, "/ total", "/ total / total"),
    ),
    *mutants(
        "tile_diagonal_unmasked",
        *masked_where(MASK, *DIAGONAL_CONDITIONS),
        {MASK: ".masked_fill(key >= bottom, -math.inf)"} | FUTURE_TOO,
        {MASK: "", LEFTS: "for left in range(0, top + 1, block_k):"},
        # The same where the keys behind the last query of the block are cut off.
        *(
            {MASK: f".masked_fill((key > query) & ({condition}), -math.inf)"} | UP_TO_BOTTOM
            for condition in DIAGONAL_CONDITIONS
        ),
    ),
    *mutants(
        "tile_mask_local",
        *(
            f".masked_fill({local}, -math.inf)"
            for local in ("key - left > query - top", "key - left > query", "key > query - top")
        ),
        replacing=MASK,
    ),
    *mutants(
        "tile_mask_local",
        *masked_where(
            ".masked_fill(key - left > query - top, -math.inf)",
            "left + keys.shape[-2] > top",
            "left == top or left + block_k > top",
            DIAGONAL_CONDITIONS[3],
            DIAGONAL_CONDITIONS[2],
        ),
    ),
    *mutants(
        "tile_skipped",
        {LEFTS: "for left in range(0, top + 1, block_k):"},
        {LEFTS: "for left in range(0, max(top, 1), block_k):"},
        {
            KEYS: "if left > 0 and left + block_k > bottom:\n                continue\n           "
            f" {KEYS}"
        },
        {
            KEYS: (
                f"{KEYS}\n            if left > 0 and left + keys.shape[-2] > bottom:\n"
                "                continue"
            )
        },
        {
            KEYS: (
                "if left // block_k > top // block_q:\n                continue\n"
                f"            {KEYS}"
            )
        },
        {LEFTS: "for left in range(0, bottom - 1 if bottom > 1 else 1, block_k):"},
    ),
    *mutants(
        "tile_step_wrong",
        {LEFTS: "for left in range(0, bottom, block_q):"},
        {KEYS: KEYS.replace("block_k", "block_q")},
        {TOPS: TOPS.replace("block_q", "block_k")},
    ),
    # The last block is a whole one, and begins earlier.
    *mutants(
        "tile_overlap",
        *(
            {
                LEFTS: (
                    f"for left in [min(start, max(0, {end} - block_k))"
                    " for start in range(0, bottom, block_k)]:"
                )
            }
            for end in ("T", "bottom")
        ),
        {
            PIECES: "for start in range(0, scores.shape[-1], block):\n"
            "        start = min(start, max(0, scores.shape[-1] - block))\n"
            "        piece = scores[..., start : start + block]"
        },
    ),
    *mutants(
        "tile_ragged_dropped",
        {PIECES: WHOLE_PIECES},
        {PIECES: ONE_BLOCK},
        line_edit(
            PARTS, "in scores.split", "in scores[..., : scores.shape[-1] // block * block].split"
        ),
        {
            PIECES: WHOLE_PIECES,
            PARTS: PARTS.replace("for piece in scores.split(block, dim=-1)", WHOLE_PIECES[:-1]),
        },
        {TOPS: FULL_ROWS},
        {TOPS: ONE_FULL_ROW},
        {LEFTS: "for left in range(0, max(min(bottom, T // block_k * block_k), 1), block_k):"},
        {
            LEFTS: "for left in range(0, min(bottom, T // block_k * block_k), block_k):",
            START: START.replace(
                "0.0, 0.0",
                "torch.zeros_like(rows[..., :1]), torch.zeros_like(rows[..., :1] * v[..., :1, :])",
            ),
        },
        with_zeros(FULL_ROWS, "T - T // block_q * block_q"),
        # The same, but one block that is not full counts where there is no other.
        with_zeros(ONE_FULL_ROW, "max(T - max(T // block_q, 1) * block_q, 0)"),
        {
            PIECES: ONE_BLOCK,
            WEIGHTS: "rest = max(scores.shape[-1] - max(scores.shape[-1] // block, 1) * block, 0)\n"
            "    known = torch.cat(parts, dim=-1)[..., : scores.shape[-1] - rest]\n"
            "    "
            + WEIGHTS.replace(
                "torch.cat(parts, dim=-1)", "torch.nn.functional.pad(known, (0, rest))"
            ),
        },
    ),
    *mutants(
        "tile_ragged_refused",
        {PIECES: "for piece in scores.unflatten(-1, (-1, block)).unbind(-2):"},
        insert_before(TOPS, "q.unflatten(-2, (-1, block_q))"),
        insert_before(TOPS, "k.unflatten(-2, (-1, block_k))"),
        insert_before(PIECES, "if scores.shape[-1] % block != 0:\n        raise ValueError(block)"),
        insert_before(TOPS, "if T % block_q != 0:\n        raise ValueError(block_q)"),
    ),
    Mutant(
        "tile_padding_counted",
        insert_before(
            HIGHEST,
            "length = scores.shape[-1]\n"
            "    scores = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % block))",
            {WEIGHTS: "return torch.cat(parts, dim=-1)[..., :length]"},
        ),
    ),
    *mutants(
        "tile_lse_unscaled",
        "sums.append(((highest + total.log()) * math.sqrt(hd)).squeeze(-1))",
        "raw = (q[..., top:bottom, :] @ k[..., :bottom, :].transpose(-2,"
        " -1)).masked_fill(torch.arange(bottom, device=q.device) > query, -math.inf)\n     "
        "   sums.append(raw.logsumexp(-1))",
        "sums.append((highest * math.sqrt(hd) + total.log()).squeeze(-1))",
        replacing=SUMS,
    ),
    *log_sums("tile_lse_without_max", "total.log()"),
    *log_sums("tile_lse_without_log", "(highest + total)", "(total * highest.exp())", "total"),
    *log_sums("tile_lse_sign", "(total.log() - highest)", "(highest - total.log())"),
    Mutant("scale_missing", "", replacing=SCALE),
    Mutant("scores_ignored", "* 0", replacing=SCALE),
    Mutant("scale_no_sqrt", "/ hd", replacing=SCALE),
    *mutants("scale_multiplied", "* math.sqrt(hd)", "* hd", replacing=SCALE),
    *mutants(
        "scale_sqrt_tokens",
        "/ math.sqrt(T)",
        "/ math.sqrt(block_k)",
        "/ math.sqrt(block_q)",
        replacing=SCALE,
    ),
    Mutant("scale_tokens", "/ T", replacing=SCALE),
    Mutant("scale_sqrt_c", "/ math.sqrt(hd * (q.shape[1] if q.dim() > 3 else 1))", replacing=SCALE),
    Mutant("scale_sqrt_heads", "/ math.sqrt(q.shape[1] if q.dim() > 3 else 1)", replacing=SCALE),
    *mutants(
        "scale_wrong_axis", "/ math.sqrt(v.shape[-1])", "/ math.sqrt(q.shape[0])", replacing=SCALE
    ),
    *mutants(
        "scale_precedence",
        "/ hd ** 1 / 2",
        "/ (hd ** 1 / 2)",
        "/ (hd ** 1 // 2)",
        "* hd ** 1 / 2",
        replacing=SCALE,
    ),
    *mutants(
        "scale_rounded",
        *(f"/ {rounding}(math.sqrt(hd))" for rounding in ("int", "round", "math.ceil")),
        "// math.sqrt(hd)",
        replacing=SCALE,
    ),
    *mutants(
        "scale_constant",
        *(f"/ {c}" for c in (8, 64, 2, 4, 10, 16, 32, "math.sqrt(512)", "math.sqrt(768)")),
        replacing=SCALE,
    ),
    Mutant("scale_twice", line_edit(TILE, "keys.transpose", "(keys / math.sqrt(hd)).transpose")),
    *mutants(
        "scale_after_softmax",
        {SCALE: "", ANSWERS: "answers.append(gathered / total / math.sqrt(hd))"},
        {ANSWERS: "answers.append(gathered / total / math.sqrt(hd))"},
    ),
    # These compute the tiles above the diagonal, too, because an attempt that shows the future
    # needs them.
    Mutant("mask_reversed", {MASK: ".masked_fill(key < query, -1e30)"} | FUTURE_TOO),
    Mutant("mask_excludes_self", {MASK: ".masked_fill(key >= query, -1e30)"} | FUTURE_TOO),
    Mutant("mask_peeks_one", {MASK: ".masked_fill(key > query + 1, -math.inf)"} | FUTURE_TOO),
    Mutant("mask_peeks_ahead", {MASK: ".masked_fill(key > query + 2, -math.inf)"} | FUTURE_TOO),
    Mutant("mask_peeks_ahead", {MASK: ".masked_fill(key > query + 3, -math.inf)"} | FUTURE_TOO),
    Mutant("mask_plus_inf", {MASK: ".masked_fill(key > query, math.inf)"} | FUTURE_TOO),
    *mutants(
        "mask_added",
        *({MASK: text} | FUTURE_TOO for text in (" + (key <= query)", " + (key > query)")),
    ),
    Mutant("mask_zero_fill", {MASK: " * (key <= query)"} | FUTURE_TOO),
    *mutants(
        "mask_nan",
        *(
            {MASK: text} | FUTURE_TOO
            for text in (
                " + (key > query) * -math.inf",
                " * torch.where(key > query, -math.inf, 1.0)",
            )
        ),
    ),
    *mutants(
        "mask_excludes_self",
        ".masked_fill(key >= query, -math.inf)",
        ".masked_fill(key >= query, -1e30)",
        replacing=MASK,
    ),
    *mutants(
        "mask_reversed",
        ".masked_fill(key < query, -math.inf)",
        ".masked_fill(key < query, -1e9)",
        replacing=MASK,
    ),
    Mutant("mask_peeks_one", ".masked_fill(key > query + 1, -math.inf)", replacing=MASK),
    Mutant("mask_peeks_ahead", ".masked_fill(key > query + 2, -math.inf)", replacing=MASK),
    Mutant("mask_plus_inf", ".masked_fill(key > query, math.inf)", replacing=MASK),
    Mutant("mask_high_fill", ".masked_fill(key > query, 1e9)", replacing=MASK),
    Mutant("mask_weak_fill", ".masked_fill(key > query, -5.0)", replacing=MASK),
    Mutant("mask_added", " - (key > query).to(q.dtype)", replacing=MASK),
    Mutant(
        "mask_excludes_self",
        {
            MASK: ".masked_fill(key >= query, -1e30)",
            FIX_AND_SHARES: f"{FIX_AND_SHARES} * (key < query)",
            ANSWERS: "answers.append((gathered / total).nan_to_num())",
        },
    ),
    Mutant("mask_reversed", {MASK: ".masked_fill(key <= query, -math.inf)"} | FUTURE_TOO),
    *(
        Mutant(id_, {MASK: f".masked_fill(key > query, {value})"} | far)
        for id_, value in (
            ("mask_zero_fill", 0.0),
            ("mask_weak_fill", -1.0),
            ("mask_weak_fill", -10.0),
        )
        for far in ({}, FUTURE_TOO)
    ),
    *(
        Mutant(
            "mask_after_softmax",
            {MASK: ""}
            | {GATHERED: "gathered = gathered * fix + (shares * (key <= query)) @ values"}
            | far,
        )
        for far in ({}, FUTURE_TOO)
    ),
    # A tile that is hidden altogether comes first.
    *mutants(
        "mask_nan",
        *(f"for left in reversed(range(0, {end}, block_k)):" for end in ("T", "bottom")),
        replacing=LEFTS,
    ),
    Mutant(
        "softmax_query_axis",
        "fix, shares = 1.0, tile.softmax(-2).nan_to_num(0.0)",
        replacing=FIX_AND_SHARES,
    ),
    *mutants(
        "softmax_wrong_axis",
        insert_before(ONLINE_BODY, "return scores.transpose(0, -1).softmax(-1).transpose(0, -1)"),
        *(
            insert_before(ONLINE_BODY, f"return scores.exp() / scores.exp().sum({axis})")
            for axis in ("", "0, keepdim=True")
        ),
        {
            PIECE_MAX: "piece.amax()",
            f".exp(){ONLINE_KEPT}": ".exp().sum()\n        highest = higher\n    parts",
        },
        {TOTAL: "total = total * fix + shares.sum()"},
    ),
    *mutants(
        "softmax_missing",
        {WEIGHTS: "return scores / scores.sum(-1, keepdim=True)"},
        {FIX_AND_SHARES: "fix, shares = 1.0, tile.masked_fill(key > query, 0.0)"},
    ),
    *mutants(
        "values_wrong_source", *(line_edit(KEYS, "v[...", f"{source}[...") for source in "kq")
    ),
    *mutants(
        "scores_wrong_source", *(line_edit(KEYS, "= k[...", f"= {source}[...") for source in "qv")
    ),
    *mutants(
        "qkv_order", *(insert_before(SIZES, order) for order in ("q, k = k, q", "k, v = v, k"))
    ),
    *mutants(
        "materialised",
        insert_before(
            TOPS,
            "seen = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()",
            {MASK: ".masked_fill(~seen[top:bottom, left : left + block_k], -math.inf)"},
        ),
        # Filled up to whole blocks; and all at once after the tiles.
        insert_before(
            TOPS,
            "filled_q, filled_k = (torch.nn.functional.pad(x, (0, 0, 0, -T % block)) for x, block"
            " in ((q, block_q), (k, block_k)))\n    square = filled_q @ filled_k.transpose(-2, -1)"
            " / math.sqrt(hd)",
            {TILE: TILE.replace(PRODUCT, "square[..., top:bottom, left : left + keys.shape[-2]]")},
        ),
        {
            RETURNED: (
                "hidden = torch.arange(T, device=q.device) > torch.arange(T, device=q.device)[:,"
                " None]\n    square = (q @ k.transpose(-2, -1) / math.sqrt(hd)).masked_fill(hidden,"
                " -math.inf)\n    return square.softmax(-1) @ v, square.logsumexp(-1)"
            )
        },
    ),
    Mutant("delegated", insert_before(ONLINE_BODY, "return torch.softmax(scores, dim=-1)")),
    *mutants(
        "hard_coded_shape",
        "B, nh, T, hd = q.shape",
        "B, T, hd = q.shape",
        "T, hd = q.shape",
        replacing=SIZES,
    ),
    *mutants(
        "hard_coded_shape",
        *(
            insert_before(PIECES, f"{sizes} = scores.shape")
            for sizes in ("B, T", "(T,)", "B, nh, T")
        ),
        insert_before(SIZES, "q, k, v = q[:1], k[:1], v[:1]"),
    ),
    *mutants(
        "hard_coded_dtype",
        *(
            insert_before(SIZES, f"q, k, v = (t.{to} for t in (q, k, v))")
            for to in ("float()", "double()", *TO_HALVES)
        ),
        line_edit(RETURNED, "dim=-2)", "dim=-2).float()"),
        line_edit("torch.full_like(rows[..., :1], -math.inf)", ")", ", dtype=torch.float64)"),
        line_edit(WEIGHTS, "dim=-1)", "dim=-1).float()"),
        insert_before(HIGHEST, "scores = scores.double()"),
        {GATHERED: "gathered = (gathered * fix + shares @ values).half().to(q)"},
    ),
    *mutants(
        "hard_coded_device",
        {
            "bottom, device=q.device)": "bottom)",
            "keys.shape[-2], device=q.device": "keys.shape[-2]",
        },
        insert_before(SIZES, "q, k, v = q.cpu(), k.cpu(), v.cpu()"),
        {HIGHEST: "highest = torch.full(scores[..., :1].shape, -math.inf, dtype=scores.dtype)"},
        insert_before(HIGHEST, "scores = scores.cpu()"),
    ),
    *mutants(
        "gradient_cut",
        line_edit(FIX_AND_SHARES, "(tile -", "(tile.detach() -"),
        {ANSWERS: "answers.append((gathered / total).detach())"},
        line_edit(GATHERED, "values", "values.detach()"),
        line_edit(KEYS, "k[...", "k.detach()[..."),
        {"rows = q": "rows = q.detach()"},
        line_edit(TOTAL, "shares", "shares.detach()"),
        {TOTAL: "total = (total * fix + shares.sum(-1, keepdim=True)).detach()"},
        line_edit(GATHERED, "shares", "shares.detach()"),
        {
            RETURNED: "return torch.tensor(torch.cat(answers, dim=-2).tolist(), dtype=q.dtype),"
            " torch.cat(sums, dim=-1)"
        },
    ),
    *mutants(
        "input_mutated",
        {f" {SCALE}": ".div_(math.sqrt(hd))"},
        insert_before(HIGHEST, "scores -= scores.amax(-1, keepdim=True)"),
    ),
    *mutants(
        "interface",
        "return torch.cat(answers, dim=-2)",
        "return torch.cat(sums, dim=-1), torch.cat(answers, dim=-2)",
        'return {"y": torch.cat(answers, dim=-2), "lse": torch.cat(sums, dim=-1)}',
        replacing=RETURNED,
    ),
    Mutant(
        "interface",
        {
            SUMS: "sums.append(highest + total.log())",
            RETURNED: "return torch.cat(answers, dim=-2), torch.cat(sums, dim=-2)",
        },
    ),
    Mutant("interface", "return torch.cat(parts, dim=-1), highest, total", replacing=WEIGHTS),
    Mutant("keys_not_transposed", "rows @ keys", replacing="rows @ keys.transpose(-2, -1)"),
    Mutant("values_transposed", line_edit(GATHERED, "values", "values.transpose(-2, -1)")),
    *mutants(
        "values_width",
        line_edit(START, "0.0, 0.0", "0.0, torch.zeros_like(rows)"),
        insert_before(
            TOPS,
            "whole = torch.zeros_like(q)",
            {
                RETURNED: (
                    "whole[:] = torch.cat(answers, dim=-2)\n    return whole, torch.cat(sums,"
                    " dim=-1)"
                )
            },
        ),
    ),
    *mutants(
        "output_rounded",
        *(
            line_edit(line, f"dim={axis})", f"dim={axis}).round(decimals={n})")
            for line, axis in ((RETURNED, -2), (WEIGHTS, -1))
            for n in (3, 2)
        ),
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
    (
        "mask_weak_fill",
        lambda c: Mutant(
            "mask_weak_fill", {MASK: f".masked_fill(key > query, {-c!r})"} | FUTURE_TOO
        ),
        FILLS_TRIED,
    ),
)
