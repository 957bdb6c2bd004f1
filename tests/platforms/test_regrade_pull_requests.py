"""One dispatch starts a run for each open pull request, and none for a bot's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manyheads.errors import CourseFault
from manyheads.platforms.github_api import ServiceError
from manyheads.platforms.regrade_pull_requests import regrade
from tests.workflows.hosted.service import Service


@pytest.fixture
def environment(service: Service, tmp_path: Path) -> dict[str, str]:
    """That of the step, in a repository with 120 pull requests."""
    repository = {"full_name": "school/class", "default_branch": "main"}
    (tmp_path / "event.json").write_text(json.dumps({"inputs": None, "repository": repository}))
    service.tokens["t"] = {"pull-requests": "read", "actions": "write"}
    for number in range(1, 121):
        service.heads[number], service.authors[number] = "a" * 40, f"student-{number}"
    event = str(tmp_path / "event.json")
    return {"GITHUB_EVENT_PATH": event, "GITHUB_API_URL": f"{service.address}/api", "GITHUB_TOKEN": "t"}


def numbers(service: Service) -> list[int]:
    assert {(workflow, data["ref"]) for workflow, data in service.dispatched} <= {("grade.yml", "main")}
    return [int(data["inputs"]["pull_request"]) for _, data in service.dispatched]


def test_every_open_one_has_a_run_of_its_own(service: Service, environment: dict[str, str]) -> None:
    said = regrade(environment, pause=0)
    assert numbers(service) == list(range(1, 121))
    assert said == "120 pull requests are graded again. Next: gh run list --workflow grade.yml"


def test_a_bot_hands_nothing_in_and_is_not_graded_again(service: Service, environment: dict[str, str]) -> None:
    service.authors |= {3: "updates[bot]", 4: ""}  # and the fourth account is deleted
    regrade(environment, pause=0)
    assert numbers(service) == [1, 2, *range(5, 121)]


def test_one_that_cannot_be_started_costs_no_other(service: Service, environment: dict[str, str]) -> None:
    service.unstartable = {"2", "5"}
    with pytest.raises(ServiceError, match=r"2 of 120 runs could not be started, the first of #2: .* refused \(422\)"):
        regrade(environment, pause=0)
    assert numbers(service) == [1, 3, 4, *range(6, 121)]


def test_an_event_without_a_repository_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("[]")
    with pytest.raises(CourseFault, match=r"the event names no repository\. Next: "):
        regrade(environment)
