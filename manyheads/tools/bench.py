"""What `course bench` measures, and the figures that the lesson's author measured. Times in ms, memory in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

BATCH, HEADS, HEAD_DIM = 1, 12, 64
ITEM_SIZES = {"float32": 4, "bfloat16": 2}  # bytes of a number


@dataclass(frozen=True)
class BenchEffort:
    """What to try. enough: ms for the runs of one setting, unless the fewest take longer."""

    lengths: tuple[int, ...]
    enough: float


FULL, QUICK = BenchEffort((256, 1024, 4096), 3000.0), BenchEffort((32, 64), 100.0)


@dataclass(frozen=True)
class BenchSetting:
    """One comparison. backward: the gradients of q, k and v are computed too."""

    T: int
    dtype: str
    backward: bool

    @property
    def matrix(self) -> int:
        """Bytes of one (B, nh, T, T) matrix, which SDPA need not make."""
        return BATCH * HEADS * self.T**2 * ITEM_SIZES[self.dtype]


@dataclass(frozen=True)
class Measured:
    """One path. peak: the most memory that was held beyond what q, k, v hold; None where that cannot be seen."""

    times: tuple[float, ...]
    peak: int | None = None

    @property
    def time(self) -> float:
        """The median."""
        return median(self.times)


@dataclass(frozen=True)
class BenchRow:
    """A setting, measured. `instead`: why there is nothing, where there is nothing."""

    setting: BenchSetting
    by_hand: Measured | None = None
    sdpa: Measured | None = None
    instead: str = ""

    @property
    def faster(self) -> float | None:
        """How many times as long the path by hand takes."""
        return ratio(self.by_hand, self.sdpa)

    @property
    def lesson(self) -> tuple[Measured, Measured] | None:
        """The lesson's figures for this setting: by hand, SDPA."""
        return LESSON.get(self.setting)


@dataclass(frozen=True)
class Bench:
    """All that was measured, and on what. apart: the largest difference between the two paths' outputs, by dtype."""

    device: str
    machine: str  # the processor's name
    threads: int  # of the CPU; 0 where the work is a GPU's
    torch: str  # its version
    rows: tuple[BenchRow, ...]
    apart: Mapping[str, float]


# The lesson says: B = 1, 12 heads, float32, an A100. Whether gradients were computed, it does not say: forward is assumed.
LESSON_DEVICE = "A100"
LESSON = {
    BenchSetting(T, "float32", backward=False): (Measured((by_hand,)), Measured((sdpa,)))
    for T, by_hand, sdpa in ((256, 0.31, 0.11), (1024, 3.9, 0.9), (4096, 71.0, 11.0))
}


def settings(lengths: tuple[int, ...]) -> list[BenchSetting]:
    """Every comparison, in the order of the table."""
    return [BenchSetting(T, dtype, backward) for dtype in ITEM_SIZES for backward in (False, True) for T in lengths]


def ratio(by_hand: Measured | None, sdpa: Measured | None) -> float | None:
    """The first one's median over the second one's."""
    return None if by_hand is None or sdpa is None else by_hand.time / sdpa.time
