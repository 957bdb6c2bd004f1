"""A stand-in for the hosting service's API on 127.0.0.1.

It offers trees and blobs of bare repositories, comments and check runs. Each token has its rights.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

BOT = "github-actions[bot]"
LONGEST_SUMMARY = 65_535  # bytes
SUFFICIENT_LEVELS = {"read": ("read", "write"), "write": ("write",)}
NOT_FOUND = (404, {"message": "Not Found"})


@dataclass
class Service:
    """The data of one class repository, and every request that was received."""

    repositories: Path
    tokens: dict[str, Mapping[str, str]] = field(default_factory=dict)
    heads: dict[int, str] = field(default_factory=dict)
    # the author of each open pull request by its number
    authors: dict[int, str] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    check_runs: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    # responses (status, headers, message) to the next requests, before any other response
    refuses: list[tuple[int, Mapping[str, str], str]] = field(default_factory=list)
    address: str = ""

    def __enter__(self) -> Service:
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def say(self, number: int, body: str, login: str) -> dict[str, Any]:
        """Add a comment on a pull request. The login "" stands for a deleted account."""
        user = {"login": login} if login else None
        id_ = 1000 + len(self.comments)
        self.comments.append({"id": id_, "body": body, "user": user, "number": number})
        return self.comments[-1]

    def comments_on(self, number: int, login: str = BOT) -> list[str]:
        """Return the comments of one account on one pull request."""
        user = {"login": login}
        comments = [c for c in self.comments if c["number"] == number and c["user"] == user]
        return [comment["body"] for comment in comments]

    def answer(
        self, rights: Mapping[str, str], request: str, query: Mapping[str, str], data: Any
    ) -> tuple[int, object]:
        """Return the status and the content of an answer to a token with these rights.

        Args:
            rights: the level of the token by scope.
            request: the method and the path.
            query: the parameters of the query.
            data: the content of the request.
        """

        def has_right(scope: str, level: str) -> bool:
            return rights.get(scope) in SUFFICIENT_LEVELS[level]

        match request.replace(" ", "/").split("/"):
            case "GET", "issues", number, "comments" if has_right("pull-requests", "read"):
                comments = [c for c in self.comments if c["number"] == int(number)]
                size = int(query["per_page"])
                end = int(query["page"]) * size
                return 200, comments[end - size : end]
            case "POST", "issues", number, "comments" if has_right("pull-requests", "write"):
                return 201, self.say(int(number), data["body"], BOT)
            case "PATCH", "issues", "comments", id_ if has_right("pull-requests", "write"):
                comment = self.comments[int(id_) - 1000]
                comment["body"] = data["body"]
                return 200, comment
            case "GET", "pulls", number if has_right("pull-requests", "read"):
                head = {"sha": self.heads[int(number)]}
                user = {"login": self.authors.get(int(number), "ada"), "type": "User"}
                return 200, {"number": int(number), "head": head, "user": user}
            case "POST", "check-runs" if has_right("checks", "write"):
                if len(data["output"]["summary"].encode()) > LONGEST_SUMMARY:
                    return 422, {"message": "summary exceeds a maximum bytesize of 65535"}
                self.check_runs.append(data)
                return 201, {"id": len(self.check_runs)}
            case "GET", "git", "trees", sha if has_right("contents", "read"):
                return self._tree(sha)
            case "GET", "git", "blobs", sha if has_right("contents", "read"):
                content = base64.encodebytes(self._git("cat-file", "blob", sha) or b"").decode()
                return 200, {"sha": sha, "encoding": "base64", "content": content}
        return 403, {"message": "Resource not accessible by integration"}

    def _tree(self, sha: str) -> tuple[int, object]:
        listing = self._git("ls-tree", "-l", "-z", sha)
        if listing is None:
            return NOT_FOUND
        entries = []
        for line in filter(None, listing.decode().split("\0")):
            attributes, path = line.split("\t")
            mode, object_type, oid, size = attributes.split()
            entry: dict[str, object] = {"path": path, "mode": mode, "type": object_type, "sha": oid}
            if size != "-":
                entry["size"] = int(size)
            entries.append(entry)
        return 200, {"sha": sha, "tree": entries, "truncated": False}

    def _git(self, *arguments: str) -> bytes | None:
        bare = self.repositories / "school" / "class.git"
        completed = subprocess.run(
            ["git", "-C", bare, *arguments], capture_output=True, check=False
        )
        return None if completed.returncode else completed.stdout


class _Handler(BaseHTTPRequestHandler):
    service: Service
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.service.requests.append(f"{self.command} {self.path}")
        if self.service.refuses:
            status, headers, message = self.service.refuses.pop(0)
            self._send(status, message.encode(), headers)
            return
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        url = urlsplit(self.path)
        status, reply = 401, {"message": "Bad credentials"}
        _, is_ours, path = url.path.partition("/api/repos/school/class/")
        if not is_ours:
            status, reply = NOT_FOUND
        elif token in self.service.tokens:
            rights = self.service.tokens[token]
            request = f"{self.command} {path}"
            query = dict(parse_qsl(url.query))
            status, reply = self.service.answer(rights, request, query, json.loads(body or "{}"))
        self._send(status, json.dumps(reply).encode(), {})

    do_POST = do_PATCH = do_GET

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing; `requests` records every request."""
