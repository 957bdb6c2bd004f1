"""All workflows keep the rules, and each rule is one that can be broken."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflows.hosted.runner import load_workflow
from tests.workflows.rules import broken

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
TOOLS = Path(sys.executable).parent
Break = Callable[[dict[str, Any]], object]


@pytest.fixture(params=["grade.yml", "ci.yml", "docs.yml"])
def name(request: pytest.FixtureRequest) -> str:
    """A workflow's file."""
    return str(request.param)


def test_every_rule_holds(name: str) -> None:
    text = (WORKFLOWS / name).read_text(encoding="utf-8")
    assert list(broken(name, load_workflow(text), text)) == []


def test_these_are_all_the_workflows_there_are() -> None:
    assert {path.name for path in WORKFLOWS.iterdir()} == {"grade.yml", "ci.yml", "docs.yml"}


def cpu(workflow: dict[str, Any]) -> dict[str, Any]:
    return workflow["jobs"]["cpu"]


def step(workflow: dict[str, Any], action: str) -> dict[str, Any]:
    return next(s for s in cpu(workflow)["steps"] if action in s.get("uses", "") + s.get("name", ""))


@pytest.mark.parametrize(("spoil", "says"), [
    pytest.param(lambda w: w.update(permissions={"contents": "read"}), "the workflow has rights of its own", id="rights for all"),
    pytest.param(lambda w: cpu(w).update(permissions={"contents": "write"}), "cpu: other rights than it needs", id="a job that may write"),
    pytest.param(lambda w: cpu(w)["permissions"].update(checks="write"), "cpu: other rights than it needs", id="one right more"),
    pytest.param(lambda w: w["jobs"]["report"]["permissions"].update(issues="write"), "report: other rights than it needs", id="a reporter with one right more"),
    pytest.param(lambda w: cpu(w).pop("timeout-minutes"), "cpu: no timeout", id="no timeout"),
    pytest.param(lambda w: cpu(w).pop("concurrency"), "cpu: no concurrency", id="no concurrency"),
    pytest.param(lambda w: w["jobs"]["report"].update(environment="grading"), "report: it may write and holds secrets", id="a reporter with secrets"),
    pytest.param(lambda w: step(w, "checkout")["with"].pop("persist-credentials"), "cpu: a checkout leaves its token", id="a token in .git/config"),
    pytest.param(lambda w: step(w, "checkout")["with"].update(ref="${{ github.event.pull_request.head.sha }}"), "cpu: an action is given the head", id="the head checked out"),
    pytest.param(lambda w: step(w, "setup-python")["with"].update(cache="pip"), "cpu: a cache", id="a cache"),
    pytest.param(lambda w: step(w, "actions/cache")["with"].update(key="mine"), "cpu: a cache", id="a cache that anybody can name"),
    pytest.param(lambda w: step(w, "Collect")["env"].update(K="${{ secrets.COURSE_KEY }}"), "cpu: a secret outside the checkout", id="the key in a step"),
    pytest.param(lambda w: cpu(w)["steps"][2]["with"].update(token="${{ secrets.COURSE_KEY }}"), "cpu: a secret outside the checkout", id="the key in another action"),
    pytest.param(lambda w: step(w, "Collect")["env"].update(T="${{ github.event.pull_request.title }}"), "cpu: the event's data in a step", id="the title in a variable"),
    pytest.param(lambda w: step(w, "Grade").update(run="echo ${{ vars.X }}"), "cpu: an expression in a script", id="an expression in a script"),
    pytest.param(lambda w: step(w, "Grade").update(run="if true\nthen echo\nfi"), "cpu: logic in a script", id="logic in a script"),
])  # fmt: skip
def test_each_rule_can_be_broken(spoil: Break, says: str) -> None:
    workflow = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))
    spoil(workflow)
    assert says in list(broken("grade.yml", workflow, ""))


@pytest.mark.parametrize(
    "pin", ["actions/checkout@v6", "actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8", "./local", "docker://x"]
)
def test_an_action_without_a_commit_or_without_its_release_is_not_pinned(pin: str) -> None:
    assert list(broken("ci.yml", {"permissions": {}, "jobs": {}}, f"      - uses: {pin}\n"))


