"""The command `course bench`: attention by hand against SDPA."""

from __future__ import annotations

from typing import Annotated

import typer

from ..box.names import Device
from .options import open_console


def bench(
    *,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.CPU,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest size alone: a few seconds.")] = False,
) -> None:
    """Time attention by hand against SDPA, beside the lesson's own figures. On a CPU that takes minutes.

    Example: `course bench --quick`
    """
    from ..student.measure_attention import FULL, QUICK, bench_report, measure, need_device, settings, title_of

    need_device(device)
    console, effort = open_console(), QUICK if quick else FULL
    with console.status("measuring") as status:
        measured = measure(
            settings(effort.lengths),
            device,
            lambda setting: status.update(f"measuring T = {setting.T}, {title_of(setting)}"),
            effort.enough,
        )
    console.print(bench_report(measured), soft_wrap=not console.is_terminal)
