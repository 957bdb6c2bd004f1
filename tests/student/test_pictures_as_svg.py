"""Pictures as SVG in an HTML page: the colours, sizes, labels and legends of their tables."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch

from manyheads.report.pages import pictures_page
from manyheads.student.pictures import (
    HEAD_COLOURS,
    LESS,
    MORE,
    NO_HEAD,
    Panel,
    Picture,
    compare_tables,
    legend,
    page_scale,
    svg,
)
from tests.make import REPOSITORY

INF, NAN = float("inf"), float("nan")
AXIS_TITLES = ("query position", "key position")
BLUE, ORANGE = f"var({MORE})", f"var({LESS})"
STYLE = (REPOSITORY / "manyheads/report/pages/style.css").read_text(encoding="utf-8")


def picture_of(*rows: list[float], panel_kind: str = "numbers") -> Picture:
    """Return a picture with one panel of these rows."""
    return Picture("f(x)", "", (Panel("yours", torch.tensor(rows), panel_kind),), *AXIS_TITLES)


def svg_root(picture: Picture, panel: int = 0) -> ElementTree.Element:
    """Return the SVG of this panel, parsed as XML."""
    return ElementTree.fromstring(svg(picture, picture.panels[panel]))


def svg_texts(picture: Picture, panel: int = 0) -> list[str]:
    """Return the texts in the SVG of this panel."""
    return [element.text or "" for element in svg_root(picture, panel).iter("text")]


def cells_by_colour(picture: Picture, panel: int = 0) -> dict[tuple[str, str], int]:
    """Return the number of cells of each (colour, opacity); hatched cells have colour "none"."""
    paths = [path for path in svg_root(picture, panel).iter("path") if path.get("d")]
    return {
        (str(p.get("fill")), str(p.get("fill-opacity"))): str(p.get("d")).count("M") for p in paths
    }


@pytest.mark.parametrize(
    ("panel_kind", "rows", "cells"),
    [
        (
            "numbers",
            [[2.0, -1.0], [0.0, -INF]],
            {(BLUE, "1"): 1, (ORANGE, "0.5"): 1, ("none", "None"): 1},
        ),
        (
            "weights",
            [[1.0, 0.25], [0.0, NAN]],
            {(BLUE, "1"): 1, (BLUE, "0.5"): 1, ("none", "None"): 1},
        ),
        ("mask", [[1.0, 0.0], [1.0, 1.0]], {(BLUE, "1"): 3, ("none", "None"): 1}),
        (
            "difference",
            [[4.0, -1.0], [0.0, NAN]],
            {(BLUE, "1"): 1, (ORANGE, "0.5"): 1, ("none", "None"): 1},
        ),
        ("numbers", [[0.0, 0.0]], {}),
        ("numbers", [[INF, -1.0]], {(BLUE, "1"): 1, (ORANGE, "1"): 1}),
    ],
)
def test_the_colour_of_a_cell_shows_its_number(panel_kind, rows, cells):
    assert cells_by_colour(picture_of(*rows, panel_kind=panel_kind)) == cells


def test_all_panels_use_the_same_colours_and_the_legend_explains_them():
    picture = compare_tables("f(x)", torch.eye(2), torch.eye(2) * -4, *AXIS_TITLES)
    assert cells_by_colour(picture) == {(BLUE, "0.25"): 2}
    assert cells_by_colour(picture, 1) == {(ORANGE, "1"): 2}
    assert legend(picture) == (
        "Rows: query position, columns: key position. Blue: up to 4, orange: down to −4. "
        "Difference: blue up to 5, orange down to −5."
    )
    assert legend(picture_of([1.0, 0.0], panel_kind="mask")).endswith(
        " Blue: seen. Hatched: hidden, or no number."
    )


def picture_of_addresses(*actual: int) -> Picture:
    """Return the picture of these addresses in channels 4 to 7. Expected: 0, 1, 100, 101."""
    panels = [
        Panel(title, torch.tensor([row]), "addresses", torch.tensor([row]) % 100)
        for title, row in (("expected", (0, 1, 100, 101)), ("yours", actual))
    ]
    return Picture("split(x)", "", tuple(panels), "token", "channel", start=(0, 4))


def test_addresses_are_coloured_by_head_and_wrong_ones_are_marked():
    moved, unmoved = picture_of_addresses(0, 100, 1, -1), picture_of_addresses(0, 1, 100, 101)
    assert svg_texts(moved, 1) == ["yours", "0", "100✗", "1✗", "?✗", "0", *"4567"]
    assert svg_texts(unmoved)[1:5] == ["0", "1", "100", "101"]
    colours = {(f"var({colour})", "None"): 2 for colour in HEAD_COLOURS[:2]}
    assert cells_by_colour(unmoved) == colours
    explanation = "Numbers are addresses, 100·token + channel; colours are heads."
    assert legend(unmoved).endswith(explanation)
    assert "10000·sequence + 100·token" in legend(picture_of_addresses(10_000, 1, 100, 101))


def test_rows_and_columns_are_labelled_with_tokens_or_positions():
    sentence = replace(picture_of(*[[0.0] * 5] * 5), tokens=("", "a<b", "", "", "c"))
    assert svg_texts(sentence) == ["yours", "a<b", "c", "a<b", "c"]
    assert svg_texts(picture_of(*[[0.0] * 24] * 3)) == ["yours", *"012", "0", "5", "10", "15", "20"]


def test_the_title_of_a_picture_is_escaped():
    title = """"><script>alert('x')</script>&"""
    picture = compare_tables(title, torch.eye(2), torch.eye(2) * 3, *AXIS_TITLES)
    assert "<script" not in "".join(svg(picture, panel) for panel in picture.panels)
    assert (svg_root(picture).get("role"), svg_root(picture).get("aria-label")) == (
        "img",
        f"{title}: expected",
    )
    page = pictures_page("a <title>", [picture, picture_of([1.0, 2.0])])
    assert page.count("<svg") == 4
    assert "<figcaption>&#34;&gt;&lt;script&gt;" in page
    assert "<title>a &lt;title&gt;</title>" in page


