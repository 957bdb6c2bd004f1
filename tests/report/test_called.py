"""What a message tells to run works where it is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.cli.app import app
from manyheads.report.called import COMMANDS
from tests.make import TINY

BIN = Path(sys.executable).parent


def test_every_command_is_known() -> None:
    registered = {command.callback.__name__ for command in app.registered_commands if command.callback}
    groups = {group.name for group in app.registered_groups}
    assert registered | groups == {*COMMANDS}


@pytest.mark.parametrize("is_activated", [False, True])
def test_what_comes_next_can_be_copied(tmp_path: Path, is_activated: bool) -> None:
    """It names the command by its path where the shell does not find it, on both streams."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "course").write_text("#!/bin/sh\nexit 9\n")
    (place / "course").chmod(0o755)  # another one
    path = os.pathsep.join([str(BIN) if is_activated else str(place), "/usr/bin", "/bin"])
    called = "course" if is_activated else str(BIN / "course")
    environment = {**os.environ, "PATH": path, "COLUMNS": "300", "NO_COLOR": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "course"), *arguments, "--course", str(TINY)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    status, refused = run("status"), run("check", "median")
    assert f"then: {called} check running_mean" in status.stdout
    assert f"Next: {called} status" in refused.stderr
    following = refused.stderr.partition("Next: ")[2].split()
    subprocess.run([*following, "--course", str(TINY)], env=environment, capture_output=True, check=True)
