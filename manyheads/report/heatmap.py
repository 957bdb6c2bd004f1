"""Draw a band of heatmaps as SVG within a page: without script, style or network, with a description in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

import torch

from ..student.plot_content import HIDDEN, NONE, Band, Panel, is_none, summary

FEW = 8  # numbers are written into cells if there are at most this many in a row


def heading(panel: Panel) -> str:
    """Return the panel's title, with what the colours do not show."""
    if panel.values is None:
        return panel.title
    if is_no_difference(panel):
        return f"{panel.title}: none"
    hidden = panel.kind == "numbers" and bool((panel.values < HIDDEN).any())
    return f"{panel.title} (grey: −∞)" if hidden else panel.title


def is_no_difference(panel: Panel) -> bool:
    """Return whether this is a difference without any difference."""
    return panel.kind == "difference" and panel.values is not None and is_none(panel.values)


def number(value: float, panel: Panel) -> str:
    """Return the number of a cell, in a few characters."""
    if value != value:
        return "≠" if panel.kind == "difference" else "NaN"
    if value < HIDDEN:
        return "−∞"
    if panel.kind == "mask":
        return "1" if value else "0"
    if value == 0 or (panel.kind == "difference" and abs(value) < NONE):
        return "0"
    if abs(value) < 0.005:
        return "≈0"
    shown = f"{value:.0f}" if panel.kind == "difference" and value in (-1, 1) else f"{value:.2f}"
    return shown.replace("-", "−")


def limits(band: Band, panel: Panel) -> tuple[float, float]:
    """Return the ends of the scale, which panels of one kind share. A difference is symmetric around 0."""
    tables = [p.values.double().flatten() for p in band.panels if p.values is not None and p.kind == panel.kind]
    values = torch.cat(tables)
    values = values[values.isfinite() & (values > HIDDEN)]
    if panel.kind in ("mask", "weights"):
        return 0.0, 1.0
    if panel.kind == "difference":
        largest = float(values.abs().max()) if values.numel() else 0.0
        return (-largest, largest) if largest > NONE else (-1.0, 1.0)
    return (float(values.min()), float(values.max())) if values.numel() else (0.0, 1.0)


# Colours from one end of the scale to the other, which colour-blind readers can read.
_COLOURS = {
    "numbers": "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725",
    "weights": "00224e 083370 35456c 4f576c 666970 7d7c78 948e77 aea371 c8b866 e5cf52 fee838",
    "mask": "000000 ffffff",
    "difference": "7f3b08 b25706 e08214 fcb761 fee0b6 f6f6f7 d8daeb b1aad1 8073ac 532687 2d004b",
}
_ENDS = {"numbers": ("dark", "light"), "weights": ("dark", "light"), "difference": ("orange", "purple")}
_HIDDEN_GREY = (0xD0, 0xD0, 0xD0)
_SHADES = 40  # how many shades; cells of one shade are one path
_WIDE, _HIGH = 214.0, 264.0  # the most width and height of a panel's cells
_LABELLED = 330.0  # both, where rows and columns have names of their own: a page on a phone has as much room
_LEFT, _TOP, _BELOW, _APART = 18.0, 18.0, 30.0, 8.0  # the margins around the cells
Colour = tuple[int, int, int]


def svg(band: Band) -> str:
    """Return the picture, with a label for screen readers."""
    panels = [panel for panel in band.panels if panel.values is not None]
    width, height = _cell(band, panels[0])
    parts, x = [], 0.0
    for panel in panels:
        parts.append(
            f'<g transform="translate({x + _LEFT:g} {_TOP:g})">{"".join(_panel(band, panel, width, height))}</g>'
        )
        x += _LEFT + _columns(panel) * width + _APART
    whole = _TOP + max(map(_rows, panels)) * height + _BELOW
    named = escape(summary([band])[0], quote=True)
    return (
        f'<svg viewBox="0 0 {x:g} {whole:g}" width="{x:g}" role="img" aria-label="{named}" font-size="9" '
        f'fill="currentColor" text-anchor="middle">{"".join(parts)}</svg>'
    )


def colour(value: float, panel: Panel, scale: tuple[float, float]) -> Colour:
    """Return the colour of a cell: grey if the number is hidden or NaN, the end of the scale if it is outside the scale."""
    if value != value or value < HIDDEN:
        return _HIDDEN_GREY
    low, high = scale
    share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    return _mixed(_COLOURS[panel.kind].split(), round(share * _SHADES) / _SHADES)


