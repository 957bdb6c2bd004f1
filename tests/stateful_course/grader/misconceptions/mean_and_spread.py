"""Wrong means and spreads, each an edit of the reference."""

from manyheads.checks import edit

BOTH = "return mean, (x - mean[:, None]).square().mean(-1).sqrt()"

MUTANTS = (
    ("spread_alone", edit(BOTH, "return (x - mean[:, None]).square().mean(-1).sqrt()")),
    ("parts_swapped", edit(BOTH, "return (x - mean[:, None]).square().mean(-1).sqrt(), mean")),
    ("root_missing", edit(".mean(-1).sqrt()", ".mean(-1)")),
    (
        "divided_by_less",
        edit("(x - mean[:, None]).square().mean(-1)", "((x - mean[:, None]).square().sum(-1) / (x.shape[-1] - 1))"),
    ),
    ("gradient_cut", edit("mean = x.mean(-1)", "mean = x.detach().mean(-1)")),
    ("ends_swapped", edit('"low": x.amin(-1), "high": x.amax(-1)', '"low": x.amax(-1), "high": x.amin(-1)')),
    ("middle_always", edit("x[:, length // 2] if length % 2 else None", "x[:, length // 2]")),
    ("middle_missing", edit(', "middle": middle', "")),
)
