"""tools.mutate: which mutants of a tiny module are made, and which tests kill them."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.make import REPOSITORY, content, git
from tools import mutate
from tools.mutants import choose, mutants_of

MODULE = "LIMIT = 3\n\n\ndef is_large(number):\n    return number > LIMIT\n"
TEST_START = "from tiny import is_large\n\n\ndef test_it():\n    "
TABLE = (
    """{"modules": {"tiny": {"file": "tiny.py", "tests": ["test_tiny.py"]}}, "equivalent": []}"""
)
PROGRAM = f"""
import sys
from pathlib import Path
from tools import mutate

mutate.ROOT, mutate.TABLE, mutate.PRELOADED = Path(), {TABLE}, ("pytest",)
mutate.main(sys.argv[1:])
"""


def run_mutants(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run tools.mutate on a tiny module with one test, and check that no file changes.

    test: the body of the test.
    """
    (folder / "tiny.py").write_text(MODULE, encoding="utf-8")
    (folder / "test_tiny.py").write_text(TEST_START + test, encoding="utf-8")
    git(folder, "init", "-q")
    old_content = content(folder)
    program = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}){PROGRAM}"
    command = [sys.executable, "-c", program, "run"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    completed = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert content(folder) == old_content
    return completed


def test_a_test_without_assertions_kills_no_mutant(tmp_path: Path) -> None:
    completed = run_mutants(tmp_path, "is_large(4)\n")
    assert "tiny.py:5 is_large, comparison: number > LIMIT -> (number >= LIMIT)" in (
        completed.stdout
    )
    assert "tiny               3      0        3 100.0%" in completed.stdout
    assert "More than 8% survive" in completed.stderr
    assert completed.returncode == 1


def test_a_test_of_both_sides_of_the_limit_kills_every_mutant(tmp_path: Path) -> None:
    completed = run_mutants(tmp_path, "assert (is_large(3), is_large(4)) == (False, True)\n")
    assert completed.stdout.splitlines() == [
        "module       mutants killed survived",
        "tiny               3      3        0  0.0%",
        "all                3      3        0  0.0%",
    ]
    assert completed.returncode == 0


def test_tests_that_fail_without_a_mutant_are_an_error(tmp_path: Path) -> None:
    completed = run_mutants(tmp_path, "assert is_large(3)\n")
    assert completed.stderr == "tiny: its tests fail without a mutant (exit code 1)\n"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param("a < b", ["(a <= b)"], id="a comparison"),
        pytest.param("a in b", ["(a not in b)"], id="membership"),
        pytest.param("a and b and c", ["(b and c)", "(a and c)", "(a and b)"], id="three operands"),
        pytest.param("a or b", ["(b)", "(a)"], id="two operands"),
        pytest.param("x = a if b else c", ["(not (b))", "False", "True"], id="a conditional"),
        pytest.param("[a for a in b if c]", ["True"], id="a condition of a loop"),
        pytest.param("while a: pass", ["False"], id="no endless loop"),
        pytest.param("x = 3", ["4"], id="a number"),
        pytest.param("x = True, 'text', None", [], id="constants that are not numbers"),
        pytest.param("def f(): return a", ["None"], id="a returned value"),
        pytest.param("def f(): return None", [], id="a return of None"),
        pytest.param("x += a", ["pass"], id="a statement"),
        pytest.param("raise ValueError(f'{1}', a == b)", ["pass"], id="not an exception's message"),
        pytest.param('"""A docstring: 1 < 2."""', [], id="a docstring"),
        pytest.param("def f(a: Literal[3]) -> Literal[4]: ...", [], id="annotations"),
        pytest.param("if TYPE_CHECKING: import a", [], id="imports for types"),
        pytest.param("log.warning(a == 3)", [], id="a log"),
        pytest.param("LONG_TIMEOUT = 3", [], id="a timeout"),
        pytest.param("wait(seconds=3)", ["pass"], id="a timeout as an argument"),
    ],
)
def test_each_line_has_the_expected_mutants(text: str, changes: list[str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    mutants = mutants_of("module", "module.py", (), tmp_path)
    assert [mutant.new for mutant in mutants] == changes


def test_the_sample_of_mutants_is_reproducible_and_balanced() -> None:
    row = mutate.TABLE["modules"]["points"]
    mutants = mutants_of("points", row["file"], row["names"], REPOSITORY)
    chosen = choose(mutants, 20, 1)
    assert chosen == choose(mutants[::-1], 20, 1) != choose(mutants, 20, 2)
    assert {*Counter(mutant.kind for mutant in chosen).values()} <= {3, 4}
    assert len({mutant.function for mutant in chosen}) > 4


def test_every_equivalent_mutant_exists_and_has_a_reason() -> None:
    """If the code of a row has changed, delete the row from the table."""
    keys = {
        mutant.key
        for module, row in mutate.TABLE["modules"].items()
        for mutant in mutants_of(module, row["file"], row.get("names", ()), REPOSITORY)
    }
    for row in mutate.TABLE.get("equivalent", []):
        assert tuple(row["key"]) in keys, row["key"]
        assert row["reason"]
