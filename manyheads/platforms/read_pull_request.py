"""Read a pull request from within a workflow: the event of the run, and the files, as data.

`pull_request` finds the commit and the student. `collect` writes the student's attempts to a
folder, through GitHub's API. No git runs, and no code of the pull request. `Api` also posts the
results.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from urllib3 import PoolManager, ProxyManager, Retry
from urllib3.exceptions import HTTPError

from ..course import Course
from ..files import CourseFault, write_whole
from ..submission import ENDINGS, size_limit, too_large

SECONDS = 30.0  # until the service has to answer
MOST_BYTES = 32 * 2**20  # of one answer
PAGE, PAGES = 100, 30  # entries of a list in one answer; largest number of answers
HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "manyheads",
}
_WAITING = Retry(2, redirect=0, backoff_factor=1, raise_on_status=False, retry_after_max=120)
TRIED_AGAIN = _WAITING.new(status_forcelist=(403, 429, 502, 503), allowed_methods=None)
KINDS = {"120000": "a symbolic link", "160000": "another repository", "040000": "a folder"}
REGULAR = ("100644", "100755")  # git's modes of a file, and of a file that can be executed
ABOUT = "collected.json"  # the file with the value that `collect` returns
# the name of a bot does not match: it ends with [bot]
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Environment = Mapping[str, str]


class ServiceError(CourseFault):
    """The service refused, or did not answer. The message ends with the next step."""


class Api:
    """The API of one repository, with the token of a job."""

    def __init__(self, address: str, token: str, repository: str) -> None:
        self._place, url = f"{address.rstrip('/')}/repos/{repository}", urlsplit(address)
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            **HEADERS,
        }
        proxy = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
        self._pool = ProxyManager(proxy, headers=headers) if proxy else PoolManager(headers=headers)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the entries of a list, over the first PAGES pages. Raises ServiceError."""
        for page in range(1, PAGES + 1):
            entries = self.call("GET", f"{path}?per_page={PAGE}&page={page}")
            yield from entries
            if len(entries) < PAGE:
                break

    def call(self, method: str, path: str, data: object = None) -> Any:
        """Send a request, and return the service's answer as a JSON value, or None without content.

        Redirects are not followed, so the token is not sent elsewhere. If the service is busy or
        limits the rate of requests, the request is repeated up to two times.

        Args:
            method: the HTTP method.
            path: the path below the repository's path, with a query if needed.
            data: the value to send as JSON, or None.

        Raises:
            ServiceError: the service refuses the request, does not answer within SECONDS, or
                answers with more than MOST_BYTES or with something other than JSON.
        """
        request = f"{method} …/{path.split('?')[0]}"
        try:
            answer = self._pool.request(
                method,
                f"{self._place}/{path}",
                json=data,
                timeout=SECONDS,
                retries=TRIED_AGAIN,
                redirect=False,
                preload_content=False,
            )
            content = answer.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                answer.close()  # else the next answer would begin with the rest
                raise ServiceError(
                    f"{request} was answered with more than {MOST_BYTES:,} bytes. Next: look at the"
                    " service's status page"
                )
            answer.release_conn()
            if answer.status < 300:
                return json.loads(content) if content else None
        except (HTTPError, OSError, ValueError) as error:
            raise ServiceError(
                f"{request} had no answer ({type(error).__name__}). Next: run the job again"
            ) from None
        is_used_up = answer.headers.get("x-ratelimit-remaining") == "0"
        if answer.status in (403, 429) and (is_used_up or b"rate limit" in content.lower()):
            raise ServiceError(
                f"{request}: the service's rate limit is reached. Next: run the job again in an"
                " hour"
            )
        has_rights = answer.status not in (401, 403, 404)
        cause = "the service's status page" if has_rights else "this job's permissions"
        raise ServiceError(f"{request} was refused ({answer.status}). Next: look at {cause}")


def api_of(environment: Environment, repository: str) -> Api:
    """Return the API with the token of this job.

    Raises CourseFault if GITHUB_API_URL or GITHUB_TOKEN is not set.
    """
    return Api(
        required_variable(environment, "GITHUB_API_URL"),
        required_variable(environment, "GITHUB_TOKEN"),
        repository,
    )


