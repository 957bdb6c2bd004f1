"""Find out which isolation levels hold on this machine. `course doctor` shows the findings.

`findings` looks at the system, bubblewrap, the kernel's settings, seccomp and cgroups, and then has
the canary try to break out of a box. A finding that is not good has a command that helps, if there
is one.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, SubprocessError, check_output, run
from typing import NamedTuple

from ..box import open_box
from ..box.canary import run_canary
from ..box.contents import find_driver, gpu_obstacles, separate_gpus
from ..box.host_processes import make_cgroup, plan_cgroup
from ..box.level_and_device_names import BoxUnavailable, Device, Level
from ..box.worker import seccomp
from ..box.zygote_box import uid_for_box
from ..course import Course

# On by default from Ubuntu 25.04. With this profile a box starts, but its attempt fails.
PROFILE = Path("/etc/apparmor.d/bwrap-userns-restrict")
UNLOAD = f"sudo apparmor_parser --remove {PROFILE}"
# the options of a box that decide whether bubblewrap can make it
_BOX = (
    "--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --die-with-parent "
    "--cap-drop ALL --cap-add CAP_SYS_ADMIN --ro-bind / / --proc /proc --dev /dev --"
)
# makes namespaces and mounts a file system, as a box does before its attempt starts
_NEEDED = (
    "unshare --pid --fork unshare --user --map-root-user --mount --net --ipc --uts mount -t "
    "tmpfs none /tmp"
)


class _Switch(NamedTuple):
    """A setting of the kernel that may keep a box from starting.

    Attributes:
        path: Its file below /proc/sys.
        bad_value: The value that keeps a box from starting.
        good_value: A value that helps.
        subject: The subject of the finding.
        says: The rest of the finding.
    """

    path: str
    bad_value: str
    good_value: str
    subject: str
    says: str


_NAMESPACES = "user namespaces"
_SWITCHES = (
    _Switch("user/max_user_namespaces", "0", "10000", _NAMESPACES, "switched off"),
    _Switch("kernel/unprivileged_userns_clone", "0", "1", _NAMESPACES, "kept from ordinary users"),
    _Switch(
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "0",
        "AppArmor",
        "keeps user namespaces from ordinary users (as hosted Ubuntu runners do)",
    ),
)


class Finding(NamedTuple):
    """One fact about this machine.

    Attributes:
        subject: The part of the machine, for example "bubblewrap".
        says: The fact.
        good: Whether the part is fit for grading, or None if grading does not depend on it.
        command: A command that improves the machine, or "".
    """

    subject: str
    says: str
    good: bool | None = True
    command: str = ""


def confinement(bwrap: str, uid: int | None) -> Finding | None:
    """Return a finding about a restriction of bubblewrap's children, with a command that lifts it.

    The command is "" if none is known. Return None if there is no restriction. Also return None if
    bubblewrap does not start, or if `unshare` is not installed: the proof of the level then reports
    the problem.

    Args:
        bwrap: The path of bubblewrap.
        uid: The uid to start it with, or None for the uid of this process.
    """
    starts = shutil.which("unshare") is not None and _output(bwrap, "true", uid) is not None
    if not starts or _output(bwrap, _NEEDED, uid) is not None:
        return None
    label = _output(bwrap, "cat /proc/self/attr/apparmor/current", uid) or ""
    if "unpriv_bwrap" in label or PROFILE.exists():
        says = (
            f"AppArmor's profile {PROFILE.name} takes all capabilities from what bubblewrap starts"
        )
        return Finding("bubblewrap", says, good=False, command=UNLOAD)
    cause = f" (AppArmor: {label})" if label else ""
    says = f"what bubblewrap starts cannot make namespaces{cause}"
    return Finding("bubblewrap", says, good=False)


def _output(bwrap: str, command: str, uid: int | None) -> str | None:
    """Return the output of a command inside bubblewrap, or None if it fails or takes 30 s."""
    line = [bwrap, *_BOX.split(), *command.split()]
    groups = None if uid is None else list[int]()
    with suppress(OSError, SubprocessError):
        output = check_output(
            line,
            stdin=DEVNULL,
            stderr=DEVNULL,
            timeout=30,
            user=uid,
            group=uid,
            extra_groups=groups,
        )
        return output.decode(errors="replace").strip()
    return None


def findings(course: Course) -> Iterator[Finding]:
    """Yield the facts that decide which levels hold on this machine, and the levels.

    The level for grading is tried out on the CPU, and also on a GPU if there is one: a box is
    opened, and the canary runs in it. The other two levels are described only.
    """
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "it sees no GPU"
    yield Finding("python", platform.python_version(), sys.version_info >= (3, 11))
    yield Finding("torch", f"{torch.__version__}; {gpu}")
    system = platform.system()
    if system == "Linux":
        user = "an ordinary user" if os.geteuid() else "root"
        yield Finding("system", f"Linux {platform.release()}, as {user}")
    else:
        says = f"{system} has no user namespaces: `course check` works, `course grade` needs Linux"
        command = "run course grade on Linux (a virtual machine or CI will do)"
        yield Finding("system", says, good=False, command=command)
    yield from _bubblewrap()
    for switch in _SWITCHES:
        with suppress(OSError):
            if Path("/proc/sys", switch.path).read_text().strip() == switch.bad_value:
                name = switch.path.replace("/", ".")
                command = f"sudo sysctl -w {name}={switch.good_value}"
                yield Finding(switch.subject, switch.says, good=False, command=command)
    machine = platform.machine()
    is_supported = machine in seccomp.ARCHITECTURES
    says = f"a filter for {machine}" if is_supported else f"no filter is written for {machine}"
    yield Finding("seccomp", says, is_supported)
    yield _cgroups(course)
    yield _level(course, Device.CPU)
    yield from gpu_findings(course)
    says = (
        "a process of another uid, for a container that makes no namespaces: keeps files "
        "apart, not the network"
    )
    yield Finding(Level.USER, says, None)
    says = "rlimits and a deadline only: for a student's own `course check`, promises nothing more"
    yield Finding(Level.PROCESS, says, None)


def _bubblewrap() -> Iterator[Finding]:
    """Yield the version of bubblewrap, and a restriction of its children if there is one."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        command = "sudo apt-get install bubblewrap"
        yield Finding("bubblewrap", "not installed", good=False, command=command)
        return
    completed = run([bwrap, "--version"], capture_output=True, text=True, check=False)
    yield Finding("bubblewrap", completed.stdout.strip() or bwrap)
    if confined := confinement(bwrap, uid_for_box()):
        yield confined


