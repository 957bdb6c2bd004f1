"""Read the head of a pull request as data: fetch it into a bare repository, and never check it out."""

from __future__ import annotations

import base64
import os
import resource
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseFault
from ..submission import largest, too_large

SECONDS = 180
LARGEST_FETCH = 64 * 2**20  # bytes of one file that git writes: the trees of a commit, or the wanted files
KINDS = {"120000": "a symbolic link", "160000": "another repository", "040000": "a folder"}
PASSED_ON = ("PATH", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "GIT_SSL_CAINFO")
REGULAR = ("100644", "100755")


class HeadError(CourseFault):
    """The head cannot be fetched. The text ends with what to do next."""


@dataclass(frozen=True)
class TreeEntry:
    """A file of the head: its content, or one sentence that says why it cannot be an attempt."""

    path: str
    content: bytes = b""
    refused: str = ""


class Head:
    """One commit of a remote repository: its trees, and the files that are requested."""

    def __init__(self, folder: Path, remote: str, commit: str, token: str, limit_kib: int) -> None:
        """Fetch the commit's trees, without files, into this folder. Raises HeadError."""
        self._folder, self._commit, self._limit_kib = folder, commit, limit_kib
        self._remote, self._token = remote, token
        self._git("init", "--quiet", "--bare", ".")
        self._fetch("--depth=1", "--filter=blob:none", wanted=[commit])

    def entries(self, paths: Sequence[str]) -> Iterator[TreeEntry]:
        """The entries of the commit at these paths; missing paths are skipped. Raises HeadError."""
        listed = self._git("ls-tree", "-z", self._commit, "--", *paths).decode("utf-8", "surrogateescape")
        found: dict[str, tuple[str, str]] = {}
        for line in filter(None, listed.split("\0")):
            about, path = line.split("\t", 1)
            mode, _, oid = about.split(" ")
            if path in found or path not in paths:
                raise HeadError(f"the commit {self._commit[:12]} is malformed. Next: look at its tree")
            found[path] = mode, oid
        self._fetch_files({oid for mode, oid in found.values() if mode in REGULAR})
        for path, (mode, oid) in found.items():
            yield self._entry(path, mode, oid)

    def _fetch_files(self, oids: Collection[str]) -> None:
        """Fetch all files together; if that is too much, one by one, without those that are too large."""
        if not oids:
            return
        try:
            self._fetch(wanted=sorted(oids))
        except HeadError:
            for oid in sorted(oids):
                with suppress(HeadError):
                    self._fetch(wanted=[oid])
            self._git("ls-remote", self._remote, "HEAD", online=True)  # raises if the remote no longer answers

    def _fetch(self, *options: str, wanted: Sequence[str]) -> None:
        settings = self._folder / "config"
        kept = settings.read_bytes()
        always = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        self._git("fetch", *always, *options, self._remote, *wanted, online=True)
        settings.write_bytes(kept)  # undo git's change, by which it would later fetch omitted objects

    def _entry(self, path: str, mode: str, oid: str) -> TreeEntry:
        if mode not in REGULAR:
            what = KINDS.get(mode, "not a file")
            return TreeEntry(path, refused=f"{path} is {what}: hand in the file itself.")
        size = self._git("cat-file", "--batch-check=%(objectsize)", stdin=f"{oid}\n".encode()).decode().strip()
        limit_kib = largest(path, self._limit_kib)
        # The output ends with `missing` for a file that was too large to fetch.
        if not size.isdecimal() or int(size) > limit_kib * 1024:
            return TreeEntry(path, refused=too_large(path, limit_kib))
        return TreeEntry(path, self._git("cat-file", "blob", oid))

    def _git(self, *arguments: str, stdin: bytes = b"", online: bool = False) -> bytes:
        command = ["git", *arguments]
        environment = _environment(self._token, self._remote) if online else _environment("", "")
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=environment,
                input=stdin,
                capture_output=True,
                check=False,
                timeout=SECONDS,
                preexec_fn=_limit_files,
            )
        except subprocess.TimeoutExpired:
            raise HeadError(f"git {arguments[0]} took longer than {SECONDS} s. Next: run the job again") from None
        if done.returncode:
            text = done.stderr.decode("ascii", "replace").replace("::", ":").replace("##", "#")
            said = text.strip().splitlines() or ["no reason given"]
            raise HeadError(f"git {arguments[0]} ended with {done.returncode} ({said[-1]!a}). Next: run the job again")
        return done.stdout


def _environment(token: str, server: str) -> dict[str, str]:
    """git's environment: no configuration files, the token only in a variable, network only for fetching."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ALLOW_PROTOCOL": "https:http" if server else "none",
        "LC_ALL": "C",
    }
    if token:
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{server}.extraheader",
            "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
        }
    return environment


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FETCH, LARGEST_FETCH))
