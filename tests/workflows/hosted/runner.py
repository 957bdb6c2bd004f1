"""A runner: executes every `run:` step of a workflow's jobs, in order, as the service's own does; and what a run leaves."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .expressions import Contexts, UnknownExpression, condition, fill
from .service import Service

JOB_KEYS = (
    "name if needs runs-on timeout-minutes environment permissions concurrency outputs env steps strategy".split()
)
STEP_KEYS = "name id if uses with env run continue-on-error".split()
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
SECONDS = 240  # for one step, on a busy machine


class ActionFailed(Exception):
    """An action ends its step with this problem."""


@dataclass(frozen=True)
class Repository:
    """What its settings hold. `environments`: name → (secrets, variables). `refuses`: those that nobody approves."""

    full_name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=dict)
    refuses: Collection[str] = ()


@dataclass
class StepRun:
    """How one step went."""

    name: str
    outcome: str
    said: str = ""


@dataclass
class JobRun:
    """How one job went, and the folder that it had for itself."""

    id: str
    folder: Path
    token: str
    matrix: Mapping[str, str]
    result: str = "skipped"
    label: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    steps: list[StepRun] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # of its steps, to the runner, through their output
    after: list[Callable[[], object]] = field(default_factory=list)  # what its actions do where all went well
    env: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)  # put before PATH for later steps
    known: dict[str, dict[str, Any]] = field(default_factory=dict)  # its steps, for expressions
    failed: bool = False

    @property
    def said(self) -> str:
        """All that its steps said."""
        return "\n".join(step.said for step in self.steps)


@dataclass
class Step:
    """What an action gets to see."""

    given: Mapping[str, str]
    job: JobRun
    run: Run

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
    actions: Mapping[str, Callable[[Step], Mapping[str, str] | None]]  # each gives its outputs; raises ActionFailed
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
            for id_ in [id_ for id_, job in waiting.items() if set(_needs(job)) <= self.jobs.keys()]:
                self.one_job(id_, waiting.pop(id_))
        return self.jobs

    def one_job(self, id_: str, job: Mapping[str, Any], matrix: Mapping[str, str] | None = None) -> JobRun:
        """Run a job. A matrix's values are for the caller to choose."""
        _know(job, JOB_KEYS, id_)
        matrix = matrix or {}
        done = self.jobs[id_] = JobRun(
            id_, self.folder / id_ / "-".join(matrix.values()), secrets.token_hex(20), matrix
        )
        if not condition(job.get("if", True), self._contexts(job, done, early=True)):
            return done
        if _environment(job) in self.repository.refuses:
            done.result = "failure"
            return done
        for name in ("work", "temp", "home"):
            (done.folder / name).mkdir(parents=True)
        (done.folder / "event.json").write_text(json.dumps(self.event))
        self.service.tokens[done.token] = dict(job.get("permissions", self.workflow.get("permissions", {})))
        done.label = fill(job["runs-on"], self._contexts(job, done, early=True))
        done.env = {k: fill(str(v), self._contexts(job, done)) for k, v in job.get("env", {}).items()}
        done.env |= self.job_environment.get(id_, {})
        for number, step in enumerate(job["steps"]):
            self._one_step(number, step, job, done)
        for left in () if done.failed else done.after:
            left()
        done.result = "failure" if done.failed else "success"
        done.outputs = {k: fill(v, self._contexts(job, done)) for k, v in job.get("outputs", {}).items()}
        del self.service.tokens[done.token]  # it ends with its job
        return done

    def _contexts(self, job: Mapping[str, Any], done: JobRun, early: bool = False) -> Contexts:
        """early: before a runner has the job, where neither its environment nor its steps are known."""
        secret, variables = self.repository.environments.get(_environment(job), ({}, {}))
        needs = {i: {"result": self.jobs[i].result, "outputs": self.jobs[i].outputs} for i in _needs(job)}
        github = {
            "event": self.event, "event_name": self.event_name, "token": done.token, "ref": "refs/heads/main",
            "run_attempt": str(self.attempt), "run_id": self.folder.name,
        }  # fmt: skip
        known = {**self.repository.variables, **({} if early else variables)}
        values: dict[str, Mapping[str, Any]] = {"vars": known, "needs": needs, "github": github, "matrix": done.matrix}
        values |= {} if early else {"secrets": secret, "steps": done.known, "env": done.env}
        well = all(each["result"] == "success" for each in needs.values()) if early else not done.failed
        status = {
            "always": lambda: True,
            "success": lambda: well,
            "failure": lambda: not well,
            "cancelled": lambda: False,
        }
        return Contexts(values, status)

    def _one_step(self, number: int, step: Mapping[str, Any], job: Mapping[str, Any], done: JobRun) -> None:
        _know(step, STEP_KEYS, str(step))
        contexts, ended = self._contexts(job, done), StepRun(step.get("name") or step.get("uses", ""), "skipped")
        about = done.known[step.get("id", f"__{number}")] = {"outputs": {}, "outcome": "skipped"}
        if condition(step.get("if", True), contexts):
            filled = {
                k: fill(str(v).lower() if v in (True, False) else str(v), contexts)
                for k, v in step.get("with", {}).items()
            }
            env = done.env | {k: fill(str(v), contexts) for k, v in step.get("env", {}).items()}
            try:
                if "uses" in step:
                    action = self.actions.get(step["uses"].split("@")[0])
                    if action is None:
                        raise UnknownExpression(f"no stand-in for {step['uses']}")
                    about["outputs"] = action(Step(filled, done, self)) or {}
                else:
                    self._shell(number, fill(step["run"], contexts), env, done, ended, about)
                ended.outcome = "success"
            except ActionFailed as problem:
                ended.outcome, ended.said = "failure", ended.said or str(problem)
            done.failed |= ended.outcome == "failure" and not step.get("continue-on-error", False)
        about["outcome"] = ended.outcome
        done.steps.append(ended)
        self.after_step(done, ended)

    def _shell(
        self, number: int, script: str, env: Mapping[str, str], done: JobRun, ended: StepRun, about: dict[str, Any]
    ) -> None:
        files = {name: done.folder / "temp" / f"{name.lower()}_{number}" for name in FILES}
        for path in files.values():
            path.touch()
        program = done.folder / "temp" / f"{number}.sh"
        program.write_text(script)
        own = {
            "PATH": os.pathsep.join([*filter(None, [self.tools]), *done.paths, *SYSTEM]),
            "HOME": str(done.folder / "home"), "CI": "true", "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{self.service.address}/api", "GITHUB_SERVER_URL": self.service.address,
            "GITHUB_REPOSITORY": self.repository.full_name, "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(done.folder / "event.json"), "GITHUB_WORKSPACE": str(done.folder / "work"),
            "RUNNER_TEMP": str(done.folder / "temp"), **self.environment, **{k: str(v) for k, v in files.items()}, **env,
        }  # fmt: skip
        command, where = [*SHELLS[self.workflow["defaults"]["run"]["shell"]], program], done.folder / "work"
        told: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
            "timeout": SECONDS,
        }
        ran = subprocess.run(command, cwd=where, env=own, check=False, **told)
        ended.said = ran.stdout
        done.commands += [line for line in ran.stdout.splitlines() if re.match(r"\s*::", line) or "##[" in line]
        done.env |= pairs(files["GITHUB_ENV"])
        done.paths[:0] = files["GITHUB_PATH"].read_text().splitlines()
        done.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        about["outputs"] = pairs(files["GITHUB_OUTPUT"])
        if ran.returncode:
            raise ActionFailed(f"exit status {ran.returncode}")


