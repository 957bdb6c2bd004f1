"""Lines of the reference of tiled attention, and the edits of them that make wrong tiles."""

from manyheads.checks import edit

from ._masking import at

# Lines of the reference. First online_softmax.
PIECES = "for piece in scores.split(block, dim=-1):  # (..., block), the last one may be shorter"
ONLINE_HIGHER = "higher = torch.maximum(highest, piece.amax(-1, keepdim=True))"
ONLINE_TOTAL = "total = total * (highest - higher).exp() + (piece - higher).exp().sum(-1, keepdim=True)"
ONLINE_KEPT = ".sum(-1, keepdim=True)\n        highest = higher\n    parts"
PARTS = "parts = [(piece - highest).exp() / total for piece in scores.split(block, dim=-1)]"
WEIGHTS = "return torch.cat(parts, dim=-1)  # (..., T)"
HIGHEST = "highest = torch.full_like(scores[..., :1], -math.inf)  # (..., 1)"
ONLINE_BODY = HIGHEST + "\n    total = torch.zeros_like(highest)  # (..., 1)\n    " + PIECES

# Then tiled_attention.
SIZES = "T, hd = q.shape[-2:]"
TOPS = "for top in range(0, T, block_q):"
LEFTS = "for left in range(0, bottom, block_k):  # what lies further right is all future"
ROWS = "rows = q[..., top : top + block_q, :] / math.sqrt(hd)"
SCALE = "/ math.sqrt(hd)"
KEYS = "keys, values = k[..., left : left + block_k, :], v[..., left : left + block_k, :]"
QUERY = "query = torch.arange(top, bottom, device=q.device)[:, None]"
KEY = "key = torch.arange(left, left + keys.shape[-2], device=q.device)"
TILE = "tile = (rows @ keys.transpose(-2, -1)).masked_fill(key > query, -math.inf)"
MASK = ".masked_fill(key > query, -math.inf)"
FINITE = ".masked_fill(key > query, -1e30)"
START = "highest, total, gathered = torch.full_like(rows[..., :1], -math.inf), 0.0, 0.0"
HIGHER = "higher = torch.maximum(highest, tile.amax(-1, keepdim=True))"
BOTH = "fix, shares = (highest - higher).exp(), (tile - higher).exp()"
TOTAL = "total = total * fix + shares.sum(-1, keepdim=True)"
GATHERED = "gathered = gathered * fix + shares @ values"
KEPT = "            highest = higher\n        answers"
ANSWERS = "answers.append(gathered / total)"
SUMS = "sums.append((highest + total.log()).squeeze(-1))"
RETURNED = "return torch.cat(answers, dim=-2), torch.cat(sums, dim=-1)"

UP_TO_BOTTOM = {KEYS: KEYS.replace("left + block_k", "min(left + block_k, bottom)")}
FUTURE_TOO = {LEFTS: "for left in range(0, T, block_k):"}
SQUARE = "seen = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()\n    "
ALL_SCORES = "square = (q @ k.transpose(-2, -1)) / math.sqrt(hd)\n    "
AFTER = "(rows @ keys.transpose(-2, -1))"


def masks(*pairs):
    """The same, with the tiles above the diagonal looked at, as whoever shows the future needs them."""
    for id_, mask in pairs:
        yield id_, edit(MASK, mask, FUTURE_TOO)


def scales(*pairs):
    yield from at(SCALE, *pairs)


def filled(*pairs):
    for id_, value in pairs:
        yield id_, edit(MASK, f".masked_fill(key > query, {value})")
        yield id_, edit(MASK, f".masked_fill(key > query, {value})", FUTURE_TOO)


