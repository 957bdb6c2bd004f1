"""Read a pull request as data: its event, its head, and the exercise files in it. Nothing is checked out."""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Assignment, Course
from ..errors import CourseFault
from ..submission import ENDINGS, largest, too_large
from ..whole import write_whole
from .github_api import Api

# Read the head of a pull request as data: fetch it into a bare repository, and never check it out.

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
        """Yield the entries of the commit at these paths; missing paths are skipped. Raises HeadError."""
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
    """Return git's environment: no configuration files, the token only in a variable, network only for fetching."""
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


# The runner's interface to a step: its event, and the files for outputs and the summary.

_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # not a bot's, which ends with [bot]
_SHA = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

Environment = Mapping[str, str]


@dataclass(frozen=True)
class PullRequest:
    """The fields of the event that are used."""

    repository: str  # owner/name of the class repository
    number: int
    head: str  # the commit that is graded
    student: str  # who opened it


def pull_request(environment: Environment) -> PullRequest:
    """Return the pull request of this run: the event's, or, as the service has it now, that which a dispatch names.

    Raises CourseFault, ServiceError.
    """
    try:
        event = json.loads(Path(needed(environment, "GITHUB_EVENT_PATH")).read_bytes())
    except (OSError, ValueError):
        raise CourseFault("the event cannot be read. Next: run the job again") from None
    try:
        repository = _matching(_REPOSITORY, event["repository"]["full_name"])
        about = event["pull_request"] if "pull_request" in event else _dispatched(environment, repository, event)
        request = PullRequest(
            repository,
            int(about["number"]),
            _matching(_SHA, about["head"]["sha"]),
            str(about["user"]["login"]),
        )
    except (ValueError, LookupError, TypeError):
        raise CourseFault("the event is not that of a pull request. Next: look at the `on:` of the workflow") from None
    if not _LOGIN.fullmatch(request.student):
        raise CourseFault(
            f"{request.student!a} is not a student's account: nothing is graded. Next: nothing, or grade it by hand"
        )
    return request


def _dispatched(environment: Environment, repository: str, event: Any) -> Any:
    """Return what the service says of a pull request. A dispatch gives its number alone: who opened it is not for it to say."""
    number = int(event["inputs"]["pull_request"])
    api = Api(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), repository)
    return api.call("GET", f"pulls/{number}")


def set_output(environment: Environment, name: str, value: str) -> None:
    """Set an output of this step. Raises CourseFault."""
    if not re.fullmatch(r"[a-z_]+", name) or not re.fullmatch(r"[a-z ]*", value):
        raise CourseFault(f"{name}={value!a} is no output. Next: report it")
    _append(environment, "GITHUB_OUTPUT", f"{name}={value}\n")


def add_summary(environment: Environment, markdown: str) -> None:
    """Append to the job's summary."""
    _append(environment, "GITHUB_STEP_SUMMARY", markdown + "\n")


def needed(environment: Environment, name: str) -> str:
    """Return the value of a variable that the runner or the workflow sets. Raises CourseFault if it is not set."""
    value = environment.get(name, "")
    if not value:
        raise CourseFault(f"{name} is not set: this command is for a step of the workflow. Next: course grade")
    return value


def _append(environment: Environment, name: str, text: str) -> None:
    with Path(needed(environment, name)).open("a", encoding="utf-8") as file:
        file.write(text)


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value


ABOUT = "collected.json"


class Collected(BaseModel):
    """Which pull request was collected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str
    number: int
    head: str
    refused: tuple[str, ...]  # a sentence for each file that is not taken


def collect(course: Course, request: PullRequest, remote: str, token: str, out: Path) -> Collected:
    """Write OUT/<student>/<assignment>/NN_name.py and .ipynb as the head has them. Raises HeadError, CourseFault."""
    if out.exists() and any(out.iterdir()):
        raise CourseFault(f"{out} is not empty. Next: rm -r {out}")
    wanted = dict(_wanted(course))
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        head = Head(Path(folder), remote, request.head, token, course.limits.source_kib)
        for entry in head.entries(list(wanted)):
            if entry.refused:
                refused.append(entry.refused)
                continue
            write_whole(out / request.student / wanted[entry.path].id / Path(entry.path).name, entry.content)
    for assignment in course.assignments:  # also if nothing was handed in
        (out / request.student / assignment.id).mkdir(parents=True, exist_ok=True)
    collected = Collected(student=request.student, number=request.number, head=request.head, refused=tuple(refused))
    (out / ABOUT).write_text(collected.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return collected


def read_collected(folder: Path) -> Collected:
    """Read what `collect` wrote. Raises CourseFault."""
    try:
        return Collected.model_validate_json((folder / ABOUT).read_bytes())
    except (OSError, ValidationError):
        raise CourseFault(f"{folder} holds no collected pull request. Next: course ci collect --out {folder}") from None


def _wanted(course: Course) -> Iterator[tuple[str, Assignment]]:
    """Yield every path that is read, with its assignment. No other path is read."""
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            for end in ENDINGS:
                yield f"exercises/{assignment.id}/{exercise.stem}{end}", assignment
