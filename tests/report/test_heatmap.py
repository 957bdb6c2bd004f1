"""Heatmaps as SVG that stands in a page: the colours, the numbers in them, and the same in words."""

import re
from xml.etree import ElementTree

import pytest
import torch

from manyheads.report.heatmap import Colour, colour, ink, svg
from manyheads.report.pages.write import pictures_page
from manyheads.student.plot_content import Band, Kind, Panel, compared

SCORES = torch.tensor([[1.0, float("-inf")], [float("nan"), -2.0]])
KINDS: tuple[Kind, ...] = ("numbers", "weights", "mask", "difference")


def band(yours: torch.Tensor, title: str = "scores in Head, head 0") -> Band:
    return compared(title, torch.eye(len(yours)), yours, "numbers", "query position", "key position")


def drawn(shown: Band) -> ElementTree.Element:
    """The SVG, read as XML: every browser reads it."""
    return ElementTree.fromstring(svg(shown))


def texts(shown: Band) -> list[str]:
    return [element.text or "" for element in drawn(shown).iter("text")]


def contrast(a: Colour, b: Colour) -> float:
    """WCAG 2's ratio, written once more."""

    def light(shade: Colour) -> float:
        linear = [v / 3294.6 if v <= 10.31475 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in shade]
        return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05

    return max(light(a), light(b)) / min(light(a), light(b))


def test_a_picture_has_a_name_that_says_what_it_shows() -> None:
    picture = drawn(band(torch.eye(2) * 3))
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == "scores in Head, head 0: the largest difference is 2"


def test_every_panel_has_its_heading_its_numbers_its_positions_and_its_scale() -> None:
    found = texts(band(torch.tensor([[3.0, 0.0], [0.5, 1.0]])))
    assert [text for text in found if text in ("expected", "yours", "yours − expected")] == [
        "expected",
        "yours",
        "yours − expected",
    ]
    assert [found.count(text) for text in ("3.00", "0.50", "2.00", "1.00")] == [1, 2, 1, 3]
    assert "query position ↓  key position →" in found
    assert "0 (dark) … 3 (light)" in found
    assert "−2 (orange) … 2 (purple)" in found


def test_a_large_table_has_no_numbers_in_its_cells_and_every_fifth_position() -> None:
    found = texts(band(torch.zeros(24, 24)))
    assert not [text for text in found if re.fullmatch(r"[−\d]+\.\d\d", text)]
    assert found.count("5") == found.count("20") == 3 * 2
    assert "4" not in found


def test_one_colour_means_one_number_in_all_panels() -> None:
    paths = [path for group in drawn(band(torch.eye(2) * 3)) for path in group.iter("path")]
    expected, yours = paths[:2], paths[2:4]
    assert [path.get("fill") for path in expected if "M0 0" in str(path.get("d"))] != ["#fde725"]
    assert [path.get("fill") for path in yours if "M0 0" in str(path.get("d"))] == ["#fde725"]


def test_what_is_hidden_or_no_number_is_grey_and_says_so() -> None:
    panel = Panel("scores", SCORES)
    shades = [colour(float(value), panel, (-2.0, 1.0)) for value in SCORES.flatten()]
    assert shades == [(0xFD, 0xE7, 0x25), (0xD0, 0xD0, 0xD0), (0xD0, 0xD0, 0xD0), (0x44, 0x01, 0x54)]
    assert [text for text in texts(Band("scores", (panel,), "", "")) if text in ("−∞", "NaN")] == ["−∞", "NaN"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_stand_out_on_every_shade(kind: Kind) -> None:
    panel = Panel("", torch.zeros(1, 1), kind)
    shades = {colour(share / 200, panel, (0.0, 1.0)) for share in range(201)} | {colour(float("nan"), panel, (0, 1))}
    assert len(shades) > 30
    for shade in shades:
        of_text = (0, 0, 0) if ink(shade) == "#000" else (255, 255, 255)
        assert contrast(shade, of_text) >= 4.5, shade


def test_no_title_gets_out_of_the_picture() -> None:
    shown = band(torch.eye(2) * 2, """"><script>alert('x')</script>&""")
    assert "<script" not in svg(shown)
    assert str(drawn(shown).get("aria-label")).startswith(""""><script>alert('x')</script>&: the largest""")


def test_rows_and_columns_with_names_have_them_all() -> None:
    names = tuple("a<b" * 5)
    shown = Band("heads", (Panel("head 0", torch.rand(15, 15), "weights"),), "query", "key", names)
    assert [text for text in texts(shown) if text in names] == [*names, *names]


def test_a_page_has_every_picture_and_says_in_words_what_cannot_be_drawn() -> None:
    words = ("The", "keys", "were", "here")
    labelled = Band("what heads attend to", (Panel("head 0", torch.eye(4), "weights"),), "", "", words)
    missing = Panel("yours", None, note="your code raised ValueError"), Panel("yours − expected", None, "difference")
    page = pictures_page("a <title>", [labelled, Band("scores", (Panel("expected", SCORES), *missing), "", "")])
    assert page.count("<svg") == 2
    assert "<figcaption>scores: your code raised ValueError</figcaption>" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert ">keys</text>" in page
