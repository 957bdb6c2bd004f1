"""nbgrader's formgrader in a real browser: from the assignment's first listing to the feedback page, button by button."""

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

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="submissions are graded on Linux alone"),
]

STEM = "01_running_mean"
RAN = "window.ran=1"
TRICKS = (
    f"[click](javascript:{RAN})",
    f'[click][there]\n\n[there]: javascript:{RAN} "x"',
    f'<a href="javascript:{RAN}">click</a>',
    f'<script>{RAN}</script><img src="x" onerror="{RAN}"><svg onload="{RAN}"></svg>',
    "![seen](https://tracker.example/seen.png) and [more](https://tracker.example/more)",
    '<img src="https://tracker.example/seen.png"><style>@import url(https://tracker.example/seen.css)</style>',
    '```\n<iframe src="https://tracker.example/"></iframe>',
)


class Formgrader:
    """The pages of one course, and what happens on them."""

    def __init__(self, browser: Browser, address: str, course: Path) -> None:
        """`address`: the server's."""
        self.browser, self.address, self.course = browser, address, course
        browser.open(f"{address}/api/status?token={TOKEN}")  # from now on the browser is logged in

    def open(self, page: str, shows: str) -> None:
        """Open a page, and wait for an element of it."""
        self.browser.open(f"{self.address}/formgrader/{page}")
        self.browser.until(f"document.querySelector({shows!r})")

    def click(self, element: str) -> None:
        """Click on what this selector finds first."""
        self.browser.js(f"document.querySelector({element!r}).click()")

    def press_button(self, page: str, button: str) -> str:
        """Press a button of a page; the title of the box that then says how it went."""
        self.open(page, button)
        self.click(button)
        return str(self.browser.until("document.querySelector('.modal-title')?.innerText"))

    def write(self, field: str, text: str) -> None:
        """Write into a field, leave it, and wait until the page has saved it."""
        self.browser.js("$(document).one('finished_saving', () => { window.saved = true })")
        self.browser.js(f"window.saved = false; document.querySelector({field!r}).focus()")
        self.browser.type(text)
        self.browser.until("window.saved")

    def open_submission(self, student: str) -> None:
        """Open the page on which this student's notebook is graded by hand."""
        query = """select submitted_notebook.id from submitted_notebook
            join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id where student_id = ?"""
        with closing(sqlite3.connect(self.course / "gradebook.db")) as book:
            ((id_,),) = book.execute(query, [student])
        self.open(f"submissions/{id_}/", "textarea.comment")
        self.browser.until("document.querySelector('textarea.comment').placeholder")  # what is saved has come


@pytest.fixture(scope="module")
def formgrader(browser, tmp_path_factory, for_nbgrader, fill, wrong):
    """A course that nbgrader has never seen, with what two students handed in."""
    course = for_nbgrader(TINY, tmp_path_factory.mktemp("instructor") / "course")
    for student, notebook in {"ada": fill(wrong), "mallory": tricky(fill(wrong))}.items():
        folder = course / "submitted" / student / "averages"
        folder.mkdir(parents=True)
        (folder / f"{STEM}.ipynb").write_text(json.dumps(notebook))
    with jupyter(course, tmp_path_factory.mktemp("home")) as address:
        yield Formgrader(browser, address, course)


def tricky(notebook: dict) -> dict:
    """The notebook with scripts and remote pictures in its cells' text, in code, and in an output."""
    output = new_output("display_data", {"text/html": f"<script>{RAN}</script>{TRICKS[5]}"})
    quoted = [new_code_cell(f"'''\n{trick}\n'''", outputs=[output]) for trick in TRICKS]
    cells = [*map(new_markdown_cell, TRICKS), *quoted]
    notebook["cells"][1:1] = json.loads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))["cells"]
    return notebook


@pytest.fixture(scope="module")
def generated(formgrader: Formgrader) -> Formgrader:
    """The assignment released, by its button."""
    (formgrader.course / "exercises" / "averages" / f"{STEM}.ipynb").unlink()
    assert formgrader.press_button("manage_assignments", "td.assign a") == "Success"
    return formgrader


@pytest.fixture(scope="module")
def autograded(generated: Formgrader) -> Formgrader:
    """Both students graded, by their buttons."""
    for row in (1, 2):
        button = f"tr:nth-child({row}) td.autograde a"
        assert generated.press_button("manage_submissions/averages", button) == "Success"
    return generated


