"""`course bench`: attention by hand against SDPA, timed here and beside the lesson's figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..box.names import Device
from ..errors import CourseFault
from ..tools.bench import FULL, QUICK, BenchEffort, settings
from .console import open_console
from .picture import write_picture

if TYPE_CHECKING:
    from ..tools.bench import Bench, BenchSetting


def bench(
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Also draw it, to this PNG.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The lesson's first row alone, T = 256: a few seconds.")
    ] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures. On a CPU that takes minutes.

    Example: `course bench --out bench.png`
    """
    from ..report.bench import bench_report
    from ..report.bench_picture import need_matplotlib, png

    if out is not None:
        need_matplotlib()
    console = open_console()
    measured = _measured(console, device, QUICK if quick else FULL)
    console.print(bench_report(measured), soft_wrap=True)
    if out is not None:
        write_picture(out, png(measured))
        console.print(f"Drawn in {out}", soft_wrap=True, markup=False)


def _measured(console: Console, device: Device, effort: BenchEffort) -> Bench:
    """Measure, and show what is being measured. Raises CourseFault if there is no such device."""
    import torch

    from ..report.bench import title_of
    from ..tools.measure import measure

    if device is Device.CUDA and not torch.cuda.is_available():
        raise CourseFault("this machine has no CUDA device that torch can use. Next: course bench --device cpu")
    with console.status("measuring") as status:

        def tell(setting: BenchSetting) -> None:
            status.update(f"measuring T = {setting.T}, {title_of(setting)}")

        return measure(settings(effort.lengths), device, tell, effort.enough)
