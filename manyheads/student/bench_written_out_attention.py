"""Measure written-out attention against SDPA on this machine, as a table.

`measure` times both and records their peak memory; `bench_report` makes the table. Times are in
ms, peak memory is in bytes. Only the arithmetic is written out, on q, k, v that are already split
into heads, so this file reveals no more than the documentation of SDPA does.
"""

from __future__ import annotations

import ctypes
import math
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor
from torch.utils.benchmark import Timer

from ..files import CourseFault

BATCH, HEADS, HEAD_DIM = 1, 12, 64
ITEM_SIZES = {"float32": 4, "bfloat16": 2}  # bytes for each number
SQUARES = 5  # the largest number of (T, T) matrices that the path by hand holds, with gradients
T = TypeVar("T")
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


class BenchSetting(NamedTuple):
    """The setting of one comparison. Batch, heads and head_dim are the constants above.

    Attributes:
        T: The number of tokens.
        dtype: The dtype of q, k and v.
        backward: Whether the gradients of q, k and v are computed too.
    """

    T: int
    dtype: str
    backward: bool

    @property
    def matrix(self) -> int:
        """Bytes of one (B, nh, T, T) matrix, which SDPA does not need."""
        return BATCH * HEADS * self.T**2 * ITEM_SIZES[self.dtype]


class Measured(NamedTuple):
    """The measurements of one path: the written-out attention or SDPA.

    Attributes:
        time: The median time in ms.
        peak: The largest amount of memory beyond q, k, v, in bytes. None if it cannot be measured.
    """

    time: float
    peak: int | None = None


class BenchRow(NamedTuple):
    """The measurements of one setting.

    Attributes:
        setting: The setting.
        by_hand: The measurements of the written-out attention.
        sdpa: The measurements of SDPA.
        instead: The reason why there are no measurements, a sentence without its subject, or "".
    """

    setting: BenchSetting
    by_hand: Measured | None = None
    sdpa: Measured | None = None
    instead: str = ""

    @property
    def faster(self) -> float | None:
        """The time of the path by hand divided by SDPA's time, or None without measurements."""
        return self.by_hand.time / self.sdpa.time if self.by_hand and self.sdpa else None


@dataclass(frozen=True)
class Bench:
    """All measurements.

    Attributes:
        where: The device, its name, and torch's version.
        rows: The measurements of each setting.
        apart: The largest absolute difference between the two paths' outputs, by dtype.
    """

    where: str
    rows: tuple[BenchRow, ...]
    apart: Mapping[str, float]


class BenchSize(NamedTuple):
    """The size of a whole measurement.

    Attributes:
        lengths: The numbers of tokens, T.
        seconds: The time to spend on each path, with at least one run.
    """

    lengths: tuple[int, ...]
    seconds: float


FULL = BenchSize((256, 1024, 4096), 1.5)
QUICK = BenchSize((256,), 0.05)
# The lesson's source gives an A100 and no more: neither batch, heads, dtype nor whether gradients
# were computed. One sequence, 12 heads, float32 and forward alone are our guess. The times are not
# reproduced here.
LESSON_DEVICE = "A100"
LESSON = {
    BenchSetting(T, "float32", backward=False): (Measured(by_hand), Measured(sdpa))
    for T, by_hand, sdpa in ((256, 0.31, 0.11), (1024, 3.9, 0.9), (4096, 71.0, 11.0))
}


def settings(lengths: tuple[int, ...]) -> list[BenchSetting]:
    """Return a setting for each dtype, with and without gradients, and each length T."""
    return [
        BenchSetting(T, dtype, backward)
        for dtype in ITEM_SIZES
        for backward in (False, True)
        for T in lengths
    ]


def peak_of(run: Callable[[], T], device: str) -> tuple[T, int | None]:
    """Call `run`, and return its result and the largest amount of memory it needed, in bytes.

    Memory that was in use before the call does not count. On CUDA, the device's allocator measures
    the peak, and its statistics of the peak are reset. On the CPU, it is the peak of this process:
    memory that malloc keeps is given back to the system, and the kernel's record of the peak is
    reset. The peak is None if the system does not report it (on the CPU only Linux does).
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        allocated = torch.cuda.memory_allocated()
        result = run()
        torch.cuda.synchronize()
        return result, torch.cuda.max_memory_allocated() - allocated
    resident = None
    # macOS has no malloc_trim, Windows no library without a name
    with suppress(OSError, AttributeError, TypeError):
        # Otherwise memory that malloc keeps would be reused without being counted.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): VmHWM becomes VmRSS
        resident = _bytes("VmRSS", "self/status")
    result, peak = run(), _bytes("VmHWM", "self/status")
    return result, None if resident is None or peak is None else max(0, peak - resident)


def _bytes(name: str, file: str) -> int | None:
    """Return an amount of memory that a file in /proc gives in kB, or None without such a line."""
    with suppress(OSError):
        match = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc", file).read_text(), re.MULTILINE)
        return int(match[1]) * 1024 if match else None
    return None


def measure(
    bench_settings: Sequence[BenchSetting],
    device: str,
    on_start: Callable[[str], None],
    enough: float,
) -> Bench:
    """Measure written-out attention and SDPA in each setting.

    A setting that needs more memory than is free is not measured. Its row gives the reason.

    Args:
        bench_settings: The settings to measure.
        device: "cpu" or "cuda".
        on_start: Called with a description of each setting before it is measured.
        enough: The seconds to spend on each of the two paths (at least one run).

    Raises:
        CourseFault: The device is "cuda", and torch can use no CUDA device.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise CourseFault(
            "this machine has no CUDA device that torch can use. Next: course bench --quick"
        )
    rows, apart = list[BenchRow](), dict[str, float]()
    for setting in bench_settings:
        on_start(f"measuring T = {setting.T}, {title_of(setting)}")
        needed = SQUARES * setting.matrix
        free = (
            torch.cuda.mem_get_info()[0] if device == "cuda" else _bytes("MemAvailable", "meminfo")
        )
        if free is not None and needed > free:
            rows.append(
                BenchRow(
                    setting,
                    instead=f"needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB is free",
                )
            )
            continue
        row, difference = _row(setting, device, enough)
        rows.append(row)
        apart[setting.dtype] = max(apart.get(setting.dtype, 0.0), difference)
    processor = f"{processor_name()}, threads: {torch.get_num_threads()}"
    machine = torch.cuda.get_device_name() if device == "cuda" else processor
    return Bench(f"{device}: {machine}; torch {torch.__version__}", tuple(rows), apart)


