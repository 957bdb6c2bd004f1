"""Write results as Markdown for a pull request.

Fixed words, numbers and ids are Markdown; all other text is in `<pre>` blocks.

A student chose some of that text. Inside `<pre>` neither Markdown nor the hosting service's
additions (mentions, references, links, emoji) apply. `<`, `>`, `&` and quotes are written as
entities, so no tag can start or end there. Text that looks like a mention or an address is broken
up, for readers that do not support `<pre>`.
"""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from ..result import CheckResult, ExerciseResult, Result, with_total
from .report_content import (
    ASK,
    IDS,
    FunctionReport,
    Labels,
    adjustment_text,
    attempt_words,
    exercise_adjustments,
    out_of,
    out_of_all,
    points,
    question_about,
)

# columns of a block: chosen for the page of a pull request, and more than the 76 of a check's title
# with its points, so that such a line is not wrapped
WIDTH = 84
SENTENCE = 64  # columns for a check's title; its points take 12 more
LONGEST_LINE = 400  # characters; enough for the longest explanation of a misconception
LONGEST_BLOCK = 6_000  # characters: ten such blocks fit into LONGEST
LONGEST = 60_000  # bytes of the whole text: the service accepts 65,535 in a check run's summary
CUT = "… (cut)"
NOTHING = "\u200b"  # a zero-width space
_SPECIAL = re.compile(r"([@#])(?=\w)|(:)(?=//)|\b(www|GH)(?=[.-])", re.IGNORECASE)


def results_section(
    title: str,
    results: Sequence[Result],
    not_started: Collection[tuple[str, str]] = (),
    labels: Labels = IDS,
) -> str:
    """Return results under a heading.

    A table of scores for each assignment comes first, then a block for each exercise that is
    started and not right.

    Args:
        title: The heading.
        results: The results.
        not_started: Pairs (assignment id, exercise id).
        labels: The course's titles.
    """
    lines = [f"## {escape_text(title)}: {out_of_all(results)}"]
    failed = []
    for _, results_of_one in labels.by_assignment(results):
        for result in results_of_one:
            assignment_title = labels.assignment(result.assignment)
            if labels.assignments and assignment_title != title:
                lines += ["", f"### {escape_text(assignment_title)}: {out_of(result)}"]
            lines += ["", "| | exercise | score |", "|---|---|---|"]
            for exercise in result.exercises:
                started = (result.assignment, exercise.id) not in not_started
                mark = attempt_words(exercise).mark if started else "·"
                lines.append(
                    f"| {mark} | {escape_text(labels.exercise(exercise.id))} | {out_of(exercise)} |"
                )
                if started and not attempt_words(exercise).passed:
                    failed.append(exercise)
    for exercise in failed:
        label = html.escape(one_line(labels.exercise(exercise.id)))
        summary = f"{attempt_words(exercise).mark} <strong>{label}</strong> {out_of(exercise)}"
        tag = "<details open>" if exercise is failed[0] else "<details>"
        block = text_block(attempt_text(exercise))
        lines.append(f"\n{tag}<summary>{summary}</summary>\n\n{block}\n\n</details>")
    return "\n".join(lines)


def text_block(text: str) -> str:
    """Return a block that shows any text literally, with lines of at most WIDTH columns.

    A text of more than LONGEST_BLOCK characters is cut.
    """
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip(" "))][:8]
        lines += textwrap.wrap(one_line(line), WIDTH, subsequent_indent=indent) or [""]
    block = "\n".join(lines)
    block = block if len(block) <= LONGEST_BLOCK else f"{block[:LONGEST_BLOCK]}\n{CUT}"
    return f"<pre>\n{html.escape(_SPECIAL.sub(lambda m: m.group() + NOTHING, block))}\n</pre>"


def one_line(text: str, limit: int = LONGEST_LINE) -> str:
    """Return one line of printable characters, with blanks for other ones, cut at `limit`."""
    line = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text).rstrip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def escape_text(text: str) -> str:
    """Return a short text for use outside `<pre>`, such as a course's title.

    All of Markdown's special characters are escaped. The text becomes one line, cut at 100
    characters.
    """
    line = _SPECIAL.sub(lambda m: m.group() + NOTHING, one_line(text, 100))
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", line)


def attempt_text(result: ExerciseResult) -> str:
    """Return the report on an attempt that is not right, in the words of `course check`."""
    words = attempt_words(result)
    lines = [line for function in words.functions for line in _function(function)]
    lines += [f"hint: {one_line(words.hint)}"] if words.hint else []
    lines += [
        line for text, checks in words.folded if checks for line in _lines_of_score(text, checks)
    ]
    lines += [one_line(result.note)] if result.note else []
    return "\n".join(lines)


def _function(function: FunctionReport) -> Iterator[str]:
    indent = "  " if function.name else ""
    head = f"{function.mark} {function.head}" if function.name else function.head
    for index, line in enumerate(head.splitlines()):
        yield one_line(f"{indent}{line}" if index else line)
    for role, text, checks in function.details:
        if checks:
            yield from _lines_of_score(text, checks, indent)
        else:
            yield f"{indent}{_BEFORE.get(role, '')}{one_line(text)}"


_BEFORE = {"evidence": "  ", "hint": "hint: "}


def _lines_of_score(
    sentence: str, checks: Sequence[CheckResult], indent: str = ""
) -> Iterator[str]:
    wide = SENTENCE - len(indent)
    first_line, *further_lines = textwrap.wrap(one_line(sentence), wide) or [""]
    scored = f"{points(sum(c.score for c in checks))} / {points(sum(c.max_score for c in checks))}"
    yield f"{indent}{first_line:<{wide}}  {scored:>10}"
    yield from (f"{indent}{line}" for line in further_lines)


def feedback_markdown(result: Result, labels: Labels = IDS) -> str:
    """Return the feedback on a whole submission as Markdown.

    The scores and the mistakes come first, then lines by which a student can ask about a result,
    then adjustments and notes.
    """
    decided = [*map(adjustment_text, result.adjustments)]
    for exercise in result.exercises:
        label = labels.exercise(exercise.id)
        decided += [
            f"{label}: {adjustment_text(adjustment)}"
            for adjustment in exercise_adjustments(exercise, result)
        ]
        decided += [f"{label}: {exercise.note}"] if exercise.note else []
    sections = [results_section(labels.assignment(result.assignment), [result], labels=labels)]
    questions = list(
        filter(None, (question_about(result, exercise) for exercise in result.exercises))
    )
    if questions:
        sections.append(
            f"Is something wrong here? {ASK.removesuffix(':')}.\n\n"
            + text_block("\n".join(questions))
        )
    if decided:
        sections.append(text_block("\n".join(decided)))
    return "\n\n".join(sections) + "\n"


def one_exercise(result: Result, id_: str) -> Result:
    """Return the result with this exercise only, a new total, and the assignment's decisions."""
    return with_total(
        result, tuple(exercise for exercise in result.exercises if exercise.id == id_)
    )
