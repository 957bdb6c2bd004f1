"""The HTML pages in a real browser: opened from disk, used with a keyboard, on a phone, in dark
mode and in print.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from manyheads.report.class_summary import ClassList, ClassView
from manyheads.report.pages import WITHOUT_NAMES, write_pages
from manyheads.report.report_content import file_stems
from manyheads.result import Adjustment, Result
from manyheads.student.pictures import compare_tables
from manyheads.submission.roster_and_times import Roster, Student
from tests.axe import SCHEMES, accessibility_violations

PHONE_WIDTH = 375
SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
TAB, ENTER, RIGHT = ("Tab", 9), ("Enter", 13), ("ArrowRight", 39)

OPEN_ALL_DETAILS = "document.querySelectorAll('details').forEach(e => { e.open = true })"


@pytest.fixture(scope="module")
def small_class_pages(
    made_up_class: Callable[[int], list[Result]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the folder with the pages of 12 students, in which every outcome occurs.

    The name of the first student is a script, and student0004 has pictures; both have adjusted
    scores.
    """
    results = made_up_class(12)
    results[0] = results[0].model_copy(update={"student": SCRIPT, "isolation": "process"})
    for i in (0, 4):
        results[i] = add_adjustments(results[i])
    folder = tmp_path_factory.mktemp("small")
    scores = compare_tables("scores, head 0", torch.eye(7).log(), torch.randn(7, 7), "query", "key")
    output = compare_tables("output", torch.zeros(9, 24), torch.ones(9, 24), "token", "channel")
    drawn = {
        ("student0004", "heads", exercise.id): [scores, output] for exercise in results[4].exercises
    }
    write_pages(ClassView(results), folder, drawn, [f"{SCRIPT} is not a result."])
    return folder


def add_adjustments(result: Result) -> Result:
    """Return the result with a late penalty and an excused exercise, whose comment is a script."""
    late = Adjustment(
        rule="late", words="1 day after 18:00: 1 day late, −20% (20% a day)", before=50, after=40
    )
    excused = Adjustment(
        rule="excused", words=f"excused: {SCRIPT} {'long' * 40}", before=7, after=0
    )
    excused_exercise = result.exercises[0].model_copy(
        update={"adjustments": (excused,), "excused": True}
    )
    exercises = (excused_exercise, *result.exercises[1:])
    return result.model_copy(
        update={"exercises": exercises, "max_score": 52.5, "score": 40, "adjustments": (late,)}
    )


