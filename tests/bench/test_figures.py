"""The lessons' figures are what the references compute, and can be read by day, by night, on a phone and by ear."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.figures.drawing import COLOURS, DARK_INK, INK, Drawing
from bench.figures.lessons import FIGURES, place
from bench.figures.references import course
from manyheads.report.heatmap import _luminance, _parsed
from tests.axe import SCHEMES

NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?")
ROUNDING = 0.011  # of two decimals, on another processor
COLUMN = 318  # pixels that a notebook leaves for a figure on a phone of 390
LEAST = 12  # pixels of the smallest letters

# Every text of the picture: its box, and the height of its letters, in pixels of the page.
TEXTS = """[...document.querySelectorAll('text')].map(e => {
  const box = e.getBoundingClientRect(), size = parseFloat(getComputedStyle(e).fontSize);
  const scale = document.documentElement.getBoundingClientRect().width / document.documentElement.viewBox.baseVal.width;
  return [e.textContent, box.left, box.top, box.right, box.bottom, size * scale, e.hasAttribute('transform')];
})"""

each_figure = pytest.mark.parametrize("id_", FIGURES)


def outline(svg: str) -> tuple[list[str], list[float]]:
    """A figure without its numbers, and these."""
    root = ElementTree.fromstring(svg)
    said = [f"{e.tag} {sorted(e.attrib.items())} {(e.text or '').strip()}" for e in root.iter()]
    numbers = [float(n.replace("−", "-")) for line in said for n in NUMBER.findall(line)]
    return [NUMBER.sub("#", line) for line in said], numbers


def test_every_lesson_has_one() -> None:
    assert list(FIGURES) == [exercise.id for exercise in course().exercises]
    assert [len(exercise.figure_sources) for exercise in course().exercises] == [1] * len(FIGURES)


@pytest.mark.recorded  # numbers, to rounding, on any processor
@each_figure
def test_it_is_as_it_would_be_drawn_now(id_: str) -> None:
    there, now = outline(place(id_).read_text(encoding="utf-8")), outline(FIGURES[id_]())
    assert there[0] == now[0], "Next: python -m bench.figures, then course release"
    assert there[1] == pytest.approx(now[1], abs=ROUNDING), "Next: python -m bench.figures, then course release"


def test_a_number_that_is_not_the_references_is_seen() -> None:
    right = place("causal_mask").read_text(encoding="utf-8")
    wrong = right.replace(">0.37<", ">0.73<")
    assert outline(wrong)[0] == outline(right)[0]
    assert outline(wrong)[1] != pytest.approx(outline(right)[1], abs=ROUNDING)


@each_figure
def test_it_says_in_words_what_it_shows_and_loads_nothing(id_: str) -> None:
    svg = place(id_).read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    title, words = (root.find(f"{{http://www.w3.org/2000/svg}}{name}") for name in ("title", "desc"))
    assert title is not None
    assert words is not None
    assert 10 < len(title.text or "") < 80
    assert len(words.text or "") > 100
    assert not re.search(r"<script|<image|href|url\(|@import", svg)


@pytest.mark.parametrize("night", [False, True], ids=["by day", "by night"])
def test_words_stand_out_from_every_colour(night: bool) -> None:
    ink = _luminance(_parsed((DARK_INK if night else INK).lstrip("#")))
    for name, shades in COLOURS.items():
        behind = _luminance(_parsed(shades[night].lstrip("#")))
        assert (max(ink, behind) + 0.05) / (min(ink, behind) + 0.05) >= 4.5, name


def test_the_same_drawing_is_the_same_bytes() -> None:
    def drawing() -> Drawing:
        drawn = Drawing("a", "b")
        drawn.cell(0, 0, 10, 10, "hatched")
        return drawn

    assert drawing().svg(20) == drawing().svg(20)
    assert FIGURES["fused_qkv"]() == FIGURES["fused_qkv"]()


@pytest.mark.journey
@pytest.mark.parametrize("scheme", SCHEMES)
@each_figure
def test_on_a_phone_no_word_is_cut_small_or_upon_another(browser, id_: str, scheme: str) -> None:
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(place(id_))
    browser.js(f"document.documentElement.setAttribute('width', {COLUMN})")
    browser.js("document.documentElement.removeAttribute('height')")
    height = browser.js("document.documentElement.getBoundingClientRect().height")
    shown = browser.js(TEXTS)
    for words, left, top, right, bottom, size, _ in shown:
        assert size >= LEAST, words
        assert left >= 0, words
        assert top >= 0, words
        assert right <= COLUMN, words
        assert bottom <= height + 1, words
    straight = [each for each in shown if not each[6]]
    for a, b in combinations(straight, 2):
        across = min(a[3], b[3]) - max(a[1], b[1])
        down = min(a[4], b[4]) - max(a[2], b[2])
        assert across <= 1 or down <= 6, (a[0], b[0])  # a line's box is higher than its letters
    paper = browser.js("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == ("rgb(20, 24, 29)" if scheme == "dark" else "rgb(255, 255, 255)")
