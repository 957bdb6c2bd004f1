"""A stand-in for the runner of workflows.

It executes every `run:` step in a shell, and implements each action as far as our workflows use it.
An unknown key, action, context or operator is an error.
"""

import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .service import Service

JOB_KEYS = {
    *(
        "name if needs runs-on timeout-minutes environment permissions concurrency outputs "
        "env steps"
    ).split()
}
STEP_KEYS = {*"name id if uses with env run continue-on-error".split()}
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
# the environment of these tests, used for every version of Python
BIN = Path(sys.executable).parent
PATH = f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SECONDS = 240  # for one step, on a busy machine
INSTALLS = {  # skipped: other tests install packages
    "Set up what a report needs, which is little",
    "Install the engine, from the wheel whose hash stands beside it",
}

_OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}
_TOKEN = re.compile(r"'[^']*'|(?P<name>[A-Za-z_][\w.-]*(?:\(\))?)|&&|\|\||[!=]=|[!()]|\s+")


class ActionFailed(Exception):
    """A step failed; the message is the reason."""


def evaluate(expression: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of an expression. A name that is missing in its context is an empty text.

    Raises:
        KeyError: the expression uses an unknown context.
    """

    def read(name: str) -> Any:
        context_name, *keys = name.split(".")
        value = contexts[context_name]
        for key in keys:
            value = value.get(key, "") if isinstance(value, Mapping) else ""
        return value

    python_tokens, position = list[str](), 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        assert match, f"no expression: {expression}"
        python_tokens.append(
            f"read({match[0]!r})" if match["name"] else _OPERATORS.get(match[0], match[0])
        )
        position = match.end()
    return eval("".join(python_tokens).strip(), {"__builtins__": {}}, {"read": read})


def fill(text: object, contexts: Mapping[str, Any]) -> str:
    """Return the text with every `${{ }}` replaced by its value."""

    def replacement(match: re.Match[str]) -> str:
        value = evaluate(match[1], contexts)
        assert not isinstance(value, Mapping), f"an object in a text: {text}"
        return str(value).lower() if isinstance(value, bool) else str(value)

    return re.sub(
        r"\$\{\{(.*?)\}\}", replacement, str(text).lower() if isinstance(text, bool) else str(text)
    )


def holds(condition: str, contexts: Mapping[str, Any], well: bool) -> bool:
    """Return whether an `if:` holds.

    well: whether all earlier steps or jobs succeeded. This is required unless the condition calls
        a function such as always().
    """
    expression = condition.removeprefix("${{").removesuffix("}}")
    return bool(evaluate(expression, contexts)) and (well or "()" in expression)


@dataclass
class Job:
    """The state and the result of one job, and its folder."""

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_hex(20))
    result: str = "skipped"
    label: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""
    steps: dict[str, str] = field(default_factory=dict)  # the result of each step by its name
    # the outputs of each step by its id
    step_results: dict[str, dict[str, Any]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    # actions to run at the end if no step failed
    after: list[Callable[[], object]] = field(default_factory=list)

    @property
    def work(self) -> Path:
        """Return the folder in which its steps run."""
        return self.folder / "work"

    @property
    def well(self) -> bool:
        """Return whether no step has failed, apart from those with continue-on-error."""
        return self.result != "failure"


@dataclass
class Run:
    """One run of a workflow. After every step `look` is called with its job."""

    workflow: Mapping[str, Any]
    event_name: str
    event: Mapping[str, Any]
    service: Service
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    # secrets and vars by the name of the environment
    environments: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    refused: str | None = None  # the environment whose approval is refused
    device: str = "cpu"  # in place of the one that job `gpu` asks for
    tools: str = ""  # a folder whose programs come before all others
    look: Callable[[Job], object] = lambda job: None
    jobs: dict[str, Job] = field(default_factory=dict)

    def run_jobs(self) -> dict[str, Job]:
        """Run every job in the order of the file, where each job follows the ones that it needs."""
        for name, job in self.workflow["jobs"].items():
            self._job(name, job)
        return self.jobs

    def _job(self, name: str, job: Mapping[str, Any]) -> None:
        assert job.keys() <= JOB_KEYS, job
        job_run = self.jobs[name] = Job(self.folder / name)
        needs = [job["needs"]] if isinstance(job.get("needs", []), str) else job.get("needs", [])
        needs_context = {
            id_: {"result": self.jobs[id_].result, "outputs": self.jobs[id_].outputs}
            for id_ in needs
        }
        well = all(need["result"] == "success" for need in needs_context.values())
        github = {
            "event": self.event,
            "event_name": self.event_name,
            "token": job_run.token,
            "run_id": self.folder.name,
        }
        github["run_attempt"] = "1"
        # `if:` cannot use secrets and variables of the job's environment, so they are added later.
        contexts = {
            "vars": self.variables,
            "needs": needs_context,
            "github": github,
            "cancelled()": False,
            "success()": well,
        }
        if not holds(job.get("if", "success()"), contexts, well):
            return
        environment = job.get("environment", {"name": ""})["name"]
        job_run.result = "failure" if environment == self.refused else "success"
        if not job_run.well:
            return
        for folder in ("work", "temp", "home"):
            (job_run.folder / folder).mkdir(parents=True)
        (job_run.folder / "event.json").write_text(json.dumps(self.event))
        environment_values = self.environments.get(environment, {"secrets": {}, "vars": {}})
        contexts |= {
            "secrets": environment_values["secrets"],
            "vars": {**self.variables, **environment_values["vars"]},
        }
        contexts |= {"steps": job_run.step_results, "env": job_run.env}
        job_run.label = fill(job["runs-on"], contexts)
        job_run.env |= {key: fill(value, contexts) for key, value in job.get("env", {}).items()}
        job_run.env |= {"DEVICE": self.device} if "DEVICE" in job_run.env else {}
        self.service.tokens[job_run.token] = job["permissions"]
        for step in job["steps"]:
            self._step(step, job_run, contexts)
        for keep in job_run.after if job_run.well else ():
            keep()
        job_run.outputs = {
            key: fill(value, contexts) for key, value in job.get("outputs", {}).items()
        }
        del self.service.tokens[job_run.token]  # it ends with its job

    def _step(self, step: Mapping[str, Any], job_run: Job, contexts: Mapping[str, Any]) -> None:
        assert step.keys() <= STEP_KEYS, step
        name = step.get("name", step.get("uses", ""))
        step_result = job_run.step_results.setdefault(step.get("id", name), {"outputs": {}})
        job_run.steps[name] = "skipped"
        if holds(
            step.get("if", "success()"), {**contexts, "success()": job_run.well}, job_run.well
        ):
            inputs = {key: fill(value, contexts) for key, value in step.get("with", {}).items()}
            env = job_run.env | {
                key: fill(value, contexts) for key, value in step.get("env", {}).items()
            }
            job_run.steps[name] = "success"
            try:
                if "uses" in step:
                    step_result["outputs"] = (
                        ACTIONS[step["uses"].split("@")[0]](self, job_run, **inputs) or {}
                    )
                elif name not in INSTALLS:
                    step_result["outputs"] = self._shell(fill(step["run"], contexts), env, job_run)
            except ActionFailed as problem:
                job_run.steps[name] = "failure"
                job_run.log += f"{problem}\n"
                job_run.result = job_run.result if step.get("continue-on-error") else "failure"
        self.look(job_run)

    def _shell(self, script: str, env: Mapping[str, str], job_run: Job) -> dict[str, str]:
        number = len(job_run.steps)
        files = {name: job_run.folder / "temp" / f"{name.lower()}_{number}" for name in FILES}
        for path in files.values():
            path.touch()
        program = job_run.folder / "temp" / f"{number}.sh"
        program.write_text(script)
        environment = {
            "PATH": f"{self.tools}:{PATH}" if self.tools else PATH,
            "HOME": str(job_run.folder / "home"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(program.parent),
            "GITHUB_API_URL": f"{self.service.address}/api",
            "GITHUB_SERVER_URL": self.service.address,
            "GITHUB_REPOSITORY": "school/class",
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(job_run.folder / "event.json"),
            "GITHUB_WORKSPACE": str(job_run.work),
            **{name: str(path) for name, path in files.items()},
            **env,
        }
        command, both = [*SHELL, program], {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        ran = subprocess.run(
            command,
            cwd=job_run.work,
            env=environment,
            text=True,
            timeout=SECONDS,
            check=False,
            **both,
        )
        job_run.log += ran.stdout
        assert not any(files[name].read_text() for name in ("GITHUB_ENV", "GITHUB_PATH")), (
            "no step of ours uses these"
        )
        job_run.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        if ran.returncode:
            raise ActionFailed(f"exit status {ran.returncode}")
        return dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())


def load_workflow(text: str) -> dict[str, Any]:
    """Return the content of a workflow. YAML reads the key `on` as true; it is changed back."""
    return {("on" if key is True else key): value for key, value in yaml.safe_load(text).items()}


def checkout(run: Run, job: Job, repository: str = "school/class", **inputs: str) -> None:
    """Copy a repository at a commit or its default branch. A private one needs its deploy key."""
    ref, key, path = inputs.pop("ref", "main"), inputs.pop("ssh-key", ""), inputs.pop("path", ".")
    assert inputs == {"persist-credentials": "false"}, inputs
    bare = run.service.repositories / f"{repository}.git"
    deploy_key = bare / "deploy-key"
    if deploy_key.exists() and deploy_key.read_text() != key:
        raise ActionFailed("Permission denied (publickey).")
    target = job.work / path
    target.mkdir(exist_ok=True)
    packed = subprocess.run(["git", "-C", bare, "archive", ref], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", target], input=packed.stdout, check=True)
    (target / ".git").mkdir()  # a checkout could store its token here
    # the environment that `make setup` would take minutes to build is this very one
    if path == "course":
        (target / ".venv").mkdir()
        (target / ".venv" / "bin").symlink_to(BIN)
        (target / ".venv" / ".ready").touch()


def setup_python(run: Run, job: Job, **inputs: str) -> Mapping[str, str]:
    """Return a version of Python, which is part of the keys of caches."""
    assert inputs.keys() == {"python-version"}
    return {"python-version": "3.12.1"}


def upload_artifact(run: Run, job: Job, name: str, path: str, **inputs: str) -> Mapping[str, str]:
    """Store a folder as an artifact. Each name can be used only once in a run."""
    assert inputs == {"if-no-files-found": "error"}
    artifacts = run.folder / "artifacts"
    if not (job.work / path).is_dir() or list(artifacts.glob(f"*/{name}")):
        raise ActionFailed(
            "no files, or an artifact with this name already exists on the workflow run"
        )
    number = str(700 + len(list(artifacts.glob("*"))))
    shutil.copytree(job.work / path, artifacts / number / name)
    return {"artifact-id": number}


def download_artifact(run: Run, job: Job, path: str, **inputs: str) -> None:
    """Copy an artifact into a folder."""
    (source,) = (run.folder / "artifacts" / inputs.pop("artifact-ids")).iterdir()
    assert not inputs
    shutil.copytree(source, job.work / path)


def cache(run: Run, job: Job, path: str, key: str, **inputs: str) -> None:
    """Restore a folder from the newest cache whose key matches, and save it if the job succeeds."""
    start = inputs.pop("restore-keys", key)
    assert not inputs
    caches, target = run.service.repositories.parent / "caches", job.work / path
    entries = sorted(caches.glob(f"{start}*"), key=lambda entry: entry.stat().st_mtime_ns)
    if entries and not target.exists():
        shutil.copytree(entries[-1], target, symlinks=True)
    if not (caches / key).exists():
        job.after.append(lambda: shutil.copytree(target, caches / key, symlinks=True))


ACTIONS: Mapping[str, Callable[..., Mapping[str, str] | None]] = {
    "actions/cache": cache,
    "actions/checkout": checkout,
    "actions/setup-python": setup_python,
    "actions/upload-artifact": upload_artifact,
    "actions/download-artifact": download_artifact,
}
