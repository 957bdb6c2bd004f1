"""On which line a call that did not come back was: it is made once more, with an alarm in the attempt's own process.

For a student's own machine alone, where nothing is hidden from the attempt and no points depend on it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..result import ExerciseResult
from ..submission import AttemptSource

ALARM = 1.0  # seconds: a call needs a few milliseconds
WAITED = 2.0  # seconds more, for an attempt that does not hear the alarm
_NAME = "NoAnswerInTime"
_ALARM = f"""
import signal
class {_NAME}(BaseException): pass
def ring(*_): raise {_NAME}
if hasattr(signal, "setitimer"):
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, {ALARM})
"""  # some systems have no such alarm
# In no file of the student's, so that its own line is not the innermost.
_PRELUDE = f'exec(compile({_ALARM!r}, "<alarm>", "exec"), {{}})\n'


def with_endless_line(
    result: ExerciseResult, source: AttemptSource, ended: Mapping[str, Call], box: Box, limits: Limits, dtype: str
) -> ExerciseResult:
    """The result; where a call did not come back, the evidence names the line of its loop, as far as it can be found.

    ended: the calls that ended the attempt's process, by the id of the check.
    """
    late = [check for check in result.checks if check.outcome == "timeout" and check.id in ended]
    if not late:
        return result
    line = _line(source, ended[late[0].id], box, limits, dtype)
    if not line:
        return result
    said = dict.fromkeys((check.evidence for check in late), _sentence(source.source, line))
    checks = tuple(c.model_copy(update={"evidence": said[c.evidence]}) if c in late else c for c in result.checks)
    functions = tuple(f.model_copy(update={"evidence": said.get(f.evidence, f.evidence)}) for f in result.functions)
    return result.model_copy(update={"checks": checks, "functions": functions})


def _line(source: AttemptSource, call: Call, box: Box, limits: Limits, dtype: str) -> int:
    """The student's line at which the alarm reached the call, 0 where it did not."""
    below = source.source.count("\n") + 2  # the alarm is the last line
    cells = (*source.cells, below) if source.cells else ()
    armed = replace(source, source=f"{source.source}\n{_PRELUDE}", cells=cells)
    connection = box.attempt(limits)
    try:
        connection.ask(armed.load(), limits.seconds_per_call + box.start_seconds)
        raised = connection.ask(cast(call, call.dtype or dtype), ALARM + WAITED).raised
    except AttemptEnded:
        return 0
    finally:
        connection.close()
    return raised.line or 0 if raised is not None and raised.type == _NAME else 0


def _sentence(source: str, line: int) -> str:
    """The first line of the innermost loop that contains this line; the line itself where none does."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = []
    loops = [n for n in nodes if isinstance(n, ast.While | ast.For) and n.lineno <= line <= (n.end_lineno or 0)]
    if not loops:
        return f"It did not come back from line {line}."
    # A slow loop may have an end.
    return f"It was still in the loop on line {max(loop.lineno for loop in loops)} when its time was up: does it end?"
