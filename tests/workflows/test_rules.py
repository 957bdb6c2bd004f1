"""Security rules for every workflow of this repository, each with a change that violates it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.make import REPOSITORY
from tests.workflows.hosted.runner import load_workflow

Workflow = dict[str, Any]

WORKFLOWS = REPOSITORY / ".github" / "workflows"
ACTION = re.compile(r"\s*(?:- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
EVENT_DATA = re.compile(r"\$\{\{[^}]*(github\.event|github\.head_ref|github\.actor|inputs\.)")
PERMISSIONS: Mapping[str, Mapping[str, Mapping[str, str]]] = {  # if not contents: read
    "grade.yml": {
        "cpu": {"contents": "read", "pull-requests": "read"},
        "approval": {},
        "gpu": {"contents": "read", "pull-requests": "read"},
        "report": {"contents": "read", "pull-requests": "write", "checks": "write"},
    },
    "ci.yml": {},
    "docs.yml": {"publish": {"pages": "write", "id-token": "write"}},
}
MAX_RUN_LENGTH = (
    120  # characters of a `run:` step: longer logic belongs into a command that has tests
)


def read_workflow(name: str) -> str:
    """Return the YAML of a workflow."""
    return (WORKFLOWS / name).read_text(encoding="utf-8")


def broken_rules(file_name: str, text: str) -> Iterator[str]:
    """Yield a description of each rule that the text of a workflow violates."""
    workflow = load_workflow(text)
    if workflow.get("permissions") != {}:
        yield "the workflow has rights of its own"
    for line in text.splitlines():
        if "uses:" in line and not ACTION.fullmatch(line):
            yield f"not pinned: {line.strip()}"
    for job_id, job in workflow["jobs"].items():
        for problem in job_problems(file_name, job_id, job):
            yield f"{job_id}: {problem}"


def job_problems(file_name: str, job_id: str, job: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each rule that a job violates.

    file_name: the workflow's file, such as grade.yml.
    """
    expected = PERMISSIONS[file_name].get(job_id, {"contents": "read"})
    if job.get("permissions") != expected:
        yield "other rights than it needs"
    if not 1 <= job.get("timeout-minutes", 0) <= 60:
        yield "no timeout"
    if not isinstance(job.get("concurrency"), Mapping):
        yield "no concurrency"
    # An environment can hold secrets. The environment of docs.yml, for GitHub Pages, holds none.
    may_hold_secrets = "environment" in job and file_name != "docs.yml"
    if may_hold_secrets and "write" in expected.values():
        yield "it may write and holds secrets"
    for step in job["steps"]:
        yield from step_problems(step)


