"""A scripted editor: speaks JSON-RPC with `course lsp`, as an editor's client does."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

REPOSITORY = Path(__file__).parents[1]
SECONDS = 60.0  # until a test gives up


class LanguageClient:
    """One editor, in one folder."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-m", "manyheads", "lsp"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, cwd=folder, env=environment, **pipes)
        self._received: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._number = 0
        self._waiting: list[dict[str, Any]] = []
        self.request("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}})
        self.notify("initialized", {})

    def _read(self) -> None:
        stream = self._process.stdout
        while header := stream.readline():
            length = int(header.removeprefix(b"Content-Length: "))
            while stream.readline().strip():
                pass
            self._received.put(json.loads(stream.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._process.stdin.flush()

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for message in self._waiting:
            if wanted(message):
                self._waiting.remove(message)
                return message
        ends = time.monotonic() + SECONDS
        while not wanted(message := self._received.get(timeout=max(ends - time.monotonic(), 0.01))):
            self._waiting.append(message)
        return message

    def notify(self, method: str, params: Any) -> None:
        """Send what has no answer."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Send a request, and return its result."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        answer = self._next(lambda message: message.get("id") == self._number and "method" not in message)
        assert "error" not in answer, answer
        return answer["result"]

    def received(self, method: str) -> Any:
        """The next notification of this kind."""
        return self._next(lambda message: message.get("method") == method)["params"]

    def open(self, path: Path) -> list[dict[str, Any]]:
        """Open a file, and return its diagnostics."""
        item = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text(encoding="utf-8")}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return self.diagnostics(path)

    def save(self, path: Path, text: str) -> list[dict[str, Any]]:
        """Save a file, and return its diagnostics."""
        path.write_text(text, encoding="utf-8")
        self.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
        return self.diagnostics(path)

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        """The next diagnostics that are published of this file."""
        told = self.received("textDocument/publishDiagnostics")
        assert told["uri"] == path.as_uri()
        return told["diagnostics"]  # type: ignore[no-any-return]

    def close(self) -> int:
        """End the server as an editor does; its exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self._process.wait(SECONDS)
