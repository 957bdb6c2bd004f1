"""The isolation levels' names. Imports next to nothing, so that a command starts fast."""

from enum import StrEnum

from ..errors import CourseFault


class Level(StrEnum):
    """How far student code is kept from everything else. Written in every result."""

    NAMESPACES = "namespaces"  # bubblewrap as an unprivileged uid, own namespaces for each attempt, seccomp, rlimits
    PROCESS = "process"  # a process of its own, rlimits and a deadline: for a student's own check


class Device(StrEnum):
    """Where attempts are graded. Written in every result."""

    CPU = "cpu"
    CUDA = "cuda"


class BoxUnavailable(CourseFault):
    """This machine cannot give the level that was asked for. The text ends with the command to run next."""
