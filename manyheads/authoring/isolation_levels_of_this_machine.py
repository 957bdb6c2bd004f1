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
_BOX = (
    "--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --die-with-parent "
    "--cap-drop ALL"
)
_BOX += " --cap-add CAP_SYS_ADMIN --ro-bind / / --proc /proc --dev /dev --"
_NEEDED = (
    "unshare --pid --fork unshare --user --map-root-user --mount --net --ipc --uts mount -t "
    "tmpfs none /tmp"
)
# A file below /proc/sys, the value that keeps a box from starting, subject and verb of the message,
# and the value that helps.
_SWITCHES = (
    ("user/max_user_namespaces", "0", "user namespaces", "switched off", "10000"),
    ("kernel/unprivileged_userns_clone", "0", "user namespaces", "kept from ordinary users", "1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor",
        "keeps user namespaces from ordinary users (as hosted Ubuntu runners do)",
        "0",
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


def confinement(bwrap: str, uid: int | None) -> tuple[str, str] | None:
    """Return a text about a restriction of bubblewrap's children, and a command that lifts it.

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
        return (
            f"AppArmor's profile {PROFILE.name} takes all capabilities from what bubblewrap starts",
            UNLOAD,
        )
    return (
        f"what bubblewrap starts cannot make namespaces{f' (AppArmor: {label})' if label else ''}",
        "",
    )


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

    system, machine, bwrap = platform.system(), platform.machine(), shutil.which("bwrap")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "it sees no GPU"
    yield Finding("python", platform.python_version(), sys.version_info >= (3, 11))
    yield Finding("torch", f"{torch.__version__}; {gpu}")
    if system == "Linux":
        yield Finding(
            "system",
            f"Linux {platform.release()}, as {'an ordinary user' if os.geteuid() else 'root'}",
        )
    else:
        says = f"{system} has no user namespaces: `course check` works, `course grade` needs Linux"
        yield Finding(
            "system", says, False, "run course grade on Linux (a virtual machine or CI will do)"
        )
    if bwrap is None:
        yield Finding("bubblewrap", "not installed", False, "sudo apt-get install bubblewrap")
    else:
        version = run(
            [bwrap, "--version"], capture_output=True, text=True, check=False
        ).stdout.strip()
        yield Finding("bubblewrap", version or bwrap)
        if confined := confinement(bwrap, uid_for_box()):
            yield Finding("bubblewrap", confined[0], False, confined[1])
    for switch, value, subject, says, mend in _SWITCHES:
        with suppress(OSError):
            if Path("/proc/sys", switch).read_text().strip() == value:
                yield Finding(
                    subject, says, False, f"sudo sysctl -w {switch.replace('/', '.')}={mend}"
                )
    is_supported = machine in seccomp.ARCHITECTURES
    yield Finding(
        "seccomp",
        f"a filter for {machine}" if is_supported else f"no filter is written for {machine}",
        is_supported,
    )
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
        return Finding(subject, says, False, "" if command == "course doctor" else command)
    if report.holds:
        return Finding(subject, "holds: the canary tried every way out and found none")
    return Finding(subject, f"does not hold: {'; '.join(report.leaks) or report.error}", False)


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
    yield from (Finding("GPU", says, False, command) for says, command in lacking)
    if not lacking:
        names = ", ".join(gpu.node for gpu in driver.gpus)
        yield Finding(
            "GPU", f"{names}; {driver.library}; boxes at once: {len(separate_gpus(driver))}"
        )
        if not _cgroups(course).good:
            yield Finding(
                "GPU", "without a cgroup nothing bounds the main memory of an attempt there", None
            )
        yield _level(course, Device.CUDA)
