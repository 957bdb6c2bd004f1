"""The canary: an attempt of ours that tries to escape from a box before student code runs in it.

A level may be claimed only if every trick of the canary fails, which `prove` demands. The tricks
(`canary_tricks`) run in the box, in the same way as an attempt. This module plants secrets for them
before, and looks from outside whether a process was left behind. The canary of level `user` only
looks for files that it can reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .connection import AttemptEnded, Box, End
from .contents import contents, paths_in_box
from .host_processes import is_running
from .level_and_device_names import BoxUnavailable, Level
from .worker.limits import Limits
from .worker.messages import Call, Load

SECONDS = 20.0  # for loading the canary, and as many for its tricks
PLANTED = "MANYHEADS_CANARY"  # an environment variable of the judge


@dataclass(frozen=True)
class CanaryReport:
    """The result of a canary."""

    leaks: tuple[str, ...]  # one phrase for each trick that worked
    error: str = ""  # why the canary gave no answer
    end: End | None = None  # how its process ended, if it ended early

    @property
    def holds(self) -> bool:
        """Whether the level may be claimed."""
        return not self.leaks and not self.error


def run_canary(box: Box, limits: Limits, root: Path, hidden: Sequence[Path] = ()) -> CanaryReport:
    """Run the canary in a fresh attempt of this box, and return its report.

    The report has an error if the attempt ends early or does not answer. The canary has SECONDS for
    loading, and as many for all tricks.

    Args:
        box: the box.
        limits: of the attempt.
        root: the course's folder.
        hidden: files of the course. The attempt must find neither them nor copies in any folder.
    """
    source = Path(__file__).with_name("canary_tricks.py").read_text(encoding="utf-8")
    described = "\n".join(_line_about_file(path) for path in hidden)
    arguments: dict[str, object] = {
        "course_files": described,
        "processes": limits.processes,
        "files_mib": limits.files_mib,
    }
    with _planted_secrets(root) as bait:
        connection = box.attempt(limits)
        try:
            loaded = connection.ask(Load(source, "canary.py"), SECONDS)
            reply = connection.ask(Call("escapes", kwargs=arguments | bait), SECONDS)
        except AttemptEnded as ended:
            return CanaryReport((), f"the canary ended early: {ended}", ended.end)
        finally:
            connection.close()
        raised = loaded.raised or next(iter(loaded.stopped), None) or reply.raised
        if raised is not None or not reply.outputs or reply.outputs[0].tensor is None:
            return CanaryReport((), f"the canary did not answer: {raised}")
        flags = reply.outputs[0].tensor.tolist()
        leaks = [name for name, flag in zip(_TRICKS, flags, strict=True) if flag]
        if is_running(str(bait["name"])):
            leaks.append("left a process behind")
        return CanaryReport(tuple(leaks))


# in the order of the flags that canary_tricks.escapes returns
_TRICKS = (
    "read a planted secret",
    "found a file of the course",
    "read the judge's environment",
    "connected over TCP",
    "sent over UDP",
    "connected to an abstract unix socket",
    "could write /proc/sys",
    "started more processes than allowed",
    "saw other processes in /proc",
    "wrote outside /tmp",
    "filled more disk than allowed",
    "made a namespace of its own",
    "could trace processes",
    "shared a process group with the box",
)


def _line_about_file(path: Path) -> str:
    """Return a line with a file's SHA-256, size, folder name and name, for `canary_tricks`."""
    content = path.read_bytes()
    return "\t".join(
        [hashlib.sha256(content).hexdigest(), str(len(content)), path.parent.name, path.name]
    )


