"""What a student may see of their own attempts, as data: `--json`, `course lsp` and other programs give these words alone.

It holds no reference, no recorded answer, and no misconception's id. Words of manyheads/result.py mean here what they mean there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from .result import Outcome, State


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class _Placed(_Model):
    """Something on a line of the attempt.

    line: of the file; of a notebook, of its code cells joined. 0 where it has none. column, end_column: of its text, from 1 on.
    cell, line_in_cell: of a notebook, the code cell, counted from 1, and the line within it; else 0.
    """

    line: int = 0
    column: int = 1
    end_column: int = 1
    cell: int = 0
    line_in_cell: int = 0


class _Seen(_Placed):
    """What was seen. line: one that is proved, else one that an exception names, else that of the function's `def`.

    misconception: the title of what explains it, "" where nothing does. hint: the first to that.
    hint_level: how many hints to it were shown.
    """

    function: str = ""
    evidence: str = ""
    misconception: str = ""
    hint: str = ""
    hint_level: int = 0


class CheckEvidence(_Seen):
    """The outcome of one visible check, at the line of its function."""

    id: str
    title: str
    outcome: Outcome
    score: float
    max_score: float


class FunctionEvidence(_Seen):
    """One function or class, in the words of `course check`; without a name what is wrong with the whole file.

    says: what stands beside the name. check: the first check that failed here. own_check: what the file's own check said.
    also: what is proved here besides. lines: all that are proved, the first of them `line`.
    """

    state: State
    says: str = ""
    check: str = ""
    own_check: str = ""
    also: str = ""
    lines: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """What is said of it, and what was seen, on one line."""
        head = ": ".join(filter(None, (self.function, self.says or self.check)))
        seen = [f"{part[0].upper()}{part[1:]}" for part in (self.evidence, self.own_check) if part]
        ended = (part if part.endswith((".", "?", "!")) else f"{part}." for part in (head, *seen))
        return " ".join(" ".join(ended).split())


class HintEvidence(_Model):
    """One hint. title: the mistake that it is about. step, steps: which of how many."""

    title: str
    hint: str
    step: int
    steps: int

    @property
    def sentence(self) -> str:
        """The hint with its number."""
        return f"Hint {self.step} of {self.steps}: {self.hint}"


class OperationEvidence(_Model):
    """The shapes that an operation takes and gives. data: how the memory of its output relates to its inputs."""

    name: str
    takes: str
    gives: str
    data: str
    warning: str
    raised: bool


class LineEvidence(_Placed):
    """A line of a traced call, and the operations that it ran. depth: how many lines called it."""

    depth: int
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
    repeats: tuple[RepeatEvidence, ...]
    dropped: int
    returned: str
    right: bool
    raised: str


class QuestionEvidence(_Model):
    """A question about the student's own code. options: by their letters.

    answer: the letter that was given, "" for none. right: whether it is; why: what else it would be the answer to.
    """

    code: str
    text: str
    options: dict[str, str]
    answer: str = ""
    right: bool | None = None
    why: str = ""


class ExerciseEvidence(_Model):
    """One exercise; each command fills its own part.

    file: what was read, from the course's folder on. score: the points that are seen here. unseen: those only grading asks.
    seed: the same questions can be asked for again with it.
    problem: why there is nothing more: the file is missing, cannot be read, or ended the trace.
    next: the command to run next.
    """

    id: str
    title: str
    assignment: str
    file: str
    state: Literal["done", "in progress", "untouched", "missing"]
    score: float
    max_score: float
    unseen: float = 0.0
    functions: tuple[FunctionEvidence, ...] = ()
    checks: tuple[CheckEvidence, ...] = ()
    hint: HintEvidence | None = None
    calls: tuple[CallEvidence, ...] = ()
    questions: tuple[QuestionEvidence, ...] = ()
    seed: int | None = None
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
    command: Literal["check", "hint", "trace", "status", "ask"]
    exercises: tuple[ExerciseEvidence, ...]