def test_the_official_grading_is_that_of_the_base_branch() -> None:
    workflow = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))
    assert list(workflow["on"]) == ["pull_request_target", "workflow_dispatch"]
    assert workflow["on"]["pull_request_target"]["types"] == ["opened", "reopened", "synchronize"]  # a draft is, once
    for id_ in ("cpu", "gpu"):
        steps = workflow["jobs"][id_]["steps"]
        (checkout,) = [s["with"] for s in steps if "checkout" in s.get("uses", "")]
        assert checkout["repository"] == "${{ vars.COURSE_REPOSITORY }}"
        assert checkout["ref"] == "${{ vars.COURSE_REF }}"
    (checkout,) = [s["with"] for s in workflow["jobs"]["report"]["steps"] if "checkout" in s.get("uses", "")]
    assert checkout == {"persist-credentials": False}  # the default branch, as the event has it


def test_what_is_graded_again_takes_the_place_of_a_run_of_the_same_pull_request() -> None:
    workflow = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))
    assert list(workflow["on"]["workflow_dispatch"]["inputs"]) == ["pull_request"]
    number = "${{ github.event.pull_request.number || github.event.inputs.pull_request }}"
    groups = [workflow["concurrency"]["group"], *(job["concurrency"]["group"] for job in workflow["jobs"].values())]
    assert groups == [f"{name}-{number}" for name in ("grade", "cpu", "approval")] + ["gpu", f"report-{number}"]


def test_one_attempt_at_a_time_has_the_gpu_and_nobody_is_dropped() -> None:
    job = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))["jobs"]["gpu"]
    assert job["concurrency"] == {"group": "gpu", "queue": "max"}
    assert job["environment"]["name"] == "gpu"
    assert job["needs"] == ["cpu", "approval"]
    grade = next(s["run"] for s in job["steps"] if s.get("name") == "Grade on the GPU")
    assert grade.endswith('--device "$DEVICE"')
    assert job["env"]["DEVICE"] == "cuda"


def test_who_waits_for_an_approval_stands_in_nobody_s_way() -> None:
    jobs = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))["jobs"]
    approval = jobs["approval"]
    assert approval["environment"]["name"] not in {j["environment"]["name"] for j in (jobs["cpu"], jobs["gpu"])}
    assert "github.event.pull_request.number" in approval["concurrency"]["group"]
    assert approval["if"] == jobs["gpu"]["if"]


def test_ci_is_what_a_commit_must_pass_over_the_pythons_and_two_versions_of_torch() -> None:
    job = load_workflow((WORKFLOWS / "ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    assert [s["run"] for s in job["steps"] if "run" in s] == ["sh tools/allow-namespaces", ".ci/run"]
    root = WORKFLOWS.parents[1]
    pinned = next(line for line in (root / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    matrix = job["strategy"]["matrix"]
    assert [f"torch=={version}" for version in matrix["torch"]] == [pinned]
    project = (root / "pyproject.toml").read_text()
    oldest = matrix["include"][0]
    assert f'requires-python = ">={oldest["python"]}"' in project
    assert f'"torch>={oldest["torch"].removesuffix(".0")}"' in project
    assert matrix["python"][0] == oldest["python"]


@pytest.mark.parametrize("command", [
    pytest.param(["zizmor", "--offline", "--quiet", "--persona", "auditor", "FILE"], id="zizmor"),
    pytest.param(["check-jsonschema", "--quiet", "--builtin-schema", "vendor.github-workflows", "FILE"], id="schema"),
])  # fmt: skip
def test_the_audits_that_lint_runs_would_find_something(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / ".github" / "workflows" / "grade.yml"
    file.parent.mkdir(parents=True)
    workflow = load_workflow((WORKFLOWS / "grade.yml").read_text(encoding="utf-8"))
    step(workflow, "Grade").update(run="echo ${{ github.event.pull_request.title }}", shel="bash")
    file.write_text(yaml.safe_dump(workflow))
    wanted = [str(file) if part == "FILE" else part for part in command]
    done = subprocess.run([str(TOOLS / wanted[0]), *wanted[1:]], capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 2), done.stdout + done.stderr
