"""What must hold for every workflow of ours, whatever it does. Each rule gives a sentence for everything that breaks it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Workflow = Mapping[str, Any]

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


def broken(name: str, workflow: Workflow, text: str) -> Iterator[str]:
    """Every rule that this workflow breaks."""
    if workflow.get("permissions") != {}:
        yield "the workflow has rights of its own"
    yield from (
        f"not pinned: {line.strip()}" for line in text.splitlines() if "uses:" in line and not ACTION.fullmatch(line)
    )
    for id_, job in workflow["jobs"].items():
        yield from (f"{id_}: {problem}" for problem in _job(name, id_, job))


def _job(name: str, id_: str, job: Mapping[str, Any]) -> Iterator[str]:
    wanted = RIGHTS[name].get(id_, {"contents": "read"})
    if job.get("permissions") != wanted:
        yield "other rights than it needs"
    if not 1 <= job.get("timeout-minutes", 0) <= 60:
        yield "no timeout"
    if not isinstance(job.get("concurrency"), Mapping):
        yield "no concurrency"
    if "write" in wanted.values() and name != "docs.yml" and "environment" in job:
        yield "it may write and holds secrets"
    for step in job["steps"]:
        yield from _step(step)


def _step(step: Mapping[str, Any]) -> Iterator[str]:
    given = step.get("with", {})
    action, run = step.get("uses", ""), step.get("run", "")
    if "checkout" in action and given.get("persist-credentials") is not False:
        yield "a checkout leaves its token"
    if any("github.event" in str(value) or "head" in str(value) for value in given.values()):
        yield "an action is given the head"
    # Only of the private course's commit, which no pull request can name.
    if "cache" in given or ("cache" in action and "${{ vars.COURSE_REF }}" not in given["key"]):
        yield "a cache"
    if "secrets." in str({k: v for k, v in step.items() if k != "with"}) or (
        "secrets." in str(given) and "checkout" not in action
    ):
        yield "a secret outside the checkout"
    if EVENT_DATA.search(str(step)):
        yield "the event's data in a step"
    if "${{" in run:
        yield "an expression in a script"
    if len(run) > LONGEST or "\n" in run.strip():
        yield "logic in a script"
