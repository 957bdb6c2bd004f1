"""Show an explained trace as text: each line of the student with its operations and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.segment import SegmentLines
from rich.text import Text
from torch import Tensor

from ..student.choose_example_calls import OriginTable
from ..student.trace import Explained, Operation, Repeated, TraceLine, shorten
from .terminal import Hanging

LEGEND = "view: same memory, read anew   copy: every number moved   no word: new numbers"
# lines of the screen for the legend, the number of omitted lines, the next step and the prompt
BELOW = 6
_WIDE = 84  # columns of a table, with the blank at its end
# columns of an operation's name and of its shapes: with "view, not contiguous" behind them, a usual
# line is no wider than 80
_NAME = 13
_SHAPES = 34
# Okabe and Ito's colours, which colour-blind readers can distinguish: one for each token.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#999999", "#8a9bff")
# numbers of lines to show before a marked line: the largest that fits is used
BEFORE = range(30, 0, -1)


def crop_lines(crop: Tensor, full_shape: Sequence[int]) -> list[str]:
    """Return the lines that show a part of a tensor, one for each row of numbers.

    A row that goes on in the tensor ends with "…", and a last line "…" stands for further rows. A
    tensor with more than two dimensions consists of several tables. Only the first one is shown,
    below a line with its indices in the dimensions before the last two, such as [0, 0].

    Args:
        crop: The first rows and columns of the first table.
        full_shape: The shape of the whole tensor.
    """
    table = crop.reshape(-1, crop.shape[-1]) if crop.dim() else crop.reshape(1, 1)
    ordinary = table[table.isfinite()]
    is_whole = not table.is_floating_point() or bool((ordinary == ordinary.round()).all())
    texts = [_number(value, is_whole=is_whole) for row in table.tolist() for value in row]
    width = max(map(len, texts), default=0)
    suffix = " …" if full_shape and full_shape[-1] > table.shape[1] else ""
    lines = []
    columns = table.shape[1]
    for row in range(table.shape[0]):
        cells = texts[row * columns : (row + 1) * columns]
        lines.append(" ".join(text.rjust(width) for text in cells) + suffix)
    if len(full_shape) > 2:
        lines.insert(0, f"[{', '.join('0' for _ in full_shape[:-2])}]")
    return [*lines, "…"] if len(full_shape) > 1 and full_shape[-2] > table.shape[0] else lines


def _number(value: float | bool, *, is_whole: bool) -> str:
    if isinstance(value, bool):
        return "True" if value else "·"
    if not math.isfinite(value):
        return str(value).replace("-", "−").replace("inf", "∞")
    return f"{value:.0f}" if is_whole else f"{value:.2f}"


def trace_report(explained: Explained) -> RenderableType:
    """Return the report on one traced call: its lines, an exception, the result, and the tables."""
    renderables: list[RenderableType] = [Text(explained.title, style="bold")]
    if explained.sizes:
        renderables.append(Hanging("  ", explained.sizes, "bright_black"))
    width = max(
        (len(line.label) for line in explained.entries if isinstance(line, TraceLine)), default=0
    )
    for entry in explained.entries:
        renderables += (
            [_repetition(entry, width)] if isinstance(entry, Repeated) else _line(entry, width)
        )
    if explained.dropped:
        renderables.append(
            Text(f"  … and {explained.dropped} more operations", style="bright_black")
        )
    if explained.raised:
        renderables.append(Hanging("  ✗ ", explained.raised, "bold red"))
    if explained.returned:
        mark, style = ("✓", "bold green") if explained.is_right else ("✗", "bold red")
        renderables.append(Hanging(f"  {mark} ", explained.returned, style))
    is_wrong = any(table.wrong_rows for table in explained.tables)
    for table in explained.tables:
        renderables += _table(table, alone=not is_wrong)
    return Group(*renderables, Text(""))


def fitted_trace(
    console: Console, calls: Sequence[Explained], *, is_whole: bool = False
) -> tuple[RenderableType, int]:
    """Return as much of the calls as a terminal has room for, and the number of omitted lines.

    If there is room for all, or if the output is no terminal, nothing is omitted. Otherwise wrong
    calls come first, each with at least its marked lines, if it has any, and three rows of one
    wrong table. A call that is right takes one line, unless there is room for more.

    Args:
        console: The terminal.
        calls: The explained calls.
        is_whole: Whether to omit nothing.
    """
    full_report = Group(*map(trace_report, calls))
    room = max(console.height - BELOW, BELOW)

    def height(renderables: Sequence[RenderableType]) -> int:
        return len(console.render_lines(Group(*renderables)))

    if is_whole or not console.is_terminal or height([full_report]) <= room:
        return full_report, 0
    order = sorted(calls, key=_is_one_line)
    reports = [
        _in_one_line(call) if _is_one_line(call) else trace_report(shorten(call, 0))
        for call in order
    ]
    for index, call in enumerate(order):
        versions = [call] if call.entries else []
        if call.entries and not call.is_right:
            versions += [shorten(call, context_lines) for context_lines in BEFORE]
        for version in versions:
            candidate = [*reports[:index], trace_report(version), *reports[index + 1 :]]
            if height(candidate) <= room:
                reports = candidate
                break
    lines = console.render_lines(Group(*reports))[:room]
    return SegmentLines(lines, new_lines=True), height([full_report]) - len(lines)


def _is_one_line(call: Explained) -> bool:
    """Return whether one line is enough for a call.

    One line is enough if the call is right, stopped before its first operation, or waits for
    another function.
    """
    return call.is_right or not call.entries or call.waits_for != ""


def _in_one_line(call: Explained) -> RenderableType:
    mark, style = ("·", "") if "NotImplementedError" in call.raised else ("✗", "red")
    if call.is_right:
        mark, style = "✓", "green"
    return Hanging(f"{mark} ", f"{call.title}: {call.returned or call.raised}", style)


def _line(line: TraceLine, width: int) -> list[RenderableType]:
    indent = "  " * line.depth
    head = Hanging(f"  {line.label:>{width}}  {indent}", line.code, "bold", "bright_black")
    inside = width + 6 + len(indent)
    renderables: list[RenderableType] = [head]
    if line.proved:
        message = "one small change of this line makes every check pass"
        renderables.append(Hanging(f"{' ' * inside}! ", message, "bold yellow"))
    for operation in line.operations:
        renderables += _operation(operation, inside)
    return renderables


def _operation(operation: Operation, indent: int) -> list[RenderableType]:
    pad = " " * indent
    if operation.raised:
        name = f"✗ {operation.name}"  # in the column of the names that did not raise
        return [Hanging(f"{pad}{name:<{_NAME}} ", operation.takes, "red")]
    shapes = f"{operation.takes} → {operation.gives}" if operation.takes else operation.gives
    description = f"{shapes:<{_SHAPES}}  {operation.data}" if operation.data else shapes
    renderables: list[RenderableType] = [
        Hanging(f"{pad}{operation.name:<{_NAME}} ", description, "", "cyan")
    ]
    if operation.slices:
        renderables.append(Hanging(f"{pad}  ", operation.slices, "bright_black"))
    if operation.warning:
        renderables.append(Hanging(f"{pad}! ", operation.warning, "bold yellow"))
    if operation.crop is not None:
        renderables += [
            Text(f"{pad}  {line}", style="bright_black")
            for line in crop_lines(operation.crop, operation.full_shape)
        ]
    return renderables


def _repetition(again: Repeated, width: int) -> Text:
    lines = (
        f"line {again.first}" if again.first == again.last else f"lines {again.first}–{again.last}"
    )
    how = "like this" if again.alike else "like this, with other shapes"
    message = f"  {' ' * (width + 2 * again.depth)}  … {again.repeats} more {how} ({lines})"
    return Text(message, style="bright_black italic")


def _table(table: OriginTable, *, alone: bool) -> list[RenderableType]:
    """Return the student's rows of a table beside the expected ones.

    As many columns are shown as fit, from the first wrong one on. If `alone`, all rows are right,
    and only the student's are shown.
    """
    width = max(
        len(str(max(address, 0))) for row in table.rows for address in (*row.actual, *row.expected)
    )
    names = [table.title, *(row.name for row in table.rows)]
    margin = max(map(len, names)) + 2
    fits = (_WIDE - margin - 6) // (1 if alone else 2) // (width + 1)
    columns = len(table.rows[0].actual)
    count = min(fits, columns)
    wrong_columns = [
        column
        for row in table.rows
        for column in range(columns)
        if row.actual[column] != row.expected[column]
    ]
    start = max(min([*wrong_columns, columns - count]), 0)
    window = slice(start, start + count)
    heading = Text(f"  {table.title:<{margin}}", style="bold")
    if not alone:
        heading.append(f"{'yours':<{count * (width + 1) + 4}}should be")
    renderables: list[RenderableType] = []
    if table.legend:
        renderables.append(Text(f"  {table.legend}", style="bright_black"))
    if table.title or not alone:
        renderables.append(heading)
    for row in table.rows:
        line = Text(f"  {row.name:<{margin}}")
        _add_cells(line, row.actual[window], width)
        if not alone:
            line.append(" ✓  " if row.actual == row.expected else " ✗  ")
            _add_cells(line, row.expected[window], width)
        renderables.append(line)
    if table.hidden_heads:
        footer = f"  … and {table.hidden_heads} more heads"
        renderables.append(Text(footer, style="bright_black"))
    return renderables


def _add_cells(line: Text, addresses: Sequence[int], width: int) -> None:
    """Append a cell for each address to `line`, in its token's colour; "?" for a negative one."""
    for address in addresses:
        text = "?"
        colour = "#ffffff"
        if address >= 0:
            text = str(address)
            token = address % 10_000 // 100  # the hundreds of an address
            colour = _COLOURS[token % len(_COLOURS)]
        line.append(f"{text:>{width}}", f"black on {colour}")
        line.append(" ")
