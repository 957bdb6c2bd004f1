"""What a run is made of, what it leaves behind, and the files that it is read from."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


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
    result: str = "skipped"
    label: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    steps: list[StepRun] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # of its steps, to the runner, through their output
    after: list[Callable[[], object]] = field(default_factory=list)  # what its actions do where all went well

    @property
    def said(self) -> str:
        """All that its steps said."""
        return "\n".join(step.said for step in self.steps)


def load_workflow(text: str) -> dict[str, Any]:
    """A workflow's YAML; its `on`, which YAML reads as true, under its own name."""
    workflow = yaml.safe_load(text)
    return {("on" if key is True else key): value for key, value in workflow.items()}


def pairs(path: Path) -> dict[str, str]:
    """NAME=value lines and NAME<<MARK blocks, as the runner reads them."""
    found: dict[str, str] = {}
    lines = iter(path.read_text().splitlines())
    for line in lines:
        if match := re.fullmatch(r"([^=<]+)<<(.+)", line):
            block = []
            for inner in lines:
                if inner == match[2]:
                    break
                block.append(inner)
            else:
                raise ValueError(f"{match[1]}: the block never ends")
            found[match[1]] = "\n".join(block)
        elif "=" in line:
            name, _, value = line.partition("=")
            found[name] = value
        elif line:
            raise ValueError(f"not a pair: {line!r}")
    return found
