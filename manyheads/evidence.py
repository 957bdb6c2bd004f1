"""What a student may see of their own attempts, as data: `--json`, `course lsp` and other programs give these words alone.

It holds no reference, no expected value, and no misconception's id. Where a word stands in manyheads/result.py, too, it
means the same.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .result import Outcome, State


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Placed(_Model):
    """Something on a line of the attempt.

    line: of the file; of a notebook, of its code cells joined. 0 where nothing is known, as of a file that is not there.
    column, end_column: of its first character, counted from 1, and behind its last.
    cell, line_in_cell: of a notebook, the code cell, counted from 1, and the line within it; else 0.
    """

    line: int = Field(default=0, ge=0)
    column: int = Field(default=1, ge=1)
    end_column: int = Field(default=1, ge=1)
    cell: int = Field(default=0, ge=0)
    line_in_cell: int = Field(default=0, ge=0)


class CheckEvidence(_Placed):
    """The outcome of one visible check.

    line: that of its function: one that is proved, else one that an exception names, else that of its `def`.
    misconception: the title of what explains it, "" where nothing does.
    hint: the first hint to that. hint_level: how many hints to it were shown; 0 for none.
    """

    id: str
    title: str
    outcome: Outcome
    score: float = Field(ge=0)
    max_score: float = Field(ge=0)
    function: str = ""
    evidence: str = ""
    misconception: str = ""
    hint: str = ""
    hint_level: int = Field(default=0, ge=0)


class FunctionEvidence(_Placed):
    """One function or class, in the words of `course check`; without a name what is wrong with the whole file.

    says: what stands beside the name: what the student did and where, or what it waits for.
    check, evidence: the title of the first check that failed here, and what it saw. own_check: what the file's own check said.
    also: what is proved here besides, and does not explain the rest.
    lines: all that are proved, the first of them `line`; empty where none is.
    """

    name: str
    state: State
    says: str = ""
    check: str = ""
    evidence: str = ""
    own_check: str = ""
    also: str = ""
    misconception: str = ""
    hint: str = ""
    hint_level: int = Field(default=0, ge=0)
    lines: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """What is said of it, and what was seen, on one line."""
        head = ": ".join(filter(None, (self.name, self.says or self.check)))
        return " ".join(" ".join(filter(None, (head, self.evidence, self.own_check))).split())


class HintEvidence(_Model):
    """One hint. title: the mistake that it is about. step, steps: which of how many."""

    title: str
    hint: str
    step: int = Field(ge=1)
    steps: int = Field(ge=1)


class OperationEvidence(_Model):
    """One operation of a line: the shapes that it takes and gives. data: how the memory of its output relates to its inputs."""

    name: str
    takes: str
    gives: str
    data: str = ""
    warning: str = ""
    raised: bool = False


class LineEvidence(_Placed):
    """A line of a traced call, and the operations that it ran. depth: how many lines called it."""

    depth: int = Field(ge=0)
    code: str
    operations: tuple[OperationEvidence, ...] = ()


class RepeatEvidence(_Model):
    """The lines from `first` to `last` ran `more` times more. alike: with the same shapes."""

    first: int
    last: int
    more: int
    alike: bool


class CallEvidence(_Model):
    """One traced call: its lines in their order, and what it returned or raised."""

    function: str
    title: str
    sizes: str
    lines: tuple[LineEvidence, ...]
    repeats: tuple[RepeatEvidence, ...] = ()
    dropped: int = 0
    returned: str = ""
    right: bool = False
    raised: str = ""


class ExerciseEvidence(_Model):
    """One exercise; each command fills its own part.

    file: what was read, from the course's folder on.
    score: the points that are seen here. unseen: how many of max_score only grading gives.
    functions, checks: by `course check`, the checks by `course status`, too. hint: by `course hint`. calls: by `course trace`.
    problem: why there is nothing more: the file is missing, cannot be read, or ended the trace.
    note: which file counts, or what of it was not run. printed: the first lines that the student's code printed.
    next: the command to run next.
    """

    id: str
    title: str
    assignment: str
    file: str
    state: Literal["done", "in progress", "untouched", "missing"]
    score: float = Field(ge=0)
    max_score: float = Field(ge=0)
    unseen: float = Field(default=0.0, ge=0)
    functions: tuple[FunctionEvidence, ...] = ()
    checks: tuple[CheckEvidence, ...] = ()
    hint: HintEvidence | None = None
    calls: tuple[CallEvidence, ...] = ()
    problem: str = ""
    note: str = ""
    printed: tuple[str, ...] = ()
    next: str = ""

    @property
    def wrong(self) -> tuple[FunctionEvidence, ...]:
        """What is wrong, in the order of the file."""
        return tuple(each for each in self.functions if each.state in ("wrong", "undefined"))


class Evidence(_Model):
    """What one command found, of each exercise that it was asked about.

    version: another where a reader of an earlier one would be misled. A new key alone does not change it.
    """

    version: Literal[1] = 1
    command: Literal["check", "hint", "trace", "status"]
    exercises: tuple[ExerciseEvidence, ...]
