"""A file's own visible checks: what stands below `if __name__ == "__main__":`, run as `python FILE` runs it.

Each such block is run by itself, so that one that fails does not stop those below it. What it prints is shown, too. It
costs no point. But where it fails, and grading asks more than the visible checks do, the exercise is not done: elsewhere
those have seen all that counts, and a right attempt may fail it. Nothing is said of a block that takes longer than a student waits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.worker.answers import Raised
from ..box.worker.limits import Limits
from ..checks.sanitize import sanitize
from ..judge.function_states import uses
from ..result import CheckResult, ExerciseResult, FunctionResult
from ..submission import AttemptSource
from ..submission.notebook import CODE_LIMIT
from ..submission.read import proved_line
from ..submission.source_text import lines_of

SECONDS = 3.0  # for all of them: a student waits
LINES, WIDTH = 20, 200  # of what was printed
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


Printed = tuple[str, ...]  # the texts around the values of an f-string; of a plain text that alone


@dataclass(frozen=True)
class Block:
    """One visible check of the file: its lines, and the names in it. test: where the condition stands, on its first line."""

    first: int
    last: int
    names: frozenset[str]
    said: frozenset[Printed]  # what the block itself prints
    test: tuple[int, int]


def with_own_checks(result: ExerciseResult, source: AttemptSource, box: Box, limits: Limits) -> ExerciseResult:
    """Return the result, with what the file's own checks say of each function, and with what the file printed."""
    definitions, blocks = _parts(source.source)
    if (not blocks and not source.cells) or len(result.unwritten) == len(result.functions):
        return result
    stopped, printed = _run(_text(source, blocks), box, limits)
    if any(raised.type == "BdbQuit" for raised in stopped):
        printed = ""  # what the debugger says to nobody
    functions = {f.name: f for f in result.functions}
    checks = [*result.checks]
    for raised in stopped:
        block = next((b for b in blocks if b.first <= (raised.line or 0) <= b.last), None)
        if block is not None and raised.type == "AssertionError" and raised.message:
            place = proved_line(source, raised.line or 1).place
            says = (
                f"the {'notebook' if source.cells else 'file'}'s own check on {place} says: {sanitize(raised.message)}"
            )
            about = functions.get(_about(block, definitions, [*functions.values()], source.source))
            if about is not None and about.state in ("right", "wrong") and not about.own_check:
                counts = bool(result.unseen_checks) and about.state == "right"
                checks += [_failed(about.name, says)] * counts
                told = {"state": "wrong" if counts else about.state, "own_check": says}
                functions[about.name] = about.model_copy(update=told)
    own = frozenset[Printed]().union(*(block.said for block in blocks))
    shown = {"checks": (*checks,), "functions": (*functions.values(),), "printed": printed_lines(printed, own)}
    return result.model_copy(update=shown)


def _failed(function: str, says: str) -> CheckResult:
    """Return the file's own check as one that failed: without points, but nothing is done until it passes."""
    title = "passes the file's own check"
    return CheckResult(
        id="own_check", title=title, outcome="failed", score=0, max_score=0, evidence=says, function=function
    )


def _parts(source: str) -> tuple[dict[str, int], list[Block]]:
    """Return the line of each definition, and the blocks."""
    if len(source) > CODE_LIMIT:
        return {}, []
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, []
    return {node.name: node.lineno for node in body if isinstance(node, _DEFINITIONS)}, list(_blocks(body))


def _blocks(body: Sequence[ast.stmt]) -> Iterator[Block]:
    for each in body:
        match each:
            case ast.If(body=[ast.Try(handlers=[ast.ExceptHandler(type=ast.Name("NotImplementedError")), *_])]):
                continue  # the answer to a prediction: for who runs the file, after having guessed
            case ast.If(test=ast.Compare(left=ast.Name("__name__"), ops=[ast.Eq()]) as test, orelse=[]):
                if test.end_lineno != each.lineno or test.end_col_offset is None:
                    continue
                nodes = [node for part in each.body for node in ast.walk(part)]
                yield Block(
                    first=each.lineno,
                    last=each.end_lineno or each.lineno,
                    names=frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
                    said=frozenset(_texts(nodes)),
                    test=(test.col_offset, test.end_col_offset),
                )


def _texts(nodes: Sequence[ast.AST]) -> Iterator[Printed]:
    """Yield each text that is printed, without its values."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name("print"), args=[ast.Constant(value=str(text))]):
                yield (text,)
            case ast.Call(func=ast.Name("print"), args=[ast.JoinedStr(values=parts)]):
                texts = [""]  # a value ends a text, and begins the next one
                for part in parts:
                    if isinstance(part, ast.Constant):
                        texts[-1] += str(part.value)
                    else:
                        texts.append("")
                if any(text.strip() for text in texts):
                    yield tuple(texts)


def _is_printed_by(printed: Printed, text: str) -> bool:
    """Return whether these texts stand in this one in their order, from its beginning to its end. Linear: each is found once."""
    first, *others = printed
    if not others:
        return text == first
    *between, last = others
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for each in between:
        at = text.find(each, at, end)
        if at < 0:
            return False
        at += len(each)
    return True


def _text(source: AttemptSource, blocks: Sequence[Block]) -> AttemptSource:
    """Return the same lines, in which the blocks run."""
    lines = lines_of(source.source)
    for block in blocks:
        line = lines[block.first - 1].encode()  # Python counts columns in bytes
        start, end = block.test
        lines[block.first - 1] = (line[:start] + b"True" + line[end:]).decode()
    return replace(source, source="\n".join(lines) + "\n")


def _run(source: AttemptSource, box: Box, limits: Limits) -> tuple[tuple[Raised, ...], str]:
    """Return the exceptions of the blocks that stopped, and what was printed."""
    connection = box.attempt(limits)
    try:
        reply = connection.ask(source.load(prints=True), SECONDS + box.start_seconds)
    except AttemptEnded:
        return (), ""
    finally:
        connection.close()
    return reply.stopped, reply.printed


def _about(block: Block, definitions: dict[str, int], functions: Sequence[FunctionResult], source: str) -> str:
    """Return the function that a block is about: of those that it names, the last one before it; of wrong ones, the first.

    None of them where all are right, and another that they use, or that the block names too, is not.
    """
    named = {
        f.name: f.state
        for f in functions
        if f.name in block.names and definitions.get(f.name, block.last) < block.first
    }
    wrong = [name for name, state in named.items() if state == "wrong"]
    if wrong:
        return wrong[0]
    reached = block.names.union(*(uses(source, name) for name in named))
    if any(f.state != "right" or f.own_check for f in functions if f.name in reached):
        return ""
    return max(named, key=lambda name: definitions[name], default="")


def printed_lines(printed: str, own: Collection[Printed] = ()) -> tuple[str, ...]:
    """Return the first lines that a student's code printed, as they were: a tensor's rows below each other.

    What is printed at every call is shown once: each line with those below it that are indented. own: what the checks
    themselves print, which is left out.
    """
    once = dict.fromkeys(re.split(r"\n+(?=\S)", printed.rstrip()))
    others = (part for part in once if not any(_is_printed_by(each, part) for each in own))
    lines = [line for part in others for line in part.splitlines() if line.strip()]
    shown = (sanitize(line, WIDTH, keeps_blanks=True) for line in lines[:LINES])
    return (*shown, *(["… and more"] if len(lines) > LINES else []))