NO_RESCALE = (
    edit(TOTAL, "total = total + shares.sum(-1, keepdim=True)", {GATHERED: "gathered = gathered + shares @ values"}),
    edit(GATHERED, "gathered = gathered + shares @ values"),
    edit(GATHERED, "gathered = gathered + shares @ values / total", {ANSWERS: "answers.append(gathered)"}),
    edit(TOTAL, "total = total + shares.sum(-1, keepdim=True)"),
    edit("fix, shares = (highest - higher).exp()", "fix, shares = (higher - highest).exp().nan_to_num(posinf=0.0)"),
    edit(ONLINE_TOTAL, "total = total + (piece - higher).exp().sum(-1, keepdim=True)"),
    edit(ONLINE_TOTAL, ONLINE_TOTAL.replace("(highest - higher)", "(higher - highest)").replace(
        ".exp() +", ".exp().nan_to_num(posinf=0.0) +")),
    edit(BOTH, "fix, shares = highest - higher, (tile - higher).exp()", {
        TOTAL: "total = total + shares.sum(-1, keepdim=True)",
        GATHERED: "gathered = gathered + shares @ values",
        HIGHER: "higher = tile.amax(-1, keepdim=True).clamp(min=-1e30)",
    }),
    edit(ONLINE_TOTAL, "total = total + (piece - higher).exp().sum(-1, keepdim=True)", {
        ONLINE_HIGHER: "higher = piece.amax(-1, keepdim=True)"}),
)  # fmt: skip

# What large scores are held against: zero or more, nothing, the first block, the first score, or the largest size.
OVERFLOWS = (
    edit(HIGHEST, "highest = torch.zeros_like(scores[..., :1])"),
    edit(ONLINE_HIGHER, "higher = torch.zeros_like(highest)", {HIGHEST: "highest = torch.zeros_like(scores[..., :1])"}),
    edit(ONLINE_HIGHER, "higher = highest", {HIGHEST: "highest = scores[..., :block].amax(-1, keepdim=True)"}),
    edit(ONLINE_HIGHER, "higher = highest", {HIGHEST: "highest = scores[..., :1]"}),
    edit(ONLINE_HIGHER, ONLINE_HIGHER.replace("piece.amax", "piece.abs().amax")),
)

# What a block holds is measured from its own maximum, and the factor that leads to the new one is missing.
BLOCKS_OWN = (
    "own = tile.amax(-1, keepdim=True)\n"
    "            fix, shares, new = (highest - higher).exp(), (tile - own).exp(), (own - higher).exp()"
)


def of_the_block(total, gathered):
    """Its shares with these factors, in the sum and in what is gathered."""
    lines = {
        TOTAL: TOTAL.replace("shares.sum(-1, keepdim=True)", f"shares.sum(-1, keepdim=True){total}"),
        GATHERED: GATHERED.replace("shares @ values", f"shares @ values{gathered}"),
    }
    return [edit(MASK, fill, {BOTH: BLOCKS_OWN} | lines | far) for fill in (MASK, FINITE) for far in ({}, FUTURE_TOO)]


OF_THE_BLOCK = (
    *of_the_block("", ""),
    edit(ONLINE_TOTAL, ONLINE_TOTAL.replace("(piece - higher)", "(piece - piece.amax(-1, keepdim=True))")),
)
ONE_OF_THE_BLOCK = (*of_the_block(" * new", ""), *of_the_block("", " * new"))

NOT_CARRIED = (
    edit(KEPT, "        answers", {SUMS: "sums.append((higher + total.log()).squeeze(-1))"}),
    edit(ONLINE_KEPT, ".sum(-1, keepdim=True)\n    highest = higher\n    parts"),
    edit(ONLINE_HIGHER, "higher = piece.amax(-1, keepdim=True)", {ONLINE_TOTAL: "total = (piece - higher).exp().sum(-1, keepdim=True)"}),
    edit(PARTS, PARTS.replace("(piece - highest)", "(piece - piece.amax(-1, keepdim=True))")),
    edit(PARTS, "last = piece.amax(-1, keepdim=True)\n    " + PARTS.replace("(piece - highest)", "(piece - last)")),
    edit(SUMS, "sums.append((tile.amax(-1, keepdim=True) + total.log()).squeeze(-1))"),
    # The block's own maximum kept in place of the running one.
    edit(KEPT, KEPT.replace("highest = higher", "highest = tile.amax(-1, keepdim=True)")),
    edit(ONLINE_KEPT, ONLINE_KEPT.replace("highest = higher", "highest = piece.amax(-1, keepdim=True)")),
    # Measured from the block's own maximum, with and without a factor for what came before.
    edit(ONLINE_TOTAL, "total = total + (piece - higher).exp().sum(-1, keepdim=True)", {
        ONLINE_HIGHER: "higher = piece.amax(-1, keepdim=True)"}),
    edit(ONLINE_HIGHER, "higher = piece.amax(-1, keepdim=True)", {
        ONLINE_KEPT: ".sum(-1, keepdim=True)\n        highest = torch.maximum(highest, higher)\n    parts"}),
    *(edit(MASK, fill, {HIGHER: "higher = tile.amax(-1, keepdim=True)",
                        KEPT: "            highest = torch.maximum(highest, higher)\n        answers"}) for fill in (MASK, FINITE)),
    # The weights made in the first pass, from the maximum so far.
    edit(HIGHEST, "made = []\n    " + HIGHEST, {
        ONLINE_KEPT: ".sum(-1, keepdim=True)\n        highest = higher\n        made.append((piece - highest).exp())\n    parts",
        WEIGHTS: "return torch.cat(made, dim=-1) / total"}),
)  # fmt: skip

