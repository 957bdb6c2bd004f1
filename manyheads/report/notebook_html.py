"""The terminal's reports as HTML for a notebook: the same text, escaped, with collapsed hints."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from ..result import ExerciseResult
from .called import NOTEBOOK, as_called, text_as_called
from .terminal import HintLine, exercise_report

WIDTH = 62  # columns: as many as there is room for beside an open file browser
# With a contrast of at least 4.5 : 1 on white: black, red, green, yellow, blue, magenta, cyan,
# grey.
_DARK = [
    (0, 0, 0),
    (176, 0, 32),
    (0, 104, 55),
    (122, 82, 0),
    (0, 72, 160),
    (128, 0, 112),
    (0, 96, 110),
    (87, 87, 87),
]
_THEME = TerminalTheme((255, 255, 255), (31, 35, 40), _DARK, [_DARK[-1], *_DARK[1:]])
_BOX = (
    "background:#fff;color:#1f2328;padding:0.6em 0.9em;border:1px solid "
    "#d0d7de;border-radius:4px;overflow-x:auto"
)
_WORDS = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_FONT = (
    f"margin:0;font-size:12px;line-height:1.35;word-break:normal;overflow-wrap:break-word;{_WORDS}"
)


@dataclass(frozen=True)
class NotebookView:
    """The output of a cell: HTML, and text for notebooks without HTML."""

    html: str
    text: str


def combine_views(*renderables: RenderableType | NotebookView) -> NotebookView:
    """Combine these parts in one box, one below the other."""
    views = [
        renderable if isinstance(renderable, NotebookView) else _rendered(renderable)
        for renderable in renderables
    ]
    inside = "".join(view.html for view in views)
    return NotebookView(
        f'<div style="{_BOX}">{inside}</div>', "\n".join(view.text for view in views)
    )


def checked(result: ExerciseResult, label: str = "") -> NotebookView:
    """Return what `course check` prints about an attempt; each hint is collapsed below what it is
    about.
    """
    report = exercise_report(result, label=label)
    inside = [
        "".join(map(_folded, renderables)) if is_hint else _rendered(Group(*renderables)).html
        for is_hint, renderables in groupby(
            report.renderables, lambda renderable: isinstance(renderable, HintLine)
        )
    ]
    return NotebookView("".join(inside), _rendered(report).text)


class _NotebookConsole(Console):
    """Renders every text with the command as a cell runs it."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render a renderable; of a text, what tells of a command is changed first."""
        if isinstance(renderable, Text):
            renderable = text_as_called(renderable, NOTEBOOK)
        return super().render(renderable, options)


def _folded(line: Any) -> str:
    label = f"hint for {line.function}" if line.function else "hint"
    summary = f'<summary style="cursor:pointer">{html.escape(label)}</summary>'
    return (
        '<details style="margin:0.2em 0 0.4em '
        f'{line.deep}ch;font-size:12px;{_WORDS}">'
        f"{summary}{html.escape(as_called(line.hint, NOTEBOOK))}</details>"
    )


def _rendered(renderable: RenderableType) -> NotebookView:
    """Render a part. A long sentence wraps; a report keeps its columns."""
    is_sentence = isinstance(renderable, Text)
    plain: dict[str, Any] = {
        "highlight": False,
        "emoji": False,
        "force_jupyter": False,
        "legacy_windows": False,
    }
    console = _NotebookConsole(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        **plain,
    )
    console.print(renderable, soft_wrap=is_sentence)
    text = "\n".join(
        line.rstrip() for line in console.export_text(clear=False).rstrip().splitlines()
    )
    code = f'<pre style="{_FONT};white-space:{"pre-wrap" if is_sentence else "pre"}">{{code}}</pre>'
    return NotebookView(
        console.export_html(theme=_THEME, code_format=code, inline_styles=True), text
    )
