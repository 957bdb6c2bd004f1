"""Wrong attempts that once got full marks: each changes the reference, and must fail its check.

A few rows are right variants of the reference, which must fail nothing.
"""

from types import ModuleType

import pytest

from manyheads.checks.runner import LocalRecordingRunner
from manyheads.course import Course
from manyheads.judge.run_hidden_checks import Catalogue

# a text that the reference has once, and its replacement; "" means the end of the reference
Changes = tuple[tuple[str, str], ...]


@pytest.fixture(scope="module")
def checks(real_course: Course) -> Catalogue:
    return Catalogue(real_course)


def apply_changes(source: str, changes: Changes) -> str:
    """Replace each old text, which occurs once. If it is empty, append the new one."""
    for old, new in changes:
        assert not old or source.count(old) == 1, (
            f"{old!r} stands {source.count(old)} times in the reference"
        )
        source = source.replace(old, new) if old else source + new
    return source


SDPA = "F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)"
BY_HAND = (
    "            scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)\n"
)
FAST, SLOW = "            fast = module(x)", "            by_hand = module(x)"
MEASURED = "(fast - by_hand).abs().max().item()"
MATH = "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):"
HIDDEN = "torch.utils._python_dispatch._disable_current_modes()"


def in_kernel(*around: str) -> Changes:
    """Return changes that compute the manual path by the fused function, within these contexts."""
    lines = ["            import torch.nn.attention, torch.utils._python_dispatch"]
    for depth, context in enumerate((MATH, *around)):
        lines.append(" " * (12 + 4 * depth) + context)
    lines.append(
        " " * (16 + 4 * len(around)) + "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"
    )
    lines.append("            y = self.attn_dropout(torch.ones_like(y[..., :1])) * y\n")
    return ((BY_HAND, "\n".join(lines)), *REST_OF_MANUAL)


REST_OF_MANUAL: Changes = (
    ("            scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)\n", ""),
    ("            y = self.attn_dropout(scores.softmax(dim=-1)) @ v  # (B, nh, T, hd)\n", ""),
)

OWN_MASK = "attn_mask=torch.ones(T, T, device=x.device).tril() > 0"
OF_THE_BLOCK = "attn_mask=torch.ones_like(self.visible).tril()[:T, :T]"
FAST_PATH = {
    "hands SDPA a mask that it makes": ((SDPA, SDPA.replace("is_causal=True", OWN_MASK)),),
    "makes a mask for the whole block": ((SDPA, SDPA.replace("is_causal=True", OF_THE_BLOCK)),),
    "makes the squares in one long row": ((SDPA, SDPA + " + 0 * torch.ones(T * T).sum()"),),
    "does what the other does": (("if self.flash:", "if False:"),),
}
WRITTEN_OUT = {
    "lets the mathematical backend do the work": in_kernel(),
    "lets it do the work where functions cannot be watched": in_kernel(
        "with torch._C.DisableTorchFunction():"
    ),
    "lets it do the work where no operation can be watched": in_kernel(f"with {HIDDEN}:"),
}
MEASURE = {
    "the size of rounding, from the output": "by_hand.abs().max().item() * 2e-16",
    "the size of rounding, from the weights": "float(module.proj.weight.abs().max()) * 1e-15",
    "the first sequence alone": "(fast - by_hand)[0].abs().max().item()",
    "the last sequence alone": "(fast - by_hand)[-1].abs().max().item()",
    "three times the root mean square": "3 * (fast - by_hand).square().mean().sqrt().item()",
    "the largest, signed": "(fast - by_hand).max().item()",
    "the largest of the other sign": "(by_hand - fast).max().item()",
    "the mean": "(fast - by_hand).abs().mean().item()",
    "nothing at all": "0.0",
    "one path against itself": "(fast - fast).abs().max().item()",
}
WEIGHTS, DROPPED = "scores.softmax(dim=-1)", "self.attn_dropout(scores.softmax(dim=-1))"
CHANNELS_OF_ONE: dict[str, Changes] = {
    "the values": ((DROPPED, WEIGHTS), ("weights @ v", "weights @ self.attn_dropout(v)")),
    "what the heads answer": (
        (DROPPED, WEIGHTS),
        ("self.proj(y)", "self.proj(self.attn_dropout(y))"),
    ),
}
CHANNELS_OF_TWO: dict[str, Changes] = {
    "the values": ((f"{DROPPED} @ v", f"{WEIGHTS} @ self.attn_dropout(v)"),),
    "what the heads answer": ((f"{DROPPED} @ v", f"self.attn_dropout({WEIGHTS} @ v)"),),
}
OTHER_INPUT = {
    "twice the input": "2 * x",
    "another input": "torch.randn_like(x)",
    "the input without its first token": "x[:, 1:]",
}


