"""What a language model wrote with a cache, held against what it writes without."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from torch import Tensor

from .verdict import TrainingVerdict

ROUNDING = 1e-3  # of the largest logit: what rounding alone does is a thousandth of that
END = 4  # the last quarter is the end of a text


@dataclass(frozen=True)
class Decoded:
    """ids: (N,). logits: (N, V), from which each was chosen. ms: the time that each took."""

    ids: Tensor
    logits: Tensor
    ms: tuple[float, ...]

    @property
    def time(self) -> float:
        """The median of all tokens."""
        return median(self.ms)

    @property
    def time_at_end(self) -> float:
        """The median of those at the end of the text."""
        return median(self.ms[-max(1, len(self.ms) // END) :])


def compare(cached: Decoded, whole: Decoded) -> TrainingVerdict:
    """Whether the cache changes nothing. Compared are the logits as long as both had the same text before them."""
    parted = (cached.ids != whole.ids).nonzero().flatten().tolist()
    until = parted[0] + 1 if parted else len(whole.ids)
    apart = (cached.logits[:until] - whole.logits[:until]).abs().amax(-1)  # (until,)
    allowed = ROUNDING * max(1.0, whole.logits[:until].abs().max().item())
    wrong = (~(apart <= allowed)).nonzero().flatten().tolist()  # NaN is wrong, too
    if wrong:
        return TrainingVerdict(
            False,
            f"Your cache changes what the model says: at character {wrong[0] + 1} of its text the logits differ by "
            f"{apart[wrong[0]].item():.2g} from those without a cache. The same tokens must give the same answers.",
        )
    most = f"the logits differ by at most {apart.max().item():.0e}, which is rounding"
    if parted:
        return TrainingVerdict(
            True, f"The same without a cache: {most}, which at character {until} chose another one of equal chance."
        )
    return TrainingVerdict(True, f"The same text without a cache: {most}.")
