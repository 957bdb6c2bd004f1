"""Wrong attempts at the causal mask, each an edit of the reference.

causal_weights calls the two functions above it, so an edit of one of these changes both. If one of
these alone is wrong, a second change writes the right text into causal_weights.
"""

from manyheads.checks import Mutant

from ._mutants import (
    FILLS_TRIED,
    mutants,
)

# Texts of the reference.
MASK = "torch.ones(T, T, dtype=torch.bool, device=device).tril()"
HIDDEN = 'scores.masked_fill(~mask, float("-inf"))'
MASK_MADE = "causal_mask(scores.shape[-1], device=scores.device)"  # in causal_weights
SCORES_HIDDEN = "mask_scores(scores, mask)"
SOFTMAX = "torch.softmax("
AXIS = "dim=-1"
SIZE = "scores.shape[-1]"
FIRST_LINE = "mask = "  # of causal_weights
SHARED = f"return {SOFTMAX}{SCORES_HIDDEN}, {AXIS})"
AFTER_SOFTMAX = f"{SCORES_HIDDEN}, {AXIS})"
DEF_MASK = "def causal_mask(T: int, device: torch.device | str | None = None)"
DEF_HIDE = "def mask_scores(scores: torch.Tensor, mask: torch.Tensor)"
DEF_WEIGHTS = "def causal_weights(scores: torch.Tensor)"

RIGHT_MASK = {MASK_MADE: MASK.replace("T, T", f"{SIZE}, {SIZE}").replace("=d", "=scores.d")}
RIGHT_HIDING = {SCORES_HIDDEN: HIDDEN}
ON_CPU = "(scores + torch.zeros(scores.shape, dtype=scores.dtype))"
WEIGHTS_ON_CPU = {
    FIRST_LINE: f"scores = {ON_CPU}\n    {FIRST_LINE}",
    MASK_MADE: f'causal_mask({SIZE}, device="cpu")',
}


def masks(id_, *texts):
    """Return mutants with another mask: in both functions, in causal_weights, in causal_mask.

    In each text {0} stands for the right mask.
    """
    listed = []
    for text in texts:
        wrong_mask = {MASK: text.format(MASK)}
        listed += [wrong_mask, {MASK_MADE: text.format(MASK_MADE)}, wrong_mask | RIGHT_MASK]
    return mutants(id_, *listed)


def hidings(text):
    """Return edits that hide scores in this way, in the same three places."""
    return {HIDDEN: text}, {SCORES_HIDDEN: text}, {HIDDEN: text} | RIGHT_HIDING


def hides(id_, *texts):
    listed = []
    for text in texts:
        listed += hidings(text)
    return mutants(id_, *listed)


def fill_text(number):
    return f"scores.masked_fill(~mask, {number})"


def added_mask_text(number):
    return f"scores + (~mask).to(scores.dtype) * {number}"


def shares(id_, *texts):
    """Return mutants that turn hidden scores s into something else than a softmax."""
    texts = [f"(lambda s, dim: {text})(" for text in texts]
    return mutants(id_, *texts, replacing=SOFTMAX)


def axes(id_, *numbers):
    return mutants(id_, *(f"dim={axis}" for axis in numbers), replacing=AXIS)


def scales(id_, *divisors):
    texts = [f"scores = scores / {divisor}\n    {FIRST_LINE}" for divisor in divisors]
    return mutants(id_, *texts, replacing=FIRST_LINE)


def only_mask(id_, *texts):
    """Return mutants of causal_mask alone; {0} stands for its right answer."""
    return mutants(id_, *({MASK: text.format(MASK)} | RIGHT_MASK for text in texts))


def only_hiding(text):
    """Return an edit of mask_scores alone; {0} stands for its right answer."""
    return {f"return {HIDDEN}": f"return {text.format(HIDDEN)}"} | RIGHT_HIDING


def with_weights(text):
    """Return an edit by which causal_weights returns this; {0} stands for its right answer."""
    return {SHARED: f"return {text.format(SHARED.removeprefix('return '))}"}


def scores_first(text):
    """Return an edit that replaces the scores at the beginning of causal_weights."""
    return {FIRST_LINE: f"scores = {text}\n    {FIRST_LINE}"}


def written_into(statement):
    """Return an edit by which mask_scores changes its argument."""
    lines = f"out = {HIDDEN}\n    {statement}\n    return out"
    return {f"return {HIDDEN}": lines} | RIGHT_HIDING


