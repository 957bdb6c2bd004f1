"""Write a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import CourseFault


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write the file, with its folder. Whatever stops this leaves the file as it was, and nothing beside it.

    durable: a power cut is among what may stop it; then the disk is waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a process that died with this number; a link would lead elsewhere
        with naming(path), partial.open("xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError that names no file this one, for whoever tells it: a full disk does not say where."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def told_where(path: Path, following: str) -> Iterator[None]:
    """Tell an OSError as CourseFault: where it was, why, and what to do next."""
    try:
        yield
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: {following}") from None


@contextmanager
def held(lock: Path, taken: str) -> Iterator[None]:
    """Hold a folder for one process, by a file in it, until the process ends in any way. An empty folder goes at the end.

    Where there are no such locks, as on Windows, nothing is held. taken: what CourseFault says where another process, which
    is named in place of {}, holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with naming(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _is_held(file.fileno(), lock):
            raise CourseFault(taken.format(f"process {file.read(20).strip() or 'unknown'}"))
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file, and nobody a folder with results
                lock.unlink()
                lock.parent.rmdir()


def _is_held(descriptor: int, path: Path) -> bool:
    """Return whether this process holds the file now, and it is the one that others find there."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
