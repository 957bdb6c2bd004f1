"""Edits of the steps of attention: wrong texts in place of the reference's.

They fit three references, which write these steps alike: the fused projection, its fast path, and
grouped queries. An edit replaces as little text as it can, so that most pairs of edits combine.
"""

from itertools import permutations, product

from manyheads.checks import Mutant

from ._module_edits import PROJ, REFUSED, insert_after
from ._mutants import mutants


def combined_edits(id_, *choices):
    """Return a mutant for each combination of edits, one of each list. {} changes nothing."""
    listed = []
    for edits in product(*choices):
        changes = {}
        for edit in edits:
            changes |= edit
        listed.append(Mutant(id_, changes))
    return listed


def replacements(old, *texts):
    """Return an edit for each of these texts in place of the same one."""
    return [{old: new} for new in texts]


# Ways to split q, k or v, {0}, from (B, T, C) into (B, nh, T, hd).
VIEWED = "{0}.view(B, T, self.n_head, self.head_dim)"
SPLIT = f"{VIEWED}.transpose(1, 2)"  # the text of the reference
TO_HEADS = ".reshape(B, self.n_head, T, self.head_dim)"
STRAIGHT = f"{{0}}{TO_HEADS}"
INTERLEAVED = "{0}.view(B, T, self.head_dim, self.n_head).permute(0, 3, 1, 2)"
SIZES_SWAPPED = "{0}.view(B, T, self.head_dim, self.n_head).transpose(1, 2)"
# In these, the axes that are reshaped have another order than the numbers.
OUT_OF_ORDER = (
    "{0}.reshape(B, self.n_head, self.head_dim, T).transpose(2, 3)",
    f"{{0}}.transpose(1, 2){TO_HEADS}",
    f"{VIEWED}.transpose(2, 3){TO_HEADS}",
    f"{VIEWED}.transpose(1, 3){TO_HEADS}",
    f"{SPLIT}.reshape(B, T, self.n_head, self.head_dim).transpose(1, 2)",
)
HEADS_BEFORE_BATCH = "{0}.reshape(self.n_head, B, T, self.head_dim).transpose(0, 1)"
SOME = ("v", "q", "k", "qk", "qv", "kv")


def split_edit(text, tensors="qkv"):
    """Return the edit that splits these tensors in another way."""
    return {SPLIT.format(tensor): text.format(tensor) for tensor in tensors}


def splits(id_, *texts, tensors=("qkv",)):
    """Return mutants that split in each of these ways, each of these groups of tensors."""
    return mutants(id_, *(split_edit(text, group) for text in texts for group in tensors))


# Ways to join (B, nh, T, hd) to (B, T, C).
JOINED = "y.transpose(1, 2).reshape(B, T, C)"  # the text of the reference
TO_CHANNELS = ".reshape(B, T, C)"
JOINED_STRAIGHT = {JOINED: f"y{TO_CHANNELS}"}
FLATTENED = {JOINED: "y.transpose(1, 2).flatten(2)"}
HEADS_LAST = f"y.permute(0, 2, 3, 1){TO_CHANNELS}"
WRONG_AXES = (
    f"y.permute(0, 1, 3, 2){TO_CHANNELS}",
    HEADS_LAST,
    f"y.permute(0, 3, 1, 2){TO_CHANNELS}",
    f"y.permute(0, 3, 2, 1){TO_CHANNELS}",
)
AVERAGED = ("y.mean(1)", "y.sum(1)")
REPEATED = [f"{average}.repeat(1, 1, self.n_head)" for average in AVERAGED]
AVERAGES = (
    *AVERAGED,
    *REPEATED,
    *(f"{average}.repeat_interleave(self.n_head, -1)" for average in AVERAGED),
    *(f"nn.functional.pad({average}, (0, C - self.head_dim))" for average in AVERAGED),
)
REVERSED = [
    f"y.{moved}.transpose(1, 2){TO_CHANNELS}" for moved in ("flip(1)", "roll(1, 1)", "roll(-1, 1)")
]
NOT_CONTIGUOUS = (
    "y.transpose(1, 2).view(B, T, C)",
    "y.permute(0, 2, 3, 1).view(B, T, C)",
    "y.contiguous().transpose(1, 2).view(B, T, C)",
)
MIXED_WITH_BATCH = (
    f"y.permute(1, 2, 0, 3){TO_CHANNELS}",
    f"y.transpose(0, 1){TO_HEADS}.transpose(1, 2){TO_CHANNELS}",
    f"y.reshape(self.n_head, B, T, self.head_dim).permute(1, 2, 0, 3){TO_CHANNELS}",
)
SIZES_OF_TRANSPOSED = "y.transpose(1, 2).reshape(B, self.n_head, T * self.head_dim)"

