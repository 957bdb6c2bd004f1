"""Reading a pull request: the event of the run, its exercise files, and requests to the service."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyheads.course import Course
from manyheads.files import CourseFault
from manyheads.platforms import read_pull_request
from manyheads.platforms.grade_pull_request import MARK, write_comment
from manyheads.platforms.read_pull_request import (
    Api,
    CollectedCommits,
    PullRequest,
    ServiceError,
    collect,
    pull_request,
    read_collected,
)
from tests.make import content, git
from tests.workflows.hosted.service import BOT, Service

REQUEST = PullRequest(repository="school/class", number=7, head="a" * 40, student="ada")
SCRIPT = "exercises/averages/01_running_mean.py"
NOTEBOOK = "exercises/averages/01_running_mean.ipynb"
Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def no_delay_between_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waiting time before a request is repeated."""
    monkeypatch.setattr(
        read_pull_request, "TRIED_AGAIN", read_pull_request.TRIED_AGAIN.new(backoff_factor=0)
    )


@pytest.fixture
def push_and_collect(
    tiny: Course, service: Service, tmp_path: Path
) -> Callable[..., CollectedCommits]:
    """Return a function that pushes a commit to a pull request and collects its files.

    Its arguments:
        change: changes the working folder, which contains a script and a notebook.
        commit: the commit to collect; by default the pushed one.
        token: the token of the requests.
    """

    def collect_commit(
        change: Change = lambda work: None, commit: str = "", token: str = "t"
    ) -> CollectedCommits:
        bare, work = service.repositories / "school" / "class.git", tmp_path / "work"
        if not bare.exists():
            bare.mkdir(parents=True)
            git(bare, "init", "--quiet", "--bare")
            service.tokens["t"] = {"contents": "read"}
            (work / "exercises" / "averages").mkdir(parents=True)
            git(work, "init", "--quiet", "--initial-branch", "main")
            (work / SCRIPT).write_text("x = 1\n")
            (work / NOTEBOOK).write_text("{}\n")
            change(work)
            git(work, "add", "--all", "--force")
            git(work, "commit", "--quiet", "--message", "mine")
            git(work, "push", "--quiet", str(bare), "HEAD:refs/pull/7/head")
        head = commit or git(work, "rev-parse", "HEAD")
        request = PullRequest(repository="school/class", number=7, head=head, student="ada")
        return collect(
            tiny,
            request,
            Api(f"{service.address}/api", token, request.repository),
            tmp_path / "out",
        )

    return collect_commit


def test_only_changed_exercise_files_are_downloaded(tiny, service, push_and_collect, tmp_path):
    released = (tiny.root / NOTEBOOK).read_bytes()

    def add_files(work: Path) -> None:
        for name in ("torch.py", "course.yaml", "grader/x.py", "exercises/averages/notes.py"):
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text("raise SystemExit\n")
        (work / NOTEBOOK).write_bytes(released)

    collected = push_and_collect(add_files)
    assert collected == CollectedCommits(
        repository="school/class", student="ada", number=7, head=collected.head, refused=()
    )
    assert read_collected(tmp_path / "out") == collected
    files = content(tmp_path / "out")
    assert files.pop("collected.json")
    assert files == {
        "ada/averages/01_running_mean.py": b"x = 1\n",
        "ada/averages/01_running_mean.ipynb": released,
    }
    endpoints = [request.split("/")[-2] for request in service.requests]
    assert endpoints == ["trees"] * 3 + ["blobs"], "the unchanged notebook is not downloaded"


def test_a_collected_file_keeps_its_bytes_and_is_not_executable(push_and_collect, tmp_path):
    unusual_bytes = b"\xef\xbb\xbfx = 1\r\n$Id$ \xff\n" + os.urandom(1024 * 1024 - 18)

    def write_executable(work: Path) -> None:
        (work / SCRIPT).write_bytes(unusual_bytes)
        (work / SCRIPT).chmod(0o755)

    assert push_and_collect(write_executable).refused == ()
    path = tmp_path / "out" / "ada" / "averages" / "01_running_mean.py"
    assert path.read_bytes() == unusual_bytes
    assert not path.stat().st_mode & stat.S_IXUSR