DIVIDED_EACH = (
    edit(ANSWERS, "answers.append(gathered)", {GATHERED: "gathered = gathered * fix + shares @ values / total"}),
    edit(ANSWERS, "answers.append(gathered)", {GATHERED: "gathered = (gathered * fix + shares @ values) / total"}),
    edit(GATHERED, "gathered = gathered * fix + shares @ values / shares.sum(-1, keepdim=True).clamp(min=1e-30)"),
    edit(ANSWERS, "answers.append(gathered)", {
        GATHERED: "gathered = gathered + shares @ values / shares.sum(-1, keepdim=True).clamp(min=1e-30)"}),
    edit(PARTS, "parts = [(piece - piece.amax(-1, keepdim=True)).exp() for piece in scores.split(block, dim=-1)]\n"
         "    parts = [part / part.sum(-1, keepdim=True) for part in parts]"),
    edit(PARTS, "parts = [part / part.sum(-1, keepdim=True) for part in "
         "((piece - highest).exp() for piece in scores.split(block, dim=-1))]"),
    edit(ANSWERS, "answers.append(gathered)"),
    edit(PARTS, "parts = [(piece - highest).exp() for piece in scores.split(block, dim=-1)]"),
    # Divided in the first pass, by the sum so far.
    edit(HIGHEST, "made = []\n    " + HIGHEST, {
        ONLINE_KEPT: ".sum(-1, keepdim=True)\n        highest = higher\n        made.append((piece - highest).exp() / total)\n    parts",
        WEIGHTS: "return torch.cat(made, dim=-1)"}),
    edit(GATHERED, "gathered = gathered * fix + shares @ values / shares.sum(-1, keepdim=True)"),
    edit(ANSWERS, "answers.append(gathered)", {GATHERED: "gathered = gathered + tile.softmax(-1) @ values"}),
    # Means of the tiles' answers: of all, or pair by pair.
    *(edit(MASK, fill, {GATHERED: "gathered = gathered + tile.softmax(-1).nan_to_num() @ values",
                        ANSWERS: "answers.append(gathered / len(range(0, bottom, block_k)))"}) for fill in (MASK, FINITE)),
    *(edit(MASK, fill, {GATHERED: "answer = tile.softmax(-1).nan_to_num() @ values\n"
                        "            gathered = answer if left == 0 else (gathered + answer) / 2",
                        ANSWERS: "answers.append(gathered)"}) for fill in (MASK, FINITE)),
)  # fmt: skip

DIAGONAL_UNMASKED = (
    edit(MASK, ""),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left == top:\n"
         "                tile = tile.masked_fill(key > query, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left > top:\n"
         "                tile = tile.masked_fill(key > query, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left >= top:\n"
         "                tile = tile.masked_fill(key > query, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if top // block_q == left // block_k:\n"
         "                tile = tile.masked_fill(key > query, -math.inf)"),
    edit(MASK, ".masked_fill((key > query) & (left > top), -math.inf)", FUTURE_TOO),
    edit(MASK, ".masked_fill(key >= bottom, -math.inf)", FUTURE_TOO),
    edit(MASK, "", {LEFTS: "for left in range(0, top + 1, block_k):"}),
    # The same where the keys behind the last query of the block are cut off.
    edit(MASK, "", UP_TO_BOTTOM),
    *(
        edit(MASK, f".masked_fill((key > query) & ({where}), -math.inf)", UP_TO_BOTTOM)
        for where in ("left == top", "left > top", "left >= top", "top // block_q == left // block_k")
    ),
)  # fmt: skip