# Ways to cut the fused projection into q, k and v, each (B, T, C).
CUT = "self.qkv(x).split(C, dim=-1)"  # the text of the reference
ORDERS = list(permutations(range(3)))[1:]
IN_OTHER_ORDERS = [f"[{CUT}[i] for i in {order}]" for order in ORDERS]
TO_THREE = ".reshape(3, B, T, C)"
PER_HEAD = f"self.qkv(x).view(B, T, self.n_head, 3, self.head_dim).movedim(3, 0){TO_THREE}"
THREE_STRAIGHT = (
    f"self.qkv(x).reshape(3, B, self.n_head, T, self.head_dim).transpose(2, 3){TO_THREE}"
)
HEADS_BEFORE_TOKENS = (
    f"self.qkv(x).reshape(B, self.n_head, T, 3, self.head_dim).permute(3, 0, 2, 1, 4){TO_THREE}"
)
BY_THREE = "self.qkv(x).view(B, T, 3, self.n_head, self.head_dim)"
LINEAR, WEIGHT = "nn.functional.linear", "self.qkv.weight"

# How the scale goes wrong: the misconception, and the text in place of the right one.
SCALE = " / math.sqrt(self.head_dim)"  # the text of the reference
SCALES = {
    "missing": ("scale_missing", ""),
    "sqrt_c": ("scale_sqrt_c", " / math.sqrt(C)"),
    "hd": ("scale_no_sqrt", " / self.head_dim"),
    "times_sqrt_hd": ("scale_multiplied", " * math.sqrt(self.head_dim)"),
    "times_hd": ("scale_multiplied", " * self.head_dim"),
    "times_c": ("scale_multiplied", " * C"),
    "half_of_one_over_hd": ("scale_precedence", " / self.head_dim**1 / 2"),
    "one_over_half_hd": ("scale_precedence", " / (self.head_dim / 2)"),
    "one_over_half_hd_floored": ("scale_precedence", " / max(self.head_dim // 2, 1)"),
    "times_half_hd": ("scale_precedence", " * self.head_dim**1 / 2"),
    "c_over_root_nh": ("scale_precedence", " / (C / self.n_head**0.5)"),
    "c_over_root_nh_floored": ("scale_precedence", " / (C // self.n_head**0.5)"),
    "root_of_c_over_root_nh": ("scale_precedence", " / math.sqrt(C // self.n_head**0.5)"),
    "sqrt_heads": ("scale_sqrt_heads", " / math.sqrt(self.n_head)"),
    "sqrt_tokens": ("scale_sqrt_tokens", " / math.sqrt(T)"),
    "sqrt_block": ("scale_sqrt_tokens", " / math.sqrt(self.block_size)"),
    "sqrt_3c": ("scale_sqrt_c", " / math.sqrt(3 * C)"),
    "c": ("scale_c", " / C"),
    "heads": ("scale_heads", " / self.n_head"),
    "tokens": ("scale_tokens", " / T"),
    "block": ("scale_tokens", " / self.block_size"),
    "three_times": ("scale_twice", " / self.head_dim**1.5"),
    "sqrt_batch": ("scale_wrong_axis", " / math.sqrt(B)"),
    "sqrt_batch_and_heads": ("scale_wrong_axis", " / math.sqrt(B * self.n_head)"),
    "sqrt_sets": ("scale_sqrt_heads", " / math.sqrt(self.n_kv_head)"),
    "sqrt_group": ("scale_sqrt_heads", " / math.sqrt(group)"),
    "sqrt_kv_width": ("scale_sqrt_c", " / math.sqrt(self.n_kv_head * self.head_dim)"),
    "sqrt_c_over_sets": ("scale_sqrt_c", " / math.sqrt(C / self.n_kv_head)"),
}
PRECEDENCE = list(SCALES)[6:13]
FROM_BATCH = [SCALES[name][1] for name in ("sqrt_batch", "sqrt_batch_and_heads")]
ROUNDED = [
    f" / {rounding}(math.sqrt(self.head_dim))" for rounding in ("math.floor", "round", "math.ceil")
]
CONSTANTS = (0.125, 0.5, 0.25, 8.0, 64.0, 1 / 64, 1 / 3, 3**-0.5, 768**-0.5, 1 / 768)


def scales(*names):
    """Return a mutant for each of these scales, with the misconception behind it."""
    return [Mutant(id_, text, replacing=SCALE) for id_, text in map(SCALES.get, names)]


