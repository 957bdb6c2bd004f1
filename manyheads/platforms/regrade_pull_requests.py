"""Grade every open pull request again: one run of the workflow for each, which reads its newest commit."""

from __future__ import annotations

import time

from ..errors import CourseFault
from .github_api import Api, ServiceError
from .pull_request_files import Environment, needed, run_event

WORKFLOW = "grade.yml"
PAUSE = 1.0  # seconds between two requests, as the service asks of whoever writes many


def regrade(environment: Environment, pause: float = PAUSE) -> str:
    """Start a run for each open pull request, the oldest first, except a bot's or a deleted account's. Returns a line about them.

    Raises CourseFault; after starting all that can be started, also ServiceError.
    """
    event = run_event(environment)
    try:
        repository, branch = str(event["repository"]["full_name"]), str(event["repository"]["default_branch"])
    except (LookupError, TypeError):
        raise CourseFault("the event names no repository. Next: look at the `on:` of the workflow") from None
    api = Api(needed(environment, "GITHUB_API_URL"), needed(environment, "GITHUB_TOKEN"), repository)
    opened = list(api.pages("pulls?state=open&sort=created&direction=asc"))
    numbers = [int(each["number"]) for each in opened if each["user"] and each["user"]["type"] != "Bot"]
    faults: list[str] = []
    for number in numbers:
        try:
            inputs = {"pull_request": str(number)}
            api.call("POST", f"actions/workflows/{WORKFLOW}/dispatches", {"ref": branch, "inputs": inputs})
        except ServiceError as fault:
            faults.append(f"#{number}: {fault}")
        time.sleep(pause)
    if faults:
        raise ServiceError(f"{len(faults)} of {len(numbers)} runs could not be started, the first of {faults[0]}")
    return f"{len(numbers)} pull requests are graded again. Next: gh run list --workflow {WORKFLOW}"