@pytest.fixture(scope="module")
def big_class_page(
    made_up_class: Callable[[int], list[Result]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the path of the class page of 1,000 students."""
    return write_pages(ClassView(made_up_class(1000)), tmp_path_factory.mktemp("pages"))


def pages_of(folder: Path) -> list[Path]:
    """Return the class page and the pages of two students: the hostile name and student0004."""
    names = (
        "index.html",
        f"students/{file_stems([SCRIPT])(SCRIPT)}.html",
        "students/student0004.html",
    )
    return [folder / name for name in names]


def test_pages_load_nothing_else_and_run_no_script_of_a_student(browser, small_class_pages):
    for page in pages_of(small_class_pages):
        browser.open(page)
        assert [url for url in browser.requests if not url.startswith("data:")] == [
            page.resolve().as_uri()
        ]
        assert browser.complaints == []
        assert browser.js("document.title") != "taken"
        assert browser.js("document.querySelectorAll('script, img').length") == (
            page.name == "index.html"
        )
        assert SCRIPT in browser.js("document.body.innerText")


def test_an_injected_script_does_not_run(browser, small_class_pages, tmp_path):
    page = tmp_path / "page.html"
    text = (small_class_pages / "index.html").read_text(encoding="utf-8")
    page.write_text(text.replace("<main", f"{SCRIPT}<main"), encoding="utf-8")
    browser.open(page)
    assert browser.js("document.querySelectorAll('script').length") == 2
    assert browser.js("document.title") != "taken"
    assert [url for url in browser.requests if url.startswith("http")] == []


def test_pages_have_landmarks_ordered_headings_and_table_headers(browser, small_class_pages):
    for page in pages_of(small_class_pages):
        browser.open(page)
        assert browser.js("document.documentElement.lang") == "en"
        assert browser.js(
            "['header', 'main', 'h1'].map(name => document.querySelectorAll(name).length)"
        ) == [1, 1, 1]
        levels = browser.js(
            "[...document.querySelectorAll('h1, h2, h3, h4')].map(e => +e.tagName[1])"
        )
        assert all(after <= previous + 1 for previous, after in pairwise(levels)), levels
        assert browser.js("document.querySelectorAll('th:not([scope])').length") == 0
        assert browser.js(
            "[...document.querySelectorAll('tbody tr')].every(row => row.querySelector('th'))"
        )


def test_each_outcome_in_the_grid_has_a_sign_besides_its_colour(browser, small_class_pages):
    browser.open(small_class_pages / "index.html")
    browser.js(OPEN_ALL_DETAILS)
    cells = browser.js(
        "[...document.querySelectorAll('.grid td')].map(e => [e.className, e.innerText])"
    )
    marks = {}
    for name in ("", "failed", "error", "timeout", "crashed", "missing", "skipped"):
        marks[name] = {text for class_, text in cells if class_ == name}
    assert marks == {
        "": {"✓"},
        "failed": {"✗"},
        "error": {"e"},
        "timeout": {"∞"},
        "crashed": {"!"},
        "missing": {"–"},
        "skipped": {"·"},
    }


def test_the_keyboard_reaches_all_controls_and_wide_tables(browser, small_class_pages):
    browser.open(small_class_pages / "index.html")
    browser.press(*TAB)
    assert browser.js("document.activeElement.innerText") == "Skip to the content"
    assert browser.js("document.activeElement.getBoundingClientRect().left >= 0")
    browser.press(*ENTER)
    assert browser.js("location.hash") == "#main"
    browser.js(OPEN_ALL_DETAILS)
    reachable = (
        "[...document.querySelectorAll('.scroll, main :is(a, summary, button, input, select)')]"
    )
    reachable += ".filter(e => e.checkVisibility())"
    controls = browser.js(f"{reachable}.length")
    reached = set()
    for _ in range(controls + 1):
        browser.press(*TAB)
        reached.add(browser.js(f"{reachable}.indexOf(document.activeElement)"))
    assert reached >= set(range(controls))


VISIBLE_NAMES = (
    "[...document.querySelectorAll('.scores tbody tr')].filter(e => "
    "e.checkVisibility()).map(e => e.cells[0].innerText)"
)
TYPE_INTO_FILTER = (
    "(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('input')); "
    "}})(document.querySelector('[data-filter={what}]'))"
)


def test_the_class_page_filters_by_section_or_name_and_sorts_columns(
    browser, made_up_class, tmp_path
):
    results = made_up_class(4)
    students = [Student(r.student, f"Person {n}", "ABAB"[n]) for n, r in enumerate(results)]
    page = write_pages(ClassView(results, ClassList(Roster(tuple(students)))), tmp_path)
    browser.open(page, PHONE_WIDTH)
    assert browser.complaints == []
    rows = [f"Person {n}\n{r.student}" for n, r in enumerate(results)]
    assert browser.js(VISIBLE_NAMES) == rows
    browser.js(TYPE_INTO_FILTER.format(what="section", value="b"))
    assert browser.js(VISIBLE_NAMES) == rows[1::2]
    browser.js(TYPE_INTO_FILTER.format(what="name", value="person 3"))
    assert browser.js(VISIBLE_NAMES) == rows[3:]
    # two rows for each of the 8 exercises: one student and the sums of the class
    assert (
        browser.js("[...document.querySelectorAll('.grid tbody tr:not([hidden])')].length") == 2 * 8
    )
    for filter_name in ("section", "name"):
        browser.js(TYPE_INTO_FILTER.format(what=filter_name, value=""))
    browser.js("[...document.querySelectorAll('.sorted thead button')].at(-1).click()")
    totals = (
        "[...document.querySelectorAll('.scores tbody tr')].map(e => "
        "parseFloat([...e.cells].at(-1).innerText))"
    )
    assert browser.js(totals) == sorted(browser.js(totals))
    browser.js("[...document.querySelectorAll('.sorted thead button')].at(-1).click()")
    assert browser.js(totals) == sorted(browser.js(totals), reverse=True)
    assert (
        browser.js("[...document.querySelectorAll('.sorted thead th')].at(-1).ariaSort")
        == "descending"
    )
    assert accessibility_violations(browser, SCHEMES[0]) == []


def test_the_keyboard_scrolls_a_wide_table_and_opens_a_hint(browser, small_class_pages):
    browser.open(small_class_pages / "index.html", PHONE_WIDTH)
    browser.js("document.querySelector('.scroll').focus()")
    browser.press_until(*RIGHT, "document.querySelector('.scroll').scrollLeft > 0")
    browser.open(small_class_pages / "students" / "student0004.html")
    browser.js("document.querySelector('.hint summary').focus()")
    assert not browser.js("document.querySelector('.hint p').checkVisibility()")
    browser.press(*ENTER)
    assert browser.js("document.querySelector('.hint').open")


def test_navigation_fits_in_one_row_on_a_phone_and_on_a_screen(browser, small_class_pages):
    tops = (
        "[...document.querySelectorAll('nav')].map(nav => new Set([...nav.querySelectorAll('a')]"
        ".map(a => a.getBoundingClientRect().top)).size)"
    )
    for page in pages_of(small_class_pages):
        for width in (PHONE_WIDTH, 1280):
            browser.open(page, width)
            assert browser.js(tops) == [1]


def test_on_a_phone_only_wide_tables_scroll_sideways(browser, small_class_pages, big_class_page):
    for page in [*pages_of(small_class_pages), small_class_pages / WITHOUT_NAMES, big_class_page]:
        browser.open(page, PHONE_WIDTH, 700)
        browser.js(
            "document.querySelectorAll('details').forEach((e, i) => { if (i < 3) e.open = true })"
        )
        assert browser.js("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [
            PHONE_WIDTH,
            PHONE_WIDTH,
        ], page
    wide_tables = (
        f"[...document.querySelectorAll('table')].filter(e => e.scrollWidth > {PHONE_WIDTH})"
    )
    assert browser.js(f"{wide_tables}.length") > 0
    assert browser.js(
        f"{wide_tables}.every(e => (s => s && s.scrollWidth > s.clientWidth)(e.closest('.scroll')))"
    )


def test_pictures_have_names_and_fit_on_a_phone_a_screen_and_paper(browser, small_class_pages):
    browser.open(small_class_pages / "students" / "student0004.html")
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    named = [
        node["name"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in ("img", "image")
    ]
    assert named[:3] == [
        f"scores, head 0: {name}" for name in ("expected", "yours", "yours − expected")
    ]
    assert "scores, head 0: 42 of 49 numbers are −∞ in one of the two only" in browser.js(
        "document.body.innerText"
    )
    boxes = "[...document.querySelectorAll('.pictures svg')].map(e => e.getBoundingClientRect())"
    for media, width, per_row in (
        ("", PHONE_WIDTH, 1),
        ("", 390, 1),
        ("", 1280, 3),
        ("print", 640, 2),
    ):
        browser.ask("Emulation.setEmulatedMedia", media=media)
        browser.open(small_class_pages / "students" / "student0004.html", width)
        assert browser.js(f"{boxes}.every(e => e.left >= 0 && e.right <= {width})")
        assert (
            browser.js(f"{boxes}.slice(0, 3).filter((e, i, all) => e.top === all[0].top).length")
            == per_row
        )
    browser.ask("Emulation.setEmulatedMedia", media="")


def test_print_shows_hints_and_hides_navigation(browser, small_class_pages):
    for media in ("print", "screen"):
        browser.ask("Emulation.setEmulatedMedia", media=media)
        for page, selector in (("students/student0004.html", ".hint p"), ("index.html", "nav")):
            browser.open(small_class_pages / page)
            is_shown = browser.js(f"document.querySelector('{selector}').checkVisibility()")
            assert is_shown == ((media == "print") == (selector == ".hint p"))
    browser.ask("Emulation.setEmulatedMedia", media="")


def test_a_class_of_1000_gets_a_small_page_with_valid_links(browser, big_class_page):
    assert big_class_page.stat().st_size < 3_000_000
    browser.open(big_class_page)
    assert browser.complaints == []
    assert "Submissions\n1000\n" in browser.js("document.querySelector('.cards').innerText")
    assert browser.js("document.querySelectorAll('.scores tbody tr').length") == 1000
    assert browser.js("document.querySelectorAll('.grid td').length") == 8 * 15 * 1001
    assert browser.js("document.querySelectorAll('details[open]').length") == 0
    links = browser.js(
        "[...document.querySelectorAll('.scores a')].map(e => e.getAttribute('href'))"
    )
    assert len(set(links)) == 1000
    assert all((big_class_page.parent / link).is_file() for link in links)


@pytest.mark.parametrize("colour_scheme", SCHEMES)
def test_pages_have_no_accessibility_violations(browser, small_class_pages, colour_scheme):
    for page in [*pages_of(small_class_pages), small_class_pages / WITHOUT_NAMES]:
        browser.open(page)
        browser.js(OPEN_ALL_DETAILS)
        assert accessibility_violations(browser, colour_scheme) == [], page
        paper = browser.js("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (colour_scheme == "light")


@pytest.mark.parametrize("colour_scheme", SCHEMES)
def test_axe_detects_text_with_too_little_contrast(browser, tmp_path, colour_scheme):
    page = tmp_path / "pale.html"
    page.write_text(
        "<title>pale</title><main><p style='color:#ccc;background:#fff'>Who can read "
        "this?</p></main>"
    )
    browser.open(page)
    assert any(
        violation.startswith("color-contrast")
        for violation in accessibility_violations(browser, colour_scheme)
    )