def answers(text):
    """Return mutants with another type of answer, one for each function."""
    return (
        *only_mask("interface", text),
        Mutant("interface", only_hiding(text)),
        Mutant("interface", with_weights(text)),
    )


def axes_unpacked(number):
    """Return a text that reads the sizes of exactly so many axes."""
    message = f"not enough values to unpack (expected {number}, got {{scores.dim()}})"
    return f'if scores.dim() != {number}:\n        raise ValueError(f"{message}")\n    {FIRST_LINE}'


def mask_of_size(number):
    return {MASK: MASK.replace("T, T", f"{number}, {number}")}


SCORES_CHANGED = written_into("scores.copy_(out.detach())")
WEIGHTS_CHANGED = {
    FIRST_LINE: (
        f"given, scores, mask = scores, scores.clone(), {RIGHT_MASK[MASK_MADE]}\n"
        f'    given.masked_fill_(~mask, float("-inf"))\n    {FIRST_LINE}'
    )
}
# −1 added is a mask of ones: mask_added
WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -11.0, -12.0, -13.0, -14.0)
# sizes of a mask that fits no other size, which is two mistakes at once
ONE_SIZE = (1024, 256, 64, 16, 8, 6, 4, 10, 12, 32, 128)
MASKS_OF_ONE_SIZE = [MASK_MADE.replace(SIZE, str(size)) for size in ONE_SIZE]
SELF_EXCLUDED = {MASK: f"{MASK}.tril(-1)"}
SELF_EXCLUDED_IN_WEIGHTS = {MASK_MADE: f"{MASK_MADE}.tril(-1)"}
# Changes that keep a row finite if it sees no key.
ROWS_FINITE = (
    with_weights("{0}.nan_to_num(0.0)"),
    {HIDDEN: fill_text(-1e9)},
    {HIDDEN: added_mask_text(-1e9)},
)

