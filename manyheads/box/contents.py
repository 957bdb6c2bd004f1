"""What stands in the box: an interpreter, the packages an attempt may import, and the worker. Nothing else."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "safetensors", "numpy", "einops")  # CONTRACT: what an attempt may import
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/sys/kernel/mm/transparent_hugepage/enabled",  # glibc looks here before it asks for huge pages:
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",  # half of an attempt's page faults
)
SITE, WORKER_PARENT, WORKER = "/box/site", "/box/lib", "manyheads_worker"
_PYTHON = "/box/python"


@dataclass(frozen=True)
class Bind:
    """A read-only bind: a path of the host and where it stands in the box."""

    source: str
    target: str


@dataclass(frozen=True)
class Contents:
    """The binds of a box, and the interpreter's path inside it, with the folder of its own library where it has one."""

    binds: tuple[Bind, ...]
    symlinks: tuple[tuple[str, str], ...]  # (what it says, where it stands)
    python: str
    python_library: str = ""


@cache
def contents() -> Contents:
    """Work out the box's contents on this machine."""
    binds = [Bind("/usr", "/usr")]
    symlinks = []
    for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            symlinks.append((os.readlink(path), str(path)))
        elif path.is_dir():
            binds.append(Bind(str(path), str(path)))
    binds += [Bind(path, path) for path in SYSTEM_FILES if os.path.exists(path)]
    base, python = _interpreter()
    if base is not None:
        binds.append(Bind(base, _PYTHON))
    for path in _package_paths(PACKAGES):
        binds.append(Bind(str(path), f"{SITE}/{path.name}"))
    binds.append(Bind(str(Path(__file__).parent / "worker"), f"{WORKER_PARENT}/{WORKER}"))
    return Contents(tuple(binds), tuple(symlinks), python, _library(base))


def _interpreter() -> tuple[str | None, str]:
    """The base installation to bind (None where /usr holds it) and the interpreter's path in the box."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = os.path.realpath(sys.base_prefix)
    if base == "/usr":
        return None, os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    return base, f"{_PYTHON}/bin/{version}"


def _library(base: str | None) -> str:
    """Where libpython stands in the box: an interpreter that is built with one (pyenv's, a hosted runner's) names it by the
    path at which it was installed, which the box does not have."""
    if base is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return ""
    folder = os.path.realpath(sysconfig.get_config_var("LIBDIR") or "")
    inside = os.path.relpath(folder, base)
    return f"{_PYTHON}/lib" if inside.startswith("..") else f"{_PYTHON}/{inside}"


@cache
def box_modules() -> frozenset[str]:
    """What an attempt can import in a box of this machine, beside the standard library."""
    return frozenset(path.name.split(".")[0] for path in _package_paths(PACKAGES))


def _package_paths(names: tuple[str, ...]) -> list[Path]:
    """Top-level files and folders of these distributions and of all that they require."""
    paths: dict[str, Path] = {}  # by name: each stands in the box once
    todo, seen = list(names), set()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # an optional requirement
            continue
        for file in distribution.files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not top.endswith((".pth", ".dist-info")):
                paths.setdefault(top, Path(str(distribution.locate_file(top))))
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement:
                todo.append(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
    return [path for path in sorted(paths.values()) if path.exists()]
