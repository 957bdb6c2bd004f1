"""Whether what bubblewrap starts can do what a box needs: make PID namespaces, and namespaces with mounts of its own.

AppArmor's profile `bwrap-userns-restrict`, on by default from Ubuntu 25.04, lets bubblewrap itself do everything and takes
each capability from what it starts. A box then starts as usual, and its first attempt fails.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

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
    """What confines the children of bubblewrap, and the command that helps, if one is known. None: they have all they need.

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
    """What the command writes in a box of bubblewrap's; None if it fails."""
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
