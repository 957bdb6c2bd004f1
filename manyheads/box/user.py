"""The `user` level: a process under an unprivileged uid of its own, for a container whose root can make no namespaces."""

from __future__ import annotations

from .names import BoxUnavailable, Level
from .namespaces import uid_for_box
from .process import ProcessBox


class UserBox(ProcessBox):
    """Starts each attempt as a process of a uid that owns nothing. What others may not read or write, it may not."""

    level = Level.USER

    def __init__(self) -> None:
        """Raises BoxUnavailable where this process is not root, and so can start none under another uid."""
        self.uid = uid_for_box()
        if self.uid is None:
            raise BoxUnavailable(
                "level user needs root, which alone can start a process as another user. Next: course doctor"
            )
