"""`course lsp`, the language server for editors, in JSON-RPC conversations with a client."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import jupytext
import pytest

from tests.make import COURSE, REPOSITORY, RIGHT

TIMEOUT_SECONDS = 60.0  # after which a test fails


class LanguageClient:
    """A client of `course lsp` in one folder, as an editor has it."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([*COURSE, "lsp"], cwd=folder, env=environment, **pipes)
        self._received: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._number = 0
        self._waiting: list[dict[str, Any]] = []
        self.request(
            "initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}}
        )
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

    def _next_message(self, is_match: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for message in self._waiting:
            if is_match(message):
                self._waiting.remove(message)
                return message
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not is_match(
            message := self._received.get(timeout=max(deadline - time.monotonic(), 0.01))
        ):
            self._waiting.append(message)
        return message

    def notify(self, method: str, params: Any) -> None:
        """Send a notification, which has no answer."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Send a request, and return its result."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        answer = self._next_message(
            lambda message: message.get("id") == self._number and "method" not in message
        )
        assert "error" not in answer, answer
        return answer["result"]

    def next_notification(self, method: str) -> Any:
        """Return the parameters of the next notification of this method."""
        return self._next_message(lambda message: message.get("method") == method)["params"]

    def open(self, path: Path) -> list[dict[str, Any]]:
        """Open a file, and return its diagnostics."""
        item = {
            "uri": path.as_uri(),
            "languageId": "python",
            "version": 1,
            "text": path.read_text(encoding="utf-8"),
        }
        self.notify("textDocument/didOpen", {"textDocument": item})
        return self.diagnostics(path)

    def save(self, path: Path, text: str) -> list[dict[str, Any]]:
        """Save a file, and return its diagnostics."""
        path.write_text(text, encoding="utf-8")
        self.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
        return self.diagnostics(path)

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        """Return the next published diagnostics, which must be those of this file."""
        notification = self.next_notification("textDocument/publishDiagnostics")
        assert notification["uri"] == path.as_uri()
        return notification["diagnostics"]  # type: ignore[no-any-return]

    def close(self) -> int:
        """End the server as an editor does, and return its exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self._process.wait(TIMEOUT_SECONDS)


pytest.importorskip("pygls", reason="manyheads[editor] is not installed")
pytestmark = pytest.mark.journey
SCRIPT, NOTEBOOK = (
    "exercises/averages/01_running_mean.py",
    "exercises/averages/01_running_mean.ipynb",
)
WRONG = RIGHT.replace("mean()", "sum()")
# the index of the line with the mistake; the protocol counts lines from 0
LINE = next(i for i, line in enumerate(WRONG.splitlines()) if "sum()" in line)


@pytest.fixture
def editor(student_copy: Path) -> Iterator[LanguageClient]:
    """Start a client, and assert at the end that the server exits with 0."""
    client = LanguageClient(student_copy)
    yield client
    assert client.close() == 0


def actions_at(
    editor: LanguageClient, path: Path, diagnostics: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the commands of the code actions at the first diagnostic, by title."""
    parameters = {"range": diagnostics[0]["range"], "context": {"diagnostics": diagnostics}}
    reply = editor.request(
        "textDocument/codeAction", {"textDocument": {"uri": path.as_uri()}, **parameters}
    )
    return {action["title"]: action["command"] for action in reply}


def run_action(editor: LanguageClient, command: dict[str, Any]) -> str:
    """Run the command of an action, and return the message that the editor shows."""
    parameters = {"command": command["command"], "arguments": command["arguments"]}
    editor.request("workspace/executeCommand", parameters)
    return str(editor.next_notification("window/showMessage")["message"])


def test_each_save_updates_the_diagnostics_of_the_file(editor, student_copy):
    path = student_copy / SCRIPT
    assert editor.open(path) == []  # the stub is untouched
    for number in range(3):
        (diagnostic,) = editor.save(path, f"{WRONG}# {number}\n")
        start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
        assert (start["line"], end["line"], diagnostic["source"]) == (LINE, LINE, "course")
        assert (
            WRONG.splitlines()[LINE][start["character"] : end["character"]]
            == WRONG.splitlines()[LINE].strip()
        )
        assert diagnostic["message"].startswith("running_mean: You summed without dividing")
        # editors show the whole message on hover
        assert "8 of 9 values differ" in diagnostic["message"]
        assert diagnostic["relatedInformation"][0]["message"].startswith("Hint: ")
        assert editor.save(path, f"{RIGHT}# {number}\n") == []


def test_next_hint_action_adds_the_hint_to_the_diagnostic(editor, student_copy):
    path = student_copy / SCRIPT
    diagnostics = editor.save(path, WRONG)
    message = run_action(editor, actions_at(editor, path, diagnostics)["Next hint"])
    (updated_diagnostic,) = editor.diagnostics(path)
    assert "Hint 2 of 3: " in message
    assert updated_diagnostic["relatedInformation"][0]["message"] in message
    assert (
        editor.save(path, f"{WRONG}# changed\n")[0]["relatedInformation"]
        == diagnostics[0]["relatedInformation"]
    )


def test_inlay_hints_show_the_shapes_that_lines_compute(editor, student_copy):
    path = student_copy / SCRIPT
    editor.save(path, RIGHT)
    whole_file = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    parameters = {"textDocument": {"uri": path.as_uri()}, "range": whole_file}
    (hint,) = editor.request("textDocument/inlayHint", parameters)
    line = RIGHT.splitlines()[LINE]
    assert (hint["position"], hint["label"]) == ({"line": LINE, "character": len(line)}, "→ (T)")


def test_files_that_are_no_exercise_get_no_diagnostics_and_no_inlay_hints(editor, student_copy):
    notes = student_copy / "exercises/averages/notes.py"
    notes.write_text("1 +", encoding="utf-8")
    document = {"uri": notes.as_uri(), "languageId": "python", "version": 1, "text": "1 +"}
    editor.notify("textDocument/didOpen", {"textDocument": document})
    # this would fail if the server had published diagnostics of notes.py before those of the stub
    assert editor.open(student_copy / SCRIPT) == []
    whole_file = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    parameters = {"textDocument": {"uri": notes.as_uri()}, "range": whole_file}
    assert editor.request("textDocument/inlayHint", parameters) == []


def test_a_script_gets_no_diagnostics_if_the_student_works_in_the_notebook(editor, student_copy):
    jupytext.write(jupytext.reads(WRONG, fmt="py:percent"), student_copy / NOTEBOOK)
    assert editor.open(student_copy / SCRIPT) == []
