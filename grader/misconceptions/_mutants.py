"""Short forms for lists of mutants."""

from itertools import product
from types import SimpleNamespace

from manyheads.checks import Mutant, edit
from manyheads.checks.hidden_check import Edit  # TEMPORARY

LOW_FILLS = ("below_all", ("below", 1.0), "below_row", "lowest", "minus_largest")
OF_HEADS = ("below_head", "below_head_fixed")  # for each head
# the limits of the numbers of parametric mutants
SCALES_TRIED, FILLS_TRIED = (1e-4, 1e4), (0.02, 40.0)


def complete_knobs(knobs, defaults):
    """Return these knobs, and the right value for every other one.

    Args:
        defaults: the right values of all knobs.
    """
    assert knobs.keys() <= defaults.keys(), knobs.keys() - defaults.keys()
    return SimpleNamespace(**{**defaults, **knobs})


def variants(id_, **knobs):
    """Return a mutant for each combination of values.

    A knob with several values has a tuple or a list. The value ... leaves the knob right.
    """
    values = (value if isinstance(value, tuple | list) else (value,) for value in knobs.values())
    listed = []
    for combination in product(*values):
        chosen = zip(knobs, combination, strict=True)
        listed.append((id_, {knob: value for knob, value in chosen if value is not ...}))
    return listed


def written_in(**sizes):
    """Return a dict for each of these numbers: nh=(4, 2) gives {"nh": 4} and {"nh": 2}."""
    return [{name: n} for name, numbers in sizes.items() for n in numbers]


def at(line, *groups, extra_changes=None):
    """Yield an edit of this line of the reference for each text.

    Args:
        groups: a misconception's id and then its texts, (id, text, …).
        extra_changes: further changes that all these edits make.
    """
    for id_, *texts in groups:
        for new in texts:
            yield id_, edit(line, new, extra_changes)


def mutants(id_, *changes, replacing=""):
    """Return mutants of one misconception.

    Args:
        changes: the new texts, or dicts with the new text for each text of the reference.
        replacing: the text of the reference that new texts replace.
    """
    return tuple(
        (id_, new) if isinstance(new, Edit) else Mutant(id_, new, replacing=replacing)
        for new in changes
    )


def changed(changes):
    """Return an edit of all these texts."""
    (old, new), *extra_changes = changes.items()
    return edit(old, new, dict(extra_changes))


def both(edit_a, edit_b):
    """Return an edit that makes the changes of two edits."""
    return changed({**edit_a.changes, **edit_b.changes})


def insert_before(line, text, extra_changes=None):
    """Return an edit that inserts text before a line, indented as in a method."""
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
    """Return the mutant in which the dropout of this name acts in place."""
    line = f"{layer} = nn.Dropout(dropout)"
    return "dropout_in_place", edit(line, line.replace(")", ", inplace=True)"))


def values_transposed(product="weights @ v"):
    """Return the mutant that transposes the values in this product, as keys are."""
    return "values_transposed", edit(product, f"{product}.transpose(-2, -1)")


def added_mask_kept(hiding, hidden):
    """Return mutants that keep the mask of the first call, and add it in each later call.

    The first one adds the whole mask, the second one cuts it.

    Args:
        hiding: the line of the reference that hides scores.
        hidden: the text of the scores to hide, (T, T).
    """
    replacement = (
        'if not hasattr(self, "kept"):\n'
        f"            self.kept = torch.zeros_like(scores[0]).masked_fill({hidden}, -torch.inf)\n"
        "        scores = scores + self.kept"
    )
    return mutants(
        "state_kept", edit(hiding, replacement), edit(hiding, f"{replacement}[..., :T, :T]")
    )