@pytest.mark.parametrize("columns", [3, 9, 24])
def test_pictures_fill_the_page_and_their_labels_are_legible(
    columns,
):
    picture = compare_tables(
        "f(x)", torch.zeros(8, columns), torch.ones(8, columns), "row", "channel"
    )
    matches = re.findall(
        r'<svg viewBox="0 0 ([\d.]+) [\d.]+" width="([\d.]+)".*? font-size="(\d+)"',
        pictures_page("f", [picture]),
    )
    sizes = [tuple(map(float, match)) for match in matches]
    assert len(sizes) == len(picture.panels) == 3
    assert all(label * display_width / svg_width >= 12 for svg_width, display_width, label in sizes)
    total_width = sum(display_width for _, display_width, _ in sizes)
    assert 800 < total_width < 1120  # pixels


def colours(text: str) -> dict[str, list[str]]:
    """Return the colours of this style sheet by name: first the light theme, then the dark one."""
    palette: dict[str, list[str]] = {}
    for name, colour in re.findall(
        r"(?:--|\.)([\w-]+)(?::|\{fill:)(#[0-9a-f]{6})", text.replace("#fff;", "#ffffff;")
    ):
        palette.setdefault(name, []).append(colour)
    return palette


@pytest.mark.parametrize("name", [*dict.fromkeys([*HEAD_COLOURS, MORE, LESS, NO_HEAD])])
def test_text_is_legible_on_every_colour_in_both_themes(name):
    """The contrast ratio is that of WCAG 2. Paler cells have a larger contrast."""

    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
        return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05

    palette = colours(STYLE)
    assert len(palette[name[2:]]) == 2  # light and dark theme
    for ink, background in zip(palette["ink"], palette[name[2:]], strict=True):
        darker, lighter = sorted((luminance(ink), luminance(background)))
        assert lighter / darker >= 4.5, (name, ink, background)


@pytest.mark.parametrize("panels", range(1, 6))
@pytest.mark.parametrize("side", [4, 13, 41, 60])
def test_tables_are_scaled_to_fill_the_rows_of_the_page(side, panels):
    tables = tuple(Panel(f"head {h}", torch.ones(side, side), "weights") for h in range(panels))
    picture = Picture("t", "w", tables, "query position", "key position", tokens=("word",) * side)
    scale = page_scale(picture)
    match = re.search(r'width="([0-9.]+)"', svg(picture, tables[0], scale))
    assert match
    table_width = float(match[1])
    # the page is 1100 pixels wide, with 8 between two tables
    in_a_row = min(panels, int((1100 + 8) // (table_width + 8)))
    assert table_width <= 1100
    assert 9 * scale >= 12  # pixels of a label
    assert panels % in_a_row == 0, "an expected table and its counterpart stand in one row"
    if scale != 2 and in_a_row > 1:  # 2 is the largest scale
        assert in_a_row * (table_width + 8) > 1100 - 1, "a row has room for larger tables"
