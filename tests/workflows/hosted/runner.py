"""A runner: executes every `run:` step of a workflow's jobs, in order, as the service's own does."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .expressions import Contexts, UnknownExpression, condition, fill
from .records import ActionFailed, JobRun, Repository, StepRun, pairs
from .service import Service

Action = Callable[["Step"], Mapping[str, str] | None]  # gives its outputs; raises ActionFailed
JOB_KEYS = set(
    "name if needs runs-on timeout-minutes environment permissions concurrency outputs env steps strategy".split()
)
STEP_KEYS = set("name id if uses with env run continue-on-error".split())
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
SECONDS = 240  # for one step, on a busy machine


@dataclass
class Step:
    """What an action gets to see."""

    given: Mapping[str, str]
    job: JobRun
    run: Run
    paths: list[str]  # put before PATH for later steps

    @property
    def workspace(self) -> Path:
        """Where steps run."""
        return self.job.folder / "work"


@dataclass
class Run:
    """One run of a workflow. After every step `after_step` may look at what it left."""

    workflow: Mapping[str, Any]
    event_name: str
    event: Mapping[str, Any]
    repository: Repository
    service: Service
    folder: Path
    actions: Mapping[str, Action]
    environment: Mapping[str, str] = field(default_factory=dict)  # of the runner itself
    tools: str = ""  # a folder whose programs come before all others
    job_environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # in place of a job's `env:`
    after_step: Callable[[JobRun, StepRun], None] = lambda job, step: None
    quick_pip: bool = False  # a stand-in, where pip itself is not what is tested
    attempt: int = 1
    shared: Path | None = None  # the artifacts of the first attempt: a run that is run again keeps them
    jobs: dict[str, JobRun] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        """Folders by number, each with one of the artifact's name."""
        return self.shared or self.folder / "artifacts"

    def whole(self) -> dict[str, JobRun]:
        """Every job, each after the ones it needs."""
        waiting = dict(self.workflow["jobs"])
        while waiting:
            ready = [id_ for id_, job in waiting.items() if set(_needs(job)) <= self.jobs.keys()]
            for id_ in ready:
                self.one_job(id_, waiting.pop(id_))
        return self.jobs

    def one_job(self, id_: str, job: Mapping[str, Any], matrix: Mapping[str, str] | None = None) -> JobRun:
        """Run a job. A matrix's values are for the caller to choose."""
        _know(job, JOB_KEYS, id_)
        known = JobRun(id_, self.folder / id_ / "-".join((matrix or {}).values()), secrets.token_hex(20))
        self.jobs[id_] = known
        scope = _Job(self, job, known, matrix or {})
        if not scope.is_wanted():
            return known
        if scope.environment in self.repository.refuses:
            known.result = "failure"
            return known
        for name in ("work", "temp", "home"):
            (known.folder / name).mkdir(parents=True)
        (known.folder / "event.json").write_text(json.dumps(self.event))
        self.service.tokens[known.token] = dict(job.get("permissions", self.workflow.get("permissions", {})))
        known.label = fill(job["runs-on"], scope.contexts(early=True))
        known.result = scope.run_steps()
        known.outputs = {k: fill(v, scope.contexts()) for k, v in job.get("outputs", {}).items()}
        del self.service.tokens[known.token]  # it ends with its job
        return known