@contextlib.contextmanager
def _planted_secrets(root: Path) -> Iterator[dict[str, object]]:
    """Plant secrets in readable files, listeners on this host, and an environment variable.

    The files are in `root` and in the folder for temporary files, unless they cannot be written
    there. At the end, all secrets are removed.

    Yields arguments of `canary_tricks.escapes`: the paths, the ports and the names with which the
    tricks look for them, and the name of the process that the canary tries to leave behind.
    """
    token = secrets.token_hex(8)
    with contextlib.ExitStack() as stack:
        files = []
        for folder in (root, Path(tempfile.gettempdir())):
            path = folder / f".canary-{token}"
            with contextlib.suppress(OSError):
                path.write_text(token, encoding="ascii")
                path.chmod(0o644)
                stack.callback(path.unlink, missing_ok=True)
                files += [str(path), *paths_in_box(path, contents().binds)]
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        unix.bind(f"\0canary-{token}")
        unix.listen()
        os.environ[PLANTED] = token
        stack.callback(os.environ.pop, PLANTED, None)
        yield {
            "files": "\n".join(files),
            "variable": PLANTED,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": f"\0canary-{token}",
            "name": f"canary-{token[:6]}",
        }


# The canary of level `user`. It tries to read files of the course and of the judge, and to write
# into their folders. Each line of an argument is one path. `reached` returns a number for each
# file, then for each folder: 1 if it can be read, or written to.
_SOURCE = """
import os
import torch

def readable(path):
    with open(path, "rb") as file:
        return bool(file.read(1))

def writable(folder):
    path = os.path.join(folder, ".canary")
    open(path, "wb").close()
    os.unlink(path)
    return True

def can(act, path):
    try:
        return act(path)
    except OSError:
        return False

def reached(paths, folders):
    flags = [can(readable, path) for path in paths.split(chr(10))]
    flags += [can(writable, folder) for folder in folders.split(chr(10))]
    return torch.tensor(flags, dtype=torch.float64)
"""


def prove(box: Box, limits: Limits, root: Path, hidden: Sequence[Path]) -> None:
    """Prove that this box isolates attempts as its level promises, by running a canary in it.

    A box of level `process` promises no isolation, so nothing is run in it.

    Args:
        box: the box.
        limits: the limits of its attempts.
        root: the course's folder.
        hidden: the files of the course that no student may see.

    Raises:
        BoxUnavailable: if anything leaks, or if the canary does not answer.
    """
    if box.level is Level.PROCESS:  # this level promises limits and a deadline only
        return
    run = _run_user_canary if box.level is Level.USER else run_canary
    report = run(box, limits, root, hidden)
    if report.leaks:
        problem = f"leaks here: a canary {'; '.join(report.leaks)}. Nothing was graded"
    elif report.error:
        problem = f"cannot be proved here ({report.error})"
    else:
        return
    # a reply that cannot be read shows a fault of the engine, and not of the machine
    next_step = "make check" if report.end is End.BAD_REPLY else "course doctor"
    raise BoxUnavailable(f"level {box.level} {problem}. Next: {next_step}")


def _run_user_canary(box: Box, limits: Limits, root: Path, hidden: Sequence[Path]) -> CanaryReport:
    """Run the canary of level `user` in a fresh attempt of this box, and return its report.

    It tries to read the hidden files, the files of .course, and the judge's environment. It tries
    to write into the course's folder, and into the folders of all these files.

    Args:
        box: the box.
        limits: of the attempt.
        root: the course's folder.
        hidden: the files of the course that no student may see.
    """
    files = [*hidden, *(path for path in (root / ".course").glob("*") if path.is_file())]
    folders = sorted({root, *(path.parent for path in files)})
    paths = [*files, Path("/proc", str(os.getpid()), "environ")]
    call = Call("reached", ("\n".join(map(str, paths)), "\n".join(map(str, folders))))
    try:
        with contextlib.closing(box.attempt(limits)) as connection:
            loaded = connection.ask(Load(_SOURCE, "reach.py"), SECONDS)
            reply = connection.ask(call, SECONDS)
    except AttemptEnded as ended:
        return CanaryReport((), f"the attempt that proves it ended early: {ended}", ended.end)
    raised = loaded.raised or next(iter(loaded.stopped), None) or reply.raised
    if raised is not None or not reply.outputs or reply.outputs[0].tensor is None:
        return CanaryReport((), f"the attempt that proves it did not answer: {raised}")
    flags = reply.outputs[0].tensor.tolist()
    leaks = {
        "read a file of the course": flags[: len(files)],
        "read the judge's environment": flags[len(files) : len(paths)],
        "wrote into the course": flags[len(paths) :],
    }
    return CanaryReport(tuple(phrase for phrase, reached in leaks.items() if any(reached)))
