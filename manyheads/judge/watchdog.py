"""The end of a check that hangs in the judge itself, for instance in an endless loop of its author's.

An attempt that hangs is another matter: its calls have a deadline (`AttemptRunner`).
"""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager

HANG_SECONDS = 300.0  # for all checks of one exercise over one attempt
STDERR = 2  # the descriptor, for sys.stderr may be anything


@contextmanager
def watchdog(seconds: float) -> Iterator[None]:
    """End this process, with every thread's traceback on stderr, unless the block is done in time.

    The timer runs outside Python, so neither a busy loop nor a C function that never returns can hold it up. The
    batch then says of the submission that its judge ended, and goes on with a new process.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
