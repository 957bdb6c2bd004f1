"""`python without_unix.py ARGUMENTS` is `course ARGUMENTS` without what Python has on Unix alone.

The interpreters that it starts are without it, too. The standard library and torch are
imported first: here they need it. What Windows does otherwise than by lacking something is not to
be seen this way.
"""

import ctypes
import importlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from typing import Any

for name in ("asyncio", "selectors", "shutil", "tempfile", "torch", "watchfiles", "yaml"):
    importlib.import_module(name)

MODULES = (
    "crypt fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog termios tty"
).split()
SYSTEM_CALLS = """
    chown chroot confstr copy_file_range eventfd fchmod fchown fdatasync fork forkpty getegid
    geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getresuid getsid getuid killpg
    lchown lockf major makedev memfd_create mkfifo mknod nice openpty pidfd_open pipe2 posix_fadvise
    posix_spawn pread pwrite readv register_at_fork sched_getaffinity sched_setaffinity sched_yield
    sendfile setegid seteuid setgid setgroups setpgid setpriority setresgid setresuid setsid setuid
    statvfs sync sysconf tcgetpgrp ttyname uname wait wait3 wait4 waitid writev WCOREDUMP
    WEXITSTATUS WIFEXITED WIFSIGNALED WIFSTOPPED WTERMSIG O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW
    O_NONBLOCK
""".split()
SIGNALS = (
    "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 alarm "
    "pthread_kill setitimer"
).split()
SOCKETS = "AF_UNIX CMSG_LEN SCM_RIGHTS SOCK_SEQPACKET recv_fds send_fds".split()
KILL, EXIT_CODES = signal.SIGKILL, {-signal.SIGSEGV: 0xC0000005, -signal.SIGKILL: 1}

start, wait, dup2, open_library = (
    subprocess.Popen.__init__,
    subprocess.Popen.wait,
    os.dup2,
    ctypes.CDLL.__init__,
)


def refuses_descriptors(
    process: subprocess.Popen[bytes], command: list[str], **options: Any
) -> None:
    """As on Windows. A new interpreter does what is below first."""
    assert not {"pass_fds", "start_new_session", "preexec_fn"} & options.keys()
    if "-c" in command:
        at = command.index("-c") + 1
        command = [
            *command[:at],
            f"import runpy; runpy.run_path({__file__!r}); {command[at]}",
            *command[at + 1 :],
        ]
    start(process, command, **options)


def files_alone(source: int, target: int, inheritable: bool = True) -> int:
    """A socket is no file there."""
    assert not os.path.realpath(f"/proc/self/fd/{source}").startswith("/proc"), (
        "os.dup2 of a socket"
    )
    return dup2(source, target, inheritable)


def library_with_a_name(
    library: ctypes.CDLL, name: str | None, *arguments: Any, **options: Any
) -> None:
    """As on Windows."""
    if name is None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    open_library(library, name, *arguments, **options)


def exit_code_of_wait(*args, **named):
    code = wait(*args, **named)
    return EXIT_CODES.get(code, code)


subprocess.Popen.__init__ = refuses_descriptors
subprocess.Popen.wait = exit_code_of_wait
subprocess.Popen.kill = lambda process: os.kill(process.pid, KILL)
ctypes.CDLL.__init__ = library_with_a_name
os.dup2 = files_alone
shutil._use_fd_functions = False  # type: ignore[attr-defined]  # as it finds out for itself there
for module, names in (
    (os, SYSTEM_CALLS),
    (signal, SIGNALS),
    (socket, SOCKETS),
    (select, ["poll", "epoll"]),
):
    for name in names:
        vars(module).pop(name, None)
for name in MODULES:
    sys.modules[name] = None

if __name__ == "__main__":
    from manyheads.cli import main

    main()
