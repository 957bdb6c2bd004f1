"""What a step knows of its run, and what it may say to the runner."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyheads.errors import CourseFault
from manyheads.platforms.pull_request_files import PullRequest, add_summary, pull_request, set_output
from tests.workflows.hosted.service import Service

Spoil = Callable[[dict[str, Any]], object]


def event() -> dict[str, Any]:
    about = {
        "number": 7,
        "head": {"sha": "a" * 40, "ref": "$(touch x)"},
        "user": {"login": "ada-L_1"},
        "title": "::x::",
    }
    return {"pull_request": about, "repository": {"full_name": "school/class.2026"}}


def written(folder: Path, about: object) -> dict[str, str]:
    (folder / "event.json").write_text(json.dumps(about))
    return {"GITHUB_EVENT_PATH": str(folder / "event.json")}


def test_the_pull_request_is_what_the_event_says(tmp_path: Path) -> None:
    assert pull_request(written(tmp_path, event())) == PullRequest("school/class.2026", 7, "a" * 40, "ada-L_1")


@pytest.mark.parametrize("spoil", [
    pytest.param(lambda e: e.pop("pull_request"), id="a push"),
    pytest.param(lambda e: e["pull_request"].update(number="seven"), id="a number in words"),
    pytest.param(lambda e: e["pull_request"]["head"].update(sha="main"), id="a branch in place of a commit"),
    pytest.param(lambda e: e["pull_request"]["head"].update(sha="a" * 40 + "\n"), id="a commit with a line's end"),
    pytest.param(lambda e: e["pull_request"]["head"].update(sha="--upload-pack=x"), id="an option in place of a commit"),
    pytest.param(lambda e: e["repository"].update(full_name="school/class/../../x"), id="a path in place of a repository"),
    pytest.param(lambda e: e.update(pull_request=[]), id="a list"),
])  # fmt: skip
def test_an_event_of_another_kind_is_refused(tmp_path: Path, spoil: Spoil) -> None:
    about = event()
    spoil(about)
    with pytest.raises(CourseFault, match=r"the event is not that of a pull request\. Next: look at the `on:`"):
        pull_request(written(tmp_path, about))


def dispatch(number: str) -> dict[str, Any]:
    return {"inputs": {"pull_request": number}, "repository": {"full_name": "school/class", "default_branch": "main"}}


def test_a_dispatch_gives_the_number_and_the_service_says_the_rest(service: Service, tmp_path: Path) -> None:
    service.tokens["t"], service.heads[7], service.authors[7] = {"pull-requests": "read"}, "b" * 40, "ben"
    about = dispatch("7") | {"student": "mallory", "head": {"sha": "c" * 40}}
    environment = written(tmp_path, about) | {"GITHUB_API_URL": f"{service.address}/api", "GITHUB_TOKEN": "t"}
    assert pull_request(environment) == PullRequest("school/class", 7, "b" * 40, "ben")


@pytest.mark.parametrize("number", ["", "seven", "7/files", "7?x=1"])
def test_a_dispatch_without_a_number_asks_the_service_nothing(service: Service, tmp_path: Path, number: str) -> None:
    environment = written(tmp_path, dispatch(number)) | {
        "GITHUB_API_URL": f"{service.address}/api",
        "GITHUB_TOKEN": "t",
    }
    with pytest.raises(CourseFault, match="the event is not that of a pull request"):
        pull_request(environment)
    assert service.requests == []


@pytest.mark.parametrize("login", ["dependabot[bot]", "", "..", "a/b", "a\nb", "-x", "a" * 65])
def test_whoever_is_no_student_is_not_graded(tmp_path: Path, login: str) -> None:
    about = event()
    about["pull_request"]["user"]["login"] = login
    with pytest.raises(CourseFault, match="is not a student's account: nothing is graded"):
        pull_request(written(tmp_path, about))


def test_outside_a_workflow_the_command_says_so() -> None:
    with pytest.raises(CourseFault, match=r"GITHUB_EVENT_PATH is not set: .* Next: course grade"):
        pull_request({})


def test_outputs_and_summaries_are_added_to_the_runners_files(tmp_path: Path) -> None:
    environment = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (tmp_path / "GITHUB_OUTPUT").write_text("earlier=1\n")
    set_output(environment, "hygiene", "not clean")
    add_summary(environment, "## 4 / 4")
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "earlier=1\nhygiene=not clean\n"
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == "## 4 / 4\n"


@pytest.mark.parametrize("value", ["clean\nother=1", "<<END", "A"])
def test_an_output_cannot_become_two(tmp_path: Path, value: str) -> None:
    with pytest.raises(CourseFault, match="is no output"):
        set_output({"GITHUB_OUTPUT": str(tmp_path / "out")}, "hygiene", value)
    assert not (tmp_path / "out").exists()
