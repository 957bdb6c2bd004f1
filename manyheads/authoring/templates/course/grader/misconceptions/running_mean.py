"""Wrong running means, each an edit of the reference: a text that stands there once, and what stands there instead."""

from manyheads.checks import edit

COUNTS = "torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"

MUTANTS = (
    ("counts_all", edit(COUNTS, "len(x)")),
    ("sum_not_mean", edit(f" / {COUNTS}", "")),
    ("excludes_self", edit("x.cumsum(0)", "(x.cumsum(0) - x)")),
    ("sees_future", edit("x.cumsum(0)", "x.sum().expand_as(x)")),
    ("only_last", edit(f"x.cumsum(0) / {COUNTS}", "x.mean().view(1)")),
    ("empty_unchecked", edit("if x.numel() == 0:", "if False:")),
    ("gradient_cut", edit("return x.", "return x.detach().")),
)
