"""Find out what this machine offers for a box: what `course doctor` shows."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..box.canary import run_canary
from ..box.cgroup import make_cgroup, plan_cgroup
from ..box.leftovers import find_leftovers
from ..box.level import BoxUnavailable, Level, open_box
from ..box.names import Device
from ..box.namespaces import uid_for_box
from ..box.nvidia import find_driver, missing, separate_gpus
from ..box.worker import seccomp
from ..course import Course

# Whether what bubblewrap starts can do what a box needs: make PID namespaces, and namespaces with mounts of its own.
#
# AppArmor's profile `bwrap-userns-restrict`, on by default from Ubuntu 25.04, lets bubblewrap itself do everything and
# takes each capability from what it starts. A box then starts as usual, and its first attempt fails.

PROFILE = Path("/etc/apparmor.d/bwrap-userns-restrict")
CHILDREN = "unpriv_bwrap"  # the profile's name for what bubblewrap starts
UNLOAD = f"sudo apparmor_parser --remove {PROFILE}"
_BOX = (
    "--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --die-with-parent "
    "--cap-drop ALL --cap-add CAP_SYS_ADMIN --ro-bind / / --proc /proc --dev /dev --"
).split()
_NEEDED = (
    "unshare --pid --fork unshare --user --map-root-user --mount --net --ipc --uts mount -t tmpfs none /tmp"
).split()
_LABEL = "cat /proc/self/attr/apparmor/current".split()
_SECONDS = 30.0


def confinement(bwrap: str, uid: int | None) -> tuple[str, str] | None:
    """Return what confines the children of bubblewrap, and the command that helps, if one is known. None: they have all they need.

    uid: the uid to try it as; None for this process's own. Also None if bubblewrap does not start at all, or if this
    cannot be tried here: the proof of the level then says what is wrong.
    """
    can_be_tried = shutil.which("unshare") is not None and _succeeds(bwrap, ["true"], uid)
    if not can_be_tried or _succeeds(bwrap, _NEEDED, uid):
        return None
    label = _output(bwrap, _LABEL, uid) or ""
    if CHILDREN in label or PROFILE.exists():
        return f"AppArmor's profile {PROFILE.name} takes all capabilities from what bubblewrap starts", UNLOAD
    under = f" (AppArmor: {label})" if label else ""
    return f"what bubblewrap starts cannot make namespaces{under}", ""


def _succeeds(bwrap: str, command: Sequence[str], uid: int | None) -> bool:
    return _output(bwrap, command, uid) is not None


def _output(bwrap: str, command: Sequence[str], uid: int | None) -> str | None:
    """Return what the command writes in a box of bubblewrap's; None if it fails."""
    try:
        done = subprocess.run(
            [bwrap, *_BOX, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_SECONDS,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip()


# What this machine offers for a box: the findings of `course doctor`.

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_MAX_USERNS = Path("/proc/sys/user/max_user_namespaces")
_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")


@dataclass(frozen=True)
class Finding:
    """One fact about this machine. `good`: None if it is neutral. `command`: what would improve it."""

    about: str
    says: str
    good: bool | None = True
    command: str = ""


def findings(course: Course) -> Iterator[Finding]:
    """Everything that decides which levels hold on this machine, then the levels themselves, tested by the canary."""
    yield Finding("python", platform.python_version(), sys.version_info >= (3, 11))
    yield _torch()
    yield _system()
    yield _bwrap()
    yield from _user_namespaces()
    yield from _confinement()
    machine = platform.machine()
    known = machine in seccomp.ARCHITECTURES
    yield Finding("seccomp", f"a filter for {machine}" if known else f"no filter is written for {machine}", known)
    yield from _leftovers()
    yield _cgroups(course)
    yield _level(course)
    yield from gpu_findings(course)
    yield Finding(
        Level.USER,
        "a process of another uid, for a container that makes no namespaces: keeps files apart, not the network",
        None,
    )
    yield Finding(
        Level.PROCESS, "rlimits and a deadline only: for a student's own `course check`, promises nothing more", None
    )


def _torch() -> Finding:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "it sees no GPU"
    return Finding("torch", f"{torch.__version__}; {gpu}")


def _system() -> Finding:
    if platform.system() == "Linux":
        return Finding(
            "system", f"Linux {platform.release()}, as {'root' if os.geteuid() == 0 else 'an ordinary user'}"
        )
    return Finding(
        "system",
        f"{platform.system()} has no user namespaces: `course check` works, `course grade` needs Linux",
        False,
        "run course grade on Linux (a virtual machine or CI will do)",
    )


def _bwrap() -> Finding:
    path = shutil.which("bwrap")
    if path is None:
        return Finding("bubblewrap", "not installed", False, "sudo apt-get install bubblewrap")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return Finding("bubblewrap", said or path)


def _user_namespaces() -> Iterator[Finding]:
    if _read(_MAX_USERNS) == "0":
        yield Finding("user namespaces", "switched off", False, "sudo sysctl -w user.max_user_namespaces=10000")
    if _read(_CLONE) == "0":
        command = "sudo sysctl -w kernel.unprivileged_userns_clone=1"
        yield Finding("user namespaces", "kept from ordinary users", False, command)
    if _read(_APPARMOR) == "1":
        command = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        says = "keeps user namespaces from ordinary users (as hosted Ubuntu runners do)"
        yield Finding("AppArmor", says, False, command)


def _confinement() -> Iterator[Finding]:
    bwrap = shutil.which("bwrap")
    confined = bwrap and confinement(bwrap, uid_for_box())
    if confined:
        says, command = confined
        yield Finding("bubblewrap", says, False, command)


def _leftovers() -> Iterator[Finding]:
    left = find_leftovers()
    judges, cgroups = len(left.processes), len(left.cgroups)
    says = [f"{judges} judge{'s' * (judges != 1)} or boxes of a run that was killed"] if judges else []
    says += [f"{cgroups} of its cgroups"] if cgroups else []
    if says:
        yield Finding("left over", " and ".join(says), False, left.command)


def _cgroups(course: Course) -> Finding:
    cgroup = make_cgroup(plan_cgroup(course.limits.for_worker()))
    cgroup.remove()
    if cgroup.folders:
        return Finding("cgroups", "memory and processes of a whole attempt are bounded together")
    command = "systemd-run --user --scope -p Delegate=yes course grade …"
    return Finding("cgroups", "none can be made: rlimits bind each process by itself", None, command)


def _level(course: Course, device: Device = Device.CPU) -> Finding:
    limits = course.limits.for_worker(device)
    about = f"{Level.NAMESPACES}, {device}" if device is Device.CUDA else str(Level.NAMESPACES)
    try:
        with open_box(Level.NAMESPACES, limits, course.root) as box:
            report = run_canary(box, limits, course.root)
    except BoxUnavailable as error:
        says, _, command = str(error).partition(" Next: ")
        return Finding(about, says, False, "" if command == "course doctor" else command)
    if report.holds:
        return Finding(about, "holds: the canary tried every way out and found none")
    return Finding(about, f"does not hold: {'; '.join(report.leaks) or report.error}", False)


def gpu_findings(course: Course) -> Iterator[Finding]:
    """Yield what `--device cuda` needs in addition."""
    import torch

    driver = find_driver()
    if not driver.gpus:
        yield Finding("GPU", "no NVIDIA GPU was found: --device cuda is not available", None)
        return
    lacking = list(missing(driver, uid_for_box()))
    if torch.version.cuda is None:
        lacking.append(
            (
                f"torch {torch.__version__} is built without CUDA",
                "make setup TORCH_INDEX=<a wheel index with torch for CUDA>",
            )
        )
    for says, command in lacking:
        yield Finding("GPU", says, False, command)
    if lacking:
        return
    names = ", ".join(gpu.node for gpu in driver.gpus)
    yield Finding("GPU", f"{names}; {driver.library}; boxes at once: {len(separate_gpus(driver))}")
    if not _cgroups(course).good:
        yield Finding("GPU", "without a cgroup nothing bounds the main memory of an attempt there", None)
    yield _level(course, Device.CUDA)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
