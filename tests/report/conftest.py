"""What these tests share: a class made up from the models, and a real browser."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.result import CheckResult, Diagnosed, ExerciseResult, Outcome, Result

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
PATIENCE = 60.0  # seconds that a browser may take to answer


# A class


@pytest.fixture(scope="session")
def made_up_class() -> Callable[[int], list[Result]]:
    """So many students with 8 exercises of 15 checks each; about a third of the attempts go wrong, in every way."""
    return lambda students: [_made_up(f"student{i:04d}", random.Random(i)) for i in range(students)]


def _made_up(student: str, chance: random.Random) -> Result:
    exercises = tuple(_exercise(f"exercise_{i}", chance) for i in range(8))
    score, most = sum(e.score for e in exercises), sum(e.max_score for e in exercises)
    return Result(student=student, assignment="heads", score=score, max_score=most, device="cpu",
                  isolation="namespaces", seed=0, versions={"torch": "2.13.0"}, exercises=exercises)  # fmt: skip


def _exercise(id_: str, chance: random.Random) -> ExerciseResult:
    wrong = chance.random() < 0.35
    outcomes: list[Outcome] = ["failed", "error", "timeout", "crashed", "missing", "skipped"]
    ends: list[Outcome] = [
        chance.choices(outcomes, (8, 6, 1, 1, 1, 1))[0] if wrong and chance.random() < 0.4 else "passed"
        for _ in range(15)
    ]
    checks = tuple(
        CheckResult(id=f"check_{i}", title=f"does what check {i} of {id_} asks for", outcome=end,
                    score=0.5 if end == "passed" else 0, max_score=0.5,
                    evidence="" if end == "passed" else f"editing positions {i}…7 changes the output of position 0",
                    hint="" if end == "passed" else "Which axis must be unpacked first?")
        for i, end in enumerate(ends)
    )  # fmt: skip
    named = chance.randrange(9) if wrong else 8
    diagnosis = (Diagnosed(id=f"misconception_{named}", title=f"You did number {named}.", hint="Look again."),)
    return ExerciseResult(id=id_, score=sum(c.score for c in checks), max_score=7.5, checks=checks,
                          diagnosis=diagnosis if named < 8 else ())  # fmt: skip


# A browser


class Browser:
    """Chromium without a window, spoken to over two pipes (the DevTools protocol). One page, opened again and again."""

    def __init__(self, program: str, profile: Path) -> None:
        """Start it. `profile`: an empty folder of its own."""
        theirs_in, self._out = _high(os.pipe())
        self._in, theirs_out = _high(os.pipe())
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        self._pid = os.posix_spawnp(
            program,
            [program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._last, self._session = b"", 0, ""
        self.requests: list[str] = []  # of the page that is open
        self.complaints: list[object] = []
        self._loaded = False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Open a file and wait until it is loaded."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._loaded, self.requests, self.complaints = False, [], []
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._hear()

    def js(self, expression: str) -> object:
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser; without one, its tests are skipped and say so."""
    program = next((name for name in BROWSERS if shutil.which(name)), None)
    if program is None:
        pytest.skip("no Chromium or Chrome is installed: what a browser shows is not tested")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
