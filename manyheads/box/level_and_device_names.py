"""The names of isolation levels and devices, and the error if a machine cannot provide them.

This module imports almost nothing, so that commands start fast.
"""

from enum import StrEnum

from ..files import CourseFault


class Level(StrEnum):
    """The levels of isolation, from the strongest down. Every result names its level."""

    # bubblewrap as an unprivileged uid, namespaces for each attempt, seccomp, rlimits
    NAMESPACES = "namespaces"
    USER = "user"  # processes of an unprivileged uid: for a container that makes no namespaces
    PROCESS = "process"  # a separate process, rlimits and a deadline: for a student's own check


class Device(StrEnum):
    """The device on which attempts compute. Every result names its device."""

    CPU = "cpu"
    CUDA = "cuda"


class BoxUnavailable(CourseFault):
    """This machine cannot provide the requested level or device.

    The text ends with the command to run next.
    """
