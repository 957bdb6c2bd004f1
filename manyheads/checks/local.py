"""Import trusted code (references and mutants) in the judge's process, and run it in place of an
attempt.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from shlex import quote

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply, tensors_of
from ..box.worker.messages import Call
from ..errors import CourseFault, described, place_of
from .explain import is_dtype_fault, is_refusal, kind_of
from .implementation import LocalRunner, Runner
from .transcript import Exchange, Question


def changes_in(reply: Reply) -> int:
    """Return how often the reply's tensors have been changed in place: where this number grows, a
    check has altered the reply.
    """
    return sum(tensor._version for tensor in tensors_of(reply))


def bytes_of(reply: Reply) -> int:
    """Return the size of its tensors."""
    return sum(tensor.nbytes for tensor in tensors_of(reply))


class LocalRecordingRunner:
    """Runs the reference or a mutant in the judge's process as if it were an attempt, and records
    the exchanges.
    """

    def __init__(self, namespace: Mapping[str, object], device: str = "cpu") -> None:
        self.check = ""
        self.device = device
        self.transcript: list[Exchange] = []
        self.ended: dict[str, Call] = {}  # trusted code ends no process
        self.in_single: set[int] = set()  # nor is it asked in float32 because of another call
        self._runner = LocalRunner(namespace, device)

    def execute(self, call: Call) -> Reply:
        """Return the reply, which is recorded. Like an attempt's, it is computed in float32 if
        float64 raises.
        """
        reply = as_an_attempts(self._runner, call, self._runner.execute(call))
        self.transcript.append(Exchange(self.check, call, reply))
        return reply

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """Return the reply to each question, one after the other."""
        replies: list[Reply | AttemptEnded] = []
        for question in questions:
            self.check = question.check
            replies.append(self.execute(question.call))
        return replies


def as_an_attempts(runner: Runner, call: Call, reply: Reply) -> Reply:
    """Return the reply as an attempt's would be: computed in float32 if float64 raises, unless it
    is known to raise, too.
    """
    raised = reply.raised
    exception_kind = kind_of(raised) if raised else None
    if (
        call.dtype is None
        and raised
        and not is_refusal(raised)
        and (exception_kind is None or "dtype" in exception_kind.meaning)
    ):
        in_single = runner.execute(dataclasses.replace(call, dtype="float32"))
        if in_single.raised is None or is_dtype_fault(raised):
            return in_single
    return reply


class BrokenReference(CourseFault):
    """A reference cannot be imported. The text names the file and the error."""


@lru_cache(maxsize=256)
def namespace_of(path: Path) -> Mapping[str, object]:
    """Return the names that a trusted source file defines. Its `__main__` part does not run.

    The file may import its neighbours: `from ._shared import softmax`. Raises BrokenReference.
    """
    return namespace_of_source(path.read_text(encoding="utf-8"), path)


def namespace_of_source(source: str, path: Path) -> Mapping[str, object]:
    """Return the names that this source defines if it were the file at `path`. Raises
    BrokenReference.
    """
    module = types.ModuleType(f"{_package_of(path.parent)}.{path.stem}")
    module.__file__ = str(path)
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        raise BrokenReference(_why_broken(path, error)) from error
    return vars(module)


def _why_broken(path: Path, error: BaseException) -> str:
    # a neighbour that it imports may be what fails
    location = place_of(error, lambda file: file.parent == path.parent)
    if location is None:
        return f"{path}: {described(error)}. Next: python {quote(str(path))}"
    file, line = location
    return f"{file}:{line}: {described(error)}. Next: mend that line, then course verify"


def _package_of(folder: Path) -> str:
    """Return the name of a package whose modules are the files of this folder. Each course has its
    own packages.
    """
    name = f"trusted_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
