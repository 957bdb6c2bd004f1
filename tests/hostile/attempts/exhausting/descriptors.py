"""Opens files until there are no descriptors left."""


def running_mean(x):
    held = []
    while True:
        held.append(open("/dev/null"))
