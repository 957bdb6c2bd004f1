"""Say what `course bench` measures, with the figures from the lesson. Times in ms, memory in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

BATCH, HEADS, HEAD_DIM = 1, 12, 64
ITEM_SIZES = {"float32": 4, "bfloat16": 2}  # bytes for each number


@dataclass(frozen=True)
class BenchEffort:
    """Which lengths to measure. enough: ms to spend on each setting, unless the least number of runs takes longer."""

    lengths: tuple[int, ...]
    enough: float


FULL, QUICK = BenchEffort((256, 1024, 4096), 3000.0), BenchEffort((256,), 100.0)


@dataclass(frozen=True)
class BenchSetting:
    """The setting of one comparison. backward: whether the gradients of q, k and v are computed too."""

    T: int
    dtype: str
    backward: bool

    @property
    def matrix(self) -> int:
        """Bytes of one (B, nh, T, T) matrix, which SDPA does not need."""
        return BATCH * HEADS * self.T**2 * ITEM_SIZES[self.dtype]


@dataclass(frozen=True)
class Measured:
    """The measurement of one path. peak: the most memory beyond that of q, k, v; None if it cannot be measured."""

    times: tuple[float, ...]
    peak: int | None = None

    @property
    def time(self) -> float:
        """The median."""
        return median(self.times)


@dataclass(frozen=True)
class BenchRow:
    """The measurements of one setting. `instead`: why there are none, if there are none."""

    setting: BenchSetting
    by_hand: Measured | None = None
    sdpa: Measured | None = None
    instead: str = ""

    @property
    def faster(self) -> float | None:
        """How many times as long as SDPA the path by hand takes."""
        return ratio(self.by_hand, self.sdpa)

    @property
    def lesson(self) -> tuple[Measured, Measured] | None:
        """The lesson's figures for this setting: by hand, SDPA."""
        return LESSON.get(self.setting)


@dataclass(frozen=True)
class Bench:
    """All measurements and their machine. apart: the largest difference between the two paths' outputs, by dtype."""

    device: str
    machine: str  # the processor's name
    threads: int  # of the CPU; 0 for a GPU
    torch: str  # its version
    rows: tuple[BenchRow, ...]
    apart: Mapping[str, float]


# The lesson's source gives an A100 and no more: neither batch, heads, dtype nor whether gradients were computed. One sequence,
# 12 heads, float32 and forward alone are our guess, and nobody here has reproduced the times.
LESSON_DEVICE = "A100"
LESSON = {
    BenchSetting(T, "float32", backward=False): (Measured((by_hand,)), Measured((sdpa,)))
    for T, by_hand, sdpa in ((256, 0.31, 0.11), (1024, 3.9, 0.9), (4096, 71.0, 11.0))
}


def settings(lengths: tuple[int, ...]) -> list[BenchSetting]:
    """Return every comparison, in the order of the table."""
    return [BenchSetting(T, dtype, backward) for dtype in ITEM_SIZES for backward in (False, True) for T in lengths]


def ratio(by_hand: Measured | None, sdpa: Measured | None) -> float | None:
    """Return the median by hand divided by the median of SDPA."""
    return None if by_hand is None or sdpa is None else by_hand.time / sdpa.time
