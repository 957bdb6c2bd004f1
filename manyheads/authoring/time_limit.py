"""A limit for trusted code that does not end: a mutant, a reference or a lesson's cell with an
endless loop.

Only the process's own CPU time counts, so a busy machine stops nobody. Whatever the code catches,
the limit is told.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ..errors import CourseFault

# of CPU time: the slowest of 266 mutants of this repository's course needs 1.9, with its checks
SECONDS = 30.0
# seconds between further interruptions: each call that follows may have the same loop
_AGAIN = 0.01


class DoesNotEnd(CourseFault):
    """Trusted code computes for longer than the limit.

    observation: that, as the end of a sentence about the code.
    """

    def __init__(self, label: str, observation: str, next_step: str) -> None:
        super().__init__(f"{label} {observation}. Next: {next_step}")
        self.observation = observation


@contextmanager
def must_end(label: str, path: Path, next_step: str) -> Iterator[None]:
    """Raise DoesNotEnd if the block computes for more than SECONDS. Without such timers, as on
    Windows, there is no limit.

    Args:
        label: runs in the block; the beginning of a sentence.
        path: the file that it was compiled as, whose line is told.
        next_step: what stands behind "Next: ".
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    stopped_at = list[int]()

    def stop(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != str(path):
            frame = frame.f_back
        stopped_at.append(0 if frame is None else frame.f_lineno)
        # the engine takes it for an answer of the code, which is why it is noted, too
        raise TimeoutError

    previous_handler = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, _AGAIN)
    try:
        yield
    except Exception:
        if not stopped_at:
            raise
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous_handler)
    if stopped_at:
        line = stopped_at[0]
        location = f" on line {line} of {path.name}" if line else ""
        raise DoesNotEnd(
            label, f"does not end: it still computes{location} after {SECONDS:g} s", next_step
        )
