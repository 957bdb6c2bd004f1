"""Opens a connection to the outside, to the machine itself, and by UDP."""
import socket


def running_mean(x):
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_VSOCK):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                socket.socket(family, kind)
            except OSError:
                continue
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError
