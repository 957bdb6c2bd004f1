"""The service itself, on 127.0.0.1: repositories over HTTP (git's own backend) and the API, with rights by token."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BACKEND = Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())
BOT = "github-actions[bot]"
LONGEST_SUMMARY = 65_535  # bytes
_Query = Mapping[str, list[str]]
_Data = dict[str, Any]


@dataclass
class Service:
    """What it holds: bare repositories in a folder, pull requests' heads, comments, check runs, tokens, and every request it
    got."""

    repositories: Path
    tokens: dict[str, Mapping[str, str]] = field(default_factory=dict)
    heads: dict[int, str] = field(default_factory=dict)
    authors: dict[int, str] = field(default_factory=dict)  # who opened which pull request, of those that are open
    comments: list[dict[str, Any]] = field(default_factory=list)
    check_runs: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    address: str = ""

    def __enter__(self) -> Service:
        service = self

        class Handler(_Handler):
            held = service

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def pull(self, number: int) -> dict[str, Any]:
        """A pull request, as the API has it."""
        login = self.authors.get(number, "ada")
        user = {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"} if login else None
        return {"number": number, "head": {"sha": self.heads[number]}, "user": user}

    def say(self, number: int, body: str, login: str) -> None:
        """Somebody comments on a pull request; "": whose account is deleted since."""
        about = {
            "id": 1000 + len(self.comments),
            "body": body,
            "user": {"login": login} if login else None,
            "number": number,
        }
        self.comments.append(about)

    def comments_on(self, number: int, login: str = BOT) -> list[str]:
        """The comments of one account on one pull request."""
        return [c["body"] for c in self.comments if (c["number"], c["user"] and c["user"]["login"]) == (number, login)]


class _Handler(BaseHTTPRequestHandler):
    held: Service
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.held.requests.append(f"{self.command} {self.path}")
        if url.path.startswith("/api/"):
            self._api(url.path.removeprefix("/api"), parse_qs(url.query), body)
        else:
            self._git(url.path, url.query, body)

    def _rights(self) -> Mapping[str, str] | None:
        """What the request's token may do; None where it is no token of ours."""
        kind, _, value = (self.headers.get("Authorization") or "").partition(" ")
        if kind.lower() == "basic":
            value = base64.b64decode(value).decode().removeprefix("x-access-token:")
        return self.held.tokens.get(value)

    def _may(self, scope: str, level: str) -> bool:
        rights = self._rights()
        if rights is None:
            self._send(401, {"message": "Bad credentials"})
        elif (rights.get(scope), level) not in (("read", "read"), ("write", "read"), ("write", "write")):
            self._send(403, {"message": "Resource not accessible by integration"})
        else:
            return True
        return False

    def _api(self, path: str, query: Mapping[str, list[str]], body: bytes) -> None:
        data = json.loads(body) if body else {}
        for pattern, method, scope, level, answer in _ROUTES:
            found = re.fullmatch(f"/repos/school/class/{pattern}", path)
            if found and self.command == method:
                if self._may(scope, level):
                    answer(self, found[1] if found.re.groups else "", query, data)
                return
        self._send(404, {"message": "Not Found"})

    def _list_comments(self, number: str, query: _Query, data: _Data) -> None:
        self._send(200, _page([c for c in self.held.comments if c["number"] == int(number)], query))

    def _new_comment(self, number: str, query: _Query, data: _Data) -> None:
        self.held.say(int(number), data["body"], BOT)
        self._send(201, self.held.comments[-1])

    def _change_comment(self, id_: str, query: _Query, data: _Data) -> None:
        comment = next(c for c in self.held.comments if c["id"] == int(id_))
        comment["body"] = data["body"]
        self._send(200, comment)

    def _one_pull(self, number: str, query: _Query, data: _Data) -> None:
        self._send(200, self.held.pull(int(number)))

    def _new_check_run(self, _: str, query: _Query, data: _Data) -> None:
        if len(data["output"]["summary"].encode()) > LONGEST_SUMMARY:
            self._send(422, {"message": "summary exceeds a maximum bytesize of 65535"})
            return
        self.held.check_runs.append(data)
        self._send(201, {"id": len(self.held.check_runs)})

    def _git(self, path: str, query: str, body: bytes) -> None:
        if self._rights() is None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if not self._may("contents", "read"):
            return
        owner, name, *rest = path.strip("/").split("/")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.held.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": "/".join(["", owner, name.removesuffix(".git") + ".git", *rest]),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        done = subprocess.run(
            [BACKEND / "git-http-backend"], env=environment, input=body, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self._send_bytes(int(headers.pop("Status", "200").split()[0]), content, headers)

    def _send(self, status: int, data: object) -> None:
        self._send_bytes(status, json.dumps(data).encode(), {"Content-Type": "application/json"})

    def _send_bytes(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing: `requests` keeps them."""


def _page(entries: list[dict[str, Any]], query: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    size, page = int(query["per_page"][0]), int(query["page"][0])
    return entries[(page - 1) * size : page * size]


_ROUTES = (  # the path after the repository, the method, what it asks of a token, and what answers it
    (r"issues/(\d+)/comments", "GET", "pull-requests", "read", _Handler._list_comments),
    (r"issues/(\d+)/comments", "POST", "pull-requests", "write", _Handler._new_comment),
    (r"issues/comments/(\d+)", "PATCH", "pull-requests", "write", _Handler._change_comment),
    (r"pulls/(\d+)", "GET", "pull-requests", "read", _Handler._one_pull),
    ("check-runs", "POST", "checks", "write", _Handler._new_check_run),
)