def ink(behind: Colour) -> str:
    """Black or white, whichever has more contrast with this background."""
    return "#000" if _luminance(behind) > 0.179 else "#fff"


def _panel(band: Band, panel: Panel, width: float, height: float) -> Iterator[str]:
    assert panel.values is not None
    table, scale = panel.values.double().tolist(), limits(band, panel)
    shades: dict[Colour, list[str]] = defaultdict(list)
    numbers: dict[str, list[str]] = defaultdict(list)
    written = max(_rows(panel), _columns(panel)) <= FEW
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            shade = colour(value, panel, scale)
            shades[shade].append(f"M{j * width:g} {i * height:g}h{width:g}v{height:g}h-{width:g}z")
            if written:
                place = f'x="{(j + 0.5) * width:g}" y="{(i + 0.5) * height + 3:g}"'
                numbers[ink(shade)].append(f"<text {place}>{number(value, panel)}</text>")
    for (red, green, blue), cells in shades.items():
        yield f'<path fill="#{red:02x}{green:02x}{blue:02x}" shape-rendering="crispEdges" d="{"".join(cells)}"/>'
    for black_or_white, texts in numbers.items():
        yield f'<g fill="{black_or_white}" font-size="{8 if width < 28 else 9}">{"".join(texts)}</g>'
    yield from _around(band, panel, width, height, scale)


def _around(band: Band, panel: Panel, width: float, height: float, scale: tuple[float, float]) -> Iterator[str]:
    """Yield the frame, the heading, the axes and the scale."""
    across, down = _columns(panel) * width, _rows(panel) * height
    yield f'<rect width="{across:g}" height="{down:g}" fill="none" stroke="currentColor" stroke-width=".6"/>'
    yield f'<text x="{across / 2:g}" y="-6" font-size="11">{escape(heading(panel))}</text>'
    for name, count, step in ((0, _rows(panel), height), (1, _columns(panel), width)):
        for k in range(0, count, 1 if band.labels or step >= 12 else 5):
            at = (k + 0.5) * step
            place = f'x="-9" y="{at + 3:g}"' if name == 0 else f'x="{at:g}" y="{down + 10:g}"'
            yield f"<text {place}>{escape(band.labels[k]) if band.labels else k}</text>"
    yield f'<text x="{across / 2:g}" y="{down + 20:g}">{escape(_below(band, panel, scale))}</text>'


def _below(band: Band, panel: Panel, scale: tuple[float, float]) -> str:
    """Return the caption below a panel: the axes for the first panel, the colours for the others."""
    if panel is band.panels[0]:
        return f"{band.rows} ↓  {band.columns} →"
    if panel.kind == "mask":
        return "1 (white): seen"
    low, high = (f"{value:.2g}".replace("-", "−") for value in scale)
    first, last = _ENDS[panel.kind]
    return f"{low} ({first}) … {high} ({last})"


def _cell(band: Band, panel: Panel) -> tuple[float, float]:
    """Return the width and height of a cell: a square if there is room."""
    if band.labels:
        return (_halves(min(_LABELLED / _columns(panel), 32.0)),) * 2
    width = min(_WIDE / _columns(panel), 32.0)
    return _halves(width), _halves(min(max(width, 14.0), 24.0, _HIGH / _rows(panel)))


def _halves(length: float) -> float:
    """Round down to halves, which are short in SVG and sharp on most screens."""
    return int(2 * length) / 2


def _rows(panel: Panel) -> int:
    return 0 if panel.values is None else panel.values.shape[0]


def _columns(panel: Panel) -> int:
    return 0 if panel.values is None else panel.values.shape[1]


def _mixed(stops: Sequence[str], share: float) -> Colour:
    """Return the colour at this fraction of the scale."""
    at = share * (len(stops) - 1)
    first = min(int(at), len(stops) - 2)
    a, b = (_parsed(stops[first]), _parsed(stops[first + 1]))
    red, green, blue = (round(x + (y - x) * (at - first)) for x, y in zip(a, b, strict=True))
    return red, green, blue


def _parsed(stop: str) -> Colour:
    return int(stop[:2], 16), int(stop[2:4], 16), int(stop[4:], 16)


def _luminance(shade: Colour) -> float:
    """Return the relative luminance of WCAG 2. At 0.179 black and white have the same contrast."""
    parts = [part / 255 for part in shade]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