def call_changes(call: str) -> Changes:
    """Return changes that make both paths with this call instead of `module(x)`."""
    return ((FAST, FAST.replace("module(x)", call)), (SLOW, SLOW.replace("module(x)", call)))


MADE = "return CausalSelfAttention(n_embd, n_head, block_size=1024)"
REFUSES = (
    'if self.block_size < T:\n            raise ValueError(f"T = {T} tokens do not fit '
    'block_size = {self.block_size}")'
)
UNUSUAL = (
    ("        self.block_size = block_size\n", "        self.longest = block_size\n"),
    (
        REFUSES,
        (
            'if self.longest < T:\n            raise ValueError(f"T = {T} tokens, {self.longest} '
            'at most")'
        ),
    ),
)
GPT2 = {
    "a block of 512 under an unusual name": (*UNUSUAL, (MADE, MADE.replace("1024", "512"))),
    "a block of 2048 under an unusual name": (*UNUSUAL, (MADE, MADE.replace("1024", "2048"))),
    "a block of 512 that says 1024": (
        *UNUSUAL,
        (
            MADE,
            (
                f"{MADE.replace('return', 'made =').replace('1024', '512')}\n"
                "    made.block_size = 1024\n    return made"
            ),
        ),
    ),
    "a dropout": ((MADE, MADE.replace("1024", "1024, dropout=0.1")),),
    "other heads that say the right number": (
        ("        self.n_head = n_head\n", "        self.n_head = self.shared = n_head\n"),
        (
            "        q = q.view(B, T, self.n_head, self.head_dim)",
            "        q = q.view(B, T, self.shared, -1)",
        ),
        (
            "        k = k.view(B, T, self.n_head, self.head_dim)",
            "        k = k.view(B, T, self.shared, -1)",
        ),
        (
            "        v = v.view(B, T, self.n_head, self.head_dim)",
            "        v = v.view(B, T, self.shared, -1)",
        ),
        (
            MADE,
            (
                f"{MADE.replace('return', 'made =')}\n"
                "    made.shared //= 4 if n_head < 25 else 5\n    return made"
            ),
        ),
    ),
    "a class of its own that only describes itself": (
        (
            MADE,
            (
                "class Described(CausalSelfAttention):\n        def forward(self, x):\n"
                "            return 2 * super().forward(x)\n"
                f"    made = {MADE.removeprefix('return ')}\n"
                "    made.forward = lambda x: made.proj(x[:, :1024])\n    return made"
            ),
        ),
    ),
}
BEYOND = """

def right_up_to(most, count, function):
    def answer(*args, **kwargs):
        given = function(*args, **kwargs)
        return given if count(*args, **kwargs) <= most else 0.9 * given.double() + 0.05
    return answer
"""
TOKENS = {
    "attention_scores": ("simplified_attention", "attention_scores", "attention_weights", "attend"),
    "causal_mask": ("mask_scores", "causal_weights"),
    "self_attention": ("CausalAttention.forward",),
    "reshape_dance": ("merge_heads",),
    "weight_split": ("MultiHeadAttention.forward",),
    "mha_by_loop": ("mha_by_loop",),
    "fused_qkv": ("CausalSelfAttention.forward",),
    "sdpa_equivalence": ("CausalSelfAttention.forward",),
}
LONG = "lambda *a, **k: max([*a, *k.values()][-1 if len(a) + len(k) > 1 else 0].shape[-2:][:1])"
HEADS = {
    "reshape_dance": ("split_heads", "lambda x, n_head: n_head"),
    "weight_split": ("MultiHeadAttention.forward", "lambda self, x: self.num_heads"),
    "mha_by_loop": ("mha_by_loop", "lambda mha, x: mha.n_head"),
    "fused_qkv": ("CausalSelfAttention.forward", "lambda self, x: self.n_head"),
    "sdpa_equivalence": ("CausalSelfAttention.forward", "lambda self, x: self.n_head"),
}
NEW_MASK = "torch.ones(T, T, device=x.device).triu(1).bool()"
CAUSAL = {  # the first line of the work in forward, the mask that it reads, and a dropout
    "self_attention": ("        if self.context_length < T:", "~self.mask[:T, :T]", "self.dropout"),
    "weight_split": ("        if self.context_length < T:", "self.future[:T, :T]", "self.dropout"),
    "fused_qkv": ("        if self.block_size < T:", "~self.visible[:T, :T]", "self.attn_dropout"),
    "sdpa_equivalence": (
        "        if self.block_size < T:",
        "~self.visible[:T, :T]",
        "self.resid_dropout",
    ),
    "grouped_query_attention": ("        if self.block_size < T:", "~self.visible[:T, :T]", ""),
}


