"""Find the NVIDIA driver on this machine, and list what a box for `--device cuda` gets of it.

The lists come from libnvidia-container, as far as computing needs them, and from the paths that
libcuda.so.1 contains.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .contents import Bind, contents, places_in_box

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
    """Where to look. Tests use other folders."""

    dev: Path = Path("/dev")
    proc: Path = Path("/proc/driver/nvidia")
    sys: Path = Path("/sys")
    ldconfig: tuple[str, ...] = ("/sbin/ldconfig", "-p")
    folders: tuple[str, ...] = _USUAL_FOLDERS


@dataclass(frozen=True)
class Gpu:
    """One GPU. node: the name of its device file. uuid and bus: as the driver reports them, else
    empty.
    """

    node: str
    uuid: str = ""
    bus: str = ""


@dataclass(frozen=True)
class Driver:
    """What was found.

    library: the path of libcuda.so.1, "" if not found. known: whether the linker finds it by
        itself.
    """

    places: Places
    gpus: tuple[Gpu, ...]
    library: str
    in_linker_cache: bool


@dataclass(frozen=True)
class Equipment:
    """What a box gets in addition to what every box holds.

    devices: device files. binds: read-only.
    """

    devices: tuple[Bind, ...] = ()
    binds: tuple[Bind, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


def find_driver(
    places: Places | None = None, environment: Mapping[str, str] = os.environ
) -> Driver:
    """Look for GPUs and for the driver's library."""
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


def missing(driver: Driver, uid: int | None) -> Iterator[tuple[str, str]]:
    """Yield what a box that runs as `uid` lacks (None: as this process's uid), each with the
    command that would help.
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
    """Return the GPUs that boxes can use at the same time.

    All of them if the driver identifies each, or the one that CUDA_VISIBLE_DEVICES chooses.
    """
    if len(driver.gpus) < 2:
        return driver.gpus
    if chosen := environment.get("CUDA_VISIBLE_DEVICES"):
        return tuple(gpu for gpu in driver.gpus if gpu.uuid.startswith(chosen))[:1] or (
            Gpu(chosen),
        )
    return driver.gpus if all(gpu.uuid for gpu in driver.gpus) else driver.gpus[:1]


def equipment(driver: Driver, gpu: Gpu, environment: Mapping[str, str] = os.environ) -> Equipment:
    """Return what a box gets for one of the `separate_gpus`: its device file, and no other GPU's if
    it has a UUID.
    """
    places = driver.places
    chosen = environment.get("CUDA_VISIBLE_DEVICES", "")
    visible = chosen if _VISIBLE.fullmatch(chosen) else "0"
    gpus = driver.gpus
    if gpu.uuid and len(gpus) > 1:
        gpus, visible = (gpu,), gpu.uuid
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
    """Yield the libraries beside libcuda.so.1, unless the box holds them anyway."""
    if not library or places_in_box(Path(library).parent, contents().binds):
        return
    for path in sorted(Path(library).parent.glob("lib*.so*")):
        if path.name.startswith(LIBRARIES):
            yield Bind(os.path.realpath(path), f"{LIBRARY_FOLDER}/{path.name}")


def _sysfs(root: Path, buses: Sequence[str]) -> Iterator[Bind]:
    for name in (*_SYSFS, *(f"bus/pci/devices/{bus.lower()}" for bus in buses)):
        if (root / name).exists():
            yield Bind(os.path.realpath(root / name), f"/sys/{name}")


def _in_linker_cache(ldconfig: tuple[str, ...]) -> str:
    """Return the path of the driver's library for 64-bit programs in the linker's cache."""
    try:
        says = subprocess.run(ldconfig, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    matches = re.findall(rf"^\s*{re.escape(DRIVER)} \([^)]*64[^)]*\) => (\S+)", says, re.MULTILINE)
    return next((path for path in matches if os.path.exists(path)), "")


def _may_open(path: Path, uid: int | None, write: bool = True) -> bool:
    """Return whether a process with this uid, which owns nothing, may open the path.

    None: whether this process may.
    """
    if uid is None:
        return os.access(path, os.R_OK | (os.W_OK if write else 0))
    mode_bits = stat.S_IROTH | (stat.S_IWOTH if write else 0)
    return path.stat().st_mode & mode_bits == mode_bits