def _environment(job: Mapping[str, Any]) -> str:
    """The name of a job's environment, empty where it has none."""
    name = job.get("environment", "")
    return str(name if isinstance(name, str) else name["name"])


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _know(given: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    if unknown := given.keys() - set(keys):
        raise UnknownExpression(f"{sorted(unknown)} in {where}")


def load_workflow(text: str) -> dict[str, Any]:
    """A workflow's YAML; its `on`, which YAML reads as true, under its own name."""
    workflow = yaml.safe_load(text)
    return {("on" if key is True else key): value for key, value in workflow.items()}


def pairs(path: Path) -> dict[str, str]:
    """NAME=value lines and NAME<<MARK blocks, as the runner reads them."""
    text, found = path.read_text(), dict[str, str]()
    block = re.compile(r"([^=<\n]+)<<(.+)\n(?:((?:.*\n)*?)\2(?:\n|\Z))?")
    while text:
        if match := block.match(text):
            if match[3] is None:
                raise ValueError(f"{match[1]}: the block never ends")
            found[match[1]], text = match[3].removesuffix("\n"), text[match.end() :]
            continue
        line, _, text = text.partition("\n")
        name, sign, value = line.partition("=")
        if sign:
            found[name] = value
        elif line:
            raise ValueError(f"not a pair: {line!r}")
    return found