MASK_LOCAL = (
    edit(MASK, ".masked_fill(key - left > query - top, -math.inf)"),
    edit(MASK, ".masked_fill(key - left > query, -math.inf)"),
    edit(MASK, ".masked_fill(key > query - top, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left + keys.shape[-2] > top:\n"
         "                tile = tile.masked_fill(key - left > query - top, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left == top or left + block_k > top:\n"
         "                tile = tile.masked_fill(key - left > query - top, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left == top:\n"
         "                tile = tile.masked_fill(key - left > query - top, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if top // block_q == left // block_k:\n"
         "                tile = tile.masked_fill(key - left > query - top, -math.inf)"),
    edit(TILE, "tile = rows @ keys.transpose(-2, -1)\n            if left >= top:\n"
         "                tile = tile.masked_fill(key - left > query - top, -math.inf)"),
)  # fmt: skip

SKIPPED = (
    edit(LEFTS, "for left in range(0, top + 1, block_k):"),
    edit(LEFTS, "for left in range(0, max(top, 1), block_k):"),
    edit(KEYS, "if left > 0 and left + block_k > bottom:\n                continue\n            " + KEYS),
    edit(KEYS, KEYS + "\n            if left > 0 and left + keys.shape[-2] > bottom:\n                continue"),
    edit(KEYS, "if left // block_k > top // block_q:\n                continue\n            " + KEYS),
    edit(KEYS, "if left // block_k > top // block_q:\n                break\n            " + KEYS),
    edit(LEFTS, "for left in range(0, bottom - 1 if bottom > 1 else 1, block_k):"),
)

RAGGED = (
    edit(PIECES, "for piece in scores.split(block, dim=-1)[: scores.shape[-1] // block]:"),
    edit(PIECES, "for piece in scores[..., : max(scores.shape[-1] // block, 1) * block].split(block, dim=-1):"),
    edit(PARTS, PARTS.replace("in scores.split", "in scores[..., : scores.shape[-1] // block * block].split")),
    edit(PIECES, "for piece in scores.split(block, dim=-1)[: scores.shape[-1] // block]:", {
        PARTS: PARTS.replace("for piece in scores.split(block, dim=-1)", "for piece in scores.split(block, dim=-1)[: scores.shape[-1] // block]")}),
    edit(TOPS, "for top in range(0, T // block_q * block_q, block_q):"),
    edit(TOPS, "for top in range(0, max(T // block_q, 1) * block_q, block_q):"),
    edit(LEFTS, "for left in range(0, max(min(bottom, T // block_k * block_k), 1), block_k):"),
    edit(LEFTS, "for left in range(0, min(bottom, T // block_k * block_k), block_k):", {
        START: START.replace("0.0, 0.0", "torch.zeros_like(rows[..., :1]), torch.zeros_like(rows[..., :1] * v[..., :1, :])")}),
    edit(TOPS, "for top in range(0, T // block_q * block_q, block_q):", {
        RETURNED: "rest = T - T // block_q * block_q\n"
        "    answers.append(v.new_zeros(*v.shape[:-2], rest, v.shape[-1]))\n    sums.append(q.new_zeros(*q.shape[:-2], rest))\n"
        "    " + RETURNED}),
    # The same, but one block that is not full counts where there is no other.
    edit(TOPS, "for top in range(0, max(T // block_q, 1) * block_q, block_q):", {
        RETURNED: "rest = max(T - max(T // block_q, 1) * block_q, 0)\n"
        "    answers.append(v.new_zeros(*v.shape[:-2], rest, v.shape[-1]))\n    sums.append(q.new_zeros(*q.shape[:-2], rest))\n"
        "    " + RETURNED}),
    edit(PIECES, "for piece in scores[..., : max(scores.shape[-1] // block, 1) * block].split(block, dim=-1):", {
        WEIGHTS: "rest = max(scores.shape[-1] - max(scores.shape[-1] // block, 1) * block, 0)\n"
        "    known = torch.cat(parts, dim=-1)[..., : scores.shape[-1] - rest]\n"
        "    " + WEIGHTS.replace("torch.cat(parts, dim=-1)", "torch.nn.functional.pad(known, (0, rest))")}),
    edit(SIZES, "T, hd = q.shape[-2:]\n    k, v = k[..., : max(T // block_k, 1) * block_k, :], v[..., : max(T // block_k, 1) * block_k, :]\n"
         "    if k.shape[-2] < T:\n        bottom_of_keys = k.shape[-2]\n    else:\n        bottom_of_keys = T", {
             LEFTS: "for left in range(0, min(bottom, bottom_of_keys), block_k):"}),
)  # fmt: skip

