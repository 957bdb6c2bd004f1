"""A command in a process of its own that need not import torch or nbgrader first: forked from one that has.

Most of what a test of a command takes is that import, a second or two each time.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

Program = Literal["manyheads", "nbgrader"]

LIBRARIES = ["torch", "typer", "rich.console", "rich.table", "safetensors.torch", "yaml", "jsonschema"]
NBGRADERS = ["nbgrader.apps.nbgraderapp", "nbgrader.apps.api", "jupyter_client", "nbclient"]


def run_warm(
    program: Program, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A program with these arguments, in this folder and environment, as `python -m PROGRAM` runs it.

    What is imported beforehand is what the first program in this process needs.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LIBRARIES, *(NBGRADERS if program == "nbgrader" else [])])
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        # Paths, for a process of a fork server inherits no open file.
        said = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        process = context.Process(target=_become, args=(program, list(arguments), str(cwd), dict(env), *said))
        process.start()
        process.join()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(arguments, process.exitcode or 0, *texts)


def _become(program: Program, arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Does not return."""
    for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [program, *arguments]
    sys.path[:] = [cwd, *(p for p in sys.path if p)]
    runpy.run_module(program, run_name="__main__", alter_sys=False)
