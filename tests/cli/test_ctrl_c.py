"""Ctrl-C ends a command at once and without a traceback, also while its modules are imported.

A real key press would come at a random time. Here a sitecustomize.py installs an import hook that
sends SIGINT when a given module is imported.
"""

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.make import COURSE, REPOSITORY, TINY

# sitecustomize.py that sends SIGINT when a module is imported
SIGNAL_AT_IMPORT = """
import os, signal, sys
class SignalAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, SignalAtImport())
"""
# sitecustomize.py that sends SIGINT when the command flushes stderr at its end
SIGNAL_AT_FLUSH = """
import os, signal, sys, time, types
def press(_=None):
    os.kill(os.getpid(), signal.SIGINT)
def flush():
    {press}
    time.sleep(60)
sys.stderr = types.SimpleNamespace(flush=flush)
"""
# a module that turns every exception of an import into exit status 7
CATCH_EVERYTHING = """
try:
    import known_point
except BaseException:
    raise SystemExit(7)
"""


def run_customized(
    tmp_path: Path, customize: str, *arguments: str, handler: str = "SIG_DFL"
) -> tuple[int, str]:
    """Run `course` after some lines of Python; return its exit status and output.

    customize: the text of sitecustomize.py. handler: how SIGINT is handled at the start.
    """
    (tmp_path / "sitecustomize.py").write_text(customize)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    options = {
        "cwd": TINY,
        "env": environment,
        "capture_output": True,
        "text": True,
        "check": False,
    }
    set_handler = partial(signal.signal, signal.SIGINT, getattr(signal, handler))
    completed = subprocess.run([*COURSE, *arguments], preexec_fn=set_handler, **options)
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
    assert run_customized(tmp_path, SIGNAL_AT_IMPORT.format(module=module), command) == (130, "")


def test_ctrl_c_ends_an_import_that_swallows_every_exception(tmp_path):
    (tmp_path / "known_point.py").write_text("")
    # a stand-in for torch and numpy, which have such lines
    (tmp_path / "typer.py").write_text(CATCH_EVERYTHING)
    assert run_customized(tmp_path, SIGNAL_AT_IMPORT.format(module="known_point"), "--help") == (
        130,
        "",
    )


# no exception can leave __del__, so the second one must not rely on KeyboardInterrupt
@pytest.mark.parametrize("press", ["press()", "type('', (), {'__del__': press})()"])
def test_ctrl_c_during_the_final_flush_ends_the_command(tmp_path, press):
    status, output = run_customized(tmp_path, SIGNAL_AT_FLUSH.format(press=press), "--help")
    assert status == 130
    assert "Usage" in output


def test_ctrl_c_that_is_ignored_stays_ignored(tmp_path):
    status, output = run_customized(
        tmp_path,
        SIGNAL_AT_IMPORT.format(module="manyheads.course.model"),
        "--help",
        handler="SIG_IGN",
    )
    assert status == 0
    assert "Usage" in output
