"""What stands in the box: an interpreter, the packages an attempt may import, and the worker.

Nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

# what an attempt may import besides the standard library
PACKAGES = ("torch", "safetensors", "numpy", "einops")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    # glibc looks here before it asks for huge pages:
    "/sys/kernel/mm/transparent_hugepage/enabled",
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
    """The binds of a box, and the interpreter's path inside it, with the folder of its own library
    where it has one.
    """

    binds: tuple[Bind, ...]
    emptied: tuple[str, ...]  # folders below a bind that are empty in the box
    symlinks: tuple[tuple[str, str], ...]  # (what it says, where it stands)
    python: str
    python_library: str = ""


def places_in_box(path: Path, binds: Iterable[Bind]) -> tuple[str, ...]:
    """Return every path in the box at which these binds show a path of the host, whatever links
    lead there.
    """
    real = path.resolve()
    paths: dict[str, None] = {}
    for bind in binds:
        source = Path(os.path.realpath(bind.source))
        if real.is_relative_to(source):
            paths[os.path.normpath(Path(bind.target, real.relative_to(source)))] = None
    return tuple(paths)


@cache
def contents() -> Contents:
    """Work out the box's contents on this machine."""
    base, python = _interpreter()
    libraries = system_library_folders()
    binds = [Bind(folder, folder) for folder in libraries]
    symlinks = []
    # the path of the dynamic linker, which every program names
    for folder in ("/lib", "/lib64", "/usr/lib64"):
        if os.path.islink(folder):
            symlinks.append((os.readlink(folder), folder))
        elif os.path.isdir(folder) and folder not in libraries and folder.endswith("64"):
            binds.append(Bind(folder, folder))
    binds += [Bind(path, path) for path in SYSTEM_FILES if os.path.exists(path)]
    if base is None:
        binds += [
            Bind(path, path) for path in (python, os.path.dirname(os.path.realpath(os.__file__)))
        ]
    else:
        binds.append(Bind(base, _PYTHON))
    emptied = tuple(
        path for folder in _installed_packages(base) for path in places_in_box(folder, binds)
    )
    for path in _package_paths(PACKAGES):
        binds.append(Bind(str(path), f"{SITE}/{path.name}"))
    binds.append(Bind(str(Path(__file__).parent / "worker"), f"{WORKER_PARENT}/{WORKER}"))
    return Contents(tuple(binds), emptied, tuple(symlinks), python, _library(base))


def system_library_folders() -> tuple[str, ...]:
    """Real paths of the folders that hold the C and C++ libraries, which the interpreter and torch
    need.
    """
    for name in ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
    loaded = re.findall(
        r" (/\S*/lib(?:c|stdc\+\+|gcc_s)\.so\.\S+)$",
        Path("/proc/self/maps").read_text(),
        re.MULTILINE,
    )
    return tuple(dict.fromkeys(os.path.dirname(os.path.realpath(path)) for path in loaded))


def _installed_packages(base: str | None) -> Iterator[Path]:
    """Yield where the base installation keeps packages.

    The box has those that it needs elsewhere, so these folders are empty in it: an installed
    package may hold anything, a course too.
    """
    folder = Path(base) / "lib" if base else Path("/usr/lib")
    for pattern in ("python3*/site-packages", "python3*/dist-packages", "python3/dist-packages"):
        yield from folder.glob(pattern)


def _interpreter() -> tuple[str | None, str]:
    """Return the base installation to bind (None where /usr holds it) and the interpreter's path in
    the box.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = os.path.realpath(sys.base_prefix)
    if base == "/usr":
        return None, os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    return base, f"{_PYTHON}/bin/{version}"


def _library(base: str | None) -> str:
    """Return where libpython stands in the box.

    An interpreter that is built with one (pyenv's, a hosted runner's) names it by the path at which
    it was installed, which the box does not have.
    """
    if base is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return ""
    folder = os.path.realpath(sysconfig.get_config_var("LIBDIR") or "")
    inside = os.path.relpath(folder, base)
    return f"{_PYTHON}/lib" if inside.startswith("..") else f"{_PYTHON}/{inside}"


def box_modules() -> frozenset[str]:
    """Return what an attempt can import in a box of this machine, beside the standard library."""
    return frozenset(path.name.split(".")[0] for path in _package_paths(PACKAGES))


@cache
def _package_paths(names: tuple[str, ...]) -> list[Path]:
    """Top-level files and folders of these distributions and of all that they require."""
    paths: dict[str, Path] = {}  # by name: each stands in the box once
    todo, visited = list(names), set()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in visited:
            continue
        visited.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # an optional requirement
            continue
        for top in _top_names(distribution):
            if top not in ("..", "__pycache__") and not top.endswith((".pth", ".dist-info")):
                paths.setdefault(top, Path(str(distribution.locate_file(top))))
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement:
                todo.append(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
    return [path for path in sorted(paths.values()) if path.exists()]


def _top_names(distribution: metadata.Distribution) -> set[str]:
    """Return the first part of each path that it installed.

    Read from RECORD where there is one, because `files` makes an object of each of torch's 10,000
    paths, which takes a fifth of a second.
    """
    record = distribution.read_text("RECORD")
    if record is None:
        return {file.parts[0] for file in distribution.files or ()}
    return {row[0].partition("/")[0] for row in csv.reader(record.splitlines()) if row}