MUTANTS = (
    *masks("mask_missing", "torch.ones_like({0})"),
    *hides("mask_missing", "scores + 0.0"),
    *masks("mask_reversed", "~{0}", "{0}.mT"),
    *hides("mask_reversed", 'scores.masked_fill(mask, float("-inf"))'),
    Mutant("mask_reversed", "scores.masked_fill(mask, -1e9)", replacing=HIDDEN),
    Mutant("mask_reversed", "scores.masked_fill(mask, -1e9)", replacing=SCORES_HIDDEN),
    Mutant("mask_reversed", {MASK: f"~{MASK}", HIDDEN: HIDDEN.replace("~", "")}),
    *masks("mask_excludes_self", "{0}.tril(-1)", "torch.cat([{0}[:1], {0}.tril(-1)[1:]])"),
    *mutants("mask_excludes_self", *(SELF_EXCLUDED | finite for finite in ROWS_FINITE)),
    *mutants("mask_excludes_self", *(SELF_EXCLUDED_IN_WEIGHTS | finite for finite in ROWS_FINITE)),
    *masks("mask_peeks_one", "torch.ones_like({0}).tril(1)"),
    *masks("mask_peeks_ahead", "torch.ones_like({0}).tril(2)", "torch.ones_like({0}).tril(3)"),
    *hides("mask_zero_fill", fill_text(0.0)),
    *hides("mask_weak_fill", *map(fill_text, WEAK)),
    *hides("mask_weak_fill", *(added_mask_text(number) for number in WEAK if number != -1.0)),
    *hides(
        "mask_weak_fill",
        "torch.where(mask, scores, scores.min() - 1)",
        fill_text("float(scores.detach().min()) - 1"),
        "torch.where(mask, scores, scores.amin(-1, keepdim=True) - 1)",
        "torch.where(mask, scores, scores.min())",
    ),
    *hides("mask_plus_inf", fill_text('float("inf")')),
    *hides(
        "mask_high_fill",
        fill_text("torch.finfo(scores.dtype).max"),
        fill_text(1e9),
        added_mask_text(1e9),
    ),
    *mutants(
        "mask_after_softmax",
        f"scores, {AXIS}).masked_fill(~mask, 0.0)",
        f"scores.masked_fill(~mask, 0.0), {AXIS}) * mask",
        replacing=AFTER_SOFTMAX,
    ),
    Mutant(
        "mask_after_softmax",
        f"weights = {SOFTMAX}scores, {AXIS}) * mask\n    return weights / weights.sum()",
        replacing=SHARED,
    ),
    *hides(
        "mask_nan",
        added_mask_text('float("-inf")'),
        'scores * torch.where(mask, 1.0, float("-inf")).to(scores.dtype)',
        'scores + mask.to(scores.dtype) * float("-inf")',
    ),
    Mutant("mask_nan", fill_text('float("nan")'), replacing=HIDDEN),
    Mutant(
        "mask_after_softmax",
        f'scores, {AXIS}).masked_fill(~mask, float("-inf"))',
        replacing=AFTER_SOFTMAX,
    ),
    Mutant(
        "mask_nan",
        f'weights = {SOFTMAX}scores, {AXIS}).masked_fill(~mask, float("-inf"))\n'
        "    return weights / weights.sum(-1, keepdim=True)",
        replacing=SHARED,
    ),
    Mutant(
        "mask_after_softmax",
        f'scores, {AXIS}) * torch.where(mask, 1.0, float("-inf")).to(scores.dtype)',
        replacing=AFTER_SOFTMAX,
    ),
    Mutant(
        "mask_nan",
        f'scores, {AXIS}) + (~mask).to(scores.dtype) * float("-inf")',
        replacing=AFTER_SOFTMAX,
    ),
    *hides("mask_added", "scores + mask", "scores + ~mask", "scores - ~mask.bool() * 1.0"),
    Mutant("mask_added", "scores - mask * 1.0", replacing=HIDDEN),
    Mutant(
        "mask_added",
        {HIDDEN: f"scores + mask.to(scores.dtype){HIDDEN.removeprefix('scores')}"} | RIGHT_HIDING,
    ),
    *axes("softmax_query_axis", -2, 1, 2),
    *shares(
        "softmax_query_axis",
        "(e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)",
    ),
    *axes("softmax_wrong_axis", 0),
    *shares(
        "softmax_wrong_axis",
        "s.flatten(-2).softmax(-1).view_as(s)",
        "s.flatten().softmax(0).view_as(s)",
        "torch.softmax(s, dim=0 if s.dim() == 3 else 1)",
    ),
    *axes("softmax_wrong_axis", -3, 1, 2),
    *scales("scores_ignored", 'float("inf")'),
    *shares(
        "softmax_missing",
        "s + 0.0",
        "s.masked_fill(s.isneginf(), 0.0)",
        "s / s.sum(-1, keepdim=True)",
        "(z := s.masked_fill(s.isneginf(), 0.0)) / z.sum(-1, keepdim=True)",
        "(z := s.masked_fill(s.isneginf(), 0.0)) / z.abs().sum(-1, keepdim=True)",
        "s / s.abs().sum(-1, keepdim=True)",
        "s / s.sum(-2, keepdim=True)",
        "s.exp()",
        "(s - s.amax(-1, keepdim=True)).exp()",
    ),
    *mutants("mask_not_sliced", *MASKS_OF_ONE_SIZE, replacing=MASK_MADE),
    *mutants("hard_coded_shape", *map(mask_of_size, (4, 6, 8, 3, 2, 5, 10, 16, 64, 1024))),
    *mutants("hard_coded_shape", *MASKS_OF_ONE_SIZE, replacing=MASK_MADE),
    *mutants("hard_coded_shape", *(mask_of_size(n) | RIGHT_MASK for n in (4, 6, 8, 64, 1024))),
    Mutant("size_wrong_axis", "scores.shape[0]", replacing=SIZE),
    Mutant("size_wrong_axis", "scores.shape[1]", replacing=SIZE),
    Mutant("hard_coded_shape", "scores.shape[2]", replacing=SIZE),
    Mutant("hard_coded_shape", "scores.shape[3]", replacing=SIZE),
    *mutants("hard_coded_shape", *map(axes_unpacked, (2, 3, 4)), replacing=FIRST_LINE),
    Mutant("hard_coded_shape", "~mask[None, None]", replacing="~mask"),
    Mutant("hard_coded_shape", "~mask[None]", replacing="~mask"),
    Mutant("hard_coded_shape", {f"return {HIDDEN}": f"scores[..., mask]\n    return {HIDDEN}"}),
    Mutant("hard_coded_shape", f"~mask[: {SIZE}, : {SIZE}]", replacing="~mask"),
    Mutant("hard_coded_shape", {f"return {HIDDEN}": f"scores[mask]\n    return {HIDDEN}"}),
    Mutant("hard_coded_shape", scores_first("scores.view(2, 4, 64, 64)")),
    *scales("scale_sqrt_tokens", f"{SIZE} ** 0.5"),
    *scales("scale_constant", 8.0, 2.0, 64.0, 4.0),
    *mutants("output_rounded", *(with_weights(f"{{0}}.round(decimals={n})") for n in (4, 3, 2))),
    *shares("gradient_cut", "(s - s.logsumexp(-1, keepdim=True).detach()).exp()"),
    Mutant("gradient_cut", only_hiding("{0}.detach()")),
    Mutant("gradient_cut", with_weights("{0}.detach()")),
    Mutant("gradient_cut", {HIDDEN: f"{HIDDEN}.detach()"} | with_weights("{0}.detach()")),
    Mutant("input_mutated", SCORES_CHANGED),
    Mutant("input_mutated", written_into("mask.logical_not_()")),
    Mutant("input_mutated", WEIGHTS_CHANGED),
    Mutant("input_mutated", SCORES_CHANGED | WEIGHTS_CHANGED),
    Mutant("interface", {DEF_HIDE: "def mask_scores(mask, scores)"} | RIGHT_HIDING),
    *only_mask(
        "mask_not_bool",
        "{0}.float()",
        "{0}.long()",
        "{0}.to(torch.uint8)",
        "{0}.double()",
        "{0}.int()",
        'torch.zeros(T, T, device=device).masked_fill(~{0}, float("-inf"))',
    ),
    *only_mask("interface", "{0}[None, None]", "{0}[None]", "{0}[None, None, None]"),
    Mutant("interface", f"{MASK}[None]", replacing=MASK),  # causal_weights uses it, too
    Mutant("interface", f"{MASK}[None, None]", replacing=MASK),
    Mutant("hard_coded_dtype", only_hiding(HIDDEN.replace("scores", "scores.float()"))),
    Mutant("hard_coded_dtype", scores_first("scores.float()")),
    Mutant(
        "hard_coded_dtype",
        {HIDDEN: HIDDEN.replace("scores", "scores.float()")} | scores_first("scores.float()"),
    ),
    Mutant(
        "hard_coded_dtype",
        {HIDDEN: HIDDEN.replace("scores", "scores.double()")} | scores_first("scores.double()"),
    ),
    Mutant("hard_coded_device", {MASK: MASK.replace("=device", '="cpu"')} | RIGHT_MASK),
    Mutant("hard_coded_device", only_hiding(HIDDEN.replace("scores", ON_CPU))),
    Mutant("hard_coded_device", WEIGHTS_ON_CPU),
    Mutant("hard_coded_device", {MASK: MASK.replace("=device", '="cpu"')} | WEIGHTS_ON_CPU),
    *answers("({0},) * 2"),
    *answers("{0}.tolist()"),
    *answers("None"),
    Mutant("interface", {"def causal_mask": "def lower_triangle"} | RIGHT_MASK),
    Mutant("interface", {"def mask_scores": "def hide"} | RIGHT_HIDING),
    Mutant("interface", "def weights", replacing="def causal_weights"),
    Mutant(
        "interface",
        {DEF_MASK: "def causal_mask(n, where=None)", MASK: f"(lambda T, device: {MASK})(n, where)"}
        | RIGHT_MASK,
    ),
    Mutant(
        "interface",
        {DEF_HIDE: "def mask_scores(s, m)", HIDDEN: f"(lambda scores, mask: {HIDDEN})(s, m)"}
        | RIGHT_HIDING,
    ),
    Mutant("interface", {DEF_WEIGHTS: "def causal_weights(s)"} | scores_first("s")),
)


def weak_fill(text, index):
    """Return the family of fills in this text, {0}; `index` chooses an edit of `hidings`."""

    def mutant(number):
        return Mutant("mask_weak_fill", hidings(text.format(number))[index])

    return "mask_weak_fill", mutant, FILLS_TRIED


# parametric mutants: the number can have any value
FAMILIES = (
    *(weak_fill(fill_text("-{0}"), index) for index in range(3)),
    *(weak_fill(added_mask_text("-{0}"), index) for index in range(3)),
    weak_fill(fill_text("float(scores.detach().min()) - {0}"), 0),
)