def factors(id_, *numbers):
    """Return mutants that multiply the scores by these numbers."""
    return mutants(id_, *(f" * {number}" for number in numbers), replacing=SCALE)


def late_scale(factor):
    """Return the edit that scales the weights in place of the scores."""
    return {SCALE: "", SOFTMAX: f"({SOFTMAX}{factor})"}


# Ways to turn scores into weights.
SOFTMAX = "scores.softmax(dim=-1)"  # the text of the reference
SCALED_LATER = {SCALE: "", SOFTMAX: f"(scores{SCALE}).softmax(dim=-1)"}  # once they are hidden
LATE_SCALES = (late_scale(SCALE), {SOFTMAX: f"({SOFTMAX}{SCALE})"})
OVER_HEADS, OVER_BATCH, OVER_QUERIES = replacements(
    SOFTMAX, "scores.softmax(dim=1)", "scores.softmax(dim=0)", "scores.softmax(dim=-2)"
)
OVER_BATCH_AND_HEADS = {SOFTMAX: "scores.flatten(0, 1).softmax(dim=0).view_as(scores)"}
OVER_ONE_HEAD = (
    "scores.transpose(0, 1).flatten(1).softmax(dim=-1).view(self.n_head, B, T, T).transpose(0, 1)"
)
AS_NUMBERS = {SOFTMAX: f"{SOFTMAX}.nan_to_num(0.0)"}
EXPONENTIALS = "(scores - scores.amax(-1, keepdim=True)).exp()"
ZERO_FILLED = "scores.masked_fill(scores.isneginf(), 0.0)"
NO_SOFTMAX, DIVIDED_BY_SUM, SIGMOID = replacements(
    SOFTMAX, "scores", "(scores / scores.sum(-1, keepdim=True))", "scores.sigmoid()"
)

# Ways to hide scores.
MASK, FILL = "self.visible[:T, :T]", "-math.inf"  # texts of the reference
HIDDEN = f"scores.masked_fill(~{MASK}, {FILL})"
NO_MASK, INVERTED = {HIDDEN: "scores"}, {"masked_fill(~": "masked_fill("}
INF = 'float("-inf")'  # not FILL, which another edit may replace


def fill_edits(*numbers):
    """Return edits that fill in these numbers."""
    return replacements(FILL, *map(str, numbers))


def masking_edits(*texts):
    """Return edits that hide scores in these ways."""
    return replacements(HIDDEN, *texts)


def hidden_as(*texts):
    """Return edits that put these numbers in place of the hidden scores."""
    return masking_edits(*(f"torch.where({MASK}, scores, {text})" for text in texts))


def added_mask_edits(*numbers):
    """Return edits that add these numbers to the hidden scores."""
    return hidden_as(*(f"scores + {number}" for number in numbers))


def after_softmax(change):
    """Return the edit that changes the weights in place of the scores."""
    return NO_MASK | {SOFTMAX: f"{SOFTMAX}{change}"}


LOW_FILL, ZERO_FILL = fill_edits(-1e9, 0.0)
AFTER_SOFTMAX = after_softmax(f".masked_fill(~{MASK}, 0.0)")
WEIGHTS_HIDDEN = f"{SOFTMAX}.masked_fill(~{MASK}, {INF})"
ADD_SEEN, ADD_HIDDEN = masking_edits(f"scores + {MASK}", f"scores + ~{MASK}")
LOW_FILLS = (
    *hidden_as("scores.min() - 1"),
    *fill_edits("float(scores.detach().min()) - 1.0"),
    *hidden_as(
        "scores.amin(-1, keepdim=True) - 1",
        "scores.min()",
        "-scores.abs().max() - 1",
        "scores.amin((0, -2, -1), keepdim=True) - 1",
        "scores.detach().amin((0, -2, -1), keepdim=True) - 1",
    ),
)
# The sweep of a parametric mutant covers all other fills. It lacks some of these, because its calls
# hardly tell them apart. −1 added is a mask of ones: mask_added.
WEAK = (-10.0, -1.0, -5.0, -8.0, -9.0, -12.0, -13.0, -14.0, -15.0, -16.0, -20.0, -40.0)
WEAK_ADDED = (-10.0, *WEAK[2:])