def make_repository(path: Path) -> None:
    """Make a repository, which git stores as a submodule of the outer one."""
    path.mkdir()
    git(path, "init", "--quiet")
    git(path, "commit", "--quiet", "--allow-empty", "--message", "a submodule")


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").touch()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "a symbolic link: hand in the file itself."),
        (make_repository, "another repository: hand in the file itself."),
        (make_folder, "a folder: hand in the file itself."),
        (lambda path: path.write_bytes(b"#" * (1024 * 1024 + 1)), "larger than 1024 KiB."),
    ],
    ids=["a link", "a submodule", "a folder", "one byte too many"],
)
def test_only_small_regular_files_are_collected(service, push_and_collect, tmp_path, make, problem):
    collected = push_and_collect(lambda work: ((work / SCRIPT).unlink(), make(work / SCRIPT)))
    assert collected.refused == (f"{SCRIPT} is {problem}",)
    names = content(tmp_path / "out").keys()
    assert names == {"collected.json", "ada/averages/01_running_mean.ipynb"}
    assert sum("blobs" in request for request in service.requests) == 1


def link_the_folder(work: Path) -> None:
    (work / "exercises").rename(work / "elsewhere")
    (work / "exercises").symlink_to("elsewhere")


def remove_the_attempts(work: Path) -> None:
    (work / "exercises").rename(work / "notes")


@pytest.mark.parametrize("change", [link_the_folder, remove_the_attempts])
def test_a_commit_without_attempts_is_an_empty_submission(push_and_collect, tmp_path, change):
    assert push_and_collect(change).refused == ()
    assert content(tmp_path / "out").keys() == {"collected.json"}
    assert (tmp_path / "out" / "ada" / "averages").is_dir()


def test_a_commit_that_cannot_be_read_is_an_error_with_a_next_step(
    service, push_and_collect, tmp_path
):
    with pytest.raises(ServiceError, match=r"GET …/git/trees/b{40} was refused \(404\)"):
        push_and_collect(commit="b" * 40)  # a commit that no longer exists
    permissions = r"was refused \(%s\)\. Next: look at this job's permissions"
    with pytest.raises(ServiceError, match=permissions % 401):
        push_and_collect(token="another token")
    service.tokens["t"] = {}
    with pytest.raises(ServiceError, match=permissions % 403):
        push_and_collect()
    (tmp_path / "out" / "forged.py").parent.mkdir()
    (tmp_path / "out" / "forged.py").touch()
    with pytest.raises(CourseFault, match="is not empty"):
        push_and_collect()


TREES = [
    [],
    {"tree": [{"path": "exercises", "mode": "040000", "sha": "../x"}]},
    {"tree": [], "truncated": True},
]


@pytest.mark.parametrize("answer", TREES)
def test_a_malformed_git_tree_is_an_error(push_and_collect, monkeypatch, answer):
    monkeypatch.setattr(Api, "call", lambda *_: answer)
    with pytest.raises(ServiceError, match=r"is malformed\. Next"):
        push_and_collect()


@pytest.mark.parametrize(
    "text", ["", "{}", '{"student": "ada", "number": 7, "head": "a", "refused": [], "more": 1}']
)
def test_a_folder_not_written_by_collect_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "collected.json").write_text(text)
    with pytest.raises(CourseFault, match="holds no collected pull request"):
        read_collected(tmp_path)


@pytest.fixture
def api(service: Service) -> Api:
    """Return the API with the rights of the job `report`."""
    service.tokens["t"] = {"pull-requests": "write", "checks": "write"}
    service.heads[REQUEST.number] = REQUEST.head
    return Api(f"{service.address}/api/", "t", REQUEST.repository)


def test_only_our_own_comment_is_updated_among_hundreds(service, api):
    service.say(7, f"{MARK}\nmine, and forged", "mallory")
    service.say(7, f"quoted: {MARK}", BOT)
    service.say(8, f"{MARK}\nof another pull request", BOT)
    service.say(7, f"{MARK}\nof a deleted account", "")
    for i in range(230):
        service.say(7, f"comment {i}", "ben")
    write_comment(api, REQUEST, "3 / 4")
    for i in range(100):
        service.say(7, f"later comment {i}", "ben")
    write_comment(api, REQUEST, "4 / 4")
    assert service.comments_on(7) == [f"quoted: {MARK}", f"{MARK}\n4 / 4"]
    assert service.comments_on(7, "mallory") == [f"{MARK}\nmine, and forged"]
    assert service.comments_on(8) == [f"{MARK}\nof another pull request"]


@pytest.mark.parametrize("status", [403, 429, 502, 503])
def test_a_temporary_refusal_is_retried(service, api, status):
    service.refuses = [(status, {"Retry-After": "0"}, "")]
    write_comment(api, REQUEST, "4 / 4")
    assert service.comments_on(7) == [f"{MARK}\n4 / 4"]
    assert service.requests[0] == service.requests[1]


LIMITED = "the service's rate limit is reached"


