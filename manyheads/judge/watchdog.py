"""End the process if a check hangs in the judge itself, for example in an endless loop of the check.

This is not for attempts that hang: their calls have a deadline (`AttemptRunner`).
"""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager

HANG_SECONDS = 300.0  # for all checks of one exercise over one attempt
STDERR = 2  # the descriptor, because sys.stderr may have been replaced


@contextmanager
def watchdog(seconds: float) -> Iterator[None]:
    """End this process, with the traceback of every thread on stderr, unless the block ends in time.

    The timer runs outside Python, so neither a busy loop nor a C function that never returns can delay it. The run then
    stops with the message that a judge process ended.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
