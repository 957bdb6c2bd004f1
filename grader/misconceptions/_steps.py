"""Wrong scales, masks and softmaxes, as edits of any reference.

Both texts of an edit here have names in braces: {SCALE}, {MASKING} (the statement that hides
scores), {HIDDEN} and {FILL} (the arguments of its masked_fill), {SOFTMAX}, {OUT} (the answer) and
{SIZES} (the first line of forward) stand for texts of a reference; {VISIBLE} stands for the scores
that are not hidden, and {hd}, {nh} and {C} stand for sizes. `of_reference` puts in the texts of one
reference.
"""

from functools import partial

from manyheads.checks import Mutant

from ._mutants import FILLS_TRIED, SCALES_TRIED, insert_before, mutants

PRECEDENCE_OF_HD = (
    "/ {hd} ** 1 / 2",
    "/ ({hd} ** 1 / 2)",
    "/ max({hd} ** 1 // 2, 1)",
    "* {hd} ** 1 / 2",
)
PRECEDENCE = (
    *PRECEDENCE_OF_HD,
    "/ ({C} / {nh} ** 0.5)",
    "/ ({C} // {nh} ** 0.5)",
    "/ ({C} // {nh} ** 0.5) ** 0.5",
)
SCALED_WEIGHTS = {"weights @": "weights {SCALE} @"}
LATE_SCALE = {"{SCALE}": ""} | insert_before("weights = ", "scores = scores {SCALE}")
ROUNDINGS = ("scores = scores.div(1, rounding_mode='floor')", "scores = scores // 1")
SCORES_ROUNDED = [insert_before("{MASKING}", rounding) for rounding in ROUNDINGS]

# Softmaxes over the heads, the batch, each square, all scores, each sequence, each head, and the
# batch and the heads.
AXES = (
    "scores.softmax(dim=1)",
    "scores.softmax(dim=0)",
    "scores.flatten(-2).softmax(-1).view_as(scores)",
    "scores.flatten().softmax(0).view_as(scores)",
    "scores.flatten(1).softmax(-1).view_as(scores)",
    "scores.transpose(0, 1).flatten(1).softmax(-1).view_as(scores.transpose(0, 1)).transpose(0, 1)",
    "scores.flatten(0, 1).softmax(0).view_as(scores)",
)
OVER_QUERIES = "scores.softmax(dim=-2)"
OVER_QUERIES_BY_HAND = (
    "(e := (scores - scores.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)"
)
ZERO_FILLED = "scores.masked_fill(scores == -torch.inf, 0.0)"
SUM_ZERO_FILLED = f"(e := {ZERO_FILLED}) / e.sum(-1, keepdim=True)"
NO_SOFTMAX = ("scores", "scores / scores.sum(-1, keepdim=True)", "scores.sigmoid()")
AS_NUMBERS = {"{SOFTMAX}": "{SOFTMAX}.nan_to_num()"}

HIDE = ".masked_fill({HIDDEN}, {FILL})"
NO_MASK, FINITE, ZERO_FILL = {HIDE: ""}, {"{FILL}": "-1e9"}, {"{FILL}": "0.0"}
MASK_INVERTED = {"{HIDDEN}": "{VISIBLE}"}
MASKS_ADDED = ({HIDE: " + {VISIBLE}"}, {HIDE: " + {HIDDEN}"})
NAN_FACTOR = " * torch.where({VISIBLE}, 1.0, -torch.inf).to(x.dtype)"
NAN_PRODUCTS = ({HIDE: " + ({HIDDEN}).to(x.dtype) * -torch.inf"}, {HIDE: NAN_FACTOR})
LOW_FILLS = (
    {"{FILL}": "scores.min() - 1"},
    {"{FILL}": "scores.min().item() - 1.0"},
    {HIDE: ".where({VISIBLE}, scores.amin(-1, keepdim=True) - 1)"},
    {"{FILL}": "scores.min()"},
    {"{FILL}": "-scores.abs().max() - 1"},
)
# The fill is below all scores of its head.
OF_HEADS = (
    {HIDE: ".where({VISIBLE}, scores.amin((0, -2, -1), keepdim=True) - 1)"},
    {HIDE: ".where({VISIBLE}, scores.detach().amin((0, -2, -1), keepdim=True) - 1)"},
)

SCORES_DETACHED = insert_before("{MASKING}", "scores = scores.detach()")
PARTS_DETACHED = (
    {"q @": "q.detach() @"},
    {"k.transpose": "k.detach().transpose"},
    {"@ v": "@ v.detach()"},
)
# kept from call to call: the answer to each shape of x, and the largest number of tokens
ANSWERS_KEPT = {
    "{SIZES}": "answers = vars(self).setdefault('answers', {{}})\n        if x.shape in answers:\n"
    "            return answers[x.shape]\n        {SIZES}",
    "return {OUT}": "answers[x.shape] = {OUT}\n        return answers[x.shape]",
}
MOST_TOKENS_KEPT = insert_before(
    "{SIZES}",
    "self.most = max(getattr(self, 'most', 0), x.shape[1])\n        x = x * x.shape[1] / self.most",
)


def of_reference(templates, **texts):
    """Return these mutants as edits of the reference that has these texts."""
    listed = []
    for mutant in templates:
        changes = mutant.change.changes.items()
        edit = {old.format(**texts): new.format(**texts) for old, new in changes}
        listed.append(Mutant(mutant.id, edit))
    return tuple(listed)


def scales(id_, *texts):
    return mutants(id_, *texts, replacing="{SCALE}")


def softmaxes(id_, *texts):
    return mutants(id_, *texts, replacing="{SOFTMAX}")


def at_first(id_, *statements):
    """Return mutants with a statement at the beginning of forward."""
    return mutants(id_, *(insert_before("{SIZES}", statement) for statement in statements))


def fills(*numbers):
    return [{"{FILL}": f"{number}"} for number in numbers]


def added_mask_edits(*numbers):
    """Return edits that add one of these numbers where scores are hidden."""
    return [{HIDE: f" + ({{HIDDEN}}).to(x.dtype) * {number}"} for number in numbers]


def each_with(edits, *more_changes):
    """Return each of the first edits together with each of the others."""
    return [edit | changes for edit in edits for changes in more_changes]


def each_softmax(softmax_texts, *more_changes):
    """Return an edit for each softmax, together with each of the other edits."""
    return each_with([{"{SOFTMAX}": text} for text in softmax_texts], *more_changes)


FAMILIES = (
    ("scale_constant", {"{SCALE}": "* {number}"}, SCALES_TRIED),
    ("mask_weak_fill", *fills("-{number}"), FILLS_TRIED),
    ("mask_weak_fill", *added_mask_edits("-{number}"), FILLS_TRIED),
    ("mask_weak_fill", LATE_SCALE | {"{FILL}": "-{number}"}, FILLS_TRIED),
    ("mask_weak_fill", {"{FILL}": "scores.min().item() - {number}"}, FILLS_TRIED),
)


def families(listed, **texts):
    """Return parametric mutants of a reference. {number} can have any value."""

    def with_number(mutant, number):
        return of_reference([mutant], number=number, **texts)[0]

    return tuple(
        (id_, partial(with_number, Mutant(id_, edit)), limits) for id_, edit, limits in listed
    )
