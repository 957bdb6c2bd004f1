"""Student commands in a Python without the modules that only Unix has.

This stands for Windows, where nobody has run these tests.
"""

import shutil
import sys

import pytest

from tests.make import REPOSITORY, RIGHT, TINY, WRONG, run

# each test starts a Python that hides the Unix modules, and imports torch in it
pytestmark = pytest.mark.journey

CRASHES = RIGHT.replace(
    "    return torch", "    import ctypes\n    ctypes.string_at(0)\n    return torch"
)
LOOPS = RIGHT.replace(
    "    return torch",
    "    import time\n    while True:\n        time.sleep(0.01)\n    return torch",
)
SCRIPT = "exercises/averages/01_running_mean.py"


@pytest.mark.parametrize(
    ("attempt", "arguments", "status", "message"),
    [
        pytest.param(
            WRONG, ["check"], 1, "You divided by the length of x", id="check names a mistake"
        ),
        pytest.param(
            RIGHT, ["status"], 0, "✓  01 The running mean", id="status runs a started attempt"
        ),
        pytest.param(WRONG, ["hint", "01"], 0, "Hint 1 of 3", id="hint gives the first hint"),
        pytest.param(
            WRONG,
            ["trace", "01"],
            0,
            "the right shape, other numbers",
            id="trace explains each line",
        ),
        pytest.param(
            CRASHES,
            ["trace", "01"],
            1,
            "by Windows, with 0xC0000005",
            id="trace reports a crash with the code of Windows",
        ),
        pytest.param(
            LOOPS,
            ["trace", "01"],
            1,
            "is there an endless loop?",
            id="trace ends an endless loop at the deadline",
        ),
    ],
)
def test_student_commands_work_without_unix_modules(tmp_path, attempt, arguments, status, message):
    shutil.copytree(TINY / "exercises", tmp_path / "exercises")
    shutil.copy(TINY / "course.yaml", tmp_path)
    (tmp_path / SCRIPT).write_text(attempt, encoding="utf-8")
    command = (sys.executable, REPOSITORY / "tests" / "without_unix.py", *arguments)
    completed = run(*command, cwd=tmp_path, PYTHONIOENCODING="cp1252")
    assert (completed.returncode, completed.stderr) == (status, "")
    assert message in completed.stdout
