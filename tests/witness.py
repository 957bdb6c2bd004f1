"""Run a command, wait until all processes that it started have ended, and exit with its status.

This is a script, witness.py COMMAND…, and the functions with which tests start it and look at its
processes. A process whose parent ends becomes a child of the script, so that no process can hide by
outliving the process that started it.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.box.host_processes import pids, stat_of, state_and_parent

PR_SET_CHILD_SUBREAPER = 36
REPOSITORY = Path(__file__).parents[1]
# seconds: far above what it takes, because no verdict may depend on how busy a machine is
PATIENCE = 120.0
# where a box's files are mounted, in a namespace of its own
STAGES = re.compile(r"/(mnt|media|srv|run|tmp)(/\d+)?")


@dataclass
class Witnessed:
    """A running command, started by `start_with_witness`."""

    process: subprocess.Popen[bytes]
    mounts: set[str] = field(default_factory=lambda: mounts())

    def kin(self) -> list[int]:
        """Return the ids of the command and of all running processes that descend from it."""
        return process_and_descendants(self.process.pid)[1:]

    def pids_with_text(self, text: str) -> list[int]:
        """Return the ids of those with this text in their command line, oldest first."""
        return pids_with_text(self.kin(), text)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds, which must be before the command ends."""
        while not condition():
            assert self.process.poll() is None, "it ended before that moment came"
            time.sleep(0.02)

    def leftovers(self, seconds: float = PATIENCE) -> list[str]:
        """Wait until the last process has ended, and return what is left.

        These are processes that did not end in time, cgroups and mounts.
        """
        judges = {str(pid) for pid in self.kin()}
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        running = process_and_descendants(self.process.pid) if self.process.poll() is None else []
        folders = [str(folder) for folder in cgroups() if folder.name.split("-")[1] in judges]
        return [
            *(command_line(pid)[:80].strip() for pid in running),
            *folders,
            *sorted(mounts() - self.mounts),
        ]


@contextmanager
def start_with_witness(command: list[str], log: Path, **options: Any) -> Iterator[Witnessed]:
    """Start this script with a command, in the folder of its log; at the end, kill what is left."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    with log.open("wb") as output:
        popen_options = {
            "env": env,
            "cwd": log.parent,
            "start_new_session": True,
            "stdout": output,
            "stderr": output,
            **options,
        }
        process = subprocess.Popen([sys.executable, __file__, *command], **popen_options)
    run = Witnessed(process)
    try:
        yield run
    finally:
        while run.process.poll() is None:
            for pid in run.kin():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def pids_with_text(processes: Iterable[int], text: str) -> list[int]:
    """Return the ids of those with this text in their command line, oldest first."""
    return [pid for pid in sorted(processes) if text in command_line(pid)]


def loops(processes: Iterable[int]) -> bool:
    """Return whether an attempt among these processes has computed for half a second.

    Only an endless loop takes that long.
    """
    zygotes = pids_with_text(processes, "manyheads_worker.zygote")
    attempts = [pid for pid in zygotes if parent_of(pid) in zygotes and is_python(parent_of(pid))]
    return any(seconds_computed(pid) > 0.5 for pid in attempts)


def is_python(pid: int) -> bool:
    """Return whether this is not bubblewrap, whose command line names the same program."""
    return not command_line(pid).startswith("bwrap")


def parent_of(pid: int) -> int:
    """Return the id of its parent, 0 if the process has ended."""
    with suppress(OSError):
        state, parent = state_and_parent(pid)
        return 0 if state in "ZX" else parent
    return 0


def process_and_descendants(pid: int) -> list[int]:
    """Return the ids of a process and of all that descend from it, each after its parent."""
    parents = {child: parent for child in pids() if (parent := parent_of(child))}
    process_tree = [pid]
    for above in process_tree:
        process_tree += [child for child, parent in parents.items() if parent == above]
    return process_tree


def seconds_computed(pid: int) -> float:
    with suppress(OSError):
        return int(stat_of(pid)[11]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def command_line(pid: int) -> str:
    with suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    return ""


def cgroups() -> list[Path]:
    """Return the cgroups of all boxes on this machine."""
    return [
        path for depth in ("", "*/") for path in Path("/sys/fs/cgroup").glob(f"{depth}manyheads-*")
    ]


def mounts() -> set[str]:
    """Return the places in this mount namespace where a box would mount its files."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {point for point in points if STAGES.fullmatch(point)}


def main() -> None:
    """Run the command of sys.argv, wait for all its processes, and exit with its status."""
    # from now on, processes that lose their parent become children of this process
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    status = command.wait()
    with suppress(ChildProcessError):  # raised by os.wait when no child is left
        while True:
            os.wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
