"""The second belt: pytest-timeout's end for a check that hangs in the judge itself, with one thread for all checks.

pytest-timeout would start a thread for each check and wait for its end: with checks of a few milliseconds, an eighth of
the judge's time. Its hooks let a plugin bring a timer of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import pytest_timeout

LOOKS_EVERY = 1.0  # seconds


class Belt:
    """A pytest plugin."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: what a check has that states no limit of its own."""
        self._usual = pytest_timeout.Settings(seconds, "thread", func_only=False, disable_debugger_detection=False)
        self._watched: tuple[float, pytest.Item, pytest_timeout.Settings] | None = None
        self._thread: threading.Thread | None = None

    @contextmanager
    def around(self, item: pytest.Item) -> Iterator[None]:
        """Watch this check while it is called without pytest's protocol."""
        self.pytest_timeout_set_timer(item, self._usual)
        try:
            yield
        finally:
            self.pytest_timeout_cancel_timer(item)

    @pytest.hookimpl
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: pytest_timeout.Settings) -> bool:
        """Watch this check from now on."""
        self._watched = (time.monotonic() + settings.timeout, item, settings)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="belt", daemon=True)
            self._thread.start()
        return True

    @pytest.hookimpl
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool:
        """The check has ended."""
        self._watched = None
        return True

    def _watch(self) -> None:
        while True:
            time.sleep(LOOKS_EVERY)
            watched = self._watched
            if watched is not None and time.monotonic() > watched[0]:
                pytest_timeout.timeout_timer(*watched[1:])  # ends this process