def insert_before(line: str, *lines: str) -> tuple[str, str]:
    """Return the change that inserts lines of a method before this line."""
    return line, "".join(f"        {new_line}\n" for new_line in lines) + line


def keeping_variants(exercise: str) -> dict[str, Changes]:
    """Return modules, by title, that keep a value of an earlier call."""
    start, mask, dropout = CAUSAL[exercise]
    keep_mask = f"self.kept = getattr(self, 'kept', {NEW_MASK})"
    of_first = keep_mask if exercise != "sdpa_equivalence" else f"if not self.flash: {keep_mask}"
    variants: dict[str, Changes] = {
        "the mask of the first call": (insert_before(start, of_first), (mask, "self.kept")),
        "the mask of the first call, cut where fewer tokens come": (
            insert_before(start, of_first),
            (mask, "self.kept[:T, :T]"),
        ),
        "the batch of the first call": (
            insert_before(start, "self.B = getattr(self, 'B', len(x))", "x = x[: self.B]"),
        ),
        "the batch of the first call, viewed": (
            insert_before(
                start, "self.B = getattr(self, 'B', len(x))", "x = x.view(self.B, -1, x.shape[-1])"
            ),
        ),
        "a count of its calls": (
            insert_before(
                start,
                "self.calls = getattr(self, 'calls', 0) + 1",
                "x = x if self.calls < 3 else 0.5 * x",
            ),
        ),
        "the most tokens so far": (
            insert_before(
                start,
                "self.most = max(getattr(self, 'most', 0), x.shape[1])",
                "x = x * x.shape[1] / self.most",
            ),
        ),
        "whether it was ever in training": (
            insert_before(
                start,
                "self.was = getattr(self, 'was', False) or self.training",
                "x = x if self.training or not self.was else 2 * x",
            ),
        ),
    }
    if dropout:
        variants |= {
            "a rate of 0 in eval mode": (
                insert_before(start, f"{dropout}.p = {dropout}.p if self.training else 0.0"),
            ),
            "a fifth of the rate in eval mode": (
                insert_before(start, f"{dropout}.p *= 1.0 if self.training else 0.2"),
            ),
            "dropout at work after training": (
                insert_before(
                    start,
                    "self.was = getattr(self, 'was', False) or self.training",
                    f"{dropout}.train(self.was)",
                ),
            ),
        }
    return variants


