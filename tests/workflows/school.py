"""A school: the private course, the class repository, pull requests against it, and runs of its workflow."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from manyheads.authoring.class_repository import bundle, hand_over
from manyheads.course import load_course
from tests.make import REPOSITORY, TINY, copy_course
from tests.workflows.hosted.actions import ACTIONS
from tests.workflows.hosted.runner import JobRun, Repository, Run, StepRun, load_workflow
from tests.workflows.hosted.service import Service

SCRIPT, NOTEBOOK = (f"exercises/averages/01_running_mean{end}" for end in (".py", ".ipynb"))
KEY = "-----BEGIN OPENSSH PRIVATE KEY----- the key of the private course"
WORKFLOWS = ".github/workflows"
WORKFLOW = f"{WORKFLOWS}/grade.yml"
DEVICE = {"DEVICE": "cuda" if torch.cuda.is_available() else "cpu"}
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}  # all but our engine is installed here already

Change = str | bytes | None | Path  # a file's text or bytes, None to delete it, a path to link to


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git says."""
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for who in ("AUTHOR", "COMMITTER"):
        identity |= {f"GIT_{who}_NAME": "school", f"GIT_{who}_EMAIL": "school@example.org"}
    done = subprocess.run(["git", *arguments], cwd=folder, input=stdin, capture_output=True, env=identity, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def publish(folder: Path, repositories: Path, name: str) -> str:
    """Commit a folder, and put it where the service looks for school/NAME; the commit."""
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all", "--force", ".")
    git(folder, "commit", "--quiet", "--message", "as released")
    bare = repositories / "school" / f"{name}.git"
    bare.parent.mkdir(parents=True, exist_ok=True)
    git(folder, "clone", "--quiet", "--bare", str(folder), str(bare))
    return git(folder, "rev-parse", "HEAD")


def found(folder: Path, course: Path = TINY) -> str:
    """Make both repositories in a folder: a copy of this course, and the class's as it is released. The course's commit."""
    private, released = folder / "private", folder / "released"
    private.mkdir()
    parts = [course / name for name in ("course.yaml", "solutions", "grader", "exercises")]
    for source in (*parts, *(REPOSITORY / name for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools"))):
        (copy_course if source.is_dir() else shutil.copy)(source, private / source.name)
    files = [p for p in (course / "exercises").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    hand_over(load_course(course), released, bundle(load_course(course), files, "@school"))
    publish(released, folder / "repositories", "class")
    commit = publish(private, folder / "repositories", "course")
    (folder / "repositories" / "school" / "course.git" / "deploy-key").write_text(KEY)
    return commit


@dataclass
class School:
    """Its folder, its service, and what is set up in the class repository."""

    folder: Path
    service: Service
    course_ref: str
    variables: dict[str, str] = field(default_factory=lambda: {"GRADING": "on"})
    tools: str = ""  # of the runner: a folder whose programs come before all others
    course_key: str = KEY
    refuses: frozenset[str] = frozenset()  # environments that nobody approves
    after_step: Callable[[JobRun, StepRun], None] = lambda job, step: None
    quick_pip: bool = True

    @property
    def bare(self) -> Path:
        """The class repository as the service holds it."""
        return self.service.repositories / "school" / "class.git"

    def pull_request(
        self, number: int, changes: Mapping[str, Change], login: str = "ada", fork: bool = False, **more: str
    ) -> dict[str, Any]:
        """The event of a pull request with one commit of these changes: of a branch, or of a fork."""
        work = self.folder / f"work-{number}-{len(list(self.folder.iterdir()))}"
        git(self.folder, "clone", "--quiet", str(self.bare), str(work))
        for path, change in changes.items():
            _change(work / path, change)
        git(work, "add", "--all", "--force", ".")
        git(work, "commit", "--quiet", "--allow-empty", "--message", "my attempt")
        head = self.service.heads[number] = git(work, "rev-parse", "HEAD")
        self.service.authors[number] = login
        if not fork:
            git(work, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{login}")
        git(work, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/head")
        repository = {"full_name": f"{login}/class" if fork else "school/class", "fork": fork}
        about = {"sha": head, "ref": more.pop("branch", login), "repo": repository}
        return {
            "action": "synchronize",
            "number": number,
            "pull_request": {"number": number, "head": about,
                "user": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}, "title": "", "body": "",
                **more},
            "repository": {"full_name": "school/class"},
        }  # fmt: skip

    def run(self, event: Mapping[str, Any]) -> dict[str, JobRun]:
        """A run of the workflow that stands on the default branch."""
        return self._a_run(event).whole()

    def run_twice(self, event: Mapping[str, Any]) -> dict[str, JobRun]:
        """The same, and then all of its jobs once more; how these went."""
        first = self._a_run(event)
        first.whole()
        again = replace(first, attempt=2, jobs={}, folder=first.folder / "again", shared=first.artifacts)
        again.folder.mkdir()
        return again.whole()

    def dispatch(self, workflow: str, ref: str = "main", inputs: Mapping[str, str] | None = None) -> dict[str, JobRun]:
        """A run that somebody asked for, of a workflow's file on a branch."""
        about = {"full_name": "school/class", "default_branch": "main"}
        event = {"ref": f"refs/heads/{ref}", "inputs": inputs, "repository": about}
        return self._a_run(event, "workflow_dispatch", f"{ref}:{WORKFLOWS}/{workflow}").whole()

    def _a_run(
        self, event: Mapping[str, Any], name: str = "pull_request_target", file: str = f"main:{WORKFLOW}"
    ) -> Run:
        workflow = load_workflow(git(self.bare, "show", file))
        assert name in workflow["on"]
        settings = {"COURSE_REPOSITORY": "school/course", "COURSE_REF": self.course_ref}
        key = {"COURSE_KEY": self.course_key}
        repository = Repository(
            "school/class", self.variables, {"grading": (key, settings), "gpu": (key, settings)}, self.refuses
        )
        runs = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        runs.mkdir()
        told = (workflow, name, event, repository, self.service, runs, ACTIONS, OFFLINE, self.tools)
        return Run(*told, {"gpu": DEVICE}, self.after_step, self.quick_pip)


def _change(path: Path, change: Change) -> None:
    if path.is_symlink() or path.exists():
        path.unlink()
    if change is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(change, Path):
        path.symlink_to(change)
    else:
        path.write_bytes(change.encode() if isinstance(change, str) else change)
