"""Ctrl-C ends a command at once and without a traceback, also while its modules are imported.

A stand-in for luck: an import hook, put there by a sitecustomize of the test's own, presses Ctrl-C
at a known import.
"""

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.make import COURSE, REPOSITORY, TINY

PRESSES = """
import os, signal, sys
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
"""
LAST_WORDS = """
import os, signal, sys, time, types
def press(_=None):
    os.kill(os.getpid(), signal.SIGINT)
def flush():
    {presses}
    time.sleep(60)
sys.stderr = types.SimpleNamespace(flush=flush)
"""
SWALLOWS = """
try:
    import known_point
except BaseException:
    raise SystemExit(7)
"""


def run_customized(
    tmp_path: Path, customize: str, *arguments: str, handler: str = "SIG_DFL"
) -> tuple[int, str]:
    """`course` after these lines of Python: its status, and all that it said."""
    (tmp_path / "sitecustomize.py").write_text(customize)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    options = {
        "cwd": TINY,
        "env": environment,
        "capture_output": True,
        "text": True,
        "check": False,
    }
    handles = partial(signal.signal, signal.SIGINT, getattr(signal, handler))
    completed = subprocess.run([*COURSE, *arguments], preexec_fn=handles, **options)
    return completed.returncode, completed.stdout + completed.stderr


@pytest.mark.parametrize(
    ("module", "command"),
    [
        *(
            (module, "--help")
            for module in (
                "manyheads.files",
                "typer",
                "rich.console",
                "manyheads.course.model",
                "manyheads.cli.author",
            )
        ),
        ("torch.autograd", "doctor"),
    ],
)
def test_ctrl_c_during_an_import_ends_the_command_silently(tmp_path, module, command):
    assert run_customized(tmp_path, PRESSES.format(module=module), command) == (130, "")


def test_ctrl_c_ends_an_import_that_swallows_every_exception(tmp_path):
    (tmp_path / "known_point.py").write_text("")
    (tmp_path / "typer.py").write_text(SWALLOWS)  # a stand-in: torch and numpy have such lines
    assert run_customized(tmp_path, PRESSES.format(module="known_point"), "--help") == (130, "")


# which no exception leaves
@pytest.mark.parametrize("presses", ["press()", "type('', (), {'__del__': press})()"])
def test_ctrl_c_during_the_final_flush_ends_the_command(tmp_path, presses):
    status, output = run_customized(tmp_path, LAST_WORDS.format(presses=presses), "--help")
    assert status == 130
    assert "Usage" in output


def test_ctrl_c_that_is_ignored_stays_ignored(tmp_path):
    status, output = run_customized(
        tmp_path, PRESSES.format(module="manyheads.course.model"), "--help", handler="SIG_IGN"
    )
    assert status == 0
    assert "Usage" in output
