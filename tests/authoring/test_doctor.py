"""What `course doctor` reports about AppArmor and GPUs, and the commands that it suggests.

AppArmor cannot be loaded in a test. A fake `bwrap`, which drops the capabilities of the programs
that it starts, stands for it.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from manyheads.authoring import isolation_levels_of_this_machine as doctor
from manyheads.authoring.isolation_levels_of_this_machine import Finding, confinement
from manyheads.box.contents import Driver, Gpu, Places
from manyheads.box.zygote_box import uid_for_box
from manyheads.course import Course

ALLOW_NAMESPACES = Path(__file__).parents[2] / "tools" / "allow-namespaces"
FAKE_BWRAP = """#!/bin/sh
case "$*" in *attr/apparmor/current) test -n "{label}" && echo "{label}"; exit ;; esac
for word; do
    shift
    [ "$word" = -- ] && set -- "$@" --cap-drop ALL
    set -- "$@" "$word"
done
exec {bwrap} "$@"
"""


def confining_bwrap(folder: Path, label: str = "") -> Path:
    """Write a `bwrap` whose programs have no capabilities and this AppArmor label."""
    return write_program(
        folder, "bwrap", FAKE_BWRAP.format(label=label, bwrap=shutil.which("bwrap"))
    )


def write_program(folder: Path, name: str, text: str) -> Path:
    """Write an executable script."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def allow_namespaces(script: Path, bin_folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a copy of tools/allow-namespaces with the programs in bin_folder."""
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", script], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def bin_folder() -> Iterator[Path]:
    """Yield an empty folder that the box's user can enter."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.bwrap
@pytest.mark.parametrize("label", ["bwrap//&unpriv_bwrap (enforce)", "unpriv_bwrap (enforce)"])
def test_doctor_suggests_to_unload_ubuntus_apparmor_profile(bin_folder, label):
    explanation = confinement(str(confining_bwrap(bin_folder, label)), uid_for_box())
    assert "AppArmor's profile bwrap-userns-restrict takes all capabilities" in explanation.says
    assert (
        explanation.command == "sudo apparmor_parser --remove /etc/apparmor.d/bwrap-userns-restrict"
    )


@pytest.mark.bwrap
def test_doctor_recognises_the_apparmor_profile_by_its_file(bin_folder, monkeypatch):
    monkeypatch.setattr(doctor, "PROFILE", bin_folder)
    explanation = confinement(str(confining_bwrap(bin_folder)), uid_for_box())
    assert "AppArmor's profile" in explanation.says


@pytest.mark.bwrap
def test_doctor_reports_an_unknown_apparmor_label_without_a_command(bin_folder):
    explanation = confinement(str(confining_bwrap(bin_folder, "mine (enforce)")), uid_for_box())
    says = "what bubblewrap starts cannot make namespaces (AppArmor: mine (enforce))"
    assert explanation == Finding("bubblewrap", says, good=False)


@pytest.mark.bwrap
def test_doctor_explains_neither_a_working_nor_a_broken_bubblewrap(
    bin_folder,
):
    for bwrap in (shutil.which("bwrap"), write_program(bin_folder, "bwrap", "#!/bin/sh\nexit 1\n")):
        assert confinement(str(bwrap), uid_for_box()) is None


@pytest.mark.bwrap
def test_with_the_profile_doctor_does_not_report_level_namespaces(bin_folder, monkeypatch, tiny):
    confining_bwrap(bin_folder, "unpriv_bwrap (enforce)")
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    findings = {(f.subject, f.good): f for f in doctor.findings(tiny)}
    assert findings["bubblewrap", False].command == doctor.UNLOAD
    assert ("namespaces", False) in findings


@pytest.mark.bwrap
def test_allow_namespaces_checks_bubblewrap_and_not_only_unshare(bin_folder):
    """In this test `unshare` works, but programs that bubblewrap starts have no capabilities."""
    confining_bwrap(bin_folder)
    sudo_log = bin_folder / "asked"
    write_program(bin_folder, "sudo", f'#!/bin/sh\necho "$@" >>{sudo_log}\n')
    completed = allow_namespaces(ALLOW_NAMESPACES, bin_folder)
    assert completed.returncode != 0
    assert "unshare failed: Operation not permitted" in completed.stderr
    assert "apparmor_restrict_unprivileged_userns=0" in sudo_log.read_text(), "no command was tried"


@pytest.mark.bwrap
def test_allow_namespaces_succeeds_after_unloading_the_profile(bin_folder, tmp_path):
    """The fake `sudo` deletes the fake `bwrap` when the profile is unloaded."""
    profile = tmp_path / "bwrap-userns-restrict"
    profile.touch()
    bwrap = confining_bwrap(bin_folder)
    write_program(
        bin_folder, "sudo", f'#!/bin/sh\ncase "$*" in *"--remove {profile}") rm {bwrap};; esac\n'
    )
    for name in ("need-bwrap", "system-install"):
        shutil.copy(ALLOW_NAMESPACES.with_name(name), tmp_path / name)
    text = ALLOW_NAMESPACES.read_text().replace(
        "/etc/apparmor.d/bwrap-userns-restrict", str(profile)
    )
    completed = allow_namespaces(write_program(tmp_path, "allow-namespaces", text), bin_folder)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.fixture
def gpu_places(tmp_path: Path) -> Places:
    """Return a folder with the device files of one NVIDIA GPU, which everybody may use."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    return Places(tmp_path)


def findings_with(monkeypatch: pytest.MonkeyPatch, course: Course, driver: Driver) -> list[Finding]:
    """Return the findings about GPUs on a machine with this driver."""
    monkeypatch.setattr(doctor, "find_driver", lambda: driver)
    return list(doctor.gpu_findings(course))


def test_a_machine_without_a_gpu_is_not_a_problem(monkeypatch, tiny, gpu_places):
    (finding,) = findings_with(monkeypatch, tiny, Driver(gpu_places, (), "", False))
    assert (finding.good, finding.command) == (None, "")
    assert "--device cuda is not available" in finding.says


def test_all_problems_with_a_gpu_are_reported_together(monkeypatch, tiny, gpu_places):
    (gpu_places.dev / "nvidia-uvm").unlink()
    (gpu_places.dev / "nvidia0").chmod(0o600)
    monkeypatch.setattr(doctor, "uid_for_box", lambda: 61184)
    monkeypatch.setattr(torch.version, "cuda", None)
    findings = findings_with(monkeypatch, tiny, Driver(gpu_places, (Gpu("nvidia0"),), "", False))
    assert [(f.good, f.command) for f in findings] == [
        (False, "sudo nvidia-modprobe -c 0 -u"),
        (False, f"sudo chmod a+rw {gpu_places.dev}/nvidia0"),
        (False, "export LD_LIBRARY_PATH=<the folder of libcuda.so.1>"),
        (False, "make setup TORCH_INDEX=<a wheel index with torch for CUDA>"),
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_if_the_gpu_seems_usable_doctor_tries_the_box(monkeypatch, tiny, gpu_places):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    *_, level = findings_with(
        monkeypatch, tiny, Driver(gpu_places, (Gpu("nvidia0"),), "/usr/lib/libcuda.so.1", True)
    )
    assert (level.subject, level.good) == ("namespaces, cuda", False)
    # the box looks for the devices of the real machine
    assert level.says.startswith("there is no /dev/nvidia0")
