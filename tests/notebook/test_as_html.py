"""Exercise notebooks as HTML pages: their width on a phone, and accessibility checks with axe."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from jupytext import read as read_script
from nbclient import NotebookClient

from tests.axe import SCHEMES, accessibility_violations
from tests.make import REPOSITORY

pytestmark = pytest.mark.journey  # a kernel, nbconvert and a browser

ASSIGNMENT = "multi_head_attention"
STEMS = sorted(path.stem for path in (REPOSITORY / "solutions" / ASSIGNMENT).glob("*.py"))
EXECUTED = "04_reshape_dance"
# CSS pixels
PHONE_WIDTH, PHONE_HEIGHT = 390, 844
# elements whose low contrast comes from the template of nbconvert
NBCONVERT_ELEMENTS = (".jp-InputPrompt", ".jp-OutputPrompt", ".highlight")
# JavaScript: the elements that reach beyond the right edge and cannot be scrolled to
CUT_OFF_ELEMENTS = """[...document.querySelectorAll('main *, body *')].filter(e => {
  if (e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let p = e.parentElement; p; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an HTML page beside each notebook, of which one is executed; return the folder."""
    exporter = pytest.importorskip("nbconvert").HTMLExporter(
        template_name="lab", mathjax_url="data:,", require_js_url="data:,", mermaid_js_url="data:,"
    )
    folder = tmp_path_factory.mktemp("handed_round") / ASSIGNMENT
    shutil.copytree(REPOSITORY / "exercises" / ASSIGNMENT, folder)
    for stem in STEMS:
        notebook = nbformat.read(folder / f"{stem}.ipynb", as_version=4)
        if stem == EXECUTED:
            solve_and_execute(notebook, folder)
        html, _ = exporter.from_notebook_node(notebook)
        (folder / f"{stem}.html").write_text(html, encoding="utf-8")
    return folder


def solve_and_execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Write the solutions into a notebook and execute it, with the student release alone."""
    solved = read_script(REPOSITORY / "solutions" / ASSIGNMENT / f"{EXECUTED}.py").cells
    answers = iter([cell.source for cell in solved if "solution" in cell.metadata.get("tags", [])])
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = next(answers)
    package = folder.parent / "package"  # the engine alone: no solutions and no hidden checks
    shutil.copytree(
        REPOSITORY / "manyheads",
        package / "manyheads",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "IPYTHONDIR": str(folder.parent / "ipython"),
    }
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)


@pytest.mark.parametrize("stem", STEMS)
def test_page_fits_the_width_of_a_phone(pages, browser, stem):
    browser.open(pages / f"{stem}.html", PHONE_WIDTH, PHONE_HEIGHT)
    assert browser.js("document.documentElement.scrollWidth") == PHONE_WIDTH
    assert browser.js(CUT_OFF_ELEMENTS) == []
    # of each image: is it loaded, and does it end before the right edge?
    images = browser.js(
        "[...document.images].map(i => [i.naturalWidth > 0, i.getBoundingClientRect().right <= "
        "innerWidth])"
    )
    assert images == [[True, True]]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("stem", STEMS)
def test_page_has_no_accessibility_violations(pages, browser, stem, scheme):
    browser.open(pages / f"{stem}.html", PHONE_WIDTH, PHONE_HEIGHT)
    assert accessibility_violations(browser, scheme, NBCONVERT_ELEMENTS) == []


def test_an_executed_notebook_shows_its_prediction_and_a_passed_check(
    pages,
):
    text = (pages / f"{EXECUTED}.html").read_text(encoding="utf-8")
    assert "64 of 1,024 numbers" in text
    assert "✓ 04 reshape dance" in text
    assert "Traceback" not in text