@pytest.mark.parametrize(
    ("status", "headers", "message", "says"),
    [
        (403, {"x-ratelimit-remaining": "0"}, "", f"{LIMITED}. Next: run the job again in an hour"),
        (429, {}, "You have exceeded a secondary rate limit.", LIMITED),
        (403, {}, "Resource not accessible", r"\(403\). Next: look at this job's permissions"),
        (502, {}, "", r"was refused \(502\). Next: look at the service's status page"),
        (307, {"Location": "http://127.0.0.1:9/"}, "", r"was refused \(307\)"),
        (200, {}, "no JSON", "had no answer"),
    ],
)
def test_a_permanent_refusal_is_an_error(service, api, status, headers, message, says):
    service.refuses = [(status, {"Retry-After": "0", **headers}, message)] * 3
    with pytest.raises(ServiceError, match=says):
        write_comment(api, REQUEST, "x")
    assert service.comments == []


def test_a_response_that_is_too_large_is_an_error(service, api, monkeypatch) -> None:
    service.say(7, "x" * 2**20, "ben")
    monkeypatch.setattr(read_pull_request, "MOST_BYTES", 2**20)
    says = "was answered with more than 1,048,576 bytes. Next: look at the service's status page"
    with pytest.raises(ServiceError, match=says):
        write_comment(api, REQUEST, "x")


def test_a_service_that_does_not_respond_is_an_error() -> None:
    with pytest.raises(ServiceError, match="had no answer"):
        write_comment(Api("http://127.0.0.1:9/api", "t", REQUEST.repository), REQUEST, "x")


def event(repository: str = "school/class.2026", **changes: object) -> dict[str, Any]:
    """Return the event of a pull request, with some fields changed."""
    pull = {
        "number": 7,
        "head": {"sha": "a" * 40, "ref": "$(touch x)"},
        "user": {"login": "ada-L_1"},
        "title": "::x::",
    }
    return {"pull_request": pull | changes, "repository": {"full_name": repository}}


def dispatch(number: str) -> dict[str, Any]:
    """Return the event of a manual run for the pull request with this number."""
    repository = {"full_name": "school/class", "default_branch": "main"}
    return {"inputs": {"pull_request": number}, "repository": repository}


@pytest.fixture
def event_environment(service: Service, tmp_path: Path) -> Callable[[object], dict[str, str]]:
    """Return a function that returns the environment of a step for an event."""

    def with_event(payload: object) -> dict[str, str]:
        (tmp_path / "event.json").write_text(json.dumps(payload))
        address = {"GITHUB_API_URL": f"{service.address}/api", "GITHUB_TOKEN": "t"}
        return {"GITHUB_EVENT_PATH": str(tmp_path / "event.json"), **address}

    return with_event


def test_the_pull_request_is_read_from_the_event(event_environment):
    assert pull_request(event_environment(event())) == PullRequest(
        repository="school/class.2026", number=7, head="a" * 40, student="ada-L_1"
    )


def test_for_a_dispatch_the_service_names_commit_and_student(service, event_environment):
    service.tokens["t"] = {"pull-requests": "read"}
    service.heads[7], service.authors[7] = "b" * 40, "ben"
    payload = dispatch("7") | {"student": "mallory", "head": {"sha": "c" * 40}}
    assert pull_request(event_environment(payload)) == PullRequest(
        repository="school/class", number=7, head="b" * 40, student="ben"
    )


EVENTS = {
    "the event of a push": {"repository": {"full_name": "school/class"}},
    "a number in words": event(number="seven"),
    "a branch in place of a commit": event(head={"sha": "main"}),
    "a commit with a line break": event(head={"sha": "a" * 40 + "\n"}),
    "a path in place of a repository": event("school/class/../../x"),
    "a list in place of a pull request": event() | {"pull_request": []},
    "a dispatch without a number": dispatch(""),
    "a dispatch with a path": dispatch("7/files"),
}


@pytest.mark.parametrize("payload", EVENTS.values(), ids=EVENTS)
def test_an_invalid_event_is_refused_without_a_request(service, event_environment, payload):
    fault = r"the event is not that of a pull request\. Next: look at the `on:`"
    with pytest.raises(CourseFault, match=fault):
        pull_request(event_environment(payload))
    assert service.requests == []


@pytest.mark.parametrize("login", ["dependabot[bot]", "", "..", "a/b", "a\nb", "-x", "a" * 65])
def test_an_account_name_that_no_student_can_have_is_refused(event_environment, login):
    with pytest.raises(CourseFault, match="is not a student's account: nothing is graded"):
        pull_request(event_environment(event(user={"login": login})))