@pytest.fixture(scope="module")
def commented(autograded: Formgrader) -> Formgrader:
    """A comment and extra credit for ada, written on her page."""
    autograded.open_submission("ada")
    autograded.write("textarea.comment", "See me **today**.")
    autograded.write("input#running_mean-values_extra_credit", "0.5")
    return autograded


@pytest.fixture(scope="module")
def feedback(commented: Formgrader) -> Formgrader:
    """Feedback for both, by its button."""
    assert commented.press_button("manage_assignments", "td.generate-feedback a") == "Success"
    return commented


def feedback_page(formgrader: Formgrader, student: str) -> Path:
    return formgrader.course / "feedback" / student / "averages" / f"{STEM}.html"


def test_a_course_is_listed_before_any_command_has_run(formgrader: Formgrader) -> None:
    formgrader.open("manage_assignments", "td.name a")
    assert formgrader.browser.js("document.querySelector('td.name').innerText") == "averages"


def test_its_button_generates_what_course_release_writes(generated: Formgrader) -> None:
    name = f"exercises/averages/{STEM}.ipynb"
    assert (generated.course / name).read_bytes() == (TINY / name).read_bytes()


@pytest.mark.parametrize("link", ["td.name a", "td.preview a"], ids=["its source", "what students get"])
def test_the_assignments_links_open_its_folders(generated: Formgrader, link: str) -> None:
    generated.open("manage_assignments", link)
    address = str(generated.browser.js(f"document.querySelector({link!r}).href"))
    with urllib.request.urlopen(f"{address}?token={TOKEN}") as answer:
        assert answer.status == 200
    generated.browser.open(address)
    generated.browser.until(f"document.body.innerText.includes('{STEM}.ipynb')")


def test_its_button_autogrades_each_student(autograded: Formgrader) -> None:
    autograded.open("manage_submissions/averages", "td.score")
    scores = autograded.browser.js("[...document.querySelectorAll('td.score')].map(cell => cell.innerText)")
    assert scores == ["2 / 4", "2 / 4"]


def test_the_page_for_grading_by_hand_shows_the_diagnosis(autograded: Formgrader) -> None:
    autograded.open_submission("mallory")
    said = autograded.browser.js("document.querySelector('textarea.comment').placeholder")
    assert "You divided by the length of x everywhere." in str(said)


def test_nothing_that_a_student_wrote_runs_or_loads_where_it_is_shown(feedback: Formgrader) -> None:
    feedback.open_submission("mallory")
    assert_inert(feedback.browser, "#notebook-container")
    feedback.browser.open(feedback_page(feedback, "mallory"))
    assert_inert(feedback.browser, "body")


def assert_inert(browser: Browser, part: str) -> None:
    """Every trick is there as text, every link was clicked, and nothing came of it."""
    text = str(browser.js(f"document.querySelector({part!r}).textContent"))
    assert [trick for trick in TRICKS if trick not in text] == []
    before = browser.js("location.href.split('#')[0]")
    browser.js(f"document.querySelectorAll('{part} a:not([target])').forEach(link => link.click())")
    browser.js("new Promise(done => setTimeout(done, 1000))")
    assert browser.js("window.ran") is None
    assert browser.js("location.href.split('#')[0]") == before
    assert [address for address in browser.requests if "tracker.example" in address] == []


def test_a_comment_and_extra_credit_reach_the_gradebook(commented: Formgrader) -> None:
    with closing(sqlite3.connect(commented.course / "gradebook.db")) as book:
        said = book.execute("select manual_comment from comment where manual_comment is not null").fetchall()
        given = book.execute("select extra_credit from grade where extra_credit is not null").fetchall()
    assert (said, given) == ([("See me **today**.",)], [(0.5,)])


def test_the_feedback_page_has_comment_extra_credit_and_diagnosis(feedback: Formgrader) -> None:
    feedback.browser.open(feedback_page(feedback, "ada"))
    page = " ".join(str(feedback.browser.js("document.body.innerText")).split())
    assert "(Score: 2.5 / 4.0)" in page
    assert "See me today." in page, "a comment by hand takes the place of the automatic one"
    assert "✗ averages all that came so far" in page
