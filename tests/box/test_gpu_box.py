"""Internal: device files and GPU locks need root or a GPU in public. The box for a GPU.

A file or a copy of /dev/zero stands in for the GPU's device file. tests/gpu uses a real GPU.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.box import contents, open_box
from manyheads.box.canary import run_canary
from manyheads.box.connection import AttemptEnded, Box
from manyheads.box.contents import (
    Bind,
    Driver,
    Equipment,
    Gpu,
    Places,
    equipment,
    find_driver,
    gpu_obstacles,
    separate_gpus,
)
from manyheads.box.level_and_device_names import BoxUnavailable, Level
from manyheads.box.namespaces import GpuBox, GpuLock, NamespaceBox, launch_request
from manyheads.box.worker.limits import Limits
from tests.box.conftest import value_of

INFORMATION = (
    "Model: \t\t NVIDIA A100\nIRQ:   \t\t 42\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
)
UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000"]
NOBODY = 61184

Machine = Callable[..., Places]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a function that makes the folders and files of a GPU driver.

    Its parameters:
        gpus: the number of device files.
        described_gpus: the number of these that /proc describes; all by default.
        cache: the path of libcuda in the linker's cache.
        usual: the folder in which containers have libcuda.
    """

    def make(
        gpus: int = 1, *, described_gpus: int | None = None, cache: str = "", usual: str = ""
    ) -> Places:
        dev, proc, sys = tmp_path / "dev", tmp_path / "proc", tmp_path / "sys"
        names = (
            *"nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset".split(),
            *(f"nvidia{i}" for i in range(gpus)),
        )
        dev.mkdir(exist_ok=True)
        for name in names:
            (dev / name).touch()
            (dev / name).chmod(0o666)
        for i in range(gpus if described_gpus is None else described_gpus):
            bus = f"0000:{i + 0xA0:02X}:00.0"
            (proc / "gpus" / bus).mkdir(parents=True)
            (proc / "gpus" / bus / "information").write_text(
                INFORMATION.format(uuid=UUIDS[i], minor=i)
            )
            (sys / f"devices/pci{i}").mkdir(parents=True)
            (sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
            (sys / "bus/pci/devices" / bus.lower()).symlink_to(sys / f"devices/pci{i}")
        return Places(
            dev, proc, sys, ("echo", f"\tlibcuda.so.1 (libc6,x86-64) => {cache}"), (usual,)
        )

    return make


@pytest.fixture
def driver_libraries(tmp_path: Path) -> Path:
    """Return a folder with three libraries that computing needs and one that it does not (GLX)."""
    libraries = tmp_path / "driver"
    libraries.mkdir()
    (libraries / "libcuda.so.550.54").touch()
    (libraries / "libcuda.so.1").symlink_to("libcuda.so.550.54")
    (libraries / "libnvidia-ptxjitcompiler.so.1").touch()
    (libraries / "libGLX_nvidia.so.0").touch()
    return libraries


def test_gpus_are_found_in_order_with_their_uuids(machine):
    driver = find_driver(machine(11, described_gpus=2), {})
    assert driver.gpus[:2] == (
        Gpu("nvidia0", UUIDS[0], "0000:A0:00.0"),
        Gpu("nvidia1", UUIDS[1], "0000:A1:00.0"),
    )
    assert [gpu.node for gpu in driver.gpus][-2:] == ["nvidia9", "nvidia10"]


def test_the_library_is_found_where_the_linker_finds_it(machine, driver_libraries, tmp_path):
    """The order: LD_LIBRARY_PATH, then the linker's cache, then the usual folder in containers."""
    cache_folder = tmp_path / "other"
    cache_folder.mkdir()
    (cache_folder / "libcuda.so.1").touch()
    library = f"{driver_libraries}/libcuda.so.1"
    in_cache = machine(cache=str(cache_folder / "libcuda.so.1"))
    assert (
        find_driver(in_cache, {"LD_LIBRARY_PATH": f"/nowhere:{driver_libraries}"}).library
    ) == library
    assert find_driver(in_cache, {}).library == f"{cache_folder}/libcuda.so.1"
    assert (
        find_driver(machine(usual=str(driver_libraries), described_gpus=0), {}).library == library
    )
    assert find_driver(machine(described_gpus=0), {}).library == ""


LOAD_MODULE, NO_LIBRARY = "sudo nvidia-modprobe -c 0 -u", "libcuda.so.1"
# The device file that a test changes, the change, and the obstacles with their remedies.
OBSTACLES: dict[str, tuple[str, Callable[[Path], object], list[tuple[str, str]]]] = {
    **{
        f"{name} is missing": (name, Path.unlink, [(f"there is no {{dev}}/{name}", LOAD_MODULE)])
        for name in ("nvidiactl", "nvidia-uvm")
    },
    **{
        f"{name} is for a group alone": (
            name,
            lambda path: path.chmod(0o660),
            [(f"the box may not open {{dev}}/{name}", f"sudo chmod a+rw {{dev}}/{name}")],
        )
        for name in ("nvidiactl", "nvidia-uvm-tools", "nvidia0")
    },
    "no obstacle": ("nvidia0", Path.exists, []),
    "no GPU": (
        "nvidia0",
        Path.unlink,
        [("there is no {dev}/nvidia0: no NVIDIA GPU, or no driver for it", LOAD_MODULE)],
    ),
    NO_LIBRARY: (
        "nvidia0",
        Path.exists,
        [
            (
                "libcuda.so.1, a part of the driver, is not found",
                "export LD_LIBRARY_PATH=<the folder of libcuda.so.1>",
            )
        ],
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_each_obstacle_is_named_with_a_command_that_helps(machine, driver_libraries, name):
    device, remove_or_close, expected = OBSTACLES[name]
    places = machine(usual="" if name == NO_LIBRARY else str(driver_libraries))
    remove_or_close(places.dev / device)
    obstacles = str([*gpu_obstacles(find_driver(places, {}), NOBODY)])
    assert obstacles.replace(str(places.dev), "{dev}") == str(expected)


def gpu_equipment(driver: Driver, gpu: int = 0) -> Equipment:
    return equipment(driver, driver.gpus[gpu], {})


FIRST, SECOND = UUIDS
BOTH = ["/dev/nvidia0", "/dev/nvidia1"]
# How many GPUs /proc describes; CUDA_VISIBLE_DEVICES outside the box; the index of the box's GPU;
# device files in the box; CUDA_VISIBLE_DEVICES in the box.
CHOICES = {
    "the first of two GPUs": (2, "", 0, BOTH[:1], FIRST),
    "the second of two GPUs": (2, "", 1, BOTH[1:], SECOND),
    "a GPU that the driver does not describe": (0, "", 0, BOTH, "0"),
    "a GPU chosen by its number": (2, "1", 0, BOTH, "1"),
    "a GPU chosen by its name": (2, SECOND[:8], 0, BOTH[1:], SECOND),
    "a text that chooses nothing": (2, "$(id) x", 0, BOTH, "0"),
}


@pytest.mark.parametrize(
    ("described_gpus", "choice", "gpu", "nodes", "visible"), CHOICES.values(), ids=CHOICES
)
def test_a_box_gets_only_the_device_files_that_computing_needs(
    machine, driver_libraries, described_gpus, choice, gpu, nodes, visible
):
    environment = {"CUDA_VISIBLE_DEVICES": choice} if choice else {}
    driver = find_driver(machine(2, described_gpus=described_gpus, usual=str(driver_libraries)), {})
    gpus = separate_gpus(driver, environment) if choice else driver.gpus
    inside = equipment(driver, gpus[gpu], environment)
    # but not the device files for screens (nvidia-modeset)
    names = [f"/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")]
    assert [bind.target for bind in inside.devices] == [*names, *nodes]
    assert dict(inside.environment)["CUDA_VISIBLE_DEVICES"] == visible


def test_a_box_sees_only_its_own_gpu_among_the_pci_devices(machine, driver_libraries):
    places = machine(2, usual=str(driver_libraries))
    pci = [bind for bind in gpu_equipment(find_driver(places, {}), 1).binds if "pci" in bind.target]
    assert pci == [Bind(f"{places.sys}/devices/pci1", "/sys/bus/pci/devices/0000:a1:00.0")]


def test_libraries_outside_usr_are_bound_in_one_folder_of_the_box(machine, driver_libraries):
    inside = gpu_equipment(find_driver(machine(usual=str(driver_libraries)), {}))
    assert [bind for bind in inside.binds if "lib" in bind.target] == [
        Bind(f"{driver_libraries}/libcuda.so.550.54", "/box/driver/libcuda.so.1"),
        Bind(f"{driver_libraries}/libcuda.so.550.54", "/box/driver/libcuda.so.550.54"),
        Bind(
            f"{driver_libraries}/libnvidia-ptxjitcompiler.so.1",
            "/box/driver/libnvidia-ptxjitcompiler.so.1",
        ),
    ]
    assert dict(inside.environment)["LD_LIBRARY_PATH"] == "/box/driver"


@pytest.mark.parametrize("linker_knows_it", [True, False])
def test_a_library_below_usr_is_not_bound_again(machine, monkeypatch, linker_knows_it):
    library = next(Path("/usr/lib").glob("*/libc.so.6"))  # in the place of the driver's
    monkeypatch.setattr(contents, "LIBRARIES", (library.name,))
    inside = gpu_equipment(Driver(machine(), (Gpu("nvidia0"),), str(library), linker_knows_it))
    assert not [bind for bind in inside.binds if "lib" in bind.target]
    library_path = dict(inside.environment).get("LD_LIBRARY_PATH")
    assert library_path == (None if linker_knows_it else str(library.parent))


def test_a_box_gets_the_readable_capabilities_of_a_divided_gpu(machine, driver_libraries):
    places = machine(usual=str(driver_libraries))
    (places.dev / "nvidia-caps").mkdir()
    for name, mode in (("nvidia-cap1", 0o400), ("nvidia-cap21", 0o444)):
        (places.dev / "nvidia-caps" / name).touch()
        (places.dev / "nvidia-caps" / name).chmod(mode)
    inside = gpu_equipment(find_driver(places, {}))
    assert [bind.target for bind in inside.devices if "caps" in bind.target] == [
        "/dev/nvidia-caps/nvidia-cap21"
    ]


def test_each_box_locks_one_of_the_described_gpus(machine):
    places = machine(2)
    driver = find_driver(places, {})
    assert separate_gpus(driver, {}) == driver.gpus
    chosen = [separate_gpus(driver, {"CUDA_VISIBLE_DEVICES": choice}) for choice in ("0", "1", "1")]
    for first, second, again in ([driver.gpus] * 3, chosen):
        locks = [GpuLock(first), GpuLock(second)]
        assert [lock.gpu for lock in locks] == [first[0], second[-1]]
        with pytest.raises(BoxUnavailable, match=r"another grader uses the GPU.* Next: "):
            GpuLock(again)
        for lock in locks:
            lock.release()
            GpuLock([lock.gpu]).release()
    (places.proc / "gpus/0000:A1:00.0/information").unlink()
    undescribed_driver = find_driver(places, {})
    assert separate_gpus(undescribed_driver, {}) == undescribed_driver.gpus[:1]
    single_gpu_driver = Driver(places, driver.gpus[:1], "", False)
    # with one GPU, a choice by number is clear even without a description
    assert separate_gpus(single_gpu_driver, {"CUDA_VISIBLE_DEVICES": "0"}) == single_gpu_driver.gpus


CPU = Limits(memory_mib=512, files_mib=4, processes=16)
GPU = CPU.for_device("cuda")
SOURCE = """
import ctypes, mmap, os, resource, socket, sys, threading, time, torch

def names_a_thread():
    def rename():
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "r+") as file:
            file.write("cuda-EvtHandlr")
            file.seek(0)
            read.append(file.read().strip())
    read = []
    thread = threading.Thread(target=rename)
    thread.start()
    thread.join()
    return read == ["cuda-EvtHandlr"]

def listens(then=lambda listener: True):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as made:
        made.bind("\\0cuda-uvmfd-1-1")
        made.listen(1)
        return then(made)

def connects(listener):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.connect("\\0cuda-uvmfd-1-1")

def sees_with_a_child():
    if os.fork() == 0:
        time.sleep(60)
    return [name for name in os.listdir("/proc") if name.isdigit()]

def reserves(gib):
    return len(mmap.mmap(-1, gib << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, \
prot=0)) == gib << 30
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device file")


@pytest.fixture(scope="module")
def device_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a device file that works like /dev/zero."""
    path = tmp_path_factory.mktemp("dev") / "nvidia0"
    os.mknod(path, stat.S_IFCHR, os.makedev(1, 5))
    path.chmod(0o666)
    return path


@pytest.fixture(scope="module")
def gpu_box(device_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceBox]:
    devices = tuple(Bind(str(device_file), f"/dev/{name}") for name in ("nvidiactl", "nvidia0"))
    fake_equipment = Equipment(devices, (), (("CUDA_VISIBLE_DEVICES", "0"),))
    with NamespaceBox(GPU, tmp_path_factory.mktemp("hidden"), fake_equipment) as box:
        yield box


def evaluate_in_box(box: Box, limits: Limits, expression: str) -> object:
    """Return the value of an expression in a new attempt, or the name of its exception."""
    return value_of(box, limits, f"{SOURCE}\ndef f():\n    return float({expression})\n")


ABSENT, REFUSED = "FileNotFoundError", "PermissionError"
# An expression, and its results in a box for a GPU and in a box for a CPU.
EXPRESSIONS_AND_RESULTS = {
    "its device file": (
        "open('/dev/nvidia0', 'r+b', buffering=0).read(2) == bytes(2)",
        1.0,
        ABSENT,
    ),
    "the variable that chooses its GPU": (
        "os.environ.get('CUDA_VISIBLE_DEVICES') == '0'",
        1.0,
        0.0,
    ),
    "a name for a thread": ("names_a_thread()", 1.0, 0.0),
    "a unix socket that it listens at": ("listens()", 1.0, REFUSED),
    "no connection to a unix socket": ("listens(connects)", REFUSED, REFUSED),
    "no accepted connection": ("listens(socket.socket.accept)", REFUSED, REFUSED),
    "no datagram socket": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        REFUSED,
        REFUSED,
    ),
    "more address space than there is memory": ("reserves(256)", 1.0, "OSError"),
    "its own part of /proc": ("len(os.readlink('/proc/self/ns/pid')) > 0", 1.0, ABSENT),
    "how much memory the machine has": (
        "'MemTotal' in open('/proc/meminfo').read()",
        1.0,
        ABSENT,
    ),
    "open files": ("resource.getrlimit(resource.RLIMIT_NOFILE)[0]", 512, 128),
    "processes and threads": ("resource.getrlimit(resource.RLIMIT_NPROC)[0]", 80, 16),
    "only its own process in /proc": (
        "sees_with_a_child() == ['1'] * (os.path.exists('/proc/1'))",
        1.0,
        1.0,
    ),
    "no kernel settings": ("os.path.exists('/proc/sys/kernel')", 0.0, 0.0),
    "no memory as a file": ("open('/proc/self/mem', 'rb')", REFUSED, ABSENT),
    "no environment of its start": ("open('/proc/self/environ', 'rb')", REFUSED, ABSENT),
    "no other user to become": ("open('/proc/self/uid_map', 'w')", REFUSED, ABSENT),
    "no protection from the out-of-memory killer": (
        "open('/proc/self/oom_score_adj', 'w')",
        REFUSED,
        ABSENT,
    ),
    "no file of its own in /proc": ("open('/proc/mine', 'w')", "OSError", "OSError"),
    "nothing to uncover below /proc": ("ctypes.CDLL(None).umount2(b'/proc', 2)", -1.0, -1.0),
    "nothing left in /tmp": ("len(os.listdir('/tmp'))", 0.0, 0.0),
    "no internet socket": ("socket.socket(socket.AF_INET)", REFUSED, REFUSED),
    "no netlink socket": ("socket.socket(socket.AF_NETLINK)", REFUSED, REFUSED),
    "not root": ("os.getuid() == 0", 0.0, 0.0),
}


@needs_root
@pytest.mark.parametrize(
    ("expression", "on_a_gpu", "on_a_cpu"),
    EXPRESSIONS_AND_RESULTS.values(),
    ids=EXPRESSIONS_AND_RESULTS,
)
def test_only_a_box_for_a_gpu_has_what_the_driver_needs(
    gpu_box, box, expression, on_a_gpu, on_a_cpu
):
    assert evaluate_in_box(gpu_box, GPU, expression) == on_a_gpu
    assert evaluate_in_box(box, CPU, expression) == on_a_cpu


@needs_root
def test_the_canary_finds_no_leak_in_a_box_for_a_gpu(gpu_box, tmp_path):
    report = run_canary(gpu_box, GPU, tmp_path)
    assert report.holds, report


@needs_root
def test_the_cgroup_limits_memory_in_a_box_for_a_gpu(device_file, tmp_path):
    small_limits = replace(GPU, memory_mib=64)
    with NamespaceBox(
        small_limits, tmp_path, Equipment((Bind(str(device_file), "/dev/nvidia0"),))
    ) as box:
        if not all(folder.exists() for folder in box._cgroup.folders):
            pytest.skip("no cgroup can be made here")
        with pytest.raises(AttemptEnded, match="out of memory"):
            evaluate_in_box(box, small_limits, "len(torch.ones(3 << 30, dtype=torch.uint8))")


def test_a_box_for_a_gpu_differs_only_by_its_equipment(tmp_path):
    def arguments(box_equipment: Equipment) -> list[str]:
        request = launch_request("bwrap", 3, 61184, tmp_path, {}, box_equipment)
        return [
            a.format(*request["sources"]) if a.startswith("{") else a for a in request["arguments"]
        ]

    files = tuple(Bind(name, name) for name in ("/dev/nvidiactl", "/dev/nvidia3"))
    library = Bind("/opt/driver/libcuda.so.550", "/box/driver/libcuda.so.1")
    with_gpu = arguments(Equipment(files, (library,), (("CUDA_VISIBLE_DEVICES", "GPU-1"),)))
    without_gpu = arguments(Equipment())
    added = [
        library.source,
        library.target,
        *(name for bind in files for name in (bind.source, bind.target)),
    ]
    expected = [*added, "CUDA_VISIBLE_DEVICES", "GPU-1"]
    assert [a for a in with_gpu if a not in without_gpu] == expected
    # one bind of a library, two of devices, one variable: an option and two values each
    assert len(with_gpu) == len(without_gpu) + 3 + 6 + 3
    # after /dev/shm, /dev becomes read-only
    assert with_gpu.index("/dev/nvidiactl") < with_gpu.index("/dev/shm")


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """Return a driver with all its device files, but without a GPU behind them."""
    # a name with this pid: a lock on it must not meet those of tests in other processes
    gpu_node = f"nvidia{os.getpid()}"
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", gpu_node):
        os.mknod(tmp_path / name, stat.S_IFCHR, os.makedev(1, 5))
        (tmp_path / name).chmod(0o666)
    return Driver(Places(tmp_path), (Gpu(gpu_node),), "/usr/lib/libcuda.so.1", True)


@needs_root
def test_the_message_quotes_why_cuda_does_not_start_in_the_box(driver, tmp_path):
    with GpuBox(GPU, tmp_path, driver) as box:
        with pytest.raises(
            BoxUnavailable, match=r"CUDA does not start in the box \(.+\)\. Next: course doctor"
        ):
            box.attempt(GPU)
        with pytest.raises(BoxUnavailable, match="another grader uses the GPU"):
            GpuBox(GPU, tmp_path, driver)
    GpuLock(driver.gpus).release()  # free again


@needs_root
def test_the_message_names_a_command_for_a_closed_device_file(driver, tmp_path):
    (tmp_path / "nvidia-uvm").chmod(0o600)
    with pytest.raises(
        BoxUnavailable, match=r"may not open .*/nvidia-uvm\. Next: sudo chmod a\+rw .*/nvidia-uvm"
    ):
        GpuBox(GPU, tmp_path, driver)


@needs_root
def test_a_box_that_does_not_start_releases_the_gpu(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BoxUnavailable, match="bubblewrap") as caught:
        GpuBox(GPU, tmp_path, driver)
    GpuLock(driver.gpus).release()
    del caught  # the exception held a reference to the box


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_machine_without_a_gpu_has_no_box_for_one(tmp_path):
    with pytest.raises(BoxUnavailable, match="no NVIDIA GPU"):
        open_box(Level.NAMESPACES, GPU, tmp_path)