def step_problems(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each rule that a step violates."""
    inputs = step.get("with", {})
    action, run = step.get("uses", ""), step.get("run", "")
    if "checkout" in action and inputs.get("persist-credentials") is not False:
        yield "a checkout leaves its token"
    if any("github.event" in str(value) or "head" in str(value) for value in inputs.values()):
        yield "an action is given the head"
    # A cache needs a key that no pull request can choose: the commit of the private course.
    if "cache" in inputs or ("cache" in action and "${{ vars.COURSE_REF }}" not in inputs["key"]):
        yield "a cache"
    if "secrets." in str({k: v for k, v in step.items() if k != "with"}) or (
        "secrets." in str(inputs) and "checkout" not in action
    ):
        yield "a secret outside the checkout"
    if EVENT_DATA.search(str(step)):
        yield "the event's data in a step"
    if "${{" in run:
        yield "an expression in a script"
    if len(run) > MAX_RUN_LENGTH or "\n" in run.strip():
        yield "logic in a script"


def test_every_workflow_follows_every_rule() -> None:
    assert {path.name for path in WORKFLOWS.iterdir()} == PERMISSIONS.keys()
    for name in PERMISSIONS:
        assert list(broken_rules(name, read_workflow(name))) == []


TOKEN = "GITHUB_TOKEN: ${{ github.token }}"
SETUP = "run: make -C course setup PYTHON=python"
PYTHON = 'python-version: "3.12"'
# row: (text of grade.yml, its replacement, problem that is reported)
VIOLATIONS = {
    "workflow permissions": (
        "permissions: {}",
        "permissions: {x: read}",
        "the workflow has rights",
    ),
    "a job that may write": ("contents: read", "contents: write", "cpu: other rights than it"),
    "a permission more": (
        "contents: read",
        "contents: read\n      x: write",
        "cpu: other rights",
    ),
    "a permission more for the report job": (
        "checks: write",
        "checks: write\n      issues: write",
        "report: other rights than it needs",
    ),
    "no timeout": ("timeout-minutes: 30", "timeout-minutes: 600", "cpu: no timeout"),
    "no concurrency": (
        "concurrency:\n      group: cpu",
        "env:\n      group: cpu",
        "cpu: no concurrency",
    ),
    "secrets of the report job": (
        "name: report\n",
        "environment: grading\n",
        "report: it may write and holds secrets",
    ),
    "a token in .git/config": (
        "persist-credentials: false",
        "fetch-depth: 1",
        "cpu: a checkout leaves its token",
    ),
    "the head checked out": (
        "ref: ${{ vars.COURSE_REF }}",
        "ref: ${{ github.event.pull_request.head.sha }}",
        "cpu: an action is given the head",
    ),
    "a cache": (PYTHON, "cache: pip", "cpu: a cache"),
    "a cache without the commit": (
        "grader-cpu-${{ vars.COURSE_REF }}",
        "x",
        "cpu: a cache",
    ),
    "the key in a step": (
        TOKEN,
        "K: ${{ secrets.COURSE_KEY }}",
        "cpu: a secret outside the checkout",
    ),
    "the key in another action": (
        PYTHON,
        "token: ${{ secrets.COURSE_KEY }}",
        "cpu: a secret outside the checkout",
    ),
    "the title of the pull request in a variable": (
        TOKEN,
        "T: ${{ github.event.pull_request.title }}",
        "cpu: the event's data in a step",
    ),
    "an expression in a script": (
        SETUP,
        "run: echo ${{ vars.X }}",
        "cpu: an expression in a script",
    ),
    "logic in a script": (
        SETUP,
        "run: |\n          if true\n          then echo\n          fi",
        "cpu: logic in a script",
    ),
}


@pytest.mark.parametrize(("old", "new", "problem"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_each_rule_detects_its_violation(old: str, new: str, problem: str) -> None:
    text = read_workflow("grade.yml")
    assert old in text
    problems = "\n".join(broken_rules("grade.yml", text.replace(old, new, 1)))
    assert problem in problems


@pytest.mark.parametrize("pin", ["actions/checkout@v6", f"a/b@{'0' * 40}", "./local", "docker://x"])
def test_an_action_needs_a_commit_hash_and_a_release_comment(pin: str) -> None:
    (problem,) = broken_rules("ci.yml", f"permissions: {{}}\nuses: {pin}\njobs: {{}}")
    assert problem == f"not pinned: uses: {pin}"


@pytest.fixture
def grade_workflow() -> Workflow:
    """The workflow that grades pull requests."""
    return load_workflow(read_workflow("grade.yml"))


def test_grading_checks_out_only_trusted_branches(grade_workflow: Workflow) -> None:
    assert list(grade_workflow["on"]) == ["pull_request_target", "workflow_dispatch"]
    # a draft is graded when it is opened, but not again when it becomes ready for review
    assert grade_workflow["on"]["pull_request_target"]["types"] == [
        "opened",
        "reopened",
        "synchronize",
    ]
    checkouts = {}
    for id_, job in grade_workflow["jobs"].items():
        steps = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
        checkouts[id_] = [step["with"] for step in steps]
    for (checkout,) in (checkouts["cpu"], checkouts["gpu"]):
        assert checkout["repository"] == "${{ vars.COURSE_REPOSITORY }}"
        assert checkout["ref"] == "${{ vars.COURSE_REF }}"
    # without a ref, this event checks out the default branch
    assert checkouts["report"] == [{"persist-credentials": False}]


def test_a_new_run_replaces_a_run_of_the_same_pull_request(grade_workflow: Workflow) -> None:
    assert list(grade_workflow["on"]["workflow_dispatch"]["inputs"]) == ["pull_request"]
    number = "${{ github.event.pull_request.number || github.event.inputs.pull_request }}"
    jobs = [grade_workflow, *grade_workflow["jobs"].values()]
    names = ["grade", "cpu", "approval", "gpu", "report"]
    expected = [name if name == "gpu" else f"{name}-{number}" for name in names]
    assert [job["concurrency"]["group"] for job in jobs] == expected


def test_gpu_runs_are_queued_only_after_their_approval(
    grade_workflow: Workflow,
) -> None:
    cpu, approval, gpu = (grade_workflow["jobs"][name] for name in ("cpu", "approval", "gpu"))
    assert gpu["concurrency"] == {"group": "gpu", "queue": "max"}, "no waiting run is cancelled"
    environments = [job["environment"]["name"] for job in (cpu, approval, gpu)]
    assert environments == ["grading", "gpu-approval", "gpu"]
    assert gpu["needs"] == ["cpu", "approval"]
    assert approval["if"] == gpu["if"]
    assert gpu["env"]["DEVICE"] == "cuda"
    scripts = [step.get("run", "") for step in gpu["steps"]]
    assert scripts[-2].endswith('--device "$DEVICE"')


def test_ci_runs_each_python_and_two_versions_of_torch() -> None:
    job = load_workflow(read_workflow("ci.yml"))["jobs"]["test"]
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert scripts == ["sh tools/allow-namespaces", ".ci/run"]
    assert job["steps"][-1]["env"] == {"PYTHON": "python", "TORCH": "${{ matrix.torch }}"}
    matrix = job["strategy"]["matrix"]
    (oldest,) = matrix["include"]
    assert f"torch=={matrix['torch'][0]}\n" in (REPOSITORY / "constraints.txt").read_text()
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert f'requires-python = ">={oldest["python"]}"' in project
    assert f'"torch>={oldest["torch"].removesuffix(".0")}"' in project
    assert matrix["python"] == [oldest["python"], "3.12", "3.13"]
