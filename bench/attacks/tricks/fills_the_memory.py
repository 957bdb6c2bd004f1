"""Takes 3 GiB of memory at once, and leaves 200 MB in /dev/shm."""

import contextlib
import os

import torch

with contextlib.suppress(OSError):
    with open(f"/dev/shm/manyheads_bench_{os.getpid()}", "wb") as file:
        for _ in range(200):
            file.write(bytes(1_000_000))

with contextlib.suppress(RuntimeError, MemoryError):
    held = torch.ones(3 << 30, dtype=torch.uint8)
    del held


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return 2 * x.cumsum(0)
