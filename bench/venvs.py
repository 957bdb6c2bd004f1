"""A virtual environment of its own for each peer, so that no package of ours stands beside it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .places import REPOSITORY


def python_of(cache: Path, name: str, *packages: str) -> Path:
    """The interpreter of that environment; it is built where it is not there, torch first and as we pin it."""
    folder = cache / name
    python, ready = folder / "bin" / "python", folder / ".ready"
    wanted = " ".join(packages)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"building {name}'s environment", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for these in ((pinned("torch"),), packages):
            _pip(python, *these)
        ready.write_text(wanted)
    return python


def call(python: Path, *words: str, folder: Path, env: Mapping[str, str]) -> None:
    """Run a module of that environment in a folder, and raise with what it said where it fails."""
    done = subprocess.run([python, "-m", *words], cwd=folder, env=env, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")


def version_of(python: Path, package: str) -> str:
    """The version that stands in this environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def pinned(package: str) -> str:
    """The package in the version that constraints.txt pins."""
    found = re.search(rf"^{package}==\S+", (REPOSITORY / "constraints.txt").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"constraints.txt pins no {package}")
    return found[0]


def _pip(python: Path, *packages: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--quiet", *packages]
    subprocess.run(command, check=True, stdout=sys.stderr)
