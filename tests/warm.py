"""A command in a process of its own that need not import anything first: forked from one that has.

Most of what a test of a command takes are imports: torch and nbgrader a second or two each time,
the engine half of one.
"""

import multiprocessing.context
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Literal
from unittest import mock

import pytest

Program = Literal["manyheads", "nbgrader"]

LIBRARIES = ["manyheads.authoring.make_stub"]  # first, for others import jsonschema
LIBRARIES += [
    "torch",
    "torch.fx.experimental.symbolic_shapes",
    "typer",
    "rich.console",
    "rich.table",
]
LIBRARIES += ["safetensors.torch", "yaml", "jsonschema"]
ENGINE = [
    "manyheads.cli.app",
    "manyheads.judge.judge_process",
    "manyheads.judge.results_folder",
    "manyheads.box.without_namespaces",
    "manyheads.box.namespaces",
    "manyheads.box.canary",
    "manyheads.judge.grade_submission",
    "manyheads.report.pages",
    "manyheads.authoring.class_repository",
    "manyheads.authoring.verify.run_claims",
]
NBGRADERS = [
    "nbgrader.apps.nbgraderapp",
    "nbgrader.apps.api",
    "jupyter_client",
    "nbclient",
    "IPython",
]
NBGRADERS += ["sqlalchemy.dialects.sqlite", "manyheads.platforms.wrap_nbgrader_commands"]
IMPORTED = {"manyheads": [*LIBRARIES, *ENGINE], "nbgrader": [*LIBRARIES, *ENGINE, *NBGRADERS]}

# One for each program, started when it is first needed, if pytest-xdist's controller has not
# started it for all workers.
_servers: dict[str, forkserver.ForkServer] = {}


class _Elsewhere(forkserver.ForkServer):
    """A server that another process has started, and ends when it ends itself."""

    def __init__(self, address: str, key: bytes | None) -> None:
        super().__init__()
        self._forkserver_address, self._forkserver_authkey = address, key
        self._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)

    def ensure_running(self) -> None:
        """It does."""


def start_for_all() -> dict[str, tuple[str, bytes | None]]:
    """Start the servers in this process, and say where they are: `use` it in another one."""
    servers = {program: _server(program) for program in IMPORTED}
    for server in servers.values():
        server.ensure_running()
    return {
        p: (s._forkserver_address, getattr(s, "_forkserver_authkey", None))
        for p, s in servers.items()
    }


def use(servers: Mapping[str, tuple[str, bytes | None]]) -> None:
    """Use these, which `start_for_all` has started in another process."""
    _servers.update({program: _Elsewhere(*where) for program, where in servers.items()})


def run_warm(
    program: Program, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A program with these arguments, in this folder and environment, as `python -m PROGRAM` runs
    it.
    """
    context = multiprocessing.get_context("forkserver")
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        # Paths, for a process of a fork server inherits no open file.
        output_paths = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        process = context.Process(
            target=_become, args=(program, list(arguments), str(cwd), dict(env), *output_paths)
        )
        with mock.patch.object(
            forkserver, "connect_to_new_process", _server(program).connect_to_new_process
        ):
            process.start()
        process.join()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(arguments, process.exitcode or 0, *texts)


def fork_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that this process starts are forked from one that has imported all that they need."""
    context = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(
        forkserver, "connect_to_new_process", _server("manyheads").connect_to_new_process
    )
    stub = SimpleNamespace(
        get_context=lambda _: context, active_children=multiprocessing.active_children
    )
    monkeypatch.setattr("manyheads.judge.judge_process.multiprocessing", stub)


def _server(program: str) -> forkserver.ForkServer:
    if program not in _servers:
        _servers[program] = forkserver.ForkServer()
        _servers[program].set_forkserver_preload(IMPORTED[program])
    return _servers[program]


def _become(
    program: Program, arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str
) -> None:
    """Does not return."""
    for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    # Judges of this command are forked from it, for the same reason. tests/batch has commands whose
    # judges are spawned.
    multiprocessing.context._concrete_contexts["spawn"] = multiprocessing.get_context("fork")
    sys.argv = [program, *arguments]
    sys.path[:] = [cwd, *(p for p in sys.path if p)]
    runpy.run_module(program, run_name="__main__", alter_sys=False)
