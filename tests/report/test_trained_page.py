"""The page about a student's own attention, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from manyheads.course import load_course
from manyheads.report.pages.trained import Trained, trained_page
from manyheads.student.plot_content import Band, Panel
from manyheads.student.recorded_training import SENTENCE, TrainingVerdict
from manyheads.student.training_plan import Curve
from tests.axe import SCHEMES, violations
from tests.browser import Browser

REFERENCE = Curve(tuple(4.0 - i / 100 for i in range(300)), {50: 3.5, 100: 3.0, 150: 2.5, 200: 2.0})
YOURS = Curve(tuple(4.0 - i / 200 for i in range(150)), {50: 3.75, 100: 3.5, 150: 3.25})
MARKUP = "Alice <script>document.title='taken'</script>"
PHONE = 390


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    course = load_course(repository)
    weights = torch.ones(len(SENTENCE), len(SENTENCE)).tril()
    panels = tuple(Panel(f"head {h}", weights / weights.sum(-1, keepdim=True), "weights") for h in range(2))
    heads = [Band(f"“{SENTENCE}”, block 1: your heads", panels, "query", "key", tuple(SENTENCE), tuple(SENTENCE))]
    trained = Trained(YOURS, REFERENCE, TrainingVerdict(True, "The two curves are one."), MARKUP, heads)
    exercise = next(each for each in course.exercises if each.train)
    path = tmp_path_factory.mktemp("page") / "mine.html"
    path.write_text(trained_page(course, exercise, {exercise, course.exercises[0]}, trained), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, PHONE])
def test_it_shows_each_head_the_curve_and_the_text_at_every_width(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    drawn = browser.js("[...document.querySelectorAll('svg')].map(e => e.getAttribute('aria-label'))")
    assert drawn == [
        f"Loss by step: yours ends at {YOURS.recent():.2f}, the reference at {REFERENCE.recent():.2f}",
        f"“{SENTENCE}”, block 1: your heads, head 0: 1 head",
        f"“{SENTENCE}”, block 1: your heads, head 1: 1 head",
    ]
    shown = str(browser.js("document.body.innerText"))
    assert MARKUP in shown
    assert "2 of 14 done." in shown
    assert "✓ The two curves are one." in shown
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
    assert browser.js("[...document.querySelectorAll('.heads .scroll')].every(e => e.scrollWidth <= e.clientWidth)")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_and_nothing_is_loaded_or_run(browser: Browser, page: Path, scheme: str) -> None:
    browser.open(page)
    assert violations(browser, scheme) == []
    browser.open(page)
    assert (browser.requests, browser.complaints) == ([page.resolve().as_uri()], [])
    assert browser.js("document.title") == "Multi-head attention by weight split: your own heads"
