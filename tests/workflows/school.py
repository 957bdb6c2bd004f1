"""A school: the private course, the class repository, pull requests against it, and runs of its workflow."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from manyheads.authoring.class_repository import bundle, hand_over
from manyheads.course import load_course
from tests.make import REPOSITORY, TINY, copy_course, git
from tests.workflows.hosted.runner import Job, Run, load_workflow
from tests.workflows.hosted.service import Service

SCRIPT, NOTEBOOK = (f"exercises/averages/01_running_mean{end}" for end in (".py", ".ipynb"))
KEY = "-----BEGIN OPENSSH PRIVATE KEY----- the key of the private course"
WORKFLOW = ".github/workflows/grade.yml"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def publish(folder: Path, bare: Path) -> str:
    """Commit a folder, and put it where the service looks for it; the commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all", "--force", ".")
    git(folder, "commit", "--quiet", "--message", "as released")
    git(folder, "clone", "--quiet", "--bare", str(folder), str(bare))
    return git(folder, "rev-parse", "HEAD")


def found(folder: Path, course: Path = TINY) -> str:
    """Make both repositories in a folder: a copy of this course, and the class's as it is released. The course's commit."""
    private, released, held = folder / "private", folder / "released", folder / "repositories" / "school"
    private.mkdir()
    held.mkdir(parents=True)
    parts = [course / name for name in ("course.yaml", "solutions", "grader", "exercises")]
    for source in (*parts, *(REPOSITORY / name for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools"))):
        (copy_course if source.is_dir() else shutil.copy)(source, private / source.name)
    files = [p for p in (course / "exercises").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    hand_over(load_course(course), released, bundle(load_course(course), files, "@school"))
    publish(released, held / "class.git")
    commit = publish(private, held / "course.git")
    (held / "course.git" / "deploy-key").write_text(KEY)
    return commit


@dataclass
class School:
    """Its folder, its service, and how its class repository is set up."""

    folder: Path
    service: Service
    course_ref: str
    variables: dict[str, str] = field(default_factory=lambda: {"GRADING": "on"})
    course_key: str = KEY
    options: dict[str, Any] = field(default_factory=dict)  # of every run

    @property
    def bare(self) -> Path:
        """The class repository as the service holds it."""
        return self.service.repositories / "school" / "class.git"

    def clone(self) -> Path:
        """A new clone of the class repository."""
        work = self.folder / f"work-{len(list(self.folder.iterdir()))}"
        git(self.folder, "clone", "--quiet", str(self.bare), str(work))
        return work

    def pull_request(
        self, number: int, changes: Mapping[str, str | Path], login: str = "ada", fork: bool = False, **more: str
    ) -> dict[str, Any]:
        """The event of a pull request with one commit of these texts and links: of a branch, or of a fork."""
        work = self.clone()
        for path, change in changes.items():
            (work / path).unlink(missing_ok=True)
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).symlink_to(change) if isinstance(change, Path) else (work / path).write_text(change)
        git(work, "add", "--all", "--force", ".")
        git(work, "commit", "--quiet", "--allow-empty", "--message", "my attempt")
        head = self.service.heads[number] = git(work, "rev-parse", "HEAD")
        self.service.authors[number] = login
        git(work, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/head")
        repository = {"full_name": f"{login}/class" if fork else "school/class", "fork": fork}
        pull = {
            "head": {"sha": head, "ref": more.pop("branch", login), "repo": repository},
            "title": "",
            "body": "",
            **more,
        }
        pull |= {"number": number, "user": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}}
        return {
            "action": "synchronize",
            "number": number,
            "pull_request": pull,
            "repository": {"full_name": "school/class"},
        }

    def run(self, event: Mapping[str, Any], name: str = "pull_request_target") -> dict[str, Job]:
        """A run of the workflow that stands on the default branch."""
        return self.begun(event, name).whole()

    def again(self, event: Mapping[str, Any]) -> dict[str, Job]:
        """The same, and then all of its jobs once more; how these went."""
        first = self.begun(event)
        first.whole()
        return replace(first, attempt=2, jobs={}).whole()

    def dispatch(self, number: int) -> dict[str, Job]:
        """A run that somebody asked for, to grade a pull request again."""
        about = {"full_name": "school/class", "default_branch": "main"}
        return self.run({"inputs": {"pull_request": str(number)}, "repository": about}, "workflow_dispatch")

    def begun(self, event: Mapping[str, Any], name: str = "pull_request_target") -> Run:
        """A run that has a folder of its own, and no job yet."""
        workflow = load_workflow(git(self.bare, "show", f"main:{WORKFLOW}"))
        assert name in workflow["on"]
        settings = {"COURSE_REPOSITORY": "school/course", "COURSE_REF": self.course_ref}
        holds = {"secrets": {"COURSE_KEY": self.course_key}, "vars": settings}
        folder = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        given = {"device": DEVICE, "environments": {"grading": holds, "gpu": holds}, **self.options}
        return Run(workflow, name, event, self.service, folder, self.variables, **given)
