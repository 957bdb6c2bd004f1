"""Wrong running means: each replaces a text that occurs once in the reference by another one."""

from manyheads.checks import Mutant

SUMS = "x.cumsum(0)"
COUNTS = "torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"

MUTANTS = (
    Mutant("counts_all", "len(x)", replacing=COUNTS),
    Mutant("sum_not_mean", "", replacing=f" / {COUNTS}"),
    Mutant("excludes_self", "(x.cumsum(0) - x)", replacing=SUMS),
    Mutant("sees_future", "x.sum().expand_as(x)", replacing=SUMS),
    Mutant("only_last", "x.mean().view(1)", replacing=f"{SUMS} / {COUNTS}"),
    Mutant("empty_unchecked", "if False:", replacing="if x.numel() == 0:"),
    Mutant("gradient_cut", "return x.detach().", replacing="return x."),
)