WHOLE_BLOCKS = (
    edit(PIECES, "for piece in scores.unflatten(-1, (-1, block)).unbind(-2):"),
    edit(TOPS, "q.unflatten(-2, (-1, block_q))\n    " + TOPS),
    edit(TOPS, "k.unflatten(-2, (-1, block_k))\n    " + TOPS),
    edit(TOPS, "q.unflatten(-2, (-1, block_q)), k.unflatten(-2, (-1, block_k))\n    " + TOPS),
    *(
        edit(
            line,
            f"if {length} % {block} != 0:\n        raise {kind}(block)\n    {line}".replace("(block)", f"({block})"),
        )
        for kind in ("ValueError", "AssertionError")
        for line, length, block in (
            (PIECES, "scores.shape[-1]", "block"),
            (TOPS, "T", "block_q"),
            (TOPS, "T", "block_k"),
        )
    ),
    *(
        edit(TOPS, f"if T % block_q or T % block_k:\n        raise {kind}(T)\n    {TOPS}")
        for kind in ("ValueError", "AssertionError")
    ),
)

PADDING = "scores = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % block))"
PADDING_COUNTED = (
    edit(
        HIGHEST,
        f"length = scores.shape[-1]\n    {PADDING}\n    {HIGHEST}",
        {WEIGHTS: "return torch.cat(parts, dim=-1)[..., :length]"},
    ),
)

MATERIALISED = (
    edit(SIZES, SIZES + "\n    " + SQUARE.rstrip(), {MASK: ".masked_fill(~seen[top:bottom, left : left + block_k], -math.inf)"}),
    edit(SIZES, SIZES + "\n    " + ALL_SCORES.rstrip(), {TILE: TILE.replace(
        "(rows @ keys.transpose(-2, -1))", "square[..., top:bottom, left : left + block_k]")}),
    # Filled up to whole blocks; and as one long axis.
    edit(SIZES, SIZES + "\n    filled_q, filled_k = (torch.nn.functional.pad(x, (0, 0, 0, -T % block)) "
         "for x, block in ((q, block_q), (k, block_k)))\n    square = filled_q @ filled_k.transpose(-2, -1) / math.sqrt(hd)",
         {TILE: TILE.replace(AFTER, "square[..., top:bottom, left : left + keys.shape[-2]]")}),
    edit(SIZES, SIZES + "\n    places = torch.arange(T * T, device=q.device)\n    seen = places % T <= places // T",
         {MASK: ".masked_fill(~seen[query * T + key], -math.inf)"}),
    edit(RETURNED, "hidden = torch.arange(T, device=q.device) > torch.arange(T, device=q.device)[:, None]\n"
         "    square = (q @ k.transpose(-2, -1) / math.sqrt(hd)).masked_fill(hidden, -math.inf)\n"
         "    return square.softmax(-1) @ v, square.logsumexp(-1)"),
    edit(RETURNED, "hidden = torch.arange(T, device=q.device) > torch.arange(T, device=q.device)[:, None]\n"
         "    square = (q @ k.transpose(-2, -1) / math.sqrt(hd)).masked_fill(hidden, -math.inf)\n"
         "    return torch.cat(answers, dim=-2), square.logsumexp(-1)"),
    edit(RETURNED, "hidden = torch.arange(T, device=q.device) > torch.arange(T, device=q.device)[:, None]\n"
         "    square = (q @ k.transpose(-2, -1) / math.sqrt(hd)).masked_fill(hidden, -math.inf)\n"
         "    return online_softmax(square, block_k) @ v, torch.cat(sums, dim=-1)"),
)  # fmt: skip

