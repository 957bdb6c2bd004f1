"""The exercise files of a pull request: a fixed list of paths, regular files, small ones; nothing else, as data."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.platforms import pull_request_files as head_room
from manyheads.platforms.pull_request_files import Collected, HeadError, PullRequest, collect, read_collected
from tests.make import content
from tests.workflows.hosted.service import Service
from tests.workflows.school import git

TOKEN = "the token of this job"
SCRIPT, NOTEBOOK = "exercises/averages/01_running_mean.py", "exercises/averages/01_running_mean.ipynb"

Change = Callable[[Path], object]
Push = Callable[[Change], str]


@pytest.fixture
def push(service: Service, tmp_path: Path) -> Push:
    """Make a pull request's commit: both exercise files, then what a test changes. Gives its id."""
    bare = service.repositories / "school" / "class.git"
    bare.mkdir(parents=True)
    git(bare, "init", "--quiet", "--bare")
    for setting in ("allowFilter", "allowAnySHA1InWant"):
        git(bare, "config", f"uploadpack.{setting}", "true")
    service.tokens[TOKEN] = {"contents": "read"}

    def push(change: Change) -> str:
        work = tmp_path / "work"
        (work / "exercises" / "averages").mkdir(parents=True)
        git(work, "init", "--quiet", "--initial-branch", "main")
        (work / SCRIPT).write_text("x = 1\n")
        (work / NOTEBOOK).write_text("{}\n")
        change(work)
        git(work, "add", "--all", "--force")
        git(work, "commit", "--quiet", "--message", "mine")
        git(work, "push", "--quiet", str(bare), "HEAD:refs/pull/7/head")
        return git(work, "rev-parse", "HEAD")

    return push


def take(tiny: Course, service: Service, commit: str, out: Path, token: str = TOKEN) -> Collected:
    asked = PullRequest("school/class", 7, commit, "ada")
    return collect(tiny, asked, f"{service.address}/school/class", token, out)


def test_only_the_exercise_files_are_taken(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    def more(work: Path) -> None:
        for name in ("conftest.py", "torch.py", "course.yaml", "grader/__init__.py", "exercises/averages/notes.py"):
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text("raise SystemExit\n")
        (work / "exercises" / "averages" / "fingerprints").mkdir()
        (work / "exercises" / "averages" / "fingerprints" / "01_running_mean.safetensors").write_text("forged")

    commit = push(more)
    found = take(tiny, service, commit, tmp_path / "out")
    assert found == Collected(student="ada", number=7, head=commit, refused=())
    assert read_collected(tmp_path / "out") == found
    files = content(tmp_path / "out")
    assert files.pop("collected.json")
    assert files == {"ada/averages/01_running_mean.py": b"x = 1\n", "ada/averages/01_running_mean.ipynb": b"{}\n"}


def test_a_file_is_taken_byte_by_byte_and_never_as_a_program(tiny, service, push, tmp_path):
    odd = b"\xef\xbb\xbfx = 1\r\n$Id$ \xff\n"

    push(lambda work: None)
    work = tmp_path / "work"
    (work / SCRIPT).write_bytes(odd)
    (work / SCRIPT).chmod(0o755)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "odd")
    (work / ".gitattributes").write_text("*.py text eol=crlf ident working-tree-encoding=UTF-16\n*.ipynb filter=x\n")
    git(work, "add", ".gitattributes")
    git(work, "commit", "--quiet", "--message", "attributes")
    bare = service.repositories / "school" / "class.git"
    git(work, "push", "--quiet", str(bare), "HEAD:refs/pull/7/head")
    take(tiny, service, git(work, "rev-parse", "HEAD"), tmp_path / "out")
    path = tmp_path / "out" / "ada" / "averages" / "01_running_mean.py"
    assert path.read_bytes() == odd
    assert not path.stat().st_mode & stat.S_IXUSR


def replaced(make: Change) -> Change:
    """The script taken away, and something else made in its place."""

    def change(work: Path) -> None:
        (work / SCRIPT).unlink()
        make(work / SCRIPT)

    return change


def other_repository(path: Path) -> None:
    path.mkdir()
    git(path, "init", "--quiet")
    git(path, "commit", "--quiet", "--allow-empty", "--message", "a submodule")


@pytest.mark.parametrize(("make", "what"), [
    pytest.param(lambda p: p.symlink_to("/etc/passwd"), "is a symbolic link: hand in the file itself.", id="a link to a file of the runner"),
    pytest.param(lambda p: p.symlink_to("../../solutions/averages/01_running_mean.py"), "is a symbolic link: hand in the file itself.", id="a link to a solution"),
    pytest.param(other_repository, "is another repository: hand in the file itself.", id="a submodule"),
    pytest.param(lambda p: (p.mkdir(), (p / "x").write_text("x")), "is a folder: hand in the file itself.", id="a folder"),
    pytest.param(lambda p: p.write_bytes(b"#" * (1024 * 1024 + 1)), "is larger than 1024 KiB.", id="one byte too many"),
])  # fmt: skip
def test_what_is_no_small_regular_file_is_refused_with_a_sentence(tiny, service, push, tmp_path, make, what):
    found = take(tiny, service, push(replaced(make)), tmp_path / "out")
    assert found.refused == (f"{SCRIPT} {what}",)
    assert content(tmp_path / "out").keys() == {"collected.json", "ada/averages/01_running_mean.ipynb"}


