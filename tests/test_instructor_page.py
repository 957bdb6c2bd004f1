"""The commands of the section "One term" in docs/instructor.md run in their order."""

import re
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from tests.make import REPOSITORY, git, run

pytestmark = pytest.mark.soak  # takes ten minutes while other tests run

_COMMANDS = re.compile(r"^ {4}.*\n", re.MULTILINE)
_OUTPUT = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_IN_A_CLONE = shutil.ignore_patterns(".git", ".venv", ".*cache", "results*")


@pytest.fixture
def repository_clone(tmp_path: Path) -> Path:
    """Return a copy of this repository, like a clone, with the environment of these tests."""
    folder = shutil.copytree(REPOSITORY, tmp_path / "manyheads", ignore=NOT_IN_A_CLONE)
    (folder / ".venv").symlink_to(sys.prefix)
    git(folder, "init")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "As handed out")
    return folder


@pytest.mark.timeout(3600)
def test_every_command_on_the_instructor_page_prints_its_documented_output(
    repository_clone: Path,
) -> None:
    page = (repository_clone / "docs" / "instructor.md").read_text()
    steps = page.partition("\n## One term")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert len(steps) >= 8  # otherwise the headings of the page have changed
    script = "exec 2>&1\nset -e\n"
    for step in steps:
        script += "echo @@\n" + textwrap.dedent("".join(_COMMANDS.findall(step)))
    completed = run("bash", "-c", script, cwd=repository_clone, COLUMNS="200")
    assert completed.returncode == 0, completed.stdout
    for step, printed in zip(steps, completed.stdout.split("@@\n")[1:], strict=True):
        for line in "".join(_OUTPUT.findall(step)).splitlines():
            assert line in printed, f"step {step.splitlines()[0]} printed\n{printed}"
