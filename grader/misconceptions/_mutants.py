"""Short forms for lists of mutants."""

from itertools import product
from types import SimpleNamespace

from manyheads.checks import edit

LOW_FILLS = ("below_all", ("below", 1.0), "below_row", "lowest", "minus_largest")
OF_HEADS = ("below_head", "below_head_fixed")  # those of each head
SCALES_TRIED, FILLS_TRIED = (1e-4, 1e4), (0.02, 40.0)  # the limits of a number that nobody can list


def complete_knobs(knobs, defaults):
    """These knobs, and the right value for every other one. defaults: the knobs that there are."""
    assert knobs.keys() <= defaults.keys(), knobs.keys() - defaults.keys()
    return SimpleNamespace(**{**defaults, **knobs})


def variants(id_, **knobs):
    """A mutant for each combination of values. A knob with several has a tuple or a list of them;
    ... leaves it right.
    """
    values = (value if isinstance(value, tuple | list) else (value,) for value in knobs.values())
    listed = []
    for combination in product(*values):
        chosen = zip(knobs, combination, strict=True)
        listed.append((id_, {knob: value for knob, value in chosen if value is not ...}))
    return listed


def written_in(**sizes):
    """One dict for each of these numbers: nh=(4, 2) are {"nh": 4} and {"nh": 2}."""
    return [{name: n} for name, numbers in sizes.items() for n in numbers]


def at(line, *groups, extra_changes=None):
    """An edit of this line of the reference for each of these texts, (id, text, …); extra_changes:
    what all of them change besides.
    """
    for id_, *texts in groups:
        for new in texts:
            yield id_, edit(line, new, extra_changes)


def mutants(id_, *edits):
    """Mutants of one misconception."""
    return tuple((id_, mutation) for mutation in edits)


def changed(changes):
    """An edit of all these texts."""
    (old, new), *extra_changes = changes.items()
    return edit(old, new, dict(extra_changes))


def both(edit_a, edit_b):
    """An edit of all that two edits change."""
    return changed({**edit_a.changes, **edit_b.changes})


def insert_before(line, text, extra_changes=None):
    """An edit that puts this text before a line of the reference, as far from the margin as lines
    of a method.
    """
    return edit(line, f"{text}\n        {line}", extra_changes)


HEADS_NOT_JOINED = (
    "heads_not_joined",
    edit("y.transpose(1, 2).reshape(B, T, C)", "y.transpose(1, 2)"),
)
KEYS_NOT_TRANSPOSED = ("keys_not_transposed", edit("q @ k.transpose(-2, -1)", "q @ k"))
# Scores of other tensors than queries and keys.
SCORES_WRONG_SOURCE = tuple(
    ("scores_wrong_source", edit("q @ k.transpose(-2, -1)", f"{a} @ {b}.transpose(-2, -1)"))
    for a, b in ("qq", "kk", "qv")
)

SUPER_INIT_MISSING = ("super_init_missing", edit("super().__init__()", "pass"))
SUPER_INIT_LATE = (
    "super_init_missing",
    edit("super().__init__()", "self.early = nn.Identity()\n        super().__init__()"),
)
BIAS_BY_DEFAULT = ("interface", edit("qkv_bias: bool = False", "qkv_bias: bool = True"))


def dropped_in_place(layer):
    """The dropout of this name in place, an edit of every reference that makes it so."""
    line = f"{layer} = nn.Dropout(dropout)"
    return "dropout_in_place", edit(line, line.replace(")", ", inplace=True)"))


def values_transposed(product="weights @ v"):
    """The values transposed in this product, as keys are."""
    return "values_transposed", edit(product, f"{product}.transpose(-2, -1)")


def added_mask_kept(hiding, hidden):
    """The mask of the first call, kept on the module and added to the scores of each later call,
    whole or cut.

    Args:
        hiding: the line of the reference that hides scores.
        hidden: what it hides, (T, T).
    """
    replacement = (
        'if not hasattr(self, "kept"):\n'
        f"            self.kept = torch.zeros_like(scores[0]).masked_fill({hidden}, -torch.inf)\n"
        "        scores = scores + self.kept"
    )
    return mutants(
        "state_kept", edit(hiding, replacement), edit(hiding, f"{replacement}[..., :T, :T]")
    )
