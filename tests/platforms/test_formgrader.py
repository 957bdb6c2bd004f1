"""nbgrader's formgrader in a real browser: each button from the list of assignments to feedback."""

import json
import sqlite3
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tests.browser import Browser
from tests.jupyter import TOKEN, jupyter
from tests.make import TINY
from tests.platforms.nbgrader_class import STEM, WRONG, copy_for_nbgrader, filled_notebook

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="submissions are graded on Linux alone"),
]

RAN = "window.ran=1"
# Markdown and HTML that would run a script or load a remote file if it were not escaped
TRICKS = (
    f"[click](javascript:{RAN})",
    f'[click][there]\n\n[there]: javascript:{RAN} "x"',
    f'<a href="javascript:{RAN}">click</a>',
    f'<script>{RAN}</script><img src="x" onerror="{RAN}"><svg onload="{RAN}"></svg>',
    "![seen](https://tracker.example/seen.png) and [more](https://tracker.example/more)",
    (
        '<img src="https://tracker.example/seen.png"><style>@import '
        "url(https://tracker.example/seen.css)</style>"
    ),
    '```\n<iframe src="https://tracker.example/"></iframe>',
)


class Formgrader:
    """The formgrader pages of one course, operated through the browser."""

    def __init__(self, browser: Browser, address: str, course: Path) -> None:
        """Log the browser in to the Jupyter server at this address."""
        self.browser, self.address, self.course = browser, address, course
        browser.open(f"{address}/api/status?token={TOKEN}")  # sets a login cookie

    def open(self, page: str, shows: str) -> None:
        """Open a page, and wait for an element.

        shows: the CSS selector of the element.
        """
        self.browser.open(f"{self.address}/formgrader/{page}")
        self.browser.until(f"document.querySelector({shows!r})")

    def press_button(self, page: str, button: str) -> None:
        """Press a button of a page, and require that a dialog reports success."""
        self.open(page, button)
        self.browser.js(f"document.querySelector({button!r}).click()")
        assert self.browser.until("document.querySelector('.modal-title')?.innerText") == "Success"

    def write(self, field: str, text: str) -> None:
        """Write into a field, leave it, and wait until the page has saved it."""
        self.browser.js("$(document).one('finished_saving', () => { window.saved = true })")
        self.browser.js(f"window.saved = false; document.querySelector({field!r}).focus()")
        self.browser.type(text)
        self.browser.until("window.saved")

    def open_submission(self, student: str) -> str:
        """Open the page for manual grading of a student, and return the automatic comment."""
        query = """select submitted_notebook.id from submitted_notebook
            join submitted_assignment on submitted_notebook.assignment_id = \
submitted_assignment.id where student_id = ?"""
        with closing(sqlite3.connect(self.course / "gradebook.db")) as book:
            ((id_,),) = book.execute(query, [student])
        self.open(f"submissions/{id_}/", "textarea.comment")
        return str(self.browser.until("document.querySelector('textarea.comment').placeholder"))

    def assert_inert(self, selector: str) -> None:
        """Check that every trick is shown as text, and that clicking every link has no effect."""
        text = str(self.browser.js(f"document.querySelector({selector!r}).textContent"))
        assert [trick for trick in TRICKS if trick not in text] == []
        location = self.browser.js("location.href.split('#')[0]")
        self.browser.js(
            f"document.querySelectorAll('{selector} a:not([target])').forEach(link => link.click())"
        )
        self.browser.js("new Promise(done => setTimeout(done, 1000))")
        assert self.browser.js("window.ran") is None
        assert self.browser.js("location.href.split('#')[0]") == location
        assert [address for address in self.browser.requests if "tracker.example" in address] == []


def add_tricks(notebook: dict) -> dict:
    """Add the tricks to a notebook, in Markdown, in code and in outputs, and return it."""
    output = new_output("display_data", {"text/html": f"<script>{RAN}</script>{TRICKS[5]}"})
    quoted = [new_code_cell(f"'''\n{trick}\n'''", outputs=[output]) for trick in TRICKS]
    cells = [*map(new_markdown_cell, TRICKS), *quoted]
    notebook["cells"][1:1] = json.loads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))[
        "cells"
    ]
    return notebook


def test_formgrader_buttons_lead_from_the_listing_to_the_feedback(browser, tmp_path):
    """The course is new to nbgrader and has two submissions."""
    course = copy_for_nbgrader(TINY, tmp_path / "instructor" / "course")
    for student, notebook in {
        "ada": filled_notebook(WRONG),
        "mallory": add_tricks(filled_notebook(WRONG)),
    }.items():
        folder = course / "submitted" / student / "averages"
        folder.mkdir(parents=True)
        (folder / f"{STEM}.ipynb").write_text(json.dumps(notebook))
    released = f"exercises/averages/{STEM}.ipynb"
    (course / released).unlink()
    with jupyter(course, tmp_path / "home") as address:
        pages = Formgrader(browser, address, course)
        pages.open("manage_assignments", "td.name a")  # before any command has run
        assert browser.js("document.querySelector('td.name').innerText") == "averages"
        pages.press_button("manage_assignments", "td.assign a")
        assert (course / released).read_bytes() == (TINY / released).read_bytes()
        for link in (
            "td.name a",
            "td.preview a",
        ):  # the source and the preview
            pages.open("manage_assignments", link)
            url = str(browser.js(f"document.querySelector({link!r}).href"))
            with urllib.request.urlopen(f"{url}?token={TOKEN}") as answer:
                assert answer.status == 200
            browser.open(url)
            browser.until(f"document.body.innerText.includes('{STEM}.ipynb')")
        for row in (1, 2):
            pages.press_button("manage_submissions/averages", f"tr:nth-child({row}) td.autograde a")
        pages.open("manage_submissions/averages", "td.score")
        scores = browser.js(
            "[...document.querySelectorAll('td.score')].map(cell => cell.innerText)"
        )
        assert scores == ["2 / 4", "2 / 4"]
        assert "You divided by the length of x everywhere." in pages.open_submission("mallory")
        pages.assert_inert("#notebook-container")
        pages.open_submission("ada")
        pages.write("textarea.comment", "See me **today**.")
        pages.write("input#running_mean-values_extra_credit", "0.5")
        pages.press_button("manage_assignments", "td.generate-feedback a")
        feedback = {
            name: course / "feedback" / name / "averages" / f"{STEM}.html"
            for name in ("ada", "mallory")
        }
        browser.open(feedback["mallory"])
        pages.assert_inert("body")
        browser.open(feedback["ada"])
        page = " ".join(str(browser.js("document.body.innerText")).split())
    assert "(Score: 2.5 / 4.0)" in page
    assert "See me today." in page, "a comment by hand takes the place of the automatic one"
    assert "✗ averages all that came so far" in page
