"""The hosting service as a step of a workflow meets it: its API, the run's event, a pull request's files, what a step may say.

The head of a pull request is never checked out: its files come through the API, as data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from urllib3 import PoolManager, ProxyManager, Retry
from urllib3.exceptions import HTTPError

from ..course import Course
from ..errors import CourseFault
from ..submission import ENDINGS, largest, too_large
from ..whole import write_whole

SECONDS = 30.0
MOST_BYTES = 32 * 2**20  # of one answer
PAGE, PAGES = 100, 30  # entries of a list in one answer, and the most answers that are read
TRIED_AGAIN = Retry(
    1, redirect=0, status_forcelist=(403, 429, 502, 503), allowed_methods=None, backoff_factor=1, raise_on_status=False
)
KINDS = {"120000": "a symbolic link", "160000": "another repository", "040000": "a folder"}
REGULAR = ("100644", "100755")
ABOUT = "collected.json"
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # not a bot's, which ends with [bot]
_SHA = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

Environment = Mapping[str, str]


class ServiceError(CourseFault):
    """The service refused, or did not answer. The text ends with what to do next."""


class Api:
    """The part of the API that is about one repository, with the token of a job."""

    def __init__(self, address: str, token: str, repository: str) -> None:
        self._address, self._token, self._repository = address.rstrip("/"), token, repository
        parts = urlsplit(address)
        proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
        self._pool = ProxyManager(proxy) if proxy else PoolManager()

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the entries of a list, over all pages. Raises ServiceError."""
        for page in range(1, PAGES + 1):
            entries = self.call("GET", f"{path}?per_page={PAGE}&page={page}")
            yield from entries
            if len(entries) < PAGE:
                break

    def call(self, method: str, path: str, data: object = None) -> Any:
        """Return the service's answer, which is no redirect, so that the token is sent to no other address.

        What it refuses for a while is tried once more, when it says. Raises ServiceError.
        """
        what = f"{method} …/{path.split('?')[0]}"
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "manyheads",
        }
        body = None if data is None else json.dumps(data).encode()
        told: dict[str, Any] = {
            "headers": headers,
            "body": body,
            "timeout": SECONDS,
            "retries": TRIED_AGAIN,
            "redirect": False,
        }
        try:
            answer = self._pool.request(
                method, f"{self._address}/repos/{self._repository}/{path}", preload_content=False, **told
            )
            content = answer.read(MOST_BYTES)
            answer.release_conn()
            if answer.status < 300:
                return json.loads(content) if content else None
        except (HTTPError, OSError, ValueError) as error:
            raise ServiceError(f"{what} had no answer ({type(error).__name__}). Next: run the job again") from None
        limited = answer.headers.get("x-ratelimit-remaining") == "0" or b"rate limit" in content.lower()
        if answer.status in (403, 429) and limited:
            raise ServiceError(f"{what}: the service's rate limit is reached. Next: run the job again in an hour")
        rights = "this job's permissions" if answer.status in (401, 403, 404) else "the service's status page"
        raise ServiceError(f"{what} was refused ({answer.status}). Next: look at {rights}")


def api_of(environment: Environment, repository: str) -> Api:
    """Return the API with the token of this job. Raises CourseFault."""
    return Api(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), repository)


class PullRequest(BaseModel):
    """The fields of the event that are used: of which class repository (owner/name), what is graded, and who opened it."""

    model_config = ConfigDict(frozen=True)

    repository: str
    number: int
    head: str
    student: str


