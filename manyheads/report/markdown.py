"""Results as Markdown for a pull request: fixed words, numbers and ids as Markdown, all other text in `<pre>` blocks.

A student chose some of that text. Inside `<pre>` neither Markdown nor the hosting service's additions (mentions,
references, links, emoji) apply. `<`, `>`, `&` and quotes are written as entities, so no tag can start or end there. What
looks like a mention or an address is broken up, for readers that do not support `<pre>`.
"""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from ..result import CheckResult, ExerciseResult, Result
from .words import attempt_words, out_of, points

WIDTH = 84  # columns
SENTENCE = 64  # columns for a check's title
LONGEST_LINE, LONGEST_BLOCK = 400, 6_000  # characters
LONGEST = 60_000  # bytes of the whole text: the service accepts 65,535 in a check run's summary
CUT = "… (cut)"
NOTHING = "\u200b"  # a zero-width space
_SPECIAL = re.compile(r"([@#])(?=\w)|(:)(?=//)|\b(www|GH)(?=[.-])", re.IGNORECASE)


def results_section(title: str, results: Sequence[Result], not_started: Collection[tuple[str, str]] = ()) -> str:
    """Results under a heading: a table of scores, then a block for each exercise that is started and not right.

    not_started: ids (assignment, exercise).
    """
    score, most = sum(r.score for r in results), sum(r.max_score for r in results)
    lines = [f"## {escaped(title)}: {points(score)} / {points(most)}", "", "| | exercise | score |", "|---|---|---|"]
    wrong = []
    for result in results:
        for exercise in result.exercises:
            started = (result.assignment, exercise.id) not in not_started
            mark = attempt_words(exercise).mark if started else "·"
            lines.append(f"| {mark} | `{exercise.id}` | {out_of(exercise)} |")
            wrong += [exercise] if started and not attempt_words(exercise).passed else []
    return "\n".join([*lines, *(_details(e, first=e is wrong[0]) for e in wrong)])


def text_block(text: str) -> str:
    """Any text, shown literally."""
    lines = [wrapped for line in text.splitlines() for wrapped in _wrapped(line)]
    shown = "\n".join(lines)
    shown = shown if len(shown) <= LONGEST_BLOCK else f"{shown[:LONGEST_BLOCK]}\n{CUT}"
    return f"<pre>\n{html.escape(_SPECIAL.sub(lambda m: m.group() + NOTHING, shown))}\n</pre>"


def one_line(text: str, limit: int = LONGEST_LINE) -> str:
    """One line of printable characters, blanks in place of others, cut at `limit`."""
    line = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text).rstrip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def escaped(text: str) -> str:
    """A short text outside `<pre>`, such as a course's title, with all of Markdown's characters escaped."""
    line = _SPECIAL.sub(lambda m: m.group() + NOTHING, one_line(text, 100))
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", line)


def attempt_text(result: ExerciseResult) -> str:
    """The report on an attempt that is not right, in the words of `course check`."""
    return "\n".join(_lines(result))


def _details(result: ExerciseResult, *, first: bool) -> str:
    summary = f"{attempt_words(result).mark} <code>{result.id}</code> {out_of(result)}"
    opened = f"<details{' open' * first}><summary>{summary}</summary>"
    return f"\n{opened}\n\n{text_block(attempt_text(result))}\n\n</details>"


def _lines(result: ExerciseResult) -> Iterator[str]:
    words = attempt_words(result)
    if words.first is not None:
        yield from _scored(words.first)
        yield f"  {one_line(words.first.evidence)}"
    if words.where:
        yield words.where
    for finding in words.findings:
        yield one_line(finding.title)
        yield f"hint: {one_line(finding.hint)}"
    if words.hint:
        yield f"hint: {one_line(words.hint)}"
    if result.note:
        yield one_line(result.note)
    for check in words.rest:
        yield from _scored(check)


def _scored(check: CheckResult) -> Iterator[str]:
    """A check's title, with its points at the right of the first line."""
    first, *more = textwrap.wrap(one_line(check.title), SENTENCE) or [""]
    yield f"{first:<{SENTENCE}}  {out_of(check):>10}"
    yield from more


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" "))][:8]
    return textwrap.wrap(one_line(line), WIDTH, subsequent_indent=indent) or [""]
