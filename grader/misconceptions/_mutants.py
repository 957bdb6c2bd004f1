"""Short forms for lists of mutants."""

from manyheads.checks import Mutant

LOW_FILLS = ("below_all", ("below", 1.0), "below_row", "lowest", "minus_largest")
OF_HEADS = ("below_head", "below_head_fixed")  # for each head
# the limits of the numbers of parametric mutants
SCALES_TRIED, FILLS_TRIED = (1e-4, 1e4), (0.02, 40.0)


def written_in(**sizes):
    """Return a dict for each of these numbers: nh=(4, 2) gives {"nh": 4} and {"nh": 2}."""
    return [{name: n} for name, numbers in sizes.items() for n in numbers]


def mutants(id_, *changes, replacing=""):
    """Return mutants of one misconception.

    Args:
        changes: the new texts, or dicts with the new text for each text of the reference.
        replacing: the text of the reference that new texts replace.
    """
    return tuple(Mutant(id_, new, replacing=replacing) for new in changes)


def insert_before(line, text, more_changes=None):
    """Return an edit that inserts text before a line, indented as in a method."""
    return {line: f"{text}\n        {line}"} | (more_changes or {})


HEADS_NOT_JOINED = Mutant(
    "heads_not_joined", "y.transpose(1, 2)", replacing="y.transpose(1, 2).reshape(B, T, C)"
)
KEYS_NOT_TRANSPOSED = Mutant("keys_not_transposed", "q @ k", replacing="q @ k.transpose(-2, -1)")
# Scores of other tensors than queries and keys.
SCORES_WRONG_SOURCE = mutants(
    "scores_wrong_source",
    "q @ q.transpose(-2, -1)",
    "k @ k.transpose(-2, -1)",
    "q @ v.transpose(-2, -1)",
    replacing="q @ k.transpose(-2, -1)",
)

SUPER_INIT_MISSING = Mutant("super_init_missing", "pass", replacing="super().__init__()")
SUPER_INIT_LATE = Mutant(
    "super_init_missing",
    "self.early = nn.Identity()\n        super().__init__()",
    replacing="super().__init__()",
)
BIAS_BY_DEFAULT = Mutant("interface", "qkv_bias: bool = True", replacing="qkv_bias: bool = False")


def dropped_in_place(layer):
    """Return the mutant in which the dropout of this name acts in place."""
    line = f"{layer} = nn.Dropout(dropout)"
    return Mutant("dropout_in_place", line.replace(")", ", inplace=True)"), replacing=line)


def values_transposed(product="weights @ v"):
    """Return the mutant that transposes the values in this product, as keys are."""
    return Mutant("values_transposed", f"{product}.transpose(-2, -1)", replacing=product)


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
    return mutants("state_kept", replacement, f"{replacement}[..., :T, :T]", replacing=hiding)
