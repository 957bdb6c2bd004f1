"""The workflow that tests this repository, step by step. Only `.ci/run` is a stand-in: it would test itself."""

import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.workflows.hosted.actions import ACTIONS
from tests.workflows.hosted.runner import Repository, Run, load_workflow
from tests.workflows.hosted.service import Service
from tests.workflows.school import OFFLINE, REPOSITORY, publish

STAND_IN = '#!/bin/sh\necho "python: $(command -v "$PYTHON") torch: $TORCH, in $(basename "$PWD")"\n'


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A run of ci.yml for this repository, as far as its steps need it."""
    folder = tmp_path / "repository"
    for name in (".github", "tools", "constraints.txt"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, _made(folder) / name)
    (_made(folder / ".ci") / "run").write_text(STAND_IN)
    (folder / ".ci" / "run").chmod(0o755)
    with Service(tmp_path / "repositories") as service:
        publish(folder, service.repositories, "course")
        workflow = load_workflow((folder / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
        yield Run(workflow, "push", {}, Repository("school/course"), service, tmp_path / "run", ACTIONS, OFFLINE)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def test_the_workflows_are_audited_and_held_to_their_schema(run: Run) -> None:
    job = run.one_job("workflows", run.workflow["jobs"]["workflows"])
    assert [(step.name, step.outcome) for step in job.steps if step.outcome != "success"] == [], job.said
    assert "No findings to report" in job.steps[-2].said
    assert "ok -- validation done" in job.steps[-1].said


def test_a_commit_must_pass_on_every_python_and_on_two_versions_of_torch(run: Run) -> None:
    wanted = run.workflow["jobs"]["test"]
    matrix = wanted["strategy"]["matrix"]
    every = [
        dict(zip(("python", "torch"), values, strict=True)) for values in product(matrix["python"], matrix["torch"])
    ]
    every += matrix["include"]
    assert len({one["python"] for one in every}) >= 3
    assert len({one["torch"] for one in every}) == 2
    for one in every:
        job = run.one_job("test", wanted, one)
        assert job.result == "success", job.said
        python = Path(os.sys.executable).parent / "python"
        assert job.steps[-1].said == f"python: {python} torch: {one['torch']}, in work\n"
