"""`nbgrader generate_feedback`: an instructor's comment stands beside the diagnosis, and does not replace it."""

from __future__ import annotations

import html
import textwrap
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import NbGraderPreprocessor

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
    """Both comments as Markdown, of which only the instructor's is read as such.

    The automatic one is indented, which is literal text, but for below a list, whose last item it would continue: then
    what a student's code raised would be Markdown and HTML. `<pre>` is literal below whatever an instructor wrote.
    """
    return f"{manual}\n\n<pre>\n{html.escape(textwrap.dedent(auto))}\n</pre>"