def _row(setting: BenchSetting, device: str, enough: float) -> tuple[BenchRow, float]:
    """Return the measurements of a setting, and the largest difference between the two outputs."""
    generator = torch.Generator().manual_seed(0)
    shape, dtype = (BATCH, HEADS, setting.T, HEAD_DIM), getattr(torch, setting.dtype)
    q, k, v, upstream = (
        torch.randn(shape, generator=generator).to(device, dtype) for _ in range(4)
    )
    hand = _by_hand(setting.T, device)
    measured = [
        _measure(_run(path, (q, k, v), upstream, setting.backward), device, enough)
        for path in (hand, _sdpa)
    ]
    (out, by_hand), (sdpa_out, sdpa) = measured
    return BenchRow(setting, by_hand, sdpa), float((out.float() - sdpa_out.float()).abs().max())


def _measure(run: Callable[[], Tensor], device: str, enough: float) -> tuple[Tensor, Measured]:
    out, peak = peak_of(run, device)
    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    return out, Measured(timer.blocked_autorange(min_run_time=enough).median * 1000, peak)


def _by_hand(T: int, device: str) -> Attention:
    """Return causal attention on (B, nh, T, hd), which makes its mask only once."""
    future = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        square = torch.matmul(q, k.mT).div(math.sqrt(HEAD_DIM))
        square = square.masked_fill(future, -math.inf)
        return torch.matmul(F.softmax(square, -1), v)

    return attention


_sdpa: Attention = partial(F.scaled_dot_product_attention, is_causal=True)


def _run(
    path: Attention, inputs: tuple[Tensor, ...], upstream: Tensor, backward: bool
) -> Callable[[], Tensor]:
    """Return a function that runs the path once, and computes the gradients if `backward`."""
    inputs = tuple(tensor.detach().requires_grad_(backward) for tensor in inputs)

    def run() -> Tensor:
        with torch.set_grad_enabled(backward):
            out = path(*inputs)
        if backward:
            torch.autograd.grad(out, inputs, upstream)
        return out.detach()

    return run


def processor_name() -> str:
    """Return the name of the processor, or of its architecture."""
    with suppress(OSError):
        if match := re.search(
            r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        ):
            return match[1].strip()
    return platform.processor() or platform.machine()


_HEADERS = (
    "",
    "T",
    "by hand\nms",
    "SDPA\nms",
    "faster",
    "matrix\nMB",
    "peak by\nhand, MB",
    "SDPA\nMB",
)


def bench_report(bench: Bench) -> RenderableType:
    """Return a table of the measurements, with an explanation of the columns.

    For settings of which the lesson gives times, these are the last rows.
    """
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="", show_edge=False)
    for name in _HEADERS:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in bench.rows:
        label = row.setting.dtype
        if row.setting.backward:
            label = f"{label} and gradients"
        table.add_row(*_cells(label, row))
    for setting in (row.setting for row in bench.rows if row.setting in LESSON):
        lesson = BenchRow(setting, *LESSON[setting])
        table.add_row(*_cells(f"{LESSON_DEVICE}, in the lesson", lesson)[:5], style="bright_black")
    return Group(
        Text(
            f"Attention itself, causal: B = {BATCH}, {HEADS} heads, head_dim {HEAD_DIM}",
            style="bold",
        ),
        Text(bench.where, style="bold"),
        table,
        *(Text(line, style="bright_black") for line in remarks(bench)),
    )


def title_of(setting: BenchSetting) -> str:
    """Return a setting in words, for example "float32, forward and backward"."""
    return f"{setting.dtype}, forward{' and backward' if setting.backward else ''}"


def remarks(bench: Bench) -> Iterator[str]:
    """Yield the lines below the table.

    They explain the columns, give the largest difference between the two outputs, and say which
    settings are left out.
    """
    yield "Times are medians. Peak: what a run holds beyond q, k and v."
    yield f"Matrix: (B, nh, T, T), which SDPA does not need. {LESSON_DEVICE}: not reproduced."
    if agree := ", ".join(
        f"{difference:.0e} in {dtype}" for dtype, difference in bench.apart.items()
    ):
        yield f"The outputs of the two differ by at most {agree}."
    for row in (row for row in bench.rows if row.instead):
        yield f"T = {row.setting.T}, {title_of(row.setting)}, is left out: it {row.instead}."


def _cells(title: str, row: BenchRow) -> list[str]:
    paths, faster = (row.by_hand, row.sdpa), row.faster
    times = [three_digits(path and path.time) for path in paths]
    sizes = (row.setting.matrix, *(path and path.peak for path in paths))
    memory = [three_digits(size and size / 1e6) for size in sizes]
    return [title, str(row.setting.T), *times, f"{faster:.1f}×" if faster else "–", *memory]


def three_digits(number: float | None) -> str:
    """Return a number with up to three significant digits: 0.31, 3.9, 71. None is a dash.

    Numbers from 100 on are rounded to whole numbers: 1234.
    """
    if number is None:
        return "–"
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