# Ways to make the mask, and to keep it.
TRIL = ".tril()"  # the text of the reference
MADE = f"torch.ones(block_size, block_size, dtype=torch.bool){TRIL}"
BUFFER = 'self.register_buffer("visible", visible, persistent=False)'
REVERSED_MASK, WITHOUT_SELF, PEEKS_ONE, PEEKS_TWO, PEEKS_THREE = replacements(
    TRIL, ".triu()", ".tril(-1)", ".tril(1)", ".tril(2)", ".tril(3)"
)
WITHOUT_SELF_BUT_FIRST = {TRIL: ".tril(-1)\n        visible[0, 0] = True"}
MADE_IN_FORWARD = "torch.ones(T, T, dtype=torch.bool, device=x.device).tril()"


def made_in_forward(*texts):
    """Return edits that make the mask in forward, and no buffer."""
    return [{MADE: "None", MASK: text} for text in texts]


MADE_FOR_BATCH, MADE_FOR_HEADS = made_in_forward(
    MADE_IN_FORWARD.replace("T, T", "B, B"),
    MADE_IN_FORWARD.replace("T, T", "self.n_head, self.n_head"),
)
WHOLE_MASK, CUT_TO_BATCH = replacements(MASK, "self.visible", "self.visible[:B, :B]")
KEPT_FROM_FIRST = f'vars(self).setdefault("first_mask", {MADE_IN_FORWARD})'

# Heads and tokens are not transposed: with the mask cut to the scores, left out, whole, or cut to
# the tokens.
NOT_TRANSPOSED = split_edit(VIEWED)
NOT_TRANSPOSED_AT_ALL = NOT_TRANSPOSED | {JOINED: f"y{TO_CHANNELS}"}
CUT_TO_SCORES = {MASK: "self.visible[: self.n_head, : self.n_head]"}
OVER_HEADS_OF_TOKENS = (
    NOT_TRANSPOSED_AT_ALL | CUT_TO_SCORES,
    NOT_TRANSPOSED_AT_ALL | NO_MASK,
    NOT_TRANSPOSED | CUT_TO_SCORES,
    NOT_TRANSPOSED | NO_MASK,
    NOT_TRANSPOSED_AT_ALL | WHOLE_MASK,
    NOT_TRANSPOSED_AT_ALL,
)
OTHER_VALUES = ("k", SPLIT.format("x"), "q")
SHARED_WEIGHTS = replacements(" @ v", ".mean(1, keepdim=True) @ v", ".sum(1, keepdim=True) @ v")

# The text of the reference that compares the lengths.
TOO_LONG = "self.block_size < T"


def hard_coded(*statements):
    """Return mutants that overwrite sizes of the input by each of these statements."""
    return mutants("hard_coded_shape", *(insert_after(REFUSED, text) for text in statements))


def heads_hard_coded(number):
    """Return the edit by which there are always so many heads."""
    return insert_after(PROJ, f"self.n_head, self.head_dim = {number}, n_embd // {number}")


def width_hard_coded(number):
    """Return the edit by which heads are always so wide."""
    return insert_after(PROJ, f"self.n_head, self.head_dim = n_embd // {number}, {number}")


def einsum(weights):
    """Return the edit that mixes the values by a function that stretches sizes of 1.

    Args:
        weights: the text of the weights.
    """
    return {f"{weights} @ v": f'torch.einsum("bhqk,bhkd->bhqd", {weights}, v)'}


def gradient_cuts(joined, out, *layers):
    """Return for each step the edit that detaches its result.

    Args:
        joined: the text of the argument of proj.
        out: the text of the answer.
        layers: the texts of the layers that x goes through.
    """
    return {
        "x": {f"{layer}(x)": f"{layer}(x.detach())" for layer in layers},
        "W": {f"{layer}(x)": f"{LINEAR}(x, {layer}.weight.detach())" for layer in layers},
        "q": {"scores = q": "scores = q.detach()"},
        "k": {"k.transpose(-2": "k.detach().transpose(-2"},
        "v": {" @ v": " @ v.detach()"},
        "scores": {"scores = scores": "scores = scores.detach()"},
        "weights": {".softmax(dim=-1)": ".softmax(dim=-1).detach()"},
        "y": {f"self.proj({joined})": f"self.proj({joined}.detach())"},
        "proj": {f"self.proj({joined})": f"{LINEAR}({joined}, self.proj.weight.detach())"},
        "out": {out: f"{out}.detach()"},
    }


def gradients_cut(steps, *without):
    """Return mutants that cut the gradient at one step, and at two.

    Args:
        steps: the edit for each step.
        without: steps of which no mutant is alone.
    """
    single = [edit for step, edit in steps.items() if step not in without]
    pairs = (steps["q"] | steps["k"], steps["k"] | steps["v"], steps["W"] | steps["proj"])
    return mutants("gradient_cut", *single, *pairs)
