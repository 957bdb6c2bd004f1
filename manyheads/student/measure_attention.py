"""Measure written-out attention against SDPA on this machine, as a table: times in ms, peak memory in bytes.

Only the arithmetic is written out, on q, k, v that are already split into heads. So this file reveals no more than
the documentation of SDPA does.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import platform
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import torch
import torch.nn.functional as F
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor

from ..errors import CourseFault

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
        return self.by_hand.time / self.sdpa.time if self.by_hand and self.sdpa else None


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


T = TypeVar("T")

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): VmHWM becomes VmRSS


def peak_of(run: Callable[[], T], device: str) -> tuple[T, int | None]:
    """Return the result of the run, and its peak: of the device's allocator, or of this process on the CPU.

    The peak is None if the system does not report it (on the CPU only Linux does).
    """
    if device != "cuda":
        return _on_cpu(run)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    torch.cuda.synchronize()
    return found, torch.cuda.max_memory_allocated() - before


def free_memory(device: str) -> int | None:
    """Return the free memory of the device; None if the system does not report it."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    with contextlib.suppress(OSError):
        return _kilobytes("MemAvailable", Path("/proc/meminfo").read_text())
    return None


def _on_cpu(run: Callable[[], T]) -> tuple[T, int | None]:
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else memory that malloc keeps would be reused without being counted
        _RESET.write_text(_RESET_PEAK)
        before = _kilobytes("VmRSS", _STATUS.read_text())
    except (OSError, AttributeError, TypeError):  # macOS has no malloc_trim, Windows no library without a name
        return run(), None
    found = run()
    after = _kilobytes("VmHWM", _STATUS.read_text())
    return found, None if before is None or after is None else max(0, after - before)


def _kilobytes(name: str, text: str) -> int | None:
    """Return the bytes in a line of /proc such as "VmRSS:    1234 kB"."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else None


FEWEST, MOST = 3, 50  # the least and the most runs of each path
WARM = 1000.0  # ms: a shorter first run is a warm-up and does not count
_NO_CONTEXT_YET = "Attempting to run cuBLAS, but there was no current CUDA context"  # autograd's own thread makes one
SQUARES = 5  # how many matrices the path by hand holds at most, with gradients

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def measure(
    wanted: Sequence[BenchSetting], device: str, on_start: Callable[[BenchSetting], None], enough: float
) -> Bench:
    """Measure every setting. on_start: called with each before it starts. enough: ms to spend on each."""
    rows: list[BenchRow] = []
    apart: dict[str, float] = {}
    for setting in wanted:
        on_start(setting)
        needed, free = SQUARES * setting.matrix, free_memory(device)
        if free is not None and needed > free:
            rows.append(BenchRow(setting, instead=f"needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB is free"))
            continue
        row, difference = _row(setting, device, enough)
        rows.append(row)
        apart[setting.dtype] = max(apart.get(setting.dtype, 0.0), difference)
    on_gpu = device == "cuda"
    return Bench(
        device,
        torch.cuda.get_device_name() if on_gpu else _processor(),
        0 if on_gpu else torch.get_num_threads(),
        torch.__version__,
        tuple(rows),
        apart,
    )


def need_device(device: str) -> None:
    """Raise CourseFault if there is no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise CourseFault("this machine has no CUDA device that torch can use. Next: course bench --device cpu")


def _row(setting: BenchSetting, device: str, enough: float) -> tuple[BenchRow, float]:
    """Return the row, and the largest difference between the paths' outputs."""
    generator = torch.Generator().manual_seed(0)
    shape, dtype = (BATCH, HEADS, setting.T, HEAD_DIM), getattr(torch, setting.dtype)
    q, k, v, upstream = (torch.randn(shape, generator=generator).to(device, dtype) for _ in range(4))
    runs = [_run(path, (q, k, v), upstream, setting.backward) for path in (_by_hand(setting.T, device), _sdpa)]
    clock = _cuda_clock if device == "cuda" else _cpu_clock
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _NO_CONTEXT_YET)
        by_hand, sdpa = alternate([clock(run) for run in runs], enough)
    (out, by_hand_peak), (other, sdpa_peak) = (peak_of(run, device) for run in runs)
    difference = float((out.float() - other.float()).abs().max())
    return BenchRow(setting, Measured(by_hand, by_hand_peak), Measured(sdpa, sdpa_peak)), difference


def _by_hand(T: int, device: str) -> Attention:
    """Attention by scores, scale, mask, softmax and sum, each with a (B, nh, T, T) tensor of its own."""
    future = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        square = torch.matmul(q, k.mT).div(math.sqrt(HEAD_DIM))
        square = square.masked_fill(future, -math.inf)
        return torch.matmul(F.softmax(square, -1), v)

    return attention