# One check asks all modules for this, so only two are tried with each way to keep something.
ALL_KEEPINGS = {"self_attention", "sdpa_equivalence"}
KEEPINGS_OF_EACH = {
    "the mask of the first call",
    "a count of its calls",
    "dropout at work after training",
}
# exercises with a single check of all dropout
DROPS = {"fused_qkv": "drops_weights", "sdpa_equivalence": "drops"}
ASKED = "        B, T_q, _ = x.shape\n"
NOT_FIRST = "getattr(self, 'kept', None)"
CROSS = {
    "the last keep that was given": (
        "keep = self.kept = keep if keep is not None else " + NOT_FIRST,
    ),
    "the first keep that was given": (
        f"self.kept = {NOT_FIRST} if {NOT_FIRST} is not None else keep",
        "keep = self.kept",
    ),
    "a keep that was given in training": (
        "self.kept = keep if self.training and keep is not None else " + NOT_FIRST,
        "keep = self.kept if keep is None and not self.training else keep",
    ),
    "the context of the first call": (
        "self.first = getattr(self, 'first', context)",
        "context = self.first if self.first.shape == context.shape else context",
    ),
    "the length of the first context": (
        "self.most = getattr(self, 'most', context.shape[1])",
        "context, keep = context[:, : self.most], None if keep is None else keep[:, : self.most]",
    ),
}
FITS = "keep = keep if keep is not None and keep.shape == context.shape[:2] else None"
CACHED = "        B, T, C = x.shape\n"
CACHE = {  # by the value that is kept: the check that fails, and the lines that keep it
    "the batch of the first call": (
        "starts_anew",
        "x = x[: getattr(self, 'size', len(x))]",
        "self.size = len(x)",
    ),
    "no more than 55 tokens": (
        "chunks",
        "cache = cache if cache is None else tuple(each[:, :, -55:] for each in cache)",
        (
            "self.block_size = 100 if cache is not None and cache[0].shape[2] == 55 else "
            "self.block_size"
        ),
    ),
    "nothing in training": ("chunks", "cache = None if self.training else cache"),
}
BY_QUERY = (
    "y = torch.cat([(q[:, :, t, None] @ k[:, :, : t + 1].mT / self.head_dim**0.5).softmax(-1) @ "
    "v[:, :, : t + 1] for t in range(T)], dim=2)"
)
DECOYS = {
    "beside another that is used": (
        f"_ = {SDPA}\n            if not self.training: {BY_QUERY}\n            else: y = _"
    ),
    "and taken times 0": (
        f"y = 0 * {SDPA}\n            if self.training and self.dropout: y = {SDPA}\n"
        f"            else: keep = y; {BY_QUERY}; y = y + keep"
    ),
    "for more than 60 tokens": (
        f"if T > 60 or self.training: y = {SDPA}\n            else: {BY_QUERY}"
    ),
    "for more than 20 tokens": (
        f"if T > 20 or self.training: y = {SDPA}\n            else: {BY_QUERY}"
    ),
    "for an odd number of tokens": (
        f"if T % 2 or self.training: y = {SDPA}\n            else: {BY_QUERY}"
    ),
    "for one batch": f"if B == 5 or self.training: y = {SDPA}\n            else: {BY_QUERY}",
}
OUT = "        return self.resid_dropout(self.proj(y))"
NOTED = (
    "NOTES.get((True, x.double().sum().item()), by_hand), NOTES.get((False, "
    "x.double().sum().item()), by_hand)"
)
NOTES = {
    "what forward last gave for it": (
        (
            OUT,
            (
                f"{OUT.replace('return', 'out =')}\n"
                "        NOTES[self.flash, x.double().sum().item()] = out.detach()\n"
                "        return out"
            ),
        ),
        (FAST, "            by_hand = torch.zeros(())"),
        (SLOW, f"            fast, by_hand = {NOTED}"),
    ),
    "what forward last gave": (
        (
            OUT,
            (
                f"{OUT.replace('return', 'out =')}\n"
                "        NOTES[x.shape, self.flash] = out.detach()\n        return out"
            ),
        ),
        (
            FAST,
            "            fast = NOTES[x.shape, True] if (x.shape, True) in NOTES else module(x)",
        ),
        (
            SLOW,
            (
                "            by_hand = NOTES[x.shape, False] if (x.shape, False) in NOTES else "
                "module(x)"
            ),
        ),
    ),
}
BYTES = {
    "the quotient of heads and width": "2 * n_layer * n_head * (n_head // head_dim) * T",
    "a third of the heads": "2 * n_layer * (n_head // 3) * head_dim * T",
    "two heads at the least": "2 * n_layer * max(n_kv_head, 2) * head_dim * T",
    "all heads where one is shared": (
        "2 * n_layer * (n_kv_head if n_kv_head > 1 else n_head) * head_dim * T"
    ),
    "an even width": "2 * n_layer * n_kv_head * (head_dim + head_dim % 2) * T",
    "one byte too many for three": (
        "2 * n_layer * n_kv_head * head_dim * T * 4 // (3 if bytes_per_number == 3 else 4)"
    ),
}
STARTS = "highest = torch.full_like(scores[..., :1], -math.inf)  # (..., 1)"
HIGHER = "higher = torch.maximum(highest, piece.amax(-1, keepdim=True))"
REFERENCE_POINTS: dict[str, Changes] = {
    "begins at 0": ((STARTS, "highest = torch.zeros_like(scores[..., :1])"),),
    "begins at −100": ((STARTS, STARTS.replace("-math.inf", "-100.0")),),
    "is the first score": ((STARTS, "highest = scores[..., :1]"), (HIGHER, "higher = highest")),
    "is never beyond 60": (
        (HIGHER, HIGHER.replace("keepdim=True)", "keepdim=True).clamp(-60, 60)")),
    ),
    "is the largest size": ((HIGHER, HIGHER.replace("piece.amax", "piece.abs().amax")),),
}
RIGHT_POINTS: dict[str, Changes] = {
    "is detached": ((HIGHER, HIGHER.replace("piece.amax", "piece.detach().amax")),),
    "begins far below": ((STARTS, STARTS.replace("-math.inf", "-1e30")),),
    "is the largest of all from the start": ((HIGHER, "higher = scores.amax(-1, keepdim=True)"),),
    "is a little above the largest": (
        (HIGHER, HIGHER.replace("keepdim=True)", "keepdim=True) + 3")),
    ),
}