def test_a_file_of_exactly_the_limit_is_taken(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    largest = os.urandom(1024 * 1024)
    found = take(tiny, service, push(lambda work: (work / SCRIPT).write_bytes(largest)), tmp_path / "out")
    assert found.refused == ()
    assert (tmp_path / "out" / "ada" / "averages" / "01_running_mean.py").read_bytes() == largest


def test_a_link_in_a_folders_place_leads_nowhere(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    def link(work: Path) -> None:
        (work / "exercises").rename(work / "elsewhere")
        (work / "exercises").symlink_to("elsewhere")

    take(tiny, service, push(link), tmp_path / "out")
    assert content(tmp_path / "out").keys() == {"collected.json"}


def test_nothing_handed_in_is_an_empty_submission(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    def delete(work: Path) -> None:
        (work / SCRIPT).unlink()
        (work / NOTEBOOK).unlink()
        (work / "README.md").write_text("nothing\n")

    assert take(tiny, service, push(delete), tmp_path / "out").refused == ()
    assert (tmp_path / "out" / "ada" / "averages").is_dir()


def test_a_service_that_leaves_nothing_out_is_not_trusted_to(tiny, service, push, tmp_path):
    commit = push(lambda work: (work / SCRIPT).write_bytes(b"#" * (1024 * 1024 + 1)))
    git(service.repositories / "school" / "class.git", "config", "uploadpack.allowFilter", "false")
    assert take(tiny, service, commit, tmp_path / "out").refused == (f"{SCRIPT} is larger than 1024 KiB.",)


def test_what_else_a_commit_holds_is_never_downloaded(tiny, service, push, tmp_path, monkeypatch):
    monkeypatch.setattr(head_room, "LARGEST_FETCH", 2**20)
    commit = push(lambda work: [(work / f"{i}.bin").write_bytes(os.urandom(2**19)) for i in range(4)])
    assert take(tiny, service, commit, tmp_path / "out").refused == ()


def test_a_commit_whose_folders_alone_are_too_large_is_refused(tiny, service, push, tmp_path, monkeypatch):
    monkeypatch.setattr(head_room, "LARGEST_FETCH", 2**15)
    commit = push(lambda work: [(work / f"{i}.txt").write_text(str(i)) for i in range(2000)])
    with pytest.raises(HeadError, match=r"git fetch ended with .* Next: run the job again"):
        take(tiny, service, commit, tmp_path / "out")


def test_a_file_that_is_too_large_alone_leaves_the_others(tiny, service, push, tmp_path, monkeypatch):
    monkeypatch.setattr(head_room, "LARGEST_FETCH", 2**20)
    commit = push(lambda work: (work / SCRIPT).write_bytes(os.urandom(3 * 2**20)))
    assert take(tiny, service, commit, tmp_path / "out").refused == (f"{SCRIPT} is larger than 1024 KiB.",)
    assert "ada/averages/01_running_mean.ipynb" in content(tmp_path / "out")


def test_a_service_that_stops_answering_does_not_make_files_too_large(tiny, service, push, tmp_path, monkeypatch):
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text('#!/bin/sh\ncase "$*" in *depth=1*|ls-tree*|init*) exec /usr/bin/git "$@";; *) exit 128;; esac\n')
    spy.chmod(0o755)
    commit = push(lambda work: None)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    with pytest.raises(HeadError, match="git ls-remote ended with 128"):
        take(tiny, service, commit, tmp_path / "out")


def test_a_commit_that_was_pushed_away_is_an_error(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    push(lambda work: None)
    with pytest.raises(HeadError, match="git fetch ended with"):
        take(tiny, service, "b" * 40, tmp_path / "out")


def test_without_the_right_to_read_nothing_is_fetched(tiny, service, push, tmp_path):
    commit = push(lambda work: None)
    for token in ("another token", ""):
        with pytest.raises(HeadError, match="git fetch ended with 128"):
            take(tiny, service, commit, tmp_path / "out", token)


def test_the_token_is_in_no_argument_and_in_no_file(tiny, service, push, tmp_path, monkeypatch):
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    log = tmp_path / "log"
    spy.write_text(f'#!/bin/sh\necho "$@" >> {log}\n/usr/bin/git "$@"\nr=$?\ncat config >> {log}\nexit $r\n')
    spy.chmod(0o755)
    commit = push(lambda work: None)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    take(tiny, service, commit, tmp_path / "out")
    said = log.read_text()
    assert "--no-write-fetch-head --depth=1 --filter=blob:none" in said
    assert "[core]" in said
    assert TOKEN not in said
    assert "xtoken" not in said.lower()
    assert "basic" not in said.lower()


def test_what_is_there_already_is_not_mixed_with_what_comes(tiny: Course, service: Service, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "forged.py").touch()
    with pytest.raises(CourseFault, match="is not empty"):
        take(tiny, service, "a" * 40, tmp_path / "out")


@pytest.mark.parametrize("text", ["", "{}", '{"student": "ada", "number": 7, "head": "a", "refused": [], "more": 1}'])
def test_a_folder_that_collect_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "collected.json").write_text(text)
    with pytest.raises(CourseFault, match="holds no collected pull request"):
        read_collected(tmp_path)


def test_a_tree_with_one_name_twice_is_refused(tiny: Course, service: Service, push: Push, tmp_path: Path) -> None:
    push(lambda work: None)
    work = tmp_path / "work"
    blob = git(work, "hash-object", "-w", SCRIPT)
    entries = f"100644 blob {blob}\t01_running_mean.py\n" * 2
    for name in ("averages", "exercises"):
        tree = git(work, "mktree", stdin=entries.encode())
        entries = f"040000 tree {tree}\t{name}\n"
    root = git(work, "mktree", stdin=entries.encode())
    commit = git(work, "commit-tree", root, "-m", "twice")
    git(work, "push", "--quiet", str(service.repositories / "school" / "class.git"), f"{commit}:refs/pull/8/head")
    with pytest.raises(HeadError, match="is malformed"):
        take(tiny, service, commit, tmp_path / "out")
