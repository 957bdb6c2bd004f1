"""Runs inside the box, as an attempt: each function tries one way out and says whether it worked.

Never imported by the judge, which sends this file's text into the box.
"""

import ctypes
import os
import socket
import threading
import time

import torch

_libc = ctypes.CDLL(None, use_errno=True)


def escapes(files, variable, tcp, udp, abstract, processes, files_mib, name):
    """A tensor with 1.0 for every trick that worked."""
    _daemon(name)
    tricks = (
        lambda: any(_reads(path) for path in files.split("\n")),
        lambda: variable in os.environ,
        lambda: _connects(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)),
        lambda: _sends(udp),
        lambda: _connects(socket.AF_UNIX, socket.SOCK_STREAM, abstract),
        lambda: _opens("/proc/sys/kernel/core_pattern"),
        lambda: _starts_more_than(processes),
        _sees_processes,
        lambda: any(_creates(f) for f in ("/", "/usr", "/box", "/box/lib", "/dev", "/etc", "/home", "/var/tmp")),
        lambda: _fills(files_mib),
        lambda: _libc.unshare(0x10000000) == 0,
        lambda: _libc.ptrace(0, 0, 0, 0) == 0,
        lambda: os.getpgrp() != os.getpid(),  # a signal to the group would reach who else is in it
    )
    return torch.tensor([float(_works(trick)) for trick in tricks])


def _works(trick):
    try:
        return bool(trick())
    except Exception:
        return False


def _daemon(name):
    """A process that would outlive us, in a session of its own where it can have one."""
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
        os._exit(0)  # whatever happens, there is one canary


def _reads(path):
    with open(path) as file:
        return bool(file.read())


def _connects(family, kind, address):
    with socket.socket(family, kind) as sock:
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
    """Threads count as processes do."""
    done, started = threading.Event(), 0
    try:
        for _ in range(processes + 2):
            threading.Thread(target=done.wait, args=(5,), daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    finally:
        done.set()
    return started > processes


def _sees_processes():
    return any(entry.isdigit() and int(entry) != os.getpid() for entry in os.listdir("/proc"))


def _creates(folder):
    path = os.path.join(folder, f"canary-{os.getpid()}")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)
        return True
    except OSError:
        return False


def _fills(files_mib):
    """Four files of nearly the limit each. The kernel counts pages by CPU and lets a few too many through: not twice."""
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
