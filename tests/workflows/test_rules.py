"""What must hold for every workflow of ours, whatever it does; and each of these rules is one that
can be broken.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.make import REPOSITORY
from tests.workflows.hosted.runner import load_workflow

Workflow = dict[str, Any]

WORKFLOWS = REPOSITORY / ".github" / "workflows"
ACTION = re.compile(r"\s*(?:- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
EVENT_DATA = re.compile(r"\$\{\{[^}]*(github\.event|github\.head_ref|github\.actor|inputs\.)")
RIGHTS: Mapping[str, Mapping[str, Mapping[str, str]]] = {  # where they are others than to read
    "grade.yml": {
        "cpu": {"contents": "read", "pull-requests": "read"},
        "approval": {},
        "gpu": {"contents": "read", "pull-requests": "read"},
        "report": {"contents": "read", "pull-requests": "write", "checks": "write"},
    },
    "ci.yml": {},
    "docs.yml": {"publish": {"pages": "write", "id-token": "write"}},
}
LONGEST = 120  # characters of a `run:` step: logic lives in commands with tests of their own


def broken_rules(name: str, workflow: Mapping[str, Any], text: str) -> Iterator[str]:
    """Every rule that this workflow breaks."""
    if workflow.get("permissions") != {}:
        yield "the workflow has rights of its own"
    yield from (
        f"not pinned: {line.strip()}"
        for line in text.splitlines()
        if "uses:" in line and not ACTION.fullmatch(line)
    )
    for id_, job in workflow["jobs"].items():
        yield from (f"{id_}: {problem}" for problem in _job(name, id_, job))


def _job(name: str, id_: str, job: Mapping[str, Any]) -> Iterator[str]:
    expected = RIGHTS[name].get(id_, {"contents": "read"})
    if job.get("permissions") != expected:
        yield "other rights than it needs"
    if not 1 <= job.get("timeout-minutes", 0) <= 60:
        yield "no timeout"
    if not isinstance(job.get("concurrency"), Mapping):
        yield "no concurrency"
    if "write" in expected.values() and name != "docs.yml" and "environment" in job:
        yield "it may write and holds secrets"
    for step in job["steps"]:
        yield from _step(step)


def _step(step: Mapping[str, Any]) -> Iterator[str]:
    inputs = step.get("with", {})
    action, run = step.get("uses", ""), step.get("run", "")
    if "checkout" in action and inputs.get("persist-credentials") is not False:
        yield "a checkout leaves its token"
    if any("github.event" in str(value) or "head" in str(value) for value in inputs.values()):
        yield "an action is given the head"
    # Only of the private course's commit, which no pull request can name.
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
    if len(run) > LONGEST or "\n" in run.strip():
        yield "logic in a script"


def workflow_of(name: str) -> Workflow:
    return load_workflow((WORKFLOWS / name).read_text(encoding="utf-8"))


def test_every_rule_holds_for_every_workflow() -> None:
    assert {path.name for path in WORKFLOWS.iterdir()} == RIGHTS.keys()
    for name in RIGHTS:
        assert (
            list(
                broken_rules(
                    name, workflow_of(name), (WORKFLOWS / name).read_text(encoding="utf-8")
                )
            )
            == []
        )


def cpu(workflow: Workflow) -> dict[str, Any]:
    return workflow["jobs"]["cpu"]


def step(workflow: dict[str, Any], action: str) -> dict[str, Any]:
    return next(
        s for s in cpu(workflow)["steps"] if action in s.get("uses", "") + s.get("name", "")
    )


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(
            lambda w: w.update(permissions={"contents": "read"}),
            "the workflow has rights of its own",
            id="rights for all",
        ),
        pytest.param(
            lambda w: cpu(w).update(permissions={"contents": "write"}),
            "cpu: other rights than it needs",
            id="a job that may write",
        ),
        pytest.param(
            lambda w: cpu(w)["permissions"].update(checks="write"),
            "cpu: other rights than it needs",
            id="one right more",
        ),
        pytest.param(
            lambda w: w["jobs"]["report"]["permissions"].update(issues="write"),
            "report: other rights than it needs",
            id="a reporter with one right more",
        ),
        pytest.param(lambda w: cpu(w).pop("timeout-minutes"), "cpu: no timeout", id="no timeout"),
        pytest.param(
            lambda w: cpu(w).pop("concurrency"), "cpu: no concurrency", id="no concurrency"
        ),
        pytest.param(
            lambda w: w["jobs"]["report"].update(environment="grading"),
            "report: it may write and holds secrets",
            id="a reporter with secrets",
        ),
        pytest.param(
            lambda w: step(w, "checkout")["with"].pop("persist-credentials"),
            "cpu: a checkout leaves its token",
            id="a token in .git/config",
        ),
        pytest.param(
            lambda w: step(w, "checkout")["with"].update(
                ref="${{ github.event.pull_request.head.sha }}"
            ),
            "cpu: an action is given the head",
            id="the head checked out",
        ),
        pytest.param(
            lambda w: step(w, "setup-python")["with"].update(cache="pip"),
            "cpu: a cache",
            id="a cache",
        ),
        pytest.param(
            lambda w: step(w, "actions/cache")["with"].update(key="mine"),
            "cpu: a cache",
            id="a cache that anybody can name",
        ),
        pytest.param(
            lambda w: step(w, "Collect")["env"].update(K="${{ secrets.COURSE_KEY }}"),
            "cpu: a secret outside the checkout",
            id="the key in a step",
        ),
        pytest.param(
            lambda w: cpu(w)["steps"][2]["with"].update(token="${{ secrets.COURSE_KEY }}"),
            "cpu: a secret outside the checkout",
            id="the key in another action",
        ),
        pytest.param(
            lambda w: step(w, "Collect")["env"].update(T="${{ github.event.pull_request.title }}"),
            "cpu: the event's data in a step",
            id="the title in a variable",
        ),
        pytest.param(
            lambda w: step(w, "Grade").update(run="echo ${{ vars.X }}"),
            "cpu: an expression in a script",
            id="an expression in a script",
        ),
        pytest.param(
            lambda w: step(w, "Grade").update(run="if true\nthen echo\nfi"),
            "cpu: logic in a script",
            id="logic in a script",
        ),
    ],
)
def test_each_rule_can_be_broken(spoil: Callable[[Workflow], object], says: str) -> None:
    workflow = workflow_of("grade.yml")
    spoil(workflow)
    assert says in list(broken_rules("grade.yml", workflow, ""))


@pytest.mark.parametrize(
    "pin",
    [
        "actions/checkout@v6",
        "actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8",
        "./local",
        "docker://x",
    ],
)
def test_an_action_without_a_commit_or_without_its_release_is_not_pinned(pin: str) -> None:
    assert list(broken_rules("ci.yml", {"permissions": {}, "jobs": {}}, f"      - uses: {pin}\n"))


@pytest.fixture
def grade() -> Workflow:
    """The workflow that grades pull requests."""
    return workflow_of("grade.yml")


def test_the_official_grading_is_that_of_the_base_branch(grade: Workflow) -> None:
    assert list(grade["on"]) == ["pull_request_target", "workflow_dispatch"]
    # a draft is, once
    assert grade["on"]["pull_request_target"]["types"] == ["opened", "reopened", "synchronize"]
    checkouts = {}
    for id_, job in grade["jobs"].items():
        steps = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
        checkouts[id_] = [step["with"] for step in steps]
    for (checkout,) in (checkouts["cpu"], checkouts["gpu"]):
        assert checkout["repository"] == "${{ vars.COURSE_REPOSITORY }}"
        assert checkout["ref"] == "${{ vars.COURSE_REF }}"
    # the default branch, as the event has it
    assert checkouts["report"] == [{"persist-credentials": False}]


def test_what_is_graded_again_takes_the_place_of_a_run_of_the_same_pull_request(
    grade: Workflow,
) -> None:
    assert list(grade["on"]["workflow_dispatch"]["inputs"]) == ["pull_request"]
    number = "${{ github.event.pull_request.number || github.event.inputs.pull_request }}"
    groups = [
        grade["concurrency"]["group"],
        *(job["concurrency"]["group"] for job in grade["jobs"].values()),
    ]
    assert groups == [f"{name}-{number}" for name in ("grade", "cpu", "approval")] + [
        "gpu",
        f"report-{number}",
    ]


def test_one_attempt_at_a_time_has_the_gpu_and_who_waits_for_it_stands_in_nobody_s_way(
    grade: Workflow,
) -> None:
    cpu, approval, gpu = (grade["jobs"][name] for name in ("cpu", "approval", "gpu"))
    assert gpu["concurrency"] == {"group": "gpu", "queue": "max"}, "nobody is dropped"
    assert [job["environment"]["name"] for job in (cpu, approval, gpu)] == [
        "grading",
        "gpu-approval",
        "gpu",
    ]
    assert gpu["needs"] == ["cpu", "approval"]
    assert approval["if"] == gpu["if"]
    assert gpu["env"]["DEVICE"] == "cuda"
    assert next(s["run"] for s in gpu["steps"] if s.get("name") == "Grade on the GPU").endswith(
        '--device "$DEVICE"'
    )


def test_ci_is_what_a_commit_must_pass_over_the_pythons_and_two_versions_of_torch() -> None:
    job = workflow_of("ci.yml")["jobs"]["test"]
    assert [s["run"] for s in job["steps"] if "run" in s] == [
        "sh tools/allow-namespaces",
        ".ci/run",
    ]
    assert job["steps"][-1]["env"] == {"PYTHON": "python", "TORCH": "${{ matrix.torch }}"}
    matrix = job["strategy"]["matrix"]
    (oldest,) = matrix["include"]
    assert f"torch=={matrix['torch'][0]}\n" in (REPOSITORY / "constraints.txt").read_text()
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert f'requires-python = ">={oldest["python"]}"' in project
    assert f'"torch>={oldest["torch"].removesuffix(".0")}"' in project
    assert matrix["python"] == [oldest["python"], "3.12", "3.13"]
