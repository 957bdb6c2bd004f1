"""A Jupyter server on this machine alone, as an instructor or a student has one: its own home, a
folder, a token.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOKEN = "of-a-test"
PATIENCE = 60.0  # seconds that the server may take to start
REPOSITORY = Path(__file__).parents[1]


@contextmanager
def jupyter(folder: Path, home: Path, engine: Path = REPOSITORY) -> Iterator[str]:
    """The address of a server in this folder. `home`: an empty folder; `engine`: where its kernels
    find the engine.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
    ]
    # window.jupyterapp, whose commands a test can run
    command += ["--LabApp.expose_app_in_browser=True"]
    command += [
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}",
    ]
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(engine),
        "OMP_NUM_THREADS": "1",
    }
    with (home / "server.log").open("w") as log:
        options = {"cwd": folder, "env": environment, "start_new_session": True}
        server = subprocess.Popen(command, stdout=log, stderr=log, **options)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(server, address, home / "server.log")
            yield address
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_for(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
