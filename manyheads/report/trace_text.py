"""An explained trace as text: the student's lines, and below each its operations with shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from torch import Tensor

from ..student.explain_trace import Explained, Operation, Repeated, TraceLine
from ..student.origins import OriginBlock, OriginCell, OriginPicture

# A crop of a tensor as lines of numbers.


def crop_lines(crop: Tensor, whole: Sequence[int]) -> list[str]:
    """Rows of numbers, with "…" where the tensor continues. `whole`: the tensor's full shape."""
    table = crop.reshape(-1, crop.shape[-1]) if crop.dim() else crop.reshape(1, 1)
    ordinary = table[table.isfinite()]
    whole_numbers = bool((ordinary == ordinary.round()).all()) if table.is_floating_point() else True
    texts = [[_number(value, whole_numbers) for value in row] for row in table.tolist()]
    width = max((len(text) for row in texts for text in row), default=0)
    more = " …" if whole and whole[-1] > table.shape[1] else ""
    lines = [" ".join(f"{text:>{width}}" for text in row) + more for row in texts]
    if len(whole) > 2:
        lines.insert(0, f"[{', '.join('0' for _ in whole[:-2])}]")
    return [*lines, "…"] if len(whole) > 1 and whole[-2] > table.shape[0] else lines


def _number(value: float | bool, is_whole: bool) -> str:
    if isinstance(value, bool):
        return "True" if value else "·"
    if not math.isfinite(value):
        return str(value).replace("-", "−").replace("inf", "∞")
    return f"{value:.0f}" if is_whole else f"{value:.2f}"


LEGEND = "view: same memory, read anew   copy: every number moved   no word: new numbers"
_NAME, _SHAPES = 13, 34  # columns: with "view, not contiguous" behind them a usual line is no wider than 80
# Okabe and Ito's colours, which colour-blind readers can distinguish: one for each token.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#999999", "#8a9bff")


def trace_report(explained: Explained) -> RenderableType:
    """Return one call."""
    parts: list[RenderableType] = [Text(explained.title, style="bold")]
    if explained.sizes:
        parts.append(Text(f"  {explained.sizes}", style="bright_black"))
    width = max((len(line.label) for line in _all_lines(explained)), default=0)
    for entry in explained.entries:
        parts += _repeated(entry, width) if isinstance(entry, Repeated) else _line(entry, width)
    if explained.dropped:
        parts.append(Text(f"  … and {explained.dropped} more operations", style="bright_black"))
    if explained.raised:
        parts.append(Text(f"  ✗ {explained.raised}", style="bold red"))
    if explained.returned:
        mark, style = ("✓", "bold green") if explained.right else ("✗", "bold red")
        parts.append(Text(f"  {mark} {explained.returned}", style=style))
    if explained.picture:
        parts += _picture(explained.picture)
    return Group(*parts, Text(""))


def _all_lines(explained: Explained) -> Iterator[TraceLine]:
    return (entry for entry in explained.entries if isinstance(entry, TraceLine))


def _line(line: TraceLine, width: int) -> list[RenderableType]:
    indent = "  " * line.depth
    head = Text.assemble((f"  {line.label:>{width}}  {indent}", "bright_black"), (line.code, "bold"))
    inside = width + 6 + len(indent)
    return [head, *(part for operation in line.operations for part in _operation(operation, inside))]


def _operation(operation: Operation, indent: int) -> list[RenderableType]:
    pad = " " * indent
    if operation.raised:
        text = f"{pad}✗ {operation.name:<{_NAME}}{operation.takes}"
        return [Text(text, style="red")]
    shapes = f"{operation.takes} → {operation.gives}" if operation.takes else operation.gives
    row = Text(pad)
    row.append(f"{operation.name:<{_NAME}} ", "cyan")
    row.append(f"{shapes:<{_SHAPES}}  " if operation.data else shapes)
    row.append(operation.data, "magenta" if "not" in operation.data else "green")
    parts: list[RenderableType] = [row]
    if operation.warning:
        parts.append(Text(f"{pad}! {operation.warning}", style="bold yellow"))
    if operation.crop is not None:
        parts += [Text(f"{pad}  {line}", style="bright_black") for line in crop_lines(operation.crop, operation.whole)]
    return parts


def _repeated(again: Repeated, width: int) -> list[RenderableType]:
    where = f"line {again.first}" if again.first == again.last else f"lines {again.first}–{again.last}"
    how = "like this" if again.alike else "like this, with other shapes"
    return [
        Text(f"  {' ' * (width + 2 * again.depth)}  … {again.more} more {how} ({where})", style="bright_black italic")
    ]


def _picture(picture: OriginPicture) -> list[RenderableType]:
    legend = f"  each number of sequence 0 by its address in {picture.argument}, 100·token + channel"
    parts: list[RenderableType] = [Text(legend, style="bright_black")]
    for block in picture.blocks:
        parts += _block(block, alone=picture.is_right)
    if picture.more:
        parts.append(Text(f"  … and {picture.more} more heads", style="bright_black"))
    return parts


def _block(block: OriginBlock, *, alone: bool) -> list[RenderableType]:
    width = max(len(_address(cell)) for row in (*block.yours, *block.right) for cell in row)
    table = len(block.yours[0]) * (width + 1)
    margin = max(len(name) for name in (block.title, *block.rows)) + 2
    beside = margin + 2 * table + 6 <= 84
    heading = Text(f"  {block.title:<{margin}}", style="bold")
    if not alone:
        heading.append(f"{'yours':<{table + 4}}" if beside else "yours")
        heading.append("should be" if beside else "")
    parts: list[RenderableType] = [heading] if block.title or not alone else []
    for name, mine, right in zip(block.rows, block.yours, block.right, strict=True):
        row = Text(f"  {name:<{margin}}")
        _cells(row, mine, width)
        if not alone:
            row.append(" ✓  " if all(cell.right for cell in mine) else " ✗  ")
            if beside:
                _cells(row, right, width)
        parts.append(row)
    if not alone and not beside:
        parts.append(Text(f"  {'':<{margin}}should be", style="bold"))
        for name, right in zip(block.rows, block.right, strict=True):
            row = Text(f"  {name:<{margin}}")
            _cells(row, right, width)
            parts.append(row)
    return parts


def _cells(row: Text, cells: Sequence[OriginCell], width: int) -> None:
    for cell in cells:
        colour = _COLOURS[cell.token % len(_COLOURS)] if cell.token >= 0 else "#ffffff"
        row.append(f"{_address(cell):>{width}}", f"black on {colour}")
        row.append(" ")


def _address(cell: OriginCell) -> str:
    return "?" if cell.address is None else str(cell.address)
