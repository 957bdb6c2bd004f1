"""List the contents of a box: an interpreter, packages, the worker, and the NVIDIA driver.

An attempt can read nothing else. For `--device cuda`, the module finds the NVIDIA driver on this
machine. The lists of its files come from libnvidia-container, as far as computing needs them, and
from the paths that libcuda.so.1 contains.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import os
import re
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

# An attempt may import these packages, their requirements and the standard library.
PACKAGES = ("torch", "safetensors", "numpy", "einops")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    # glibc looks here before it asks for huge pages:
    "/sys/kernel/mm/transparent_hugepage/enabled",
    # with huge pages, an attempt has half as many page faults
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
)
SITE, WORKER_PARENT, WORKER = "/box/site", "/box/lib", "manyheads_worker"
_PYTHON = "/box/python"


@dataclass(frozen=True)
class Bind:
    """A path of the host, and the path at which it is mounted in the box."""

    source: str
    target: str


@dataclass(frozen=True)
class Contents:
    """The files that a box shows, and the interpreter among them."""

    binds: tuple[Bind, ...]  # read-only
    emptied: tuple[str, ...]  # folders below a bind that are empty in the box
    symlinks: tuple[tuple[str, str], ...]  # pairs (target, path in the box)
    python: str  # the interpreter's path in the box
    python_library: str = ""  # the folder of libpython in the box, if Python is built with one


def paths_in_box(path: Path, binds: Iterable[Bind]) -> tuple[str, ...]:
    """Return every path in the box at which these binds show a path of the host.

    Symbolic links in the path and in the sources of binds are resolved first. Binds of files below
    the path do not count: they show only a part of its folder.
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
    """Return the contents of a box on this machine, without a GPU's."""
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
        path for folder in _installed_packages(base) for path in paths_in_box(folder, binds)
    )
    for path in _package_paths(PACKAGES):
        binds.append(Bind(str(path), f"{SITE}/{path.name}"))
    binds.append(Bind(str(Path(__file__).parent / "worker"), f"{WORKER_PARENT}/{WORKER}"))
    return Contents(tuple(binds), emptied, tuple(symlinks), python, _library(base))


def system_library_folders() -> tuple[str, ...]:
    """Load the C and C++ libraries that the interpreter and torch need, and return their folders.

    The paths are real, without symbolic links. Libraries that do not exist are left out.
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
    """Yield the folders in which the base installation keeps packages.

    They are empty in the box, because an installed package may hold anything, a course too. The
    packages that the box needs are bound at another path.
    """
    folder = Path(base) / "lib" if base else Path("/usr/lib")
    for pattern in ("python3*/site-packages", "python3*/dist-packages", "python3/dist-packages"):
        yield from folder.glob(pattern)


def _interpreter() -> tuple[str | None, str]:
    """Return the base installation to bind, and the interpreter's path in the box.

    The base installation is None if it is /usr. Then the interpreter and the standard library are
    bound separately.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = os.path.realpath(sys.base_prefix)
    if base == "/usr":
        return None, os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    return base, f"{_PYTHON}/bin/{version}"


def _library(base: str | None) -> str:
    """Return the folder of libpython in the box, or "" if the interpreter needs none.

    An interpreter that is built with a shared libpython (from pyenv, on a hosted runner) looks for
    it at the path of its installation, which the box does not have.
    """
    if base is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return ""
    folder = os.path.realpath(sysconfig.get_config_var("LIBDIR") or "")
    inside = os.path.relpath(folder, base)
    return f"{_PYTHON}/lib" if inside.startswith("..") else f"{_PYTHON}/{inside}"


def box_modules() -> frozenset[str]:
    """Return the top-level modules that an attempt can import here.

    The modules of the standard library are not included.
    """
    return frozenset(path.name.split(".")[0] for path in _package_paths(PACKAGES))


@cache
def _package_paths(names: tuple[str, ...]) -> list[Path]:
    """Return the top-level files and folders of these distributions and of their requirements.

    Distributions that are not installed, and requirements of an extra, are left out.
    """
    paths: dict[str, Path] = {}  # the keys are names, because the box shows each name once
    todo = list(names)
    visited = set()
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
    """Return the first part of each path that the distribution installed.

    RECORD is read directly if there is one, because `files` makes an object of each of torch's
    10,000 paths, which takes a fifth of a second.
    """
    record = distribution.read_text("RECORD")
    if record is None:
        return {file.parts[0] for file in distribution.files or ()}
    return {row[0].partition("/")[0] for row in csv.reader(record.splitlines()) if row}