class PullRequest(BaseModel):
    """The fields of the event that are used.

    Attributes:
        repository: the class repository, as owner/name.
        number: the number of the pull request.
        head: the commit that is graded.
        student: the account that opened the pull request.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: str
    number: int
    head: Sha
    student: str


class CollectedCommits(PullRequest):
    """A pull request whose files were collected, with a sentence for each refused file."""

    refused: tuple[str, ...]


def pull_request(environment: Environment) -> PullRequest:
    """Return the pull request of the event.

    A dispatch has only the number of a pull request. The API then gives its author, because the
    person who starts a dispatch must not choose the author.

    Raises:
        CourseFault: the event cannot be read, is not about a pull request, or its author is an
            account that no student can have, such as a bot.
    """
    try:
        event = json.loads(Path(required_variable(environment, "GITHUB_EVENT_PATH")).read_bytes())
    except (OSError, ValueError):
        raise CourseFault("the event cannot be read. Next: run the job again") from None
    try:
        repository = str(event["repository"]["full_name"])
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError
        pull = event.get("pull_request")
        if pull is None:
            number = int(event["inputs"]["pull_request"])
            pull = api_of(environment, repository).call("GET", f"pulls/{number}")
        number, head, student = pull["number"], pull["head"]["sha"], str(pull["user"]["login"])
        request = PullRequest(repository=repository, number=number, head=head, student=student)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CourseFault(
            "the event is not that of a pull request. Next: look at the `on:` of the workflow"
        ) from None
    if not _LOGIN.fullmatch(student):
        problem = f"{student!a} is not a student's account: nothing is graded"
        raise CourseFault(f"{problem}. Next: nothing, or grade it by hand")
    return request


def tell(environment: Environment, file: str, line: str) -> None:
    """Append a line to a file of the runner: an output of this step, or Markdown for the summary.

    Args:
        environment: the environment variables.
        file: the variable with the path of the file.
        line: the line, without a newline.

    Raises:
        CourseFault: the variable is not set.
    """
    with Path(required_variable(environment, file)).open("a", encoding="utf-8") as opened:
        opened.write(f"{line}\n")


def required_variable(environment: Environment, name: str) -> str:
    """Return the value of a variable that the runner or the workflow sets.

    Raises CourseFault if it is not set.
    """
    if value := environment.get(name):
        return value
    raise CourseFault(
        f"{name} is not set: this command is for a step of the workflow. Next: course grade"
    )


class _Entry(BaseModel):
    path: str
    mode: str
    sha: Sha
    size: int = 0


class _Tree(BaseModel):
    tree: tuple[_Entry, ...]
    truncated: Literal[False] = False


def collect(course: Course, request: PullRequest, api: Api, out: Path) -> CollectedCommits:
    """Write the attempts at the head to OUT/<student>/<assignment>/NN_name.py and .ipynb.

    No other path of the repository is read. Links and files that are too large are not written; the
    returned value has a sentence about each. It is also written to OUT/collected.json. The folder
    of each assignment is created, even if it stays empty.

    Raises:
        CourseFault: OUT is not empty, the service refuses a request, or the commit is malformed.
    """
    if out.exists() and any(out.iterdir()):
        raise CourseFault(f"{out} is not empty. Next: rm -r {out}")
    refused = []
    try:
        exercises = _folder(api, _folder(api, {}, "", request.head), "exercises")
        for assignment in course.assignments:
            folder = out / request.student / assignment.id
            folder.mkdir(parents=True)  # even if the pull request has no attempt
            entries = _folder(api, exercises, assignment.id)
            names = [
                f"{exercise.stem}{end}" for exercise in assignment.exercises for end in ENDINGS
            ]
            for entry in filter(None, map(entries.get, names)):
                path = f"exercises/{assignment.id}/{entry.path}"
                limit = size_limit(entry.path, course.limits.source_kib)
                if entry.mode not in REGULAR:
                    mode = KINDS.get(entry.mode, "not a file")
                    refused.append(f"{path} is {mode}: hand in the file itself.")
                elif entry.size > limit * 1024:
                    refused.append(too_large(path, limit))
                else:
                    content = _blob(api, entry.sha, assignment.exercises_folder / entry.path)
                    write_whole(folder / entry.path, content[: limit * 1024])
    except (ValueError, LookupError, TypeError):
        raise ServiceError(
            f"the commit {request.head[:12]} is malformed. Next: look at its tree"
        ) from None
    collected = CollectedCommits(**request.model_dump(), refused=tuple(refused))
    (out / ABOUT).write_text(collected.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return collected


def _folder(
    api: Api, parent: Mapping[str, _Entry], name: str, commit: str = ""
) -> dict[str, _Entry]:
    """Return the entries of a folder in `parent`, or at the top of a commit.

    Return {} if there is no folder of this name, for example because a link has it.
    """
    entry = parent.get(name)
    sha = entry.sha if entry and entry.mode == "040000" else commit
    if not sha:
        return {}
    content = api.call("GET", f"git/trees/{sha}")
    return {child.path: child for child in _Tree.model_validate(content).tree}


def _blob(api: Api, sha: str, released: Path) -> bytes:
    """Return the content of a file with this digest of git.

    If the file at `released` has the same digest, it is read instead, without the API.
    """
    content = released.read_bytes() if released.is_file() else b""
    blob = b"blob %d\0%s" % (len(content), content)
    if hashlib.sha1(blob, usedforsecurity=False).hexdigest() == sha:
        return content
    return base64.b64decode(api.call("GET", f"git/blobs/{sha}")["content"])


def read_collected(folder: Path) -> CollectedCommits:
    """Return the value that `collect` wrote to a folder. Raises CourseFault if there is none."""
    try:
        return CollectedCommits.model_validate_json((folder / ABOUT).read_bytes())
    except (OSError, ValidationError):
        raise CourseFault(
            f"{folder} holds no collected pull request. Next: course ci collect --out {folder}"
        ) from None
