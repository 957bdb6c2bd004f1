"""What the tests of `course ci` share: results of the tiny course, and a service with the head of a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.ci.collect import Collected
from manyheads.ci.runner import PullRequest
from manyheads.result import CheckResult, Diagnosed, ExerciseResult, Outcome, Result
from tests.workflows.hosted.service import Service

MakeResult = Callable[..., Result]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The hosting service, with no repository yet."""
    with Service(tmp_path / "repositories") as opened:
        yield opened


@pytest.fixture
def asked() -> PullRequest:
    """The pull request of a run."""
    return PullRequest("school/class", 7, "a" * 40, "ada")


@pytest.fixture
def collected() -> Collected:
    """What was collected from it."""
    return Collected(student="ada", number=7, head="a" * 40, refused=())


@pytest.fixture
def make_result() -> MakeResult:
    """A result of the tiny course's four checks, a point each."""

    def make(
        *outcomes: Outcome,
        evidence: str = "",
        hint: str = "Think.",
        diagnosis: tuple[Diagnosed, ...] = (),
        note: str = "",
    ) -> Result:
        chosen = (outcomes or ("passed",)) + ("passed",) * (4 - len(outcomes or ("passed",)))
        checks = tuple(
            CheckResult(
                id=f"c{i}",
                title=f"does thing {i}",
                outcome=outcome,
                score=float(outcome == "passed"),
                max_score=1,
                evidence="" if outcome == "passed" else evidence,
                hint="" if outcome == "passed" else hint,
            )
            for i, outcome in enumerate(chosen)
        )
        score = None if "skipped" in outcomes else sum(c.score for c in checks)
        exercise = ExerciseResult(
            id="running_mean", score=score, max_score=4, checks=checks, diagnosis=diagnosis, note=note
        )
        return Result(
            student="ada",
            assignment="averages",
            score=score,
            max_score=4,
            device="cpu",
            isolation="namespaces",
            seed=0,
            versions={"torch": "2.13.0"},
            exercises=(exercise,),
        )

    return make
