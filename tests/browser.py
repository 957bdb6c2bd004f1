"""A real browser for tests: Chromium without a window, driven over the DevTools protocol."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
PATIENCE = 60.0  # seconds that a browser may take to answer


def installed_browser() -> str | None:
    """The name of a browser that is installed here."""
    return next((name for name in BROWSERS if shutil.which(name)), None)


class Browser:
    """Chromium without a window, spoken to over two pipes (the DevTools protocol). One page, opened
    again and again.
    """

    def __init__(self, program: str, profile: Path) -> None:
        """Start it. `profile`: an empty folder of its own."""
        theirs_in, self._out = _high(os.pipe())
        self._in, theirs_out = _high(os.pipe())
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ]
        command = [
            program,
            *options,
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        pipes = [(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4)]
        silent = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        self._pid = os.posix_spawnp(
            program, command, os.environ, file_actions=[*pipes, silent], setsid=True
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._last, self._session = b"", 0, ""
        self.requests: list[str] = []  # of the page that is open
        self.complaints: list[object] = []
        self._loaded = False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def open(self, page: Path | str, width: int = 1280, height: int = 900) -> None:
        """Open a file or an address and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self._loaded, self.requests, self.complaints = False, [], []
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not self._loaded:
            self._hear()

    def js(self, expression: str) -> object:
        """The value of an expression in the page."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = PATIENCE) -> object:
        """The value of an expression in the page, once it is true; of an element, that it is
        there.
        """
        deadline = time.monotonic() + seconds
        while not (value := self.js(f"(found => found instanceof Node || found)({expression})")):
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {expression}"
            time.sleep(0.1)
        return value

    def type(self, text: str) -> None:
        """Write this where the cursor stands, and go on to the next field."""
        self.ask("Input.insertText", text=text)
        self.press("Tab", 9)

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        for event_type in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and event_type == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent",
                type=event_type,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def press_until(self, key: str, code: int, expression: str) -> None:
        """Press a key again and again until an expression of the page is true: a busy browser drops
        a key at times.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.js(expression):
            assert time.monotonic() < deadline, f"{key} does not lead to {expression}"
            self.press(key, code)
            time.sleep(0.1)

    def ask(self, method: str, **parameters: object) -> dict:
        """A command of the DevTools protocol, and its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._last:
                assert "error" not in heard, (method, heard)
                return heard["result"]

    def close(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    def _hear(self) -> dict:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        heard = json.loads(line)
        match heard.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(heard["params"]["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                self.complaints.append(heard["params"])
        return heard


def _high(pipe: tuple[int, int]) -> tuple[int, int]:
    """The same pipe under numbers that are not 3 or 4."""
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipe)
    for end in pipe:
        os.close(end)
    return moved[0], moved[1]