def kept_rightly(exercise: str) -> Changes:
    """Return changes that keep a mask rightly: it is made again for another length."""
    start, mask, _ = CAUSAL[exercise]
    stale_condition = (
        "getattr(self, 'kept', None) is None or len(self.kept) != T or self.kept.device != x.device"
    )
    condition = (
        stale_condition
        if exercise != "sdpa_equivalence"
        else f"not self.flash and ({stale_condition})"
    )
    return (insert_before(start, f"if {condition}: self.kept = {NEW_MASK}"), (mask, "self.kept"))


def expected_check(exercise: str, changes: Changes) -> str:
    """Return the check that a module fails if it keeps a value between calls."""
    start, _, dropout = CAUSAL[exercise]
    keeps_dropout = bool(dropout) and any(dropout in new for old, new in changes if old == start)
    return DROPS.get(exercise, "again") if keeps_dropout else "again"


def up_to(most: int, count: str, name: str) -> Changes:
    """Return changes that leave a function right only if `count` of its arguments is <= `most`."""
    return (("", f"{BEYOND}\n{name} = right_up_to({most}, {count}, {name})\n"),)


# also fails with `measures` if the difference is 0 up to rounding
OF_NOTHING = "leaves_no_trace"
FUSED, TWO_PATHS, GQA, TILED, ANY = (
    "fused_qkv",
    "sdpa_equivalence",
    "grouped_query_attention",
    "tiled_attention",
    "*",
)
MASK_UP_TO = (
    "\nright = causal_mask\n\ndef causal_mask(T, device=None):\n"
    "    return right(T, device).clone().logical_or_(torch.tensor(T > 16))\n"
)
OWN_WEIGHTS = (
    "\ntorch.Tensor.by_sigmoid = lambda s: s.sigmoid() / s.sigmoid().sum(-1, keepdim=True)\n"
)
BY_SIGMOID: Changes = ((".softmax(dim=-1)", ".by_sigmoid()"), ("", OWN_WEIGHTS))
OF_VALUES = {
    "weight_split": "values",
    "kv_cache": "one_call",
    FUSED: "values",
    GQA: "values",
}  # it uses its scores, wrongly
# The start of the row's id, the exercise, the rest of the id, the changes, the checks that the
# attempt must fail (ANY: all but the next), and the checks that it may fail besides (ANY: any, and
# it fails at least one).
HOLES = [
    *(
        ("weights by a", e, "normalised sigmoid", BY_SIGMOID, expected_checks, ANY)
        for e, expected_checks in OF_VALUES.items()
    ),
    *(
        ("a dropout in place of weights of", FUSED, title, c, "drops_weights", "")
        for title, c in CHANNELS_OF_ONE.items()
    ),
    *(
        ("a dropout in place of weights of", TWO_PATHS, title, c, "drops", "")
        for title, c in CHANNELS_OF_TWO.items()
    ),
    *(
        ("a fast path that", TWO_PATHS, title, c, "paths_differ", "")
        for title, c in FAST_PATH.items()
    ),
    *(
        ("a manual path that", TWO_PATHS, title, c, "paths_differ", ANY)
        for title, c in WRITTEN_OUT.items()
    ),
    *(
        (
            f"a difference, by {call}, that is",
            TWO_PATHS,
            title,
            ((MEASURED, code), *call_changes(call)),
            "measures",
            OF_NOTHING,
        )
        for title, code in MEASURE.items()
        for call in ("module(x)", "module.forward(x)")
        if call == "module(x)" or "rounding" in title
    ),
    *(
        (
            "a difference of",
            TWO_PATHS,
            title,
            call_changes(f"module({x})"),
            "measures",
            "leaves_no_trace" * ("randn" in x),
        )
        for title, x in OTHER_INPUT.items()
    ),  # a random input depends on no argument, so it may fail this check as well
    *(
        (
            "GPT-2 with",
            FUSED,
            title,
            c,
            "gpt2_sizes gpt2_refuses" if "made.proj(x" in c[0][1] else "gpt2_sizes",
            "",
        )
        for title, c in GPT2.items()
    ),  # the last gives x for the weights that these checks load
    *(
        ("right up to sixteen tokens:", e, name, up_to(16, LONG, name), "", ANY)
        for e, names in TOKENS.items()
        for name in names
    ),
    ("right up to sixteen tokens:", "causal_mask", "a mask", (("", MASK_UP_TO),), "", ANY),
    *(
        ("right up to seven heads:", e, name, up_to(7, count, name), "", ANY)
        for e, (name, count) in HEADS.items()
    ),
    # The kept value is a tensor that does not move with the module.
    *(
        ("an instance that keeps", e, title, c, expected_check(e, c), "moves")
        for e in CAUSAL
        for title, c in keeping_variants(e).items()
        if e in ALL_KEEPINGS or title in KEEPINGS_OF_EACH
    ),
    *(
        (
            "an instance that keeps",
            "cross_attention",
            title,
            (insert_before(ASKED, *lines, FITS),),
            "again",
            "moves",
        )
        for title, lines in CROSS.items()
    ),
    *(
        ("an instance that keeps", "kv_cache", title, (insert_before(CACHED, *lines),), lost, "")
        for title, (lost, *lines) in CACHE.items()
    ),
    *(
        (
            "SDPA that is called",
            TWO_PATHS,
            title,
            ((f"y = {SDPA}", fast),),
            "paths_differ",
            f"measures {OF_NOTHING}",
        )
        for title, fast in DECOYS.items()
    ),
    *(
        (
            "a difference read off",
            TWO_PATHS,
            title,
            (*c, ("", "\nNOTES = {}\n")),
            "measures",
            OF_NOTHING,
        )
        for title, c in NOTES.items()
    ),
    *(
        (
            "bytes that count",
            GQA,
            title,
            (("2 * n_layer * n_kv_head * head_dim * T", numbers),),
            "cache_bytes",
            "",
        )
        for title, numbers in BYTES.items()
    ),
    (
        "a length without",
        "kv_cache",
        "the new",
        (("past + T >", "past >= self.block_size or T >"),),
        "refuses_too_long",
        "",
    ),
    (
        "a name that is",
        FUSED,
        "a part of theirs",
        (("size not in sizes", "size not in str(sizes)"),),
        "gpt2_refuses",
        "",
    ),
    (
        "a scale that is right for",
        GQA,
        "heads of four channels",
        (("/ math.sqrt(self.head_dim)", "/ (self.head_dim ** 1 / 2)"),),
        "both_ends values",
        ANY,
    ),
    *(
        ("a running maximum that", TILED, title, c, "online_values", "")
        for title, c in REFERENCE_POINTS.items()
    ),
    (
        "sums as wide as",
        TILED,
        "q",
        (("f), 0.0, 0.0", "f), 0.0, 0 * rows"),),
        "tiled_shape values",
        "",
    ),
    (
        "a scale by the width of",
        TILED,
        "v",
        (("/ math.sqrt(hd)", "/ math.sqrt(v.shape[-1])"),),
        "values",
        "",
    ),
    (
        "pairs that are not joined by",
        "rotary",
        "rotate",
        (("turned.flatten(-2)", "turned"),),
        "rotate",
        (
            "base decoding device differences dtype gradients leading_dimensions "
            "leaves_its_arguments positions rotary_scores same_scores shapes"
        ),
    ),
    *(("a running maximum that", TILED, title, c, "", "") for title, c in RIGHT_POINTS.items()),
    *(
        ("a mask that is kept and made anew", e, "for another length", kept_rightly(e), "", "")
        for e in CAUSAL
    ),
]


@pytest.mark.parametrize(
    ("exercise", "changes", "must_fail", "may_fail"),
    [
        pytest.param(exercise, *row, id=f"{exercise}: {prefix} {title}")
        for prefix, exercise, title, *row in HOLES
    ],
)
def test_a_changed_reference_fails_the_listed_checks(
    real_course, checks, exercise, changes, must_fail, may_fail
) -> None:
    course_exercise = next(e for e in real_course.exercises if e.id == exercise)
    module = ModuleType("attempt")
    source = apply_changes(course_exercise.solution.read_text(encoding="utf-8"), changes)
    exec(compile(source, "attempt.py", "exec"), vars(module))
    outcomes = checks.run(
        course_exercise,
        LocalRecordingRunner(vars(module)),
        checks.reference(course_exercise),
        b"holes",
        exercise,
    )
    assert not any(outcome.fault for outcome in outcomes)
    failed = {outcome.id for outcome in outcomes if outcome.outcome != "passed"}
    if must_fail == ANY:
        required = {o.id for o in outcomes if o.outcome != "skipped"} - {*may_fail.split()}
    else:
        required = {*must_fail.split()}
    assert failed >= required
    if may_fail == ANY:
        assert failed
    else:
        assert failed <= {*required, *may_fail.split()}