CONTROL, UVM, UVM_TOOLS = "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"
DRIVER = "libcuda.so.1"
LIBRARY_FOLDER = "/box/driver"
LIBRARIES = (
    "libcuda.so",
    "libnvidia-ml.so",
    "libnvidia-ptxjitcompiler.so",
    "libnvidia-nvvm.so",
    "libnvidia-nvvm70.so",
    "libnvidia-gpucomp.so",
    "libnvidia-fatbinaryloader.so",
    "libnvidia-cfg.so",
    "libnvidia-pkcs11.so",
    "libnvidia-pkcs11-openssl3.so",
    "libnvidia-tileiras.so",
    "libnvidia-sandboxutils.so",
)
_SYSFS = (
    "devices/system/cpu",
    "devices/system/node",
    "devices/system/memory/block_size_bytes",
    "devices/system/memory/auto_online_blocks",
    "module/nvidia/initstate",
    "module/nvidia_uvm/initstate",
)
_USUAL_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib")
_VISIBLE = re.compile(r"[A-Za-z0-9,./-]{1,400}")
_FIELD = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """The folders in which to look for the driver. Tests use other folders."""

    dev: Path = Path("/dev")
    proc: Path = Path("/proc/driver/nvidia")
    sys: Path = Path("/sys")
    ldconfig: tuple[str, ...] = ("/sbin/ldconfig", "-p")
    folders: tuple[str, ...] = _USUAL_FOLDERS


@dataclass(frozen=True)
class Gpu:
    """One GPU. `uuid` and `bus` are empty if the driver does not report them."""

    node: str  # the name of its device file
    uuid: str = ""
    bus: str = ""


@dataclass(frozen=True)
class Driver:
    """The NVIDIA driver of this machine and its GPUs."""

    places: Places
    gpus: tuple[Gpu, ...]
    library: str  # the path of libcuda.so.1, "" if not found
    in_linker_cache: bool  # whether the linker finds the library by itself


@dataclass(frozen=True)
class Equipment:
    """The additional contents of a box with a GPU."""

    devices: tuple[Bind, ...] = ()  # device files
    binds: tuple[Bind, ...] = ()  # read-only
    environment: tuple[tuple[str, str], ...] = ()


def find_driver(
    places: Places | None = None, environment: Mapping[str, str] = os.environ
) -> Driver:
    """Return the GPUs of this machine, by number, and the path of the driver's library.

    The library is the one that the linker would load here: from LD_LIBRARY_PATH, then from the
    linker's cache. After these, the usual folders are searched.

    Args:
        places: the folders in which to look. None means the folders of this system.
        environment: the variables of this process.
    """
    places = places or Places()
    gpus_by_node = {
        path.name: Gpu(path.name)
        for path in places.dev.glob("nvidia[0-9]*")
        if path.name[6:].isdigit()
    }
    for path in places.proc.glob("gpus/*/information"):
        says = dict(_FIELD.findall(path.read_text(errors="replace")))
        node = f"nvidia{says.get('Device Minor', '')}"
        if node in gpus_by_node:
            gpus_by_node[node] = Gpu(node, says.get("GPU UUID", ""), path.parent.name)
    gpus = tuple(sorted(gpus_by_node.values(), key=lambda gpu: int(gpu.node[6:])))
    cached = _in_linker_cache(places.ldconfig)
    set_here = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    # the linker's own order
    library = _first_with_driver(set_here) or cached or _first_with_driver(places.folders)
    return Driver(places, gpus, library, library == cached)


def _first_with_driver(folders: Sequence[str]) -> str:
    return next((f"{folder}/{DRIVER}" for folder in folders if Path(folder, DRIVER).exists()), "")


def gpu_obstacles(driver: Driver, uid: int | None) -> Iterator[tuple[str, str]]:
    """Yield each obstacle for a box that uses the GPU, with the command that would help.

    If there is no GPU, this is the only obstacle.

    Args:
        driver: as `find_driver` returns it.
        uid: the uid of the box, or None if this process's uid is used.
    """
    dev = driver.places.dev
    if not driver.gpus:
        yield (
            f"there is no {dev}/nvidia0: no NVIDIA GPU, or no driver for it",
            "sudo nvidia-modprobe -c 0 -u",
        )
        return
    names = [CONTROL, UVM, *(gpu.node for gpu in driver.gpus)]
    for name in names:
        if not (dev / name).exists():
            yield f"there is no {dev}/{name}", "sudo nvidia-modprobe -c 0 -u"
    opened = [dev / name for name in (*names, UVM_TOOLS)]
    closed = [str(path) for path in opened if path.exists() and not _may_open(path, uid)]
    if closed:
        yield f"the box may not open {', '.join(closed)}", f"sudo chmod a+rw {' '.join(closed)}"
    if not driver.library:
        yield (
            f"{DRIVER}, a part of the driver, is not found",
            f"export LD_LIBRARY_PATH=<the folder of {DRIVER}>",
        )


