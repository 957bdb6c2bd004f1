"""What a figure is drawn with: cells, words and arrows, readable by day, by night and on a phone.

A figure brings its own paper, so that it can be read whatever page it stands on. It is 320 units wide, as wide as a
notebook's text on a phone of 390 pixels, where its smallest words then have 12 pixels and more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

WIDTH = 320
SHOWN = 480  # pixels, where there is room
SMALL = 12.5
INK, DARK_INK = "#1b1f24", "#e6e9ed"
Shade = Callable[[float], str]

# Each name of a class by day and by night. s0 … s4 go from much to little; a and b are two heads.
COLOURS = {
    "paper": ("#ffffff", "#14181d"),
    "s0": ("#6aa9d6", "#346c95"),
    "s1": ("#8fbfe2", "#2d597a"),
    "s2": ("#b5d5ec", "#26475f"),
    "s3": ("#d6e8f5", "#1f3547"),
    "s4": ("#f4f9fc", "#1a2733"),
    "a": ("#d6e8f5", "#1f3547"),
    "b": ("#ffd9b8", "#5c2c08"),
    "none": ("#f0f1f3", "#23292f"),
}


class Drawing:
    """A figure in the making. Places are in units, from the upper left corner."""

    def __init__(self, title: str, words: str = "") -> None:
        """title: what it shows. words: the same for who cannot see it, with its numbers."""
        self.title, self.words = title, words
        self._parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> None:
        """Words, y at the foot of the letters. kind: any of bold, code, small."""
        named = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{named} text-anchor="{anchor}">{escape(words)}</text>')

    def slanted(self, x: float, y: float, words: str) -> None:
        """Words that rise from this place to the right."""
        self._parts.append(f'<text transform="translate({x:g} {y:g}) rotate(-40)">{escape(words)}</text>')

    def cell(self, x: float, y: float, width: float, height: float, colour: str, words: str = "") -> None:
        """A box with words in it. colour: a name of COLOURS, or "hatched"."""
        self._parts.append(f'<rect class="cell {colour}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')
        if colour == "hatched":
            self._parts.append(f'<path class="hatch" d="{_hatch(x, y, width, height)}"/>')
        if words:
            self.text(x + width / 2, y + height / 2 + 4.5, words, "code")

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """A thick frame around what is meant."""
        self._parts.append(f'<rect class="frame" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def line(self, *places: tuple[float, float], kind: str = "line") -> None:
        """A line through these places. kind: line, dashed, or arrow, which ends in a head."""
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
        if kind == "arrow":
            path += _head(*places[-2:])
        self._parts.append(f'<path class="{"dashed" if kind == "dashed" else "line"}" d="{path}"/>')

    def table(
        self, x: float, y: float, rows: Sequence[Sequence[float]], width: float, height: float, shade: Shade
    ) -> None:
        """Numbers in cells."""
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                self.cell(x + j * width, y + i * height, width, height, shade(value), number(value))

    def svg(self, height: float) -> str:
        """The file."""
        day = "".join(f".{name}{{fill:{light}}}" for name, (light, _) in COLOURS.items())
        night = "".join(f".{name}{{fill:{dark}}}" for name, (_, dark) in COLOURS.items())
        body = "\n".join(self._parts)
        return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{SHOWN}" height="{SHOWN * height / WIDTH:g}" \
role="img" aria-labelledby="title words">
<title id="title">{escape(self.title)}</title>
<desc id="words">{escape(self.words)}</desc>
<style>
text{{font:13px system-ui,sans-serif;fill:{INK};font-variant-numeric:tabular-nums}}
.bold{{font-weight:700}}.small,.code{{font-size:{SMALL}px}}.code{{font-family:ui-monospace,"DejaVu Sans Mono",monospace}}
.line,.dashed,.hatch,.frame{{fill:none;stroke:{INK}}}.dashed{{stroke-dasharray:4 3;stroke-width:1.5}}
.frame{{stroke-width:2.5}}.hatch{{stroke-width:.6;opacity:.55}}.cell{{stroke:{INK};stroke-width:.5}}.hatched{{fill:none}}
{day}
@media(prefers-color-scheme:dark){{text{{fill:{DARK_INK}}}.line,.dashed,.hatch,.frame,.cell{{stroke:{DARK_INK}}}
{night}}}
</style>
<rect class="paper" width="{WIDTH}" height="{height:g}"/>
{body}
</svg>
"""


def number(value: float) -> str:
    """With at most two decimals, whole numbers without: 0.24, −1.5, 3."""
    short = f"{value:.2f}"
    short = short[:-3] if short.endswith(".00") else short
    return ("0" if short == "-0" else short).replace("-", "−")


def share(value: float) -> str:
    """The shade of a share of one."""
    return next((f"s{4 - i}" for i, limit in enumerate((0.05, 0.15, 0.3, 0.6)) if value < limit), "s0")


def size(value: float) -> str:
    """The shade of a number of any sign, which is written in its cell."""
    return next((f"s{4 - i}" for i, limit in enumerate((0.005, 0.5, 1.0)) if abs(value) < limit), "s1")


def _hatch(x: float, y: float, width: float, height: float, step: float = 6) -> str:
    """Slanted lines within a box."""
    lines, start = [], step
    while start < width + height:
        left, right = max(0.0, start - height), min(start, width)
        lines.append(f"M{x + left:g} {y + start - left:g}L{x + right:g} {y + start - right:g}")
        start += step
    return "".join(lines)


def _head(before: tuple[float, float], end: tuple[float, float]) -> str:
    """An arrow's head."""
    (x0, y0), (x1, y1) = before, end
    long = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
    ux, uy = (x1 - x0) / long * 5, (y1 - y0) / long * 5
    sides = ((x1 - ux - uy * 0.7, y1 - uy + ux * 0.7), (x1 - ux + uy * 0.7, y1 - uy - ux * 0.7))
    return "M" + "L".join(f"{round(x, 1):g} {round(y, 1):g}" for x, y in (sides[0], end, sides[1]))
