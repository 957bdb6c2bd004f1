"""A notebook without the engine, as on Colab, runs and says in one sentence how to install it."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from manyheads.submission.read import METADATA_KEY, read_notebook
from tests.make import REPOSITORY, TINY

NOTEBOOKS = sorted([*REPOSITORY.glob("exercises/*/*.ipynb"), *TINY.glob("exercises/*/*.ipynb")])
RIGHT = (
    "def running_mean(x):\n    assert len(x)\n"
    "    return x.cumsum(0) / torch.arange(1, len(x) + 1)\n"
)
INSTALL_MESSAGE = (
    "To check your answers here, install the engine: %pip install ../../manyheads-*.whl "
    "(on Colab: the lines in the class repository's README.md)\n"
)
# sitecustomize.py that makes imports of the engine fail
REFUSE_ENGINE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "manyheads":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
"""


@pytest.fixture
def folder_without_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a student's folder, and make imports of the engine fail in its kernels."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REFUSE_ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return Path(shutil.copytree(TINY / "exercises" / "averages", tmp_path / "averages"))


def is_visible_check(cell: dict) -> bool:
    """Say whether a cell has the visible checks of the exercise."""
    return bool(cell["metadata"].get(METADATA_KEY, {}).get("visible"))


def is_first_cell(cell: dict) -> bool:
    """Say whether a cell loads the magics, which only the first one does."""
    return "load_magics" in "".join(cell["source"])


def test_a_notebook_without_the_engine_runs_and_says_how_to_install_it(folder_without_engine):
    notebook = nbformat.read(folder_without_engine / "01_running_mean.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = RIGHT
    resources = {"metadata": {"path": str(folder_without_engine)}}
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources=resources
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    (first_output,) = (output for cell in code if is_first_cell(cell) for output in cell.outputs)
    assert first_output.text == "%check needs the engine; the last cells say how to install it.\n"
    (last_output,) = (output for cell in code if is_visible_check(cell) for output in cell.outputs)
    assert (last_output.output_type, last_output.name, last_output.text) == (
        "stream",
        "stderr",
        INSTALL_MESSAGE,
    )


def test_nbgrader_validate_reports_a_missing_engine_as_a_failure(folder_without_engine):
    validator = pytest.importorskip("nbgrader.validator").Validator()
    (failed,) = validator.validate(str(folder_without_engine / "01_running_mean.ipynb"))["failed"]
    assert failed["raw_error"] == INSTALL_MESSAGE


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_the_first_cell_and_the_visible_checks_use_the_engine(path):
    """A grader ignores the source of these cells, even if an editor has removed their metadata."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    original = read_notebook(json.dumps(notebook)).text
    cells = notebook["cells"]
    (check_cell,) = filter(is_visible_check, cells)
    assert "from manyheads.notebook import check_notebook" in "".join(check_cell["source"])
    assert is_first_cell(cells[0])
    for cell in cells[1:]:
        if cell is not check_cell and cell["cell_type"] == "code":
            assert "manyheads" not in "".join(cell["source"])
    for cell in cells:
        cell["metadata"] = {}
    bare = read_notebook(json.dumps(notebook)).text
    assert "manyheads" not in bare
    assert [line for line in bare.splitlines() if line.strip() and line not in original] == [
        "# What your answers show, before anybody grades them. In a terminal: course check "
        + path.stem[3:]
    ]
