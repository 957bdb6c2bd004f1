"""A box for a GPU that does not start, or is taken, and the end of an attempt in it. With stand-ins for device files."""

import dataclasses
import json
import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from manyheads.box import warm
from manyheads.box.connection import GRACE
from manyheads.box.gpu import GpuBox, GpuLock
from manyheads.box.level import BoxUnavailable, Level, open_box
from manyheads.box.nvidia import Driver, Gpu, Places
from manyheads.box.warm import CUDA_GRACE
from manyheads.box.worker.limits import Limits

CPU = Limits(memory_mib=512, files_mib=4, processes=16)
GPU = CPU.on("cuda")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device file")


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """All that a driver leaves, and nothing behind it."""
    own = f"nvidia{os.getpid()}"  # tests run side by side, and one process on this machine has a GPU at a time
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", own):
        os.mknod(tmp_path / name, stat.S_IFCHR, os.makedev(1, 5))
        (tmp_path / name).chmod(0o666)
    return Driver(Places(tmp_path), (Gpu(own),), "/usr/lib/libcuda.so.1", True)


@needs_root
def test_where_cuda_does_not_start_in_the_box_the_message_says_what_it_said(driver: Driver, tmp_path: Path) -> None:
    with GpuBox(GPU, tmp_path, driver) as box:
        with pytest.raises(BoxUnavailable, match=r"CUDA does not start in the box \(.+\)\. Next: course doctor"):
            box.attempt(GPU)
        with pytest.raises(BoxUnavailable, match="another grader uses the GPU"):
            GpuBox(GPU, tmp_path, driver)
    GpuLock(driver.gpus).release()  # free again


@needs_root
def test_a_device_file_that_the_box_may_not_open_is_a_message_with_the_command(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "nvidia-uvm").chmod(0o600)
    with pytest.raises(BoxUnavailable, match=r"may not open .*/nvidia-uvm\. Next: sudo chmod a\+rw .*/nvidia-uvm"):
        GpuBox(GPU, tmp_path, driver)


@needs_root
def test_a_box_that_does_not_start_lets_go_of_the_gpu(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BoxUnavailable, match="bubblewrap") as caught:
        GpuBox(GPU, tmp_path, driver)
    GpuLock(driver.gpus).release()
    del caught  # which held the box


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_on_a_machine_without_a_gpu_there_is_no_such_box(tmp_path: Path) -> None:
    with pytest.raises(BoxUnavailable, match="no NVIDIA GPU"):
        open_box(Level.NAMESPACES, GPU, tmp_path)


@pytest.mark.parametrize(("limits", "seconds"), [(CPU, GRACE), (GPU, CUDA_GRACE)])
def test_the_end_of_an_attempt_on_a_gpu_is_waited_for_until_its_memory_is_free(monkeypatch, limits, seconds):
    waited: list[float] = []
    monkeypatch.setattr(warm, "select", SimpleNamespace(select=lambda r, w, x, most: waited.append(most) or ([], w, x)))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        warm.start_attempt(ours, limits)[0].close()
    assert waited == [seconds]
    assert CUDA_GRACE > GRACE


def test_limits_on_a_cpu_are_the_course_s() -> None:
    assert CPU.on("cpu") == CPU
    assert json.loads(json.dumps(dataclasses.asdict(GPU)))["device"] == "cuda"
