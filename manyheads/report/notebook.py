"""The terminal's reports as HTML for a notebook: the same text, escaped, with collapsed hints."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from ..result import ExerciseResult
from .terminal import exercise_report
from .words import attempt_words

WIDTH = 96
# With a contrast of at least 4.5 : 1 on white: black, red, green, yellow, blue, magenta, cyan, grey.
_DARK = [(0, 0, 0), (176, 0, 32), (0, 104, 55), (122, 82, 0), (0, 72, 160), (128, 0, 112), (0, 96, 110), (87, 87, 87)]
_THEME = TerminalTheme((255, 255, 255), (31, 35, 40), _DARK, [_DARK[-1], *_DARK[1:]])
_BOX = "background:#fff;color:#1f2328;padding:0.6em 0.9em;border:1px solid #d0d7de;border-radius:4px;overflow-x:auto"
_FONT = "margin:0;line-height:1.35;font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


@dataclass(frozen=True)
class NotebookView:
    """The output of a cell: HTML, and text for notebooks without HTML."""

    html: str
    text: str


def shown(*parts: RenderableType | NotebookView) -> NotebookView:
    """Combine these parts in one box, one below the other."""
    made = [part if isinstance(part, NotebookView) else _rendered(part) for part in parts]
    inside = "".join(part.html for part in made)
    return NotebookView(f'<div style="{_BOX}">{inside}</div>', "\n".join(part.text for part in made))


def checked(result: ExerciseResult) -> NotebookView:
    """What `course check` prints about an attempt, with collapsed hints."""
    words = attempt_words(result)
    hints = [hint for hint in (words.hint, *(each.hint for each in words.functions)) if hint]
    return NotebookView(
        _rendered(exercise_report(result, hints=False)).html + folded(hints), _rendered(exercise_report(result)).text
    )


def folded(hints: Sequence[str]) -> str:
    """The hints, each collapsed."""
    return "".join(
        f'<details style="margin:0.4em 0"><summary style="cursor:pointer">hint</summary>{html.escape(hint)}</details>'
        for hint in hints
    )


def picture(png_base64: str, words: Sequence[str]) -> NotebookView:
    """A PNG with a description for readers who cannot see it."""
    alt = html.escape("; ".join(words), quote=True)
    image = f'<img alt="{alt}" style="max-width:100%" src="data:image/png;base64,{png_base64}">'
    return NotebookView(image, "\n".join(words))


def _rendered(part: RenderableType) -> NotebookView:
    """Render a part. A long sentence wraps; a report keeps its columns."""
    is_sentence = isinstance(part, Text)
    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        highlight=False,
        force_terminal=True,
        force_jupyter=False,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(part, soft_wrap=is_sentence)
    text = "\n".join(line.rstrip() for line in console.export_text(clear=False).rstrip().splitlines())
    code = f'<pre style="{_FONT};white-space:{"pre-wrap" if is_sentence else "pre"}">{{code}}</pre>'
    return NotebookView(console.export_html(theme=_THEME, code_format=code, inline_styles=True), text)
