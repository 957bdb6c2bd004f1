"""The documentation site: it is built without warnings and tested in a real browser."""

from pathlib import Path

import pytest

from docs.site import build
from docs.site.checks import checks_page
from manyheads import checks
from tests.axe import SCHEMES, accessibility_violations
from tests.browser import Browser

pytestmark = pytest.mark.journey

PAGES = (
    "index student commands course-yaml architecture faq performance misconceptions-causal_mask"
).split()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once, and return its folder."""
    return build.build(tmp_path_factory.mktemp("site")).parent


def test_the_site_has_every_documentation_page_in_its_index(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    for group, names in build.GROUPS.items():
        assert f">{group}<" in index
        assert [name for name in names if not (site / f"{name}.html").is_file()] == []
    assert {path.stem for path in build.DOCS.glob("*.md")} <= {
        name for names in build.GROUPS.values() for name in names
    }


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("commands", "course check"),
        ("course-yaml", "not_handed_in"),
        ("overrides-yaml", "Override"),
        ("results", "max_score"),
        ("checks", "assert_matches"),
        ("misconceptions", "wrong_view"),
        ("misconceptions-reshape_dance", "wrong_view"),
    ],
)
def test_a_reference_page_contains_names_from_its_source(site: Path, page: str, words: str) -> None:
    assert words in (site / f"{page}.html").read_text(encoding="utf-8")


def test_the_page_about_checks_matches_the_current_docstrings() -> None:
    """If this fails, run: python -m docs.site.checks > docs/checks.md."""
    page = checks_page()
    assert (build.DOCS / "checks.md").read_text(encoding="utf-8") == page
    missing = [
        name
        for name in checks.__all__
        if name.startswith("assert_") and f"### `{name}(" not in page
    ]
    assert missing == []


# the beginnings of code blocks and tables that are wider than their visible part
CUT_OFF = """[...document.querySelectorAll("pre:not(.drawn), .table-wrapper")].filter(e => \
e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent.slice(0, 60))"""


@pytest.mark.parametrize("width", [1280, 390])  # pixels: a laptop and a phone
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_and_nothing_is_cut_off(site, browser, page, width):
    browser.open(site / f"{page}.html", width=width)
    assert [
        violation for scheme in SCHEMES for violation in accessibility_violations(browser, scheme)
    ] == []
    assert (
        browser.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        == 0
    )
    assert browser.js(CUT_OFF) == []
    assert [request for request in browser.requests if request.startswith("http")] == []


def test_a_picture_is_legible_on_a_phone_and_links_to_its_file(
    site: Path, browser: Browser
) -> None:
    browser.open(site / "student.html", width=390)
    assert (
        browser.js(
            "Math.min(...[...document.querySelectorAll('.picture img')].map(e => e.clientWidth))"
        )
        >= 600
    )
    displayed, linked = (
        browser.js(
            f"[...document.querySelectorAll('.picture {tag}')].map(e => "
            f"e.{attribute}.split('/').at(-1))"
        )
        for tag, attribute in (("img", "src"), ("a", "href"))
    )
    assert displayed == linked != []


def test_the_search_finds_a_page_by_a_word(site: Path, browser: Browser) -> None:
    browser.open(f"{(site / 'search.html').as_uri()}?q=overrides")
    assert browser.until("document.querySelectorAll('#search-results li a').length > 0")


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](faq.md#nowhere)", "![x](nowhere.png)"])
def test_a_broken_link_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, body in (("faq", link), ("architecture", "")):
        (folder / f"{name}.md").write_text(f"# A page\n\n## Rooms\n\n{body}\n\n| room |\n|---|\n")
    for name in ("README", "CONTRIBUTING"):
        (tmp_path / f"{name}.md").write_text("# Title\n")
    monkeypatch.setattr(build, "DOCS", folder)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "GROUPS", {"Start": ["faq", "architecture", "contributing"]})
    monkeypatch.setattr(build, "made_pages", dict)
    with pytest.raises(build.SiteFault, match="make docs"):
        build.build(tmp_path / "site")