def _cgroups(course: Course) -> Finding:
    """Make a cgroup as for an attempt, remove it again, and say whether that was possible."""
    cgroup = make_cgroup(plan_cgroup(course.limits.for_worker()))
    cgroup.remove()
    if cgroup.folders:
        return Finding("cgroups", "memory and processes of a whole attempt are bounded together")
    command = "systemd-run --user --scope -p Delegate=yes course grade …"
    return Finding(
        "cgroups", "none can be made: rlimits bind each process by itself", None, command
    )


def _level(course: Course, device: Device) -> Finding:
    """Run the canary in a box of the level for grading, and say whether the level holds."""
    limits = course.limits.for_worker(device)
    subject = f"{Level.NAMESPACES}, {device}" if device is Device.CUDA else str(Level.NAMESPACES)
    try:
        with open_box(Level.NAMESPACES, limits, course.root) as box:
            report = run_canary(box, limits, course.root)
    except BoxUnavailable as error:
        says, _, command = str(error).partition(" Next: ")
        command = "" if command == "course doctor" else command
        return Finding(subject, says, good=False, command=command)
    if report.holds:
        return Finding(subject, "holds: the canary tried every way out and found none")
    reasons = "; ".join(report.leaks) or report.error
    return Finding(subject, f"does not hold: {reasons}", good=False)


def gpu_findings(course: Course) -> Iterator[Finding]:
    """Yield the facts that decide whether `--device cuda` works.

    These are the obstacles, if there are any. Without obstacles, they are the GPUs, a missing
    cgroup, and the level, which is tried out.
    """
    import torch

    driver = find_driver()
    if not driver.gpus:
        yield Finding("GPU", "no NVIDIA GPU was found: --device cuda is not available", None)
        return
    lacking = list(gpu_obstacles(driver, uid_for_box()))
    if torch.version.cuda is None:
        command = "make setup TORCH_INDEX=<a wheel index with torch for CUDA>"
        lacking.append((f"torch {torch.__version__} is built without CUDA", command))
    for says, command in lacking:
        yield Finding("GPU", says, good=False, command=command)
    if lacking:
        return
    names = ", ".join(gpu.node for gpu in driver.gpus)
    yield Finding("GPU", f"{names}; {driver.library}; boxes at once: {len(separate_gpus(driver))}")
    if not _cgroups(course).good:
        says = "without a cgroup nothing bounds the main memory of an attempt there"
        yield Finding("GPU", says, None)
    yield _level(course, Device.CUDA)
