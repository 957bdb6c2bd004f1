"""`course release --solutions`: pages with every solution, for when nobody hands in any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.authoring.solution_cells import solutions_of
from manyheads.authoring.stub import solution_parts
from manyheads.course import load_course
from manyheads.report.pages.solution_pages import write_solutions
from tests.axe import SCHEMES, violations
from tests.browser import Browser
from tests.conftest import RunCourse

pytestmark = pytest.mark.journey  # every exercise, in a real browser


@pytest.fixture(scope="module")
def pages(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    course = load_course(repository)
    return write_solutions(course.title, solutions_of(course), tmp_path_factory.mktemp("solutions")).parent


def test_each_exercise_has_a_page_with_its_lesson_its_solution_and_its_mistakes(
    repository: Path, pages: Path, browser: Browser
) -> None:
    exercise = load_course(repository).exercises[1]
    browser.open(pages / f"{exercise.stem}.html")
    text = str(browser.js("document.body.innerText"))
    marked = str(browser.js("Array.from(document.querySelectorAll('mark'), m => m.textContent).join('')"))
    assert "The causal mask" in text
    assert "mask" in text.split("What often goes wrong here")[1]
    for line in solution_parts(exercise.solution.read_text(encoding="utf-8")):
        assert line in marked
    assert "SOLUTION" not in text
    assert browser.complaints == []


def test_a_lessons_figure_is_in_the_page_and_its_links_lead_to_pages(pages: Path, browser: Browser) -> None:
    for page in sorted(pages.glob("0*.html")):
        browser.open(page, width=390)
        assert browser.js("[...document.images].map(i => [i.naturalWidth > 0, i.alt.length > 20])") == [[True, True]], (
            page.name
        )
        assert [url for url in browser.requests if not url.startswith("data:")] == [page.resolve().as_uri()]
        links = browser.js("[...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))")
        assert links, page.name
        assert [link for link in links if not (page.parent / str(link)).is_file()] == [], page.name


def test_nothing_is_cut_on_a_phone(repository: Path, pages: Path, browser: Browser) -> None:
    for page in sorted(pages.glob("*.html")):
        browser.open(page, width=390)
        assert browser.js("document.documentElement.scrollWidth") <= 390, page.name


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_against_wcag(pages: Path, browser: Browser, scheme: str) -> None:
    for page in (pages / "index.html", *sorted(pages.glob("0[15]*.html"))):
        browser.open(page, width=390)
        assert violations(browser, scheme) == [], page.name


def test_the_list_leads_to_every_page(repository: Path, pages: Path, browser: Browser) -> None:
    browser.open(pages / "index.html")
    links = browser.js("Array.from(document.querySelectorAll('main a'), a => a.getAttribute('href'))")
    assert links == [f"{exercise.stem}.html" for exercise in load_course(repository).exercises]
    assert all((pages / str(link)).is_file() for link in links)


def test_made_again_it_writes_the_same(repository: Path, pages: Path) -> None:
    course = load_course(repository)
    before = {page.name: page.read_bytes() for page in pages.iterdir()}
    write_solutions(course.title, solutions_of(course), pages)
    assert {page.name: page.read_bytes() for page in pages.iterdir()} == before


def test_a_page_of_somebody_elses_stays(run_course: RunCourse, repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "index.html").write_text("my own page")
    done = run_course("release", "--course", repository, "--solutions", folder)
    assert done.returncode == 2
    assert "is no page of this program. Next: name another folder" in done.stderr
    assert [page.name for page in folder.iterdir()] == ["index.html"]


def test_they_never_lie_among_the_exercises(run_course: RunCourse, repository: Path) -> None:
    done = run_course("release", "--course", repository, "--solutions", repository / "exercises" / "solved")
    assert done.returncode == 2
    assert "goes to students with the exercises" in done.stderr
    assert not (repository / "exercises" / "solved").exists()


def test_they_are_made_alone(run_course: RunCourse, repository: Path, tmp_path: Path) -> None:
    done = run_course("release", "--course", repository, "causal_mask", "--solutions", tmp_path / "pages")
    assert done.returncode == 2
    assert "Next: course release --solutions" in done.stderr
