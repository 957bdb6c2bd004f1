"""Stop trusted code that does not end: a mutant, a reference or a lesson's cell.

Only the process's own CPU time counts, so code is not stopped because the machine is busy. The
limit is reported even if the code catches the exception that stops it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ..course_fault import CourseFault

# CPU time. The slowest of 266 mutants of this repository's course needs 1.9 s, with its checks.
SECONDS = 30.0
# Seconds between further interruptions, because each following call may have the same loop.
_AGAIN = 0.01


class DoesNotEnd(CourseFault):
    """Trusted code computes for longer than the limit.

    Attributes:
        observation: The end of a sentence about the code, for example "does not end: …".
    """

    def __init__(self, label: str, observation: str, next_step: str) -> None:
        super().__init__(f"{label} {observation}. Next: {next_step}")
        self.observation = observation


@contextmanager
def must_end(label: str, path: Path, next_step: str) -> Iterator[None]:
    """Raise DoesNotEnd if the block computes for more than SECONDS.

    Windows has no such timers, and so no limit.

    Args:
        label: The name of the code that runs in the block. A sentence begins with it.
        path: The file that the code was compiled as. The message names the line in it.
        next_step: The text after "Next: ".
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    stopped_at = list[int]()

    def stop(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != str(path):
            frame = frame.f_back
        stopped_at.append(0 if frame is None else frame.f_lineno)
        # The engine takes this exception for a reply of the code, so `stopped_at` records it, too.
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