_sdpa: Attention = partial(F.scaled_dot_product_attention, is_causal=True)


def _run(path: Attention, inputs: tuple[Tensor, ...], upstream: Tensor, backward: bool) -> Callable[[], Tensor]:
    inputs = tuple(each.detach().requires_grad_(backward) for each in inputs)

    def run() -> Tensor:
        with torch.set_grad_enabled(backward):
            out = path(*inputs)
        if backward:
            torch.autograd.grad(out, inputs, upstream)
        return out.detach()

    return run


def alternate(clocks: Sequence[Iterator[float]], enough: float) -> list[tuple[float, ...]]:
    """Return the times of each clock. They run alternately, so that other load affects all alike, until `enough` ms are spent."""
    first = [next(clock) for clock in clocks]
    kept = [first] if sum(first) > WARM else []
    while len(kept) < FEWEST or (len(kept) < MOST and sum(map(sum, kept)) < enough):
        kept.append([next(clock) for clock in clocks])
    return list(zip(*kept, strict=True))


def _cpu_clock(run: Callable[[], Tensor]) -> Iterator[float]:
    while True:
        started = time.perf_counter()
        run()
        yield (time.perf_counter() - started) * 1000


def _cuda_clock(run: Callable[[], Tensor]) -> Iterator[float]:
    """Measure with the device's events, one run at a time, as a program would run it: gaps between kernels count too."""
    while True:
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        run()
        after.record()
        after.synchronize()
        yield before.elapsed_time(after)


def _processor() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


NONE = "–"
_HEADERS = ("", "T", "by hand\nms", "SDPA\nms", "faster", "matrix\nMB", "peak by\nhand, MB", "SDPA\nMB")


def bench_report(bench: Bench) -> RenderableType:
    """Return a table with the lesson's figures in its last rows, and an explanation of the columns."""
    threads = "" if bench.device == "cuda" else f", {bench.threads} thread{'s' * (bench.threads != 1)}"
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="", show_edge=False)
    for name in _HEADERS:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in bench.rows:
        table.add_row(*_cells(f"{row.setting.dtype}{' and gradients' * row.setting.backward}", row))
    for setting in (row.setting for row in bench.rows if row.setting in LESSON):
        lesson = BenchRow(setting, *LESSON[setting])
        table.add_row(*_cells(f"{LESSON_DEVICE}, in the lesson", lesson)[:5], style="bright_black")
    return Group(
        Text(f"Attention itself, causal: B = {BATCH}, {HEADS} heads, head_dim {HEAD_DIM}", style="bold"),
        Text(f"{bench.device}: {bench.machine}{threads}; torch {bench.torch}", style="bold"),
        table,
        *(Text(line, style="bright_black") for line in remarks(bench)),
    )


def title_of(setting: BenchSetting) -> str:
    """For example "float32, forward and backward"."""
    return f"{setting.dtype}, forward{' and backward' if setting.backward else ''}"


def remarks(bench: Bench) -> Iterator[str]:
    """Yield the explanation of the columns."""
    runs = [len(row.by_hand.times) for row in bench.rows if row.by_hand]
    if runs:
        count = " to ".join(map(str, sorted({min(runs), max(runs)})))
        yield f"Medians of {count} runs, by turns. Peak: what a run holds beyond q, k and v."
    yield f"Matrix: (B, nh, T, T), which SDPA does not need. {LESSON_DEVICE}: not reproduced."
    agree = ", ".join(f"{difference:.0e} in {dtype}" for dtype, difference in bench.apart.items())
    if agree:
        yield f"The outputs of the two differ by at most {agree}."
    for row in bench.rows:
        if row.instead:
            yield f"T = {row.setting.T}, {title_of(row.setting)}, is left out: it {row.instead}."


def _cells(title: str, row: BenchRow) -> list[str]:
    by_hand, sdpa = row.by_hand, row.sdpa
    times = (NONE if each is None else three_digits(each.time) for each in (by_hand, sdpa))
    faster = NONE if row.faster is None else f"{row.faster:.1f}×"
    memory = (row.setting.matrix, by_hand.peak if by_hand else None, sdpa.peak if sdpa else None)
    counts = (NONE if each is None else three_digits(each / 1e6) for each in memory)
    return [title, str(row.setting.T), *times, faster, *counts]


def three_digits(number: float) -> str:
    """0.31, 3.9, 71, 1234: three significant digits, without an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