def pull_request(environment: Environment) -> PullRequest:
    """Return the pull request of this run: the event's, or, as the service has it now, that which a dispatch names.

    A dispatch gives the number alone: who opened it is not for it to say. Raises CourseFault, ServiceError.
    """
    try:
        event = json.loads(Path(needed(environment, "GITHUB_EVENT_PATH")).read_bytes())
    except (OSError, ValueError):
        raise CourseFault("the event cannot be read. Next: run the job again") from None
    try:
        repository = _matching(_REPOSITORY, event["repository"]["full_name"])
        if "pull_request" in event:
            about = event["pull_request"]
        else:
            asked = int(event["inputs"]["pull_request"])
            about = api_of(environment, repository).call("GET", f"pulls/{asked}")
        number, head = int(about["number"]), _matching(_SHA, about["head"]["sha"])
        student = str(about["user"]["login"])
    except (ValueError, LookupError, TypeError):
        raise CourseFault("the event is not that of a pull request. Next: look at the `on:` of the workflow") from None
    if not _LOGIN.fullmatch(student):
        raise CourseFault(
            f"{student!a} is not a student's account: nothing is graded. Next: nothing, or grade it by hand"
        )
    return PullRequest(repository=repository, number=number, head=head, student=student)


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


class Collected(BaseModel):
    """Which pull request was collected. refused: a sentence for each file that is not taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str
    number: int
    head: str
    refused: tuple[str, ...]


class _Entry(BaseModel):
    path: str
    mode: str
    sha: str = Field(pattern=r"^[0-9a-f]{40}$")
    size: int = 0


class _Tree(BaseModel):
    tree: tuple[_Entry, ...]
    truncated: Literal[False] = False


def collect(course: Course, asked: PullRequest, api: Api, out: Path) -> Collected:
    """Write OUT/<student>/<assignment>/NN_name.py and .ipynb as the head has them; no other path is read. Raises CourseFault."""
    if out.exists() and any(out.iterdir()):
        raise CourseFault(f"{out} is not empty. Next: rm -r {out}")
    refused = []
    try:
        exercises = _folder(api, _folder(api, {}, "", asked.head), "exercises")
        for assignment in course.assignments:
            folder = out / asked.student / assignment.id
            folder.mkdir(parents=True)  # also if nothing was handed in
            found = _folder(api, exercises, assignment.id)
            names = [f"{exercise.stem}{end}" for exercise in assignment.exercises for end in ENDINGS]
            for entry in filter(None, map(found.get, names)):
                path, limit = f"exercises/{assignment.id}/{entry.path}", largest(entry.path, course.limits.source_kib)
                if entry.mode not in REGULAR:
                    refused.append(f"{path} is {KINDS.get(entry.mode, 'not a file')}: hand in the file itself.")
                elif entry.size > limit * 1024:
                    refused.append(too_large(path, limit))
                else:
                    content = _blob(api, entry.sha, assignment.exercises_folder / entry.path)
                    write_whole(folder / entry.path, content[: limit * 1024])
    except (ValueError, LookupError, TypeError):
        raise ServiceError(f"the commit {asked.head[:12]} is malformed. Next: look at its tree") from None
    collected = Collected(student=asked.student, number=asked.number, head=asked.head, refused=tuple(refused))
    (out / ABOUT).write_text(collected.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return collected


def _folder(api: Api, above: Mapping[str, _Entry], name: str, commit: str = "") -> dict[str, _Entry]:
    """Return what lies in a folder of the commit, or at its top; nothing where there is a link in its place, for instance."""
    entry = above.get(name)
    sha = entry.sha if entry and entry.mode == "040000" else commit
    return {each.path: each for each in _Tree.model_validate(api.call("GET", f"git/trees/{sha}")).tree} if sha else {}


def _blob(api: Api, sha: str, released: Path) -> bytes:
    """Return a file's content; of one that is as it was released, without asking for it."""
    known = released.read_bytes() if released.is_file() else b""
    if hashlib.sha1(b"blob %d\0%s" % (len(known), known), usedforsecurity=False).hexdigest() == sha:
        return known
    return base64.b64decode(api.call("GET", f"git/blobs/{sha}")["content"])


def read_collected(folder: Path) -> Collected:
    """Read what `collect` wrote. Raises CourseFault."""
    try:
        return Collected.model_validate_json((folder / ABOUT).read_bytes())
    except (OSError, ValidationError):
        raise CourseFault(f"{folder} holds no collected pull request. Next: course ci collect --out {folder}") from None
