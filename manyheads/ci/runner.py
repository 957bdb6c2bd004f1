"""The runner's interface to a step: its event, and the files for outputs and the summary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseFault

_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # not a bot's, which ends with [bot]
_SHA = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

Environment = Mapping[str, str]


class RunnerError(CourseFault):
    """This is not a run of the workflow, or not the expected one. The text ends with what to do next."""


@dataclass(frozen=True)
class PullRequest:
    """The fields of the event that are used."""

    repository: str  # owner/name of the class repository
    number: int
    head: str  # the commit that is graded
    student: str  # who opened it


def pull_request(environment: Environment) -> PullRequest:
    """The pull request of this run. Raises RunnerError."""
    try:
        event = json.loads(Path(needed(environment, "GITHUB_EVENT_PATH")).read_bytes())
        about = event["pull_request"]
        found = PullRequest(
            _matching(_REPOSITORY, event["repository"]["full_name"]),
            int(about["number"]),
            _matching(_SHA, about["head"]["sha"]),
            str(about["user"]["login"]),
        )
    except (OSError, ValueError, LookupError, TypeError):
        raise RunnerError("the event is not that of a pull request. Next: look at the `on:` of the workflow") from None
    if not _LOGIN.fullmatch(found.student):
        raise RunnerError(
            f"{found.student!a} is not a student's account: nothing is graded. Next: nothing, or grade it by hand"
        )
    return found


def set_output(environment: Environment, name: str, value: str) -> None:
    """Set an output of this step. Raises RunnerError."""
    if not re.fullmatch(r"[a-z_]+", name) or not re.fullmatch(r"[a-z ]*", value):
        raise RunnerError(f"{name}={value!a} is no output. Next: report it")
    _append(environment, "GITHUB_OUTPUT", f"{name}={value}\n")


def add_summary(environment: Environment, markdown: str) -> None:
    """Append to the job's summary."""
    _append(environment, "GITHUB_STEP_SUMMARY", markdown + "\n")


def needed(environment: Environment, name: str) -> str:
    """The value of a variable that the runner or the workflow sets. Raises RunnerError if it is not set."""
    value = environment.get(name, "")
    if not value:
        raise RunnerError(f"{name} is not set: this command is for a step of the workflow. Next: course grade")
    return value


def _append(environment: Environment, name: str, text: str) -> None:
    with Path(needed(environment, name)).open("a", encoding="utf-8") as file:
        file.write(text)


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value
