"""What a box is given for a GPU: worked out from folders that look as an NVIDIA driver leaves them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box import nvidia
from manyheads.box.contents import Bind
from manyheads.box.gpu import GpuLock
from manyheads.box.level import BoxUnavailable
from manyheads.box.nvidia import Driver, Gpu, Places, equipment, find_driver, missing, separate_gpus

INFORMATION = "Model: \t\t NVIDIA A100\nIRQ:   \t\t 42\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000"]
NOBODY = 61184

Machine = Callable[..., Places]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Folders as a driver leaves them: `gpus` device files, the first `told` of them described in /proc."""

    def make(gpus: int = 1, *, told: int | None = None, cache: str = "", usual: str = "") -> Places:
        dev, proc, sys = tmp_path / "dev", tmp_path / "proc", tmp_path / "sys"
        names = *"nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset".split(), *(f"nvidia{i}" for i in range(gpus))
        dev.mkdir(exist_ok=True)
        for name in names:
            (dev / name).touch()
            (dev / name).chmod(0o666)
        for i in range(gpus if told is None else told):
            bus = f"0000:{i + 0xA0:02X}:00.0"
            (proc / "gpus" / bus).mkdir(parents=True)
            (proc / "gpus" / bus / "information").write_text(INFORMATION.format(uuid=UUIDS[i], minor=i))
            (sys / f"devices/pci{i}").mkdir(parents=True)
            (sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
            (sys / "bus/pci/devices" / bus.lower()).symlink_to(sys / f"devices/pci{i}")
        return Places(dev, proc, sys, ("echo", f"\tlibcuda.so.1 (libc6,x86-64) => {cache}"), (usual,))

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a driver's libraries, and one that is none of them."""
    libraries = tmp_path / "driver"
    libraries.mkdir()
    (libraries / "libcuda.so.550.54").touch()
    (libraries / "libcuda.so.1").symlink_to("libcuda.so.550.54")
    (libraries / "libnvidia-ptxjitcompiler.so.1").touch()
    (libraries / "libGLX_nvidia.so.0").touch()
    return libraries


def test_gpus_are_found_in_order_and_named_as_the_driver_names_them(machine: Machine) -> None:
    driver = find_driver(machine(11, told=2), {})
    assert driver.gpus[:2] == (Gpu("nvidia0", UUIDS[0], "0000:A0:00.0"), Gpu("nvidia1", UUIDS[1], "0000:A1:00.0"))
    assert [gpu.node for gpu in driver.gpus][-2:] == ["nvidia9", "nvidia10"]


def test_the_library_is_where_the_linker_would_find_it(machine: Machine, folder: Path, tmp_path: Path) -> None:
    """First LD_LIBRARY_PATH, then the cache, then where containers have it."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "libcuda.so.1").touch()
    library = f"{folder}/libcuda.so.1"
    in_cache = machine(cache=str(other / "libcuda.so.1"))
    assert (find_driver(in_cache, {"LD_LIBRARY_PATH": f"/nowhere:{folder}"}).library) == library
    assert find_driver(in_cache, {}).library == f"{other}/libcuda.so.1"
    assert find_driver(machine(usual=str(folder), told=0), {}).library == library
    assert find_driver(machine(told=0), {}).library == ""


def closed(name: str) -> Callable[[Path], None]:
    return lambda dev: (dev / name).chmod(0o660)


@pytest.mark.parametrize(("spoil", "library", "expected"), [
    pytest.param(lambda dev: None, True, [], id="where all is there nothing is"),
    *(pytest.param(lambda dev, name=name: (dev / name).unlink(), True,
        [(f"there is no {{dev}}/{name}", "sudo nvidia-modprobe -c 0 -u")], id=f"{name}, which is not there")
        for name in ("nvidiactl", "nvidia-uvm")),
    *(pytest.param(closed(name), True, [(f"the box may not open {{dev}}/{name}", f"sudo chmod a+rw {{dev}}/{name}")],
        id=f"{name}, which is for a group alone") for name in ("nvidiactl", "nvidia-uvm-tools", "nvidia0")),
    pytest.param(lambda dev: (dev / "nvidia0").unlink(), True,
        [("there is no {dev}/nvidia0: no NVIDIA GPU, or no driver for it", "sudo nvidia-modprobe -c 0 -u")], id="a GPU"),
    pytest.param(lambda dev: None, False, [("libcuda.so.1, a part of the driver, is not found",
        "export LD_LIBRARY_PATH=<the folder of libcuda.so.1>")], id="a library that is not found"),
])  # fmt: skip
def test_what_is_missing_is_named_with_the_command_that_helps(machine, folder, spoil, library, expected):
    places = machine(usual=str(folder) if library else "")
    spoil(places.dev)
    driver = find_driver(places, {})
    told = [tuple(text.format(dev=places.dev) for text in row) for row in expected]
    assert list(missing(driver, NOBODY)) == told


def given(driver: Driver, gpu: int = 0, **environment: str) -> nvidia.Equipment:
    return equipment(driver, driver.gpus[gpu], environment)


def test_a_box_gets_the_device_files_that_computing_needs_and_no_other(machine: Machine, folder: Path) -> None:
    places = machine(usual=str(folder))
    names = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0"]  # not nvidia-modeset, which is for screens
    assert given(find_driver(places, {})).devices == tuple(Bind(f"{places.dev}/{n}", f"/dev/{n}") for n in names)


def test_of_two_gpus_a_box_gets_its_own(machine: Machine, folder: Path) -> None:
    places = machine(2, usual=str(folder))
    inside = given(find_driver(places, {}), 1)
    assert [bind.target for bind in inside.devices if bind.target[-1].isdigit()] == ["/dev/nvidia1"]
    assert dict(inside.environment)["CUDA_VISIBLE_DEVICES"] == UUIDS[1]
    pci = [bind for bind in inside.binds if "pci" in bind.target]
    assert pci == [Bind(f"{places.sys}/devices/pci1", "/sys/bus/pci/devices/0000:a1:00.0")]


def test_a_gpu_that_the_driver_does_not_describe_is_given_by_its_number(machine: Machine, folder: Path) -> None:
    inside = given(find_driver(machine(2, told=0, usual=str(folder)), {}))
    assert {"/dev/nvidia0", "/dev/nvidia1"} <= {bind.target for bind in inside.devices}
    assert dict(inside.environment)["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_choice_of_the_instructor_s_holds_in_the_box(machine: Machine, folder: Path) -> None:
    driver = find_driver(machine(2, usual=str(folder)), {})
    for choice, visible, nodes in (
        ("1", "1", ["/dev/nvidia0", "/dev/nvidia1"]),  # which one that is, CUDA decides
        (UUIDS[1][:8], UUIDS[1], ["/dev/nvidia1"]),
        ("$(id) x", "0", ["/dev/nvidia0", "/dev/nvidia1"]),
    ):
        environment = {"CUDA_VISIBLE_DEVICES": choice}
        (gpu,) = separate_gpus(driver, environment)
        inside = equipment(driver, gpu, environment)
        assert dict(inside.environment)["CUDA_VISIBLE_DEVICES"] == visible
        assert [bind.target for bind in inside.devices if bind.target[-1].isdigit()] == nodes


def test_libraries_outside_usr_are_bound_beside_each_other_under_a_name_of_the_box(machine, folder):
    inside = given(find_driver(machine(usual=str(folder)), {}))
    assert [bind for bind in inside.binds if "lib" in bind.target] == [
        Bind(f"{folder}/libcuda.so.550.54", "/box/driver/libcuda.so.1"),
        Bind(f"{folder}/libcuda.so.550.54", "/box/driver/libcuda.so.550.54"),
        Bind(f"{folder}/libnvidia-ptxjitcompiler.so.1", "/box/driver/libnvidia-ptxjitcompiler.so.1"),
    ]
    assert dict(inside.environment)["LD_LIBRARY_PATH"] == "/box/driver"


@pytest.mark.parametrize(("known", "expected"), [
    pytest.param(True, False, id="that the linker knows are left to the linker"),
    pytest.param(False, True, id="that it does not know are named to it"),
])  # fmt: skip
def test_libraries_below_usr_are_in_every_box(machine, monkeypatch, known, expected):
    library = next(Path("/usr/lib").glob("*/libc.so.6"))  # in the place of the driver's
    monkeypatch.setattr(nvidia, "LIBRARIES", (library.name,))
    inside = given(Driver(machine(), (Gpu("nvidia0"),), str(library), known))
    assert not [bind for bind in inside.binds if "lib" in bind.target]
    assert dict(inside.environment).get("LD_LIBRARY_PATH") == (str(library.parent) if expected else None)


def test_of_the_capabilities_of_a_divided_gpu_a_box_gets_those_that_anybody_may_read(machine, folder):
    places = machine(usual=str(folder))
    (places.dev / "nvidia-caps").mkdir()
    for name, mode in (("nvidia-cap1", 0o400), ("nvidia-cap21", 0o444)):
        (places.dev / "nvidia-caps" / name).touch()
        (places.dev / "nvidia-caps" / name).chmod(mode)
    inside = given(find_driver(places, {}))
    assert [bind.target for bind in inside.devices if "caps" in bind.target] == ["/dev/nvidia-caps/nvidia-cap21"]


def test_boxes_work_at_once_on_gpus_that_can_be_told_apart(machine: Machine) -> None:
    places = machine(2)
    driver = find_driver(places, {})
    assert separate_gpus(driver, {}) == driver.gpus
    first, second, again = (separate_gpus(driver, {"CUDA_VISIBLE_DEVICES": choice}) for choice in ("0", "1", "1"))
    locks = [GpuLock(first), GpuLock(second)]
    with pytest.raises(BoxUnavailable):
        GpuLock(again)
    for lock in locks:
        lock.release()
    (places.proc / "gpus/0000:A1:00.0/information").unlink()
    unknown = find_driver(places, {})
    assert separate_gpus(unknown, {}) == unknown.gpus[:1]
    alone = Driver(places, driver.gpus[:1], "", False)
    assert separate_gpus(alone, {"CUDA_VISIBLE_DEVICES": "0"}) == alone.gpus  # a choice of one is that one


def test_a_gpu_is_one_box_s_until_it_releases_the_lock() -> None:
    gpus = [Gpu("of-a-test-0"), Gpu("of-a-test-1")]
    first, second = GpuLock(gpus), GpuLock(gpus)
    assert [first.gpu, second.gpu] == gpus
    with pytest.raises(BoxUnavailable, match=r"another grader uses the GPU.* Next: "):
        GpuLock(gpus)
    first.release()
    third = GpuLock(gpus)
    assert third.gpu == gpus[0]
    second.release()
    third.release()
