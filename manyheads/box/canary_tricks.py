"""The tricks of the canary. Each function tries one way out, and returns whether it worked.

The judge never imports this file. It sends the text into the box, where it runs as an attempt.
"""

import ctypes
import hashlib
import os
import socket
import threading
import time

import torch

_libc = ctypes.CDLL(None, use_errno=True)


def escapes(files, course_files, variable, tcp, udp, abstract, processes, files_mib, name):
    """Return a tensor with 1.0 for each trick that worked, and 0.0 for the others.

    The tricks have the same order as in `canary._TRICKS`. First, a process is started that tries to
    outlive this one.

    Args:
        files: the paths of planted secrets, one on each line.
        course_files: see `_finds`.
        variable: the name of an environment variable of the judge.
        tcp: the port of a listener of the judge.
        udp: the same for UDP.
        abstract: the address of a unix socket of the judge.
        processes: the limit on processes.
        files_mib: the limit on the size of /tmp and of /dev/shm, each.
        name: the name of the process that tries to outlive this one.
    """
    _daemon(name)
    tricks = (
        lambda: any(_reads(path) for path in files.split("\n")),
        lambda: _finds(course_files),
        lambda: variable in os.environ,
        lambda: _connects(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)),
        lambda: _sends(udp),
        lambda: _connects(socket.AF_UNIX, socket.SOCK_STREAM, abstract),
        lambda: _opens("/proc/sys/kernel/core_pattern"),
        lambda: _starts_more_than(processes),
        lambda: any(entry.isdigit() and int(entry) != os.getpid() for entry in os.listdir("/proc")),
        lambda: any(
            _creates(f)
            for f in ("/", "/usr", "/box", "/box/lib", "/dev", "/etc", "/home", "/var/tmp")
        ),
        lambda: _fills(files_mib),
        lambda: _libc.unshare(0x10000000) == 0,
        lambda: _libc.ptrace(0, 0, 0, 0) == 0,
        # a signal to the group would reach its other processes
        lambda: os.getpgrp() != os.getpid(),
    )
    return torch.tensor([float(_works(trick)) for trick in tricks])


def _works(trick):
    try:
        return bool(trick())
    except Exception:
        return False


def _daemon(name):
    """Start a process that tries to outlive this one, in another session if possible."""
    try:
        child = os.fork()
    except OSError:
        return
    if child:
        return
    try:
        _libc.setsid()
        if os.fork() == 0:
            _libc.prctl(15, name.encode(), 0, 0, 0)
            time.sleep(60)
    finally:
        os._exit(0)  # the child must never return into the canary


def _reads(path):
    try:
        with open(path) as file:
            return bool(file.read())
    except OSError:  # the next path may still be readable
        return False


def _finds(course_files):
    """Return whether any folder has a file of the course.

    A file counts if it has the same content, or the same name in a folder of the same name. The
    names __init__.py and conftest.py do not count, because other packages have such files.

    Args:
        course_files: one line for each file: its SHA-256, its size, its folder's name and its name.
    """
    described = [line.split("\t") for line in course_files.split("\n") if line]
    digests = {digest for digest, *_ in described}
    sizes = {int(size) for _, size, *_ in described}
    names = {
        tuple(name) for _, _, *name in described if name[-1] not in ("__init__.py", "conftest.py")
    }
    for entry in _files("/"):
        if entry.stat(follow_symlinks=False).st_size in sizes and _digest(entry.path) in digests:
            return True
        if (os.path.basename(os.path.dirname(entry.path)), entry.name) in names:
            return True
    return False


def _files(*folders):
    """Yield the entry of every regular file below these folders, except in /proc, /sys and /dev."""
    folders = list(folders)
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        yield entry
                    elif entry.is_dir(follow_symlinks=False) and entry.path not in (
                        "/proc",
                        "/sys",
                        "/dev",
                    ):
                        folders.append(entry.path)
        except OSError:  # the attempt may not read this folder
            continue


def _digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _connects(family, socket_type, address):
    with socket.socket(family, socket_type) as sock:
        sock.settimeout(1)
        sock.connect(address)
    return True


def _sends(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        return sock.send(b"x") == 1


def _opens(path):
    os.close(os.open(path, os.O_WRONLY))
    return True


def _starts_more_than(processes):
    """Return whether more threads start than allowed: the limit on processes counts threads."""
    finished = threading.Event()
    started = 0
    try:
        for _ in range(processes + 2):
            threading.Thread(target=finished.wait, args=(5,), daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    finally:
        finished.set()
    return started > processes


def _creates(folder):
    path = os.path.join(folder, f"canary-{os.getpid()}")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)
        return True
    except OSError:
        return False


def _fills(files_mib):
    """Return whether /tmp or /dev/shm takes more than twice the limit.

    Four files of nearly the limit are written to each folder, and removed again. A few bytes more
    than the limit are no leak: the kernel counts pages for each CPU, so it lets a few too many
    through.
    """
    block = b"x" * (1 << 20)
    for folder in ("/tmp", "/dev/shm"):
        written = 0
        try:
            for i in range(4):
                with open(f"{folder}/fill{i}", "wb", buffering=0) as file:
                    for _ in range(max(1, files_mib - 1)):
                        written += file.write(block)
        except OSError:
            pass
        finally:
            for i in range(4):
                if os.path.exists(f"{folder}/fill{i}"):
                    os.unlink(f"{folder}/fill{i}")
        if written > 2 * files_mib << 20:
            return True
    return False
