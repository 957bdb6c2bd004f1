"""What `course doctor` says of a machine, each thing with the command that would help: of a GPU,
and of AppArmor.

A stand-in for AppArmor, which cannot be loaded here: a bwrap that drops the capabilities of its
children.
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

ALLOW = Path(__file__).parents[2] / "tools" / "allow-namespaces"
DROPS = """#!/bin/sh
case "$*" in *attr/apparmor/current) test -n "{label}" && echo "{label}"; exit ;; esac
for word; do
    shift
    [ "$word" = -- ] && set -- "$@" --cap-drop ALL
    set -- "$@" "$word"
done
exec {bwrap} "$@"
"""


def confining_bwrap(folder: Path, label: str = "") -> Path:
    """A bwrap whose children have no capability, under this AppArmor label."""
    return write_program(folder, "bwrap", DROPS.format(label=label, bwrap=shutil.which("bwrap")))


def write_program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def allow_namespaces(script: Path, bin_folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", script], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def bin_folder() -> Iterator[Path]:
    """A folder that the box's uid may enter."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("label", ["bwrap//&unpriv_bwrap (enforce)", "unpriv_bwrap (enforce)"])
def test_ubuntus_profile_is_named_with_the_command_that_unloads_it(bin_folder, label):
    explanation = confinement(str(confining_bwrap(bin_folder, label)), uid_for_box())
    assert "AppArmor's profile bwrap-userns-restrict takes all capabilities" in explanation.says
    assert (
        explanation.command == "sudo apparmor_parser --remove /etc/apparmor.d/bwrap-userns-restrict"
    )


def test_the_profiles_file_is_enough_where_the_label_cannot_be_read(bin_folder, monkeypatch):
    monkeypatch.setattr(doctor, "PROFILE", bin_folder)
    explanation = confinement(str(confining_bwrap(bin_folder)), uid_for_box())
    assert "AppArmor's profile" in explanation.says


def test_another_cause_is_told_without_a_guess(bin_folder):
    explanation = confinement(str(confining_bwrap(bin_folder, "mine (enforce)")), uid_for_box())
    says = "what bubblewrap starts cannot make namespaces (AppArmor: mine (enforce))"
    assert explanation == Finding("bubblewrap", says, good=False)


def test_here_nothing_is_taken_and_a_bubblewrap_that_does_not_start_at_all_is_not_explained(
    bin_folder,
):
    for bwrap in (shutil.which("bwrap"), write_program(bin_folder, "bwrap", "#!/bin/sh\nexit 1\n")):
        assert confinement(str(bwrap), uid_for_box()) is None


def test_doctor_says_so_and_does_not_claim_the_level(bin_folder, monkeypatch, tiny):
    confining_bwrap(bin_folder, "unpriv_bwrap (enforce)")
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    findings = {(f.subject, f.good): f for f in doctor.findings(tiny)}
    assert findings["bubblewrap", False].command == doctor.UNLOAD
    assert ("namespaces", False) in findings


def test_allow_namespaces_tries_bubblewrap_and_not_unshare_alone(bin_folder):
    """Here `unshare` may do all that it asks; what bubblewrap starts may not."""
    confining_bwrap(bin_folder)
    sudo_log = bin_folder / "asked"
    write_program(bin_folder, "sudo", f'#!/bin/sh\necho "$@" >>{sudo_log}\n')
    completed = allow_namespaces(ALLOW, bin_folder)
    assert completed.returncode != 0
    assert "unshare failed: Operation not permitted" in completed.stderr
    assert "apparmor_restrict_unprivileged_userns=0" in sudo_log.read_text(), "it has tried to help"


def test_allow_namespaces_unloads_the_profile_and_is_content(bin_folder, tmp_path):
    """The profile's file is one of the test's own; unloading it is what makes bubblewrap whole
    again.
    """
    profile = tmp_path / "bwrap-userns-restrict"
    profile.touch()
    bwrap = confining_bwrap(bin_folder)
    write_program(
        bin_folder, "sudo", f'#!/bin/sh\ncase "$*" in *"--remove {profile}") rm {bwrap};; esac\n'
    )
    for name in ("need-bwrap", "system-install"):
        shutil.copy(ALLOW.with_name(name), tmp_path / name)
    text = ALLOW.read_text().replace("/etc/apparmor.d/bwrap-userns-restrict", str(profile))
    completed = allow_namespaces(write_program(tmp_path, "allow-namespaces", text), bin_folder)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.fixture
def device_places(tmp_path: Path) -> Places:
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    return Places(tmp_path)


def findings_with(monkeypatch: pytest.MonkeyPatch, course: Course, driver: Driver) -> list[Finding]:
    monkeypatch.setattr(doctor, "find_driver", lambda: driver)
    return list(doctor.gpu_findings(course))


def test_no_gpu_is_no_fault(monkeypatch, tiny, device_places):
    (finding,) = findings_with(monkeypatch, tiny, Driver(device_places, (), "", False))
    assert (finding.good, finding.command) == (None, "")
    assert "--device cuda is not available" in finding.says


def test_all_that_is_missing_is_told_at_once(monkeypatch, tiny, device_places):
    (device_places.dev / "nvidia-uvm").unlink()
    (device_places.dev / "nvidia0").chmod(0o600)
    monkeypatch.setattr(doctor, "uid_for_box", lambda: 61184)
    monkeypatch.setattr(torch.version, "cuda", None)
    findings = findings_with(monkeypatch, tiny, Driver(device_places, (Gpu("nvidia0"),), "", False))
    assert [(f.good, f.command) for f in findings] == [
        (False, "sudo nvidia-modprobe -c 0 -u"),
        (False, f"sudo chmod a+rw {device_places.dev}/nvidia0"),
        (False, "export LD_LIBRARY_PATH=<the folder of libcuda.so.1>"),
        (False, "make setup TORCH_INDEX=<a wheel index with torch for CUDA>"),
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_where_all_seems_to_be_there_the_box_is_tried(monkeypatch, tiny, device_places):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    *_, level = findings_with(
        monkeypatch, tiny, Driver(device_places, (Gpu("nvidia0"),), "/usr/lib/libcuda.so.1", True)
    )
    assert (level.subject, level.good) == ("namespaces, cuda", False)
    # the machine's own, which it looks for anew
    assert level.says.startswith("there is no /dev/nvidia0")