# What a tile holds, as its own softmax, or measured from its own maximum.
OWN = "(tile - tile.amax(-1, keepdim=True).clamp(min=-1e30)).exp()"
WHOLE = "whole = torch.zeros_like(q)"

MORE = (
    ("keys_not_transposed", edit("rows @ keys.transpose(-2, -1)", "rows @ keys")),
    ("values_width", edit(START, START.replace("0.0, 0.0", "0.0, torch.zeros_like(rows)"))),
    ("values_width", edit(SIZES, f"{SIZES}\n    {WHOLE}", {
        RETURNED: "whole[:] = torch.cat(answers, dim=-2)\n    return whole, torch.cat(sums, dim=-1)"})),
    *at(GATHERED,
        ("tile_divided_each", "gathered = (gathered * fix + shares @ values) / total"),
        ("tile_divided_each", "gathered = gathered * fix + shares @ values / total"),
        ("tile_no_rescale", "gathered = (gathered + shares @ values) * fix")),
    *(("tile_divided_each", edit(ANSWERS, "answers.append(gathered)", {GATHERED: f"gathered = gathered * fix + {answer} @ values"}))
      for answer in ("tile.softmax(-1)", "tile.softmax(-1).nan_to_num()")),
    ("tile_divided_each", edit(ANSWERS, "answers.append(gathered / total / total)")),
    *at(PARTS,
        ("tile_divided_each", PARTS.replace("/ total", "/ total / total")),
        ("tile_divided_each", PARTS.replace("(piece - highest).exp()", "piece.softmax(-1)"))),
    *at(TOTAL,
        ("tile_no_rescale", "total = (total + shares.sum(-1, keepdim=True)) * fix"),
        ("softmax_wrong_axis", "total = total * fix + shares.sum()")),
    *(("tile_max_not_carried", edit(BOTH, f"fix, shares = {fix}, {OWN}")) for fix in ("1.0", "(highest - higher).exp()")),
    ("tile_max_not_carried", edit(HIGHER, "higher = tile.amax(-1, keepdim=True).clamp(min=-1e30)")),
    ("tile_max_not_carried", edit(ONLINE_HIGHER, "higher = piece.amax(-1, keepdim=True)")),
    ("tile_max_not_carried", edit(ONLINE_TOTAL, "total = total + (piece - piece.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)")),
    ("tile_no_rescale", edit(ONLINE_TOTAL, "total = (total + (piece - higher).exp().sum(-1, keepdim=True)) * (highest - higher).exp()")),
    *at(SUMS,
        ("tile_lse_without_max", "sums.append((total.log() - highest).squeeze(-1))"),
        ("tile_lse_without_log", "sums.append(total.squeeze(-1))")),
    *at(LEFTS,
        ("tile_skipped", "for left in range(0, bottom, block_q):")),
    *scales(
        *(("scale_rounded", f"/ {whole}(math.sqrt(hd))") for whole in ("int", "round", "math.ceil")),
        ("scale_rounded", "// math.sqrt(hd)")),
    *(("output_rounded", edit(RETURNED, RETURNED.replace("dim=-2)", f"dim=-2).round(decimals={n})"))) for n in (3, 2)),
    *(("output_rounded", edit(WEIGHTS, WEIGHTS.replace("dim=-1)", f"dim=-1).round(decimals={n})"))) for n in (3, 2)),
    *at(MASK,
        ("mask_weak_fill", ".masked_fill(key > query, -5.0)"),
        ("mask_plus_inf", ".masked_fill(key > query, 1e9)"),
        ("mask_reversed", ".masked_fill(key < query, -1e9)"),
        ("mask_added", " - (key > query).to(q.dtype)")),
    *at(SIZES,
        ("qkv_order", "k, v = v, k\n    " + SIZES),
        ("hard_coded_shape", "q, k, v = q[:1], k[:1], v[:1]\n    " + SIZES),
        *(("hard_coded_dtype", f"q, k, v = (t.{half}().to(t) for t in (q, k, v))\n    " + SIZES) for half in ("half", "bfloat16"))),
    ("hard_coded_dtype", edit(GATHERED, "gathered = (gathered * fix + shares @ values).half().to(q)")),
)  # fmt: skip
