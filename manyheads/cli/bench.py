"""`course bench`: attention by hand against SDPA, beside the lesson's figures; or what course.yaml says of some exercises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..box.names import Device
from ..tools.bench import FULL, QUICK, BenchEffort, settings
from .console import open_console
from .options import CourseOption, course_of
from .picture import write_picture

if TYPE_CHECKING:
    from ..tools.bench import Bench, BenchSetting


def bench(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[ASSIGNMENT|EXERCISE]", help="Measure your own code [default: attention itself]."),
    ] = None,
    course: CourseOption = None,
    *,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    out: Annotated[Path | None, typer.Option("--out", help="Also draw it, to this PNG.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest sizes alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures; or measure what exercises of yours cost.

    On a CPU the first takes minutes, the second one.

    Example: `course bench attention_in_practice --out bench.png`
    """
    from ..report.bench import bench_report
    from ..report.bench_picture import png
    from ..report.matplotlib_needed import need_matplotlib

    if out is not None:
        need_matplotlib()
    console = open_console()
    if what is not None:
        from .own_bench import own_bench

        own_bench(console, course_of(course), what, device, out, quick=quick)
        return
    measured = _measured(console, device, QUICK if quick else FULL)
    console.print(bench_report(measured), soft_wrap=True)
    if out is not None:
        write_picture(out, png(measured))
        console.print(f"Drawn in {out}", soft_wrap=True, markup=False)


def _measured(console: Console, device: Device, effort: BenchEffort) -> Bench:
    """Measure, and show what is being measured. Raises CourseFault if there is no such device."""
    from ..report.bench import title_of
    from ..tools.measure import measure, need_device

    need_device(device)
    with console.status("measuring") as status:

        def tell(setting: BenchSetting) -> None:
            status.update(f"measuring T = {setting.T}, {title_of(setting)}")

        return measure(settings(effort.lengths), device, tell, effort.enough)
