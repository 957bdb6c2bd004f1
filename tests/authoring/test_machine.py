"""What `course doctor` says of a GPU, each thing with the command that would help."""

from pathlib import Path

import pytest
import torch

from manyheads.authoring import machine
from manyheads.authoring.machine import Finding
from manyheads.box.nvidia import Driver, Gpu, Places
from manyheads.course import Course


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    return Places(tmp_path)


def says(monkeypatch: pytest.MonkeyPatch, course: Course, driver: Driver) -> list[Finding]:
    monkeypatch.setattr(machine, "find_driver", lambda: driver)
    return list(machine.gpu_findings(course))


def test_no_gpu_is_no_fault(monkeypatch: pytest.MonkeyPatch, tiny: Course, places: Places) -> None:
    (finding,) = says(monkeypatch, tiny, Driver(places, (), "", False))
    assert (finding.good, finding.command) == (None, "")
    assert "--device cuda is not available" in finding.says


def test_all_that_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch, tiny: Course, places: Places) -> None:
    (places.dev / "nvidia-uvm").unlink()
    (places.dev / "nvidia0").chmod(0o600)
    monkeypatch.setattr(machine, "uid_for_box", lambda: 61184)
    monkeypatch.setattr(torch.version, "cuda", None)
    found = says(monkeypatch, tiny, Driver(places, (Gpu("nvidia0"),), "", False))
    assert [(f.good, f.command) for f in found] == [
        (False, "sudo nvidia-modprobe -c 0 -u"),
        (False, f"sudo chmod a+rw {places.dev}/nvidia0"),
        (False, "export LD_LIBRARY_PATH=<the folder of libcuda.so.1>"),
        (False, "make setup TORCH_INDEX=<a wheel index with torch for CUDA>"),
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_where_all_seems_to_be_there_the_box_is_tried(monkeypatch, tiny, places):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    *_, level = says(monkeypatch, tiny, Driver(places, (Gpu("nvidia0"),), "/usr/lib/libcuda.so.1", True))
    assert (level.about, level.good) == ("namespaces, cuda", False)
    assert level.says.startswith("there is no /dev/nvidia0")  # the machine's own, which it looks for anew