def separate_gpus(driver: Driver, environment: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the GPUs that boxes can use at the same time, each by one box.

    A machine with at most one GPU has no choice. On other machines, CUDA_VISIBLE_DEVICES chooses
    one GPU: the first with this beginning of a UUID, or a `Gpu` with this text as its name if there
    is none. If the variable is not set, the result has all GPUs if each has a UUID, and only the
    first if not.
    """
    if len(driver.gpus) < 2:
        return driver.gpus
    if chosen := environment.get("CUDA_VISIBLE_DEVICES"):
        return tuple(gpu for gpu in driver.gpus if gpu.uuid.startswith(chosen))[:1] or (
            Gpu(chosen),
        )
    return driver.gpus if all(gpu.uuid for gpu in driver.gpus) else driver.gpus[:1]


def equipment(driver: Driver, gpu: Gpu, environment: Mapping[str, str] = os.environ) -> Equipment:
    """Return the device files, binds and variables that a box needs for one of `separate_gpus`.

    If there are several GPUs and this one has a UUID, the box gets no other GPU's device file.
    Otherwise it gets the device files of all GPUs, and the judge's CUDA_VISIBLE_DEVICES, by default
    "0".
    """
    places = driver.places
    chosen = environment.get("CUDA_VISIBLE_DEVICES", "")
    visible = chosen if _VISIBLE.fullmatch(chosen) else "0"
    gpus = driver.gpus
    if gpu.uuid and len(gpus) > 1:
        gpus = (gpu,)
        visible = gpu.uuid
    offered = places.dev.glob("nvidia-caps/nvidia-cap[0-9]*")
    capabilities = sorted(p.name for p in offered if _may_open(p, 0, write=False))
    names = [
        CONTROL,
        UVM,
        UVM_TOOLS,
        *(g.node for g in gpus),
        *(f"nvidia-caps/{name}" for name in capabilities),
    ]
    devices = tuple(
        Bind(str(places.dev / name), f"/dev/{name}")
        for name in names
        if (places.dev / name).exists()
    )
    variables = {
        "CUDA_CACHE_DISABLE": "1",
        "CUDA_MODULE_LOADING": "LAZY",
        "CUDA_VISIBLE_DEVICES": visible,
    }
    libraries = tuple(_libraries(driver.library))
    if libraries:
        variables["LD_LIBRARY_PATH"] = LIBRARY_FOLDER
    elif driver.library and not driver.in_linker_cache:
        variables["LD_LIBRARY_PATH"] = os.path.dirname(driver.library)
    binds = (*libraries, *_sysfs(places.sys, [g.bus for g in gpus if g.bus]))
    return Equipment(devices, binds, tuple(variables.items()))


def _libraries(library: str) -> Iterator[Bind]:
    """Yield binds of the driver's libraries beside libcuda.so.1.

    Nothing is yielded if the box holds their folder anyway, or if there is no driver.
    """
    if not library or paths_in_box(Path(library).parent, contents().binds):
        return
    for path in sorted(Path(library).parent.glob("lib*.so*")):
        if path.name.startswith(LIBRARIES):
            yield Bind(os.path.realpath(path), f"{LIBRARY_FOLDER}/{path.name}")


def _sysfs(root: Path, buses: Sequence[str]) -> Iterator[Bind]:
    for name in (*_SYSFS, *(f"bus/pci/devices/{bus.lower()}" for bus in buses)):
        if (root / name).exists():
            yield Bind(os.path.realpath(root / name), f"/sys/{name}")


def _in_linker_cache(ldconfig: tuple[str, ...]) -> str:
    """Return the path of the 64-bit library of the driver in the linker's cache, or "" if none."""
    try:
        says = subprocess.run(ldconfig, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    matches = re.findall(rf"^\s*{re.escape(DRIVER)} \([^)]*64[^)]*\) => (\S+)", says, re.MULTILINE)
    return next((path for path in matches if os.path.exists(path)), "")


def _may_open(path: Path, uid: int | None, *, write: bool = True) -> bool:
    """Return whether a process with this uid, which owns nothing, may open the path.

    If `uid` is None, return whether this process may. Without `write`, it opens the path only to
    read.
    """
    if uid is None:
        return os.access(path, os.R_OK | (os.W_OK if write else 0))
    mode_bits = stat.S_IROTH | (stat.S_IWOTH if write else 0)
    return path.stat().st_mode & mode_bits == mode_bits
