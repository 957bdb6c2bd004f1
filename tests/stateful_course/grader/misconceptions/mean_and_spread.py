"""Wrong means and spreads, each an edit of the reference."""

from manyheads.checks import edit

BOTH = "return mean, spread if x.shape[-1] > 1 else None"

MUTANTS = (
    ("spread_alone", edit(BOTH, "return spread")),
    ("parts_swapped", edit(BOTH, "return spread, mean if x.shape[-1] > 1 else None")),
    ("root_missing", edit(".mean(-1).sqrt()", ".mean(-1)")),
    (
        "divided_by_less",
        edit("(x - mean[:, None]).square().mean(-1)", "((x - mean[:, None]).square().sum(-1) / (x.shape[-1] - 1))"),
    ),
    ("gradient_cut", edit("mean = x.mean(-1)", "mean = x.detach().mean(-1)")),
    ("spread_always", edit(BOTH, "return mean, spread")),
)
