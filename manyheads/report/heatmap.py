"""Draw the tables of a picture as SVG within a page.

The SVG has no script, style or network access, and uses the page's own colours. They are the
lessons' colours: blue for numbers above 0 and for visible positions, orange for numbers below 0,
hatching for hidden positions, and a colour for each head. Cells are one ink of varying opacity, so
pages look right in dark mode, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from ..student.pictures import HIDDEN, Panel, Picture

# the style's names; the lessons have the first two
HEADS = ("--s3", "--bad", "--good", "--grave", "--error", "--s1")
MORE, LESS, NO_HEAD = "--s0", "--less", "--none"
_SHADES = 40  # how many shades; cells of one shade are one path
# the most width and height of a table: three stand side by side on a student's page
_WIDE, _HIGH = 208.0, 264.0
_TOKEN = 5.5  # a cell's width and height: four heads of a sentence stand side by side
_DIGIT, _MARK = 5.5, 10.5  # the widths of a digit of an address, and of the mark behind it
_ROW = 18.0  # the height of a row of addresses
_LEFT, _TOP, _BELOW, _RIGHT = 18.0, 18.0, 16.0, 8.0  # the margins around the cells
_NAMED = 40.0  # the margin on the left where rows have names
_LEAST = 150.0  # the least width: a title has room
# the width of the page of `course plot` in pixels, and of the gap between two tables
_PAGE, _GAP = 1100.0, 8.0
_LABEL = 9  # the size of a label
_SMALLEST = 1.4  # the smallest scale: labels are then 12.6 pixels high, which can be read
_LARGEST = 2.0  # the largest scale: one small table need not fill the page


def page_scale(picture: Picture) -> float:
    """Return the scale at which a picture's tables fill the page of `course plot` side by side.

    There are as many tables in a row as leave labels that can be read. Four heads of a sentence
    become two rows of two.
    """
    widest = max(_size(picture, panel)[0] for panel in picture.panels)
    for count in range(len(picture.panels), 0, -1):
        scale = (_PAGE - _GAP * (count - 1)) / (count * widest)
        if scale >= _SMALLEST:
            return min(scale, _LARGEST)
    return _SMALLEST


def _size(picture: Picture, panel: Panel) -> tuple[float, float]:
    """Return the width and height of a table with its margins."""
    rows, columns = panel.values.shape
    width, height = _cell(picture, panel)
    margin = _NAMED if picture.tokens else _LEFT
    return max(margin + columns * width + _RIGHT, _LEAST), _TOP + rows * height + _BELOW


def svg(picture: Picture, panel: Panel, scale: float = 1.0) -> str:
    """Return one table of a picture, with a label for screen readers.

    Args:
        picture: The picture.
        panel: The table.
        scale: The factor by which the table and its labels are enlarged.
    """
    width, height = _cell(picture, panel)
    margin = _NAMED if picture.tokens else _LEFT
    wide, high = _size(picture, panel)
    label = escape(f"{picture.title}: {panel.title}", quote=True)
    return (
        f'<svg viewBox="0 0 {wide:g} {high:g}" width="{wide * scale:g}" role="img" '
        f'aria-label="{label}" '
        f'font-size="{_LABEL}" '
        f'fill="currentColor" text-anchor="middle"><g transform="translate({margin:g} {_TOP:g})">'
        f"{''.join(_table(picture, panel, width, height))}</g></svg>"
    )


def legend(picture: Picture) -> str:
    """Return a text that explains the picture's rows, columns and colours."""
    sentences = [f"Rows: {picture.rows}, columns: {picture.columns}."] if picture.rows else []
    of_other = "10000·sequence + " if _largest(picture) >= 10_000 else ""
    for panel_kind in dict.fromkeys(panel.kind for panel in picture.panels):
        largest = f"{_full_colour(picture, panel_kind):.2g}"
        sentences.append(
            {
                "numbers": f"Blue: up to {largest}, orange: down to −{largest}.",
                "weights": "Blue: up to 1.",
                "mask": "Blue: seen.",
                "difference": f"Difference: blue up to {largest}, orange down to −{largest}.",
                "addresses": (
                    f"Numbers are addresses, {of_other}100·{picture.rows} + channel; colours "
                    "are heads."
                ),
            }[panel_kind]
        )
    if any(
        _is_hidden(value, panel)
        for panel in picture.panels
        for value in panel.values.flatten().tolist()
    ):
        sentences.append("Hatched: hidden, or no number.")
    return " ".join(sentences)


