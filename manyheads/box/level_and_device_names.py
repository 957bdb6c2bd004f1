"""The names of isolation levels and devices.

It imports almost nothing, so that commands start fast.
"""

from enum import StrEnum

from ..course_fault import CourseFault


class Level(StrEnum):
    """How well student code is isolated. Written in every result."""

    # bubblewrap as an unprivileged uid, namespaces for each attempt, seccomp, rlimits
    NAMESPACES = "namespaces"
    USER = "user"  # processes of an unprivileged uid: for a container that makes no namespaces
    PROCESS = "process"  # a separate process, rlimits and a deadline: for a student's own check


class Device(StrEnum):
    """Where attempts compute. Written in every result."""

    CPU = "cpu"
    CUDA = "cuda"


class BoxUnavailable(CourseFault):
    """This machine cannot provide the requested level.

    The text ends with the command to run next.
    """
