"""The service's API on 127.0.0.1: bare repositories' trees and blobs, comments, check runs, with rights by token."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
    refuses: list[tuple[int, Mapping[str, str], str]] = field(default_factory=list)  # what it answers first
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
        if self.held.refuses:
            status, headers, message = self.held.refuses.pop(0)
            self._send(status, message, headers)
        else:
            self._api(url.path.removeprefix("/api"), parse_qs(url.query), body)

    def _may(self, scope: str, level: str) -> bool:
        rights = self.held.tokens.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))
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

    def _tree(self, sha: str, query: _Query, data: _Data) -> None:
        listed = self._git("ls-tree", "-l", "-z", sha)
        if listed is None:
            self._send(404, {"message": "Not Found"})
            return
        entries = []
        for line in filter(None, listed.decode().split("\0")):
            (mode, kind, oid, size), path = line.split("\t")[0].split(), line.split("\t")[1]
            about = {"path": path, "mode": mode, "type": kind, "sha": oid}
            entries.append({**about, **({"size": int(size)} if size != "-" else {})})
        self._send(200, {"sha": sha, "tree": entries, "truncated": False})

    def _blob(self, sha: str, query: _Query, data: _Data) -> None:
        content = base64.encodebytes(self._git("cat-file", "blob", sha) or b"").decode()
        self._send(200, {"sha": sha, "encoding": "base64", "content": content})

    def _git(self, *arguments: str) -> bytes | None:
        bare = self.held.repositories / "school" / "class.git"
        done = subprocess.run(["git", "-C", bare, *arguments], capture_output=True, check=False)
        return None if done.returncode else done.stdout

    def _send(self, status: int, data: object, headers: Mapping[str, str] | None = None) -> None:
        content = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
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
    (r"git/trees/([0-9a-f]{40})", "GET", "contents", "read", _Handler._tree),
    (r"git/blobs/([0-9a-f]{40})", "GET", "contents", "read", _Handler._blob),
    ("check-runs", "POST", "checks", "write", _Handler._new_check_run),
)