class _Job:
    """A job that runs: what its expressions read, and its steps one by one."""

    def __init__(self, run: Run, job: Mapping[str, Any], known: JobRun, matrix: Mapping[str, str]) -> None:
        self._run, self._job, self._known, self._matrix = run, job, known, matrix
        self._steps: dict[str, dict[str, Any]] = {}
        self._env: dict[str, str] = {}
        self._paths: list[str] = []
        self._failed = False

    @property
    def environment(self) -> str:
        """The name of the job's environment, empty where it has none."""
        name = self._job.get("environment", {"name": ""})
        return str(name if isinstance(name, str) else name["name"])

    def is_wanted(self) -> bool:
        """The job's `if:`, which asks that all it needs went well unless it says otherwise."""
        return condition(self._job.get("if", True), self.contexts(early=True))

    def run_steps(self) -> str:
        """success or failure."""
        self._env = {k: fill(str(v), self.contexts()) for k, v in self._job.get("env", {}).items()}
        self._env |= self._run.job_environment.get(self._known.id, {})
        for number, step in enumerate(self._job["steps"]):
            _know(step, STEP_KEYS, str(step))
            name = step.get("name") or step.get("uses", "")
            done = StepRun(name, "skipped")
            if condition(step.get("if", True), self.contexts()):
                done.outcome = self._one_step(number, step, done)
                self._failed |= done.outcome == "failure" and not step.get("continue-on-error", False)
            if "id" in step:
                self._steps.setdefault(step["id"], {"outputs": {}})["outcome"] = done.outcome
            self._known.steps.append(done)
            self._run.after_step(self._known, done)
        for left in () if self._failed else self._known.after:
            left()
        return "failure" if self._failed else "success"

    def contexts(self, early: bool = False) -> Contexts:
        """early: before a runner has the job, where neither its environment nor its steps are known."""
        run = self._run
        settings = self._settings()
        needs = {i: {"result": run.jobs[i].result, "outputs": run.jobs[i].outputs} for i in _needs(self._job)}
        github = {
            "event": run.event,
            "event_name": run.event_name,
            "token": self._known.token,
            "ref": "refs/heads/main",
            "run_attempt": str(run.attempt),
            "run_id": run.folder.name,
        }
        values: dict[str, Mapping[str, Any]] = {
            "vars": {**run.repository.variables, **({} if early else settings[1])},
            "needs": needs,
            "github": github,
            "matrix": self._matrix,
        }
        if not early:
            values |= {"secrets": settings[0], "steps": self._steps, "env": self._env}
        well = all(job["result"] == "success" for job in needs.values()) if early else not self._failed
        status = {
            "always": lambda: True,
            "cancelled": lambda: False,
            "success": lambda: well,
            "failure": lambda: not well,
        }
        return Contexts(values, status)

    def _settings(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The secrets and the variables of its environment."""
        return self._run.repository.environments.get(self.environment, ({}, {}))

    def _one_step(self, number: int, step: Mapping[str, Any], done: StepRun) -> str:
        self._steps[step.get("id", f"__{number}")] = {"outputs": {}}
        env = self._env | {k: fill(str(v), self.contexts()) for k, v in step.get("env", {}).items()}
        if "uses" in step:
            return self._action(number, step, done)
        return self._shell(number, step, env, done)

    def _action(self, number: int, step: Mapping[str, Any], done: StepRun) -> str:
        name = step["uses"].split("@")[0]
        if name not in self._run.actions:
            raise UnknownExpression(f"no stand-in for {name}")
        given = {
            k: fill(str(v) if not isinstance(v, bool) else str(v).lower(), self.contexts())
            for k, v in step.get("with", {}).items()
        }
        try:
            outputs = self._run.actions[name](Step(given, self._known, self._run, self._paths))
        except ActionFailed as problem:
            done.said = str(problem)
            return "failure"
        self._steps[step.get("id", f"__{number}")]["outputs"] = outputs or {}
        return "success"

    def _shell(self, number: int, step: Mapping[str, Any], env: Mapping[str, str], done: StepRun) -> str:
        folder = self._known.folder
        files = {name: folder / "temp" / f"{name.lower()}_{number}" for name in _FILES}
        for path in files.values():
            path.touch()
        script = folder / "temp" / f"{number}.sh"
        script.write_text(fill(step["run"], self.contexts()))
        shell = self._run.workflow["defaults"]["run"]["shell"]
        ended = subprocess.run(
            [*SHELLS[shell], script],
            cwd=folder / "work",
            env={**self._runner_environment(), **{k: str(v) for k, v in files.items()}, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        done.said = ended.stdout
        self._known.commands += [
            line for line in ended.stdout.splitlines() if re.match(r"\s*::", line) or "##[" in line
        ]
        self._env |= pairs(files["GITHUB_ENV"])
        self._paths[:0] = files["GITHUB_PATH"].read_text().splitlines()
        self._steps[step.get("id", f"__{number}")]["outputs"] = pairs(files["GITHUB_OUTPUT"])
        self._known.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        return "failure" if ended.returncode else "success"

    def _runner_environment(self) -> dict[str, str]:
        run, folder = self._run, self._known.folder
        return {
            "PATH": os.pathsep.join(
                [*filter(None, [run.tools]), *self._paths, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
            ),
            "HOME": str(folder / "home"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{run.service.address}/api",
            "GITHUB_SERVER_URL": run.service.address,
            "GITHUB_REPOSITORY": run.repository.full_name,
            "GITHUB_EVENT_NAME": run.event_name,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_WORKSPACE": str(folder / "work"),
            "RUNNER_TEMP": str(folder / "temp"),
            **run.environment,
        }


_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _know(given: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    unknown = given.keys() - set(keys)
    if unknown:
        raise UnknownExpression(f"{sorted(unknown)} in {where}")
