"""Never answers, and ignores every signal that can be ignored."""

import contextlib
import signal


def running_mean(x):
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass
