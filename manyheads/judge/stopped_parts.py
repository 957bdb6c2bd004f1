"""What is said of the parts of a file that did not run to their end, and whether they are why nothing answers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from ..box.connection import End
from ..box.loading import Stopped
from ..box.worker.answers import Raised
from ..checks.explain import is_undefined, missing_name
from ..checks.transcript import Exchange
from ..submission import AttemptSource, proved_line
from ..submission.source_text import DEFINITIONS, lines_of, statements_of
from .cures import cure

_SHOWN = 3
_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]{0,80})'")


def stopped_parts(source: AttemptSource, stopped: Sequence[Stopped], describe: Callable[[Raised], str]) -> str:
    """Return a sentence for each of the first parts that did not run to their end; "" where all did.

    describe: what is shown of an exception.
    """
    sentences, words = [], set[str]()
    for part in stopped[:_SHOWN]:
        name, place = missing_name(part.raised), proved_line(source, part.line).place
        reason = f"did not run to its end either: it needs {name}." if name in words else ""
        sentences.append(f"{place[0].upper()}{place[1:]} {reason or _reason(part, describe, source.source)}")
        words |= _words(source, part.line)
    if (more := len(stopped) - _SHOWN) > 0:
        sentences.append(f"{more} more did not run to their end.")
    return " ".join(sentences)


def as_note(sentences: str) -> str:
    """Return them as a note on a file whose functions were judged all the same."""
    return f"{sentences} The lines below ran, and this costs no points by itself." if sentences else ""


def _reason(stopped: Stopped, describe: Callable[[Raised], str], source: str) -> str:
    raised = stopped.raised
    if raised is None:
        is_late = stopped.ended is End.TIMEOUT
        why = f"was still at work after {stopped.seconds:.2g} seconds" if is_late else "ended the whole process"
        return f"was left out: it {why}."
    if raised.type == "ModuleNotFoundError" and (module := _MODULE.fullmatch(raised.message)):
        near = get_close_matches(module[1], ("torch", "torch.nn", "numpy", "math", "einops", "typing"), 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        return f"did not run to its end: there is no module {module[1]} where attempts are judged.{meant}"
    return f"did not run to its end: it {describe(raised)}. {cure(source, raised)}".rstrip()


def are_the_cause(source: AttemptSource, stopped: Sequence[Stopped], transcript: Sequence[Exchange]) -> bool:
    """Return whether no call was answered, most of them for want of a name in a part that did not run to its end.

    So are they where the file defines nothing beside them.
    """
    raised = [exchange.reply.raised for exchange in transcript]
    if not stopped or None in raised:
        return False
    words = _words(source, *(part.line for part in stopped))
    wanting = [exception for exception in raised if missing_name(exception) in words]
    parts = statements_of(source.source)  # empty where Python cannot parse all of it
    defines_nothing = bool(parts) and not any(isinstance(part, DEFINITIONS) for part in parts)
    return len(wanting) > len(raised) / 2 or (defines_nothing and all(map(is_undefined, filter(None, raised))))


def _words(source: AttemptSource, *begins: int) -> set[str]:
    """Return the words of the parts that begin on these lines; of a cell that cannot be parsed, from that line to its end."""
    lines, parts = lines_of(source.source), statements_of(source.source)
    first, last = [part.lineno for part in parts], [part.end_lineno or 0 for part in parts]
    words, done = set[str](), 0
    for line in sorted(set(begins)):
        place = bisect_right(first, line) - 1
        if place >= 0 and last[place] >= line:
            end = last[place]
        else:
            after = bisect_right(source.cells, line)
            end = source.cells[after] - 1 if after < len(source.cells) else len(lines)
        words.update(*(re.findall(r"\w+", each) for each in lines[max(line - 1, done) : end]))
        done = max(done, end)
    return words
