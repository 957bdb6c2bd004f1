"""Report the parts of a file that did not run to their end, and a text that Python cannot read.

A part is a top-level statement, or a cell of a notebook that Python cannot parse. If a part stops,
the parts below it are run all the same, and the functions there are judged.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from ..box.connection import End, Stopped
from ..box.worker.messages import Raised
from ..checks.explain_exceptions import (
    explain,
    is_undefined,
    join_sentences,
    missing_name,
    sanitize,
)
from ..checks.runner import Exchange
from ..submission import Source, proved_line
from ..submission.source import DEFINITIONS, TEXT_ERRORS
from .exception_advice import suggest

_MAX_PARTS_SHOWN = 3  # the rest is only counted
_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]{0,80})'")
_MODULES = ("torch", "torch.nn", "numpy", "math", "einops", "typing")  # that may be misspelt


def explain_text(source: Source, raised: Raised) -> str:
    """Return the sentence of `explain`, with Python's message if Python cannot parse the text.

    The judge parses the text itself: an attempt that raises a SyntaxError chooses its own message,
    which is not shown.
    """
    sentence = explain(raised)
    if raised.type not in TEXT_ERRORS:
        return sentence
    cell = source.cell_around(raised.line or raised.part or 1)
    python_message = sanitize(cell.python_message(raised.line or 0))
    if not python_message:
        return sentence
    return join_sentences(sentence, f"Python says: {python_message}".removesuffix("."))


def stopped_parts(
    source: Source, stopped: Sequence[Stopped], describe: Callable[[Raised], str]
) -> str:
    """Return one text with a sentence for each of the first _MAX_PARTS_SHOWN stopped parts.

    A last sentence has the number of further stopped parts. If a part failed because a name is
    missing, and a stopped part above contains the name, its sentence says only that it needs the
    name. Return "" if all parts ran to their end.

    Args:
        source: The attempt.
        stopped: The parts that did not run to their end.
        describe: Returns the description of an exception that may be shown.
    """
    sentences, words_of_stopped = [], set[str]()
    for stop in stopped[:_MAX_PARTS_SHOWN]:
        location = proved_line(source, stop.line).place
        needed_name = missing_name(stop.raised)
        if needed_name in words_of_stopped:
            reason = f"did not run to its end either: it needs {needed_name}."
        else:
            reason = _reason(stop, describe, source)
        sentences.append(f"{location[0].upper()}{location[1:]} {reason}")
        words_of_stopped |= _words_of_parts(source, [stop.line])
    if (omitted := len(stopped) - _MAX_PARTS_SHOWN) > 0:
        sentences.append(f"{omitted} more did not run to their end.")
    return " ".join(sentences)


def as_note(sentences: str) -> str:
    """Return these sentences as a note on a file whose functions were judged all the same.

    Returns "" if there are none.
    """
    note = f"{sentences} The lines below ran: only what is defined there is missing."
    return note if sentences else ""


def _reason(stopped: Stopped, describe: Callable[[Raised], str], source: Source) -> str:
    """Return the reason why a part did not run to its end, as a sentence without its subject.

    The part ended the process or took too long, a module is missing, or the part raised another
    exception. A module with a similar name, or the usual repair, is suggested.
    """
    raised = stopped.raised
    if raised is None:
        why = "ended the whole process"
        if stopped.ended is End.TIMEOUT:
            why = f"was still at work after {stopped.seconds:.2g} seconds"
        return f"was left out: it {why}."
    if raised.type == "ModuleNotFoundError" and (module := _MODULE.fullmatch(raised.message)):
        problem = (
            f"did not run to its end: there is no module {module[1]} where attempts are judged."
        )
        near = get_close_matches(module[1], _MODULES, 1)
        return f"{problem} Did you mean {near[0]}?" if near else problem
    if raised.type in TEXT_ERRORS:  # the other cells may be correct
        source = source.cell_around(stopped.line)
    sentence = f"did not run to its end: it {describe(raised)}"
    return join_sentences(sentence, suggest(source, raised) or " ").rstrip()


def are_the_cause(
    source: Source, stopped: Sequence[Stopped], transcript: Sequence[Exchange]
) -> bool:
    """Return whether the parts that did not run are the reason why no call was answered.

    They are if some part did not run, no call was answered, and one of these holds:

    1. More than half of the calls lacked a name from such a part.
    2. The file can be parsed, defines no function or class, and all called names were undefined.
    """
    exceptions = [exchange.reply.raised for exchange in transcript]
    if not stopped or None in exceptions:
        return False
    words = _words_of_parts(source, [stop.line for stop in stopped])
    lacking = [exception for exception in exceptions if missing_name(exception) in words]
    if len(lacking) > len(exceptions) / 2:
        return True
    statements = source.statements  # empty if Python cannot parse the text
    if not statements or any(isinstance(statement, DEFINITIONS) for statement in statements):
        return False
    return all(map(is_undefined, filter(None, exceptions)))


def _words_of_parts(source: Source, part_lines: Iterable[int]) -> set[str]:
    """Return all words in the text of the parts that begin on these lines.

    A part is a statement. In a cell that cannot be parsed, it goes from the line to the end of the
    cell.
    """
    lines = source.lines
    first_lines = [statement.lineno for statement in source.statements]
    # a part that is no statement ends above the next cell
    ends_of_cells = [*(first_line - 1 for first_line in source.cells), len(lines)]
    words, previous_end = set[str](), 0
    for line in sorted(part_lines):
        begun_statements = bisect_right(first_lines, line)
        end = 0
        if begun_statements:
            end = source.statements[begun_statements - 1].end_lineno or 0
        if end < line:  # no statement contains the line
            begun_cells = bisect_right(source.cells, line)
            end = ends_of_cells[begun_cells]
        start = max(line - 1, previous_end)  # so that no line is read twice
        words.update(re.findall(r"\w+", "\n".join(lines[start:end])))
        previous_end = max(previous_end, end)
    return words