def _table(picture: Picture, panel: Panel, width: float, height: float) -> Iterator[str]:
    rows, columns = panel.values.shape
    largest, table = _full_colour(picture, panel.kind), panel.values.double().tolist()
    cells: dict[str, list[str]] = defaultdict(list)
    for i in range(rows):
        for j in range(columns):
            corner = f"M{j * width:g} {i * height:g}"
            if panel.heads is not None:
                head = int(panel.heads[i, j])
                cells[f'fill="var({HEADS[head % len(HEADS)] if head >= 0 else NO_HEAD})"'].append(
                    corner
                )
            elif _is_hidden(table[i][j], panel):
                cells["hatch"].append(f"M{j * width:g} {(i + 1) * height:g}l{width:g} -{height:g}")
            elif share := _share(table[i][j] / largest, panel):
                cells[
                    f'fill="var({MORE if table[i][j] > 0 else LESS})" fill-opacity="{share:g}"'
                ].append(corner)
    yield (
        '<path fill="none" stroke="currentColor" stroke-width=".5" '
        f'd="{"".join(cells.pop("hatch", []))}"/>'
    )
    for paint, corners in cells.items():
        path = "".join(f"{corner}h{width:g}v{height:g}h-{width:g}z" for corner in corners)
        yield f'<path {paint} shape-rendering="crispEdges" d="{path}"/>'
    across, down = columns * width, rows * height
    yield (
        f'<rect width="{across:g}" height="{down:g}" fill="none" stroke="currentColor" '
        'stroke-width=".6"/>'
    )
    yield f'<text x="{across / 2:g}" y="-6" font-size="11">{escape(panel.title)}</text>'
    if panel.kind == "addresses":
        yield from _numbers(picture, panel, width, height)
    for axis, count, step in ((0, rows, height), (1, columns, width)):
        for k in range(0, count, 1 if picture.tokens or step >= 13 else 5):
            text = escape(picture.tokens[k]) if picture.tokens else k + picture.start[axis]
            at = (k + 0.5) * step
            position = (
                f'x="-4" y="{at + 3:g}" text-anchor="end"'
                if axis == 0
                else f'x="{at:g}" y="{down + 11:g}"'
            )
            yield f"<text {position}>{text}</text>" if text != "" else ""


def _numbers(picture: Picture, panel: Panel, width: float, height: float) -> Iterator[str]:
    """Yield the address in each cell, marked if another address is expected."""
    expected = picture.panels[0].values.tolist()
    for i, row in enumerate(panel.values.tolist()):
        for j, address in enumerate(row):
            number = "?" if address < 0 else address
            text = f"{number}{'' if address == expected[i][j] else '✗'}"
            yield f'<text x="{(j + 0.5) * width:g}" y="{(i + 0.5) * height + 3:g}">{text}</text>'


def _share(value: float, panel: Panel) -> float:
    """Return the opacity of a cell.

    In weights and differences small numbers matter, too, so these grow with the square root.
    """
    share = min(abs(value), 1.0) ** (1 if panel.kind == "numbers" else 0.5)
    return round(share * _SHADES) / _SHADES


def _is_hidden(value: float, panel: Panel) -> bool:
    return value != value or value < HIDDEN or (panel.kind == "mask" and not value)


def _largest(picture: Picture) -> int:
    return max(
        (int(panel.values.max()) for panel in picture.panels if panel.kind == "addresses"),
        default=0,
    )


def _full_colour(picture: Picture, panel_kind: str) -> float:
    """Return the number that has the full colour, in all panels of this panel_kind."""
    if panel_kind in ("weights", "mask"):
        return 1.0
    values = [
        value
        for panel in picture.panels
        if panel.kind == panel_kind
        for value in panel.values.flatten().tolist()
    ]
    return max((abs(value) for value in values if HIDDEN < value < -HIDDEN), default=0.0) or 1.0


def _cell(picture: Picture, panel: Panel) -> tuple[float, float]:
    """Return the width and height of a cell: a square if there is room."""
    rows, columns = panel.values.shape
    if picture.tokens:
        return _TOKEN, _TOKEN
    if panel.kind == "addresses":
        return _DIGIT * len(str(_largest(picture))) + _MARK, _ROW
    width = min(_WIDE / columns, 32.0)
    height = min(max(width, 14.0), 24.0, _HIGH / rows)
    return int(2 * width) / 2, int(2 * height) / 2  # sharp at halves
