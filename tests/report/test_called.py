"""What a message tells to run works where it is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.cli.app import app
from manyheads.report.called import COMMANDS, next_alone
from tests.make import TINY

BY_HAND = "Fill it.\nNext: course check scores"


@pytest.mark.parametrize(("said", "shown"), [
    pytest.param("Next: fill it, then: course check scores", BY_HAND, id="a command after what is to be done by hand"),
    pytest.param("Next: fill it, then course check scores", BY_HAND, id="without a colon"),
    pytest.param("It is wrong. Next: course hint scores", "It is wrong.\nNext: course hint scores", id="a sentence before"),
    pytest.param("It is gone.\nNext: git checkout 'a b.py'", "It is gone.\nNext: git checkout 'a b.py'", id="as it should be"),
    pytest.param("Next: make room, then the same again", "Next: make room, then the same again", id="no command at all"),
    pytest.param("It is a link. Next: ask for it", "It is a link. Next: ask for it", id="and in the line where it stands"),
    pytest.param("It is gone. Next: /a/b/course status", "It is gone.\nNext: /a/b/course status", id="by its path"),
    pytest.param("Next: save it, then %ask", "Save it.\nNext: %ask", id="a magic"),
    pytest.param("Nothing.", "Nothing.", id="nothing is next"),
])  # fmt: skip
def test_what_comes_next_is_a_command_alone_on_the_last_line(said: str, shown: str) -> None:
    assert next_alone(said) == shown


BIN = Path(sys.executable).parent


def test_every_command_is_known() -> None:
    registered = {command.callback.__name__ for command in app.registered_commands if command.callback}
    groups = {group.name for group in app.registered_groups}
    assert registered | groups == {*COMMANDS}


@pytest.mark.parametrize("is_activated", [False, True])
def test_what_comes_next_can_be_copied(tmp_path: Path, is_activated: bool) -> None:
    """It names the command by its path where the shell does not find it, on both streams."""
    (place := tmp_path / "elsewhere").mkdir()
    (place / "course").write_text("#!/bin/sh\nexit 9\n")
    (place / "course").chmod(0o755)  # another one
    path = os.pathsep.join([str(BIN) if is_activated else str(place), "/usr/bin", "/bin"])
    called = "course" if is_activated else str(BIN / "course")
    environment = {**os.environ, "PATH": path, "COLUMNS": "300", "NO_COLOR": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "course"), *arguments, "--course", str(TINY)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    status, refused = run("status"), run("check", "median")
    assert status.stdout.endswith(f"\nNext: {called} check running_mean\n")
    assert f"Next: {called} status" in refused.stderr
    following = refused.stderr.partition("Next: ")[2].split()
    subprocess.run([*following, "--course", str(TINY)], env=environment, capture_output=True, check=True)
