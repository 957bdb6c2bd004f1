"""Put an instructor's comment beside the diagnosis in nbgrader's feedback, as plain text."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import NbGraderPreprocessor

from ..report.adjustments import told
from ..report.words import FunctionReport, attempt_words, said_of_not_graded
from ..result import Adjustment, CheckResult, ExerciseResult

# `nbgrader generate_feedback`: an instructor's comment stands beside the diagnosis, and does not replace it.

Resources = dict[str, Any]


class BothComments(NbGraderPreprocessor):  # type: ignore[misc]
    """After nbgrader's GetGrades, which shows a manual comment in place of the automatic one."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Put the automatic comment below each manual one."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as book:
            for cell in nb.cells:
                grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
                if not grade_id:
                    continue
                try:
                    said = book.find_comment(grade_id, about["notebook"], about["assignment"], about["student"])
                except MissingEntry:
                    continue
                if said.manual_comment and said.auto_comment and said.auto_comment not in said.manual_comment:
                    cell.metadata.nbgrader["comment"] = one_above_the_other(said.manual_comment, said.auto_comment)
        return nb, resources


def one_above_the_other(manual: str, auto: str) -> str:
    """Return both comments as Markdown, of which only the instructor's is read as such.

    The automatic one is indented, which is literal text, but for below a list, whose last item it would continue: then
    what a student's code raised would be Markdown and HTML. `<pre>` is literal below whatever an instructor wrote.
    """
    return f"{manual}\n\n<pre>\n{html.escape(textwrap.dedent(auto))}\n</pre>"


_INDENT = "    "  # four blanks: nbgrader renders comments as Markdown, in which this is literal text


def comment(result: ExerciseResult, isolation: str, decided: Sequence[Adjustment] = ()) -> str:
    """Return the comment on an attempt, function by function: what the student did, what was seen, a hint.

    decided: by which rules it counts as it does; they stand first.
    """
    words = attempt_words(result)
    lines = [told(each) for each in decided]
    lines += [result.note] if result.note else []
    if words.passed:
        lines.append("All checks passed.")
    else:
        lines += [line for function in words.functions for line in _said(function)]
    if words.hint:
        lines.append(f"hint: {words.hint}")
    lines.append(f"(isolation: {isolation})")
    return "\n".join(_INDENT + line for text in lines for line in text.splitlines())


def _said(function: FunctionReport) -> Iterator[str]:
    if function.head:
        yield f"{function.mark} {function.head}" if function.name else function.head
    yield from (f"hint: {text}" if kind == "hint" else text for kind, text, _ in function.told)


def group_report(result: ExerciseResult, checks: Collection[str]) -> str:
    """Return a line for each check of a group, with the evidence if it failed; or that the exercise is not graded."""
    if not result.is_graded:
        return f"{said_of_not_graded(result)}\n"
    return "\n".join(_line(c) for c in result.checks if c.id in checks) + "\n"


def _line(check: CheckResult) -> str:
    mark = "✓" if check.outcome == "passed" else "✗"
    line = f"{mark} {check.title:<60} {check.score:g} / {check.max_score:g}"
    return line if check.outcome == "passed" else f"{line}\n    {check.evidence}"
