"""Pages with the solution of every exercise: the lesson, its code filled in, and what often goes wrong."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from ...errors import CourseFault
from ...whole import write_whole
from .environment import environment, is_ours

INDEX = "index.html"


@dataclass(frozen=True)
class Piece:
    """Lines of code; is_solution: those that students write."""

    text: str
    is_solution: bool


@dataclass(frozen=True)
class Mistake:
    """A misconception in the words that students know."""

    title: str
    explanation: str
    hint: str


@dataclass(frozen=True)
class Solution:
    """One exercise. cells: Markdown as text, code in pieces. figures: the pictures that the Markdown names, by that name."""

    stem: str
    title: str
    cells: tuple[str | tuple[Piece, ...], ...]
    mistakes: tuple[Mistake, ...]
    figures: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its page."""
        return f"{self.stem}.html"


def write_solutions(title: str, solutions: Sequence[Solution], folder: Path) -> Path:
    """Write a page for each solution, and one that lists them. Returns its path.

    Raises:
        CourseFault: there is a page of somebody else's at one of these names.
    """
    pages = environment()
    texts = {INDEX: pages.get_template("solutions.html.j2").render(title=title, listed=solutions)}
    # Raw HTML stays text: a lesson has none, and a page that nothing can be put into is one thing less to think about.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    elsewhere = {f"{other.stem}.ipynb": other.name for other in solutions}
    for place, solution in enumerate(solutions):
        within = elsewhere | {name: _data(name, content) for name, content in solution.figures.items()}
        parts = [_html(markdown, cell, within) if isinstance(cell, str) else cell for cell in solution.cells]
        texts[solution.name] = pages.get_template("solution.html.j2").render(
            title=solution.title,
            parts=parts,
            mistakes=solution.mistakes,
            before=solutions[place - 1] if place else None,
            after=solutions[place + 1] if place + 1 < len(solutions) else None,
        )
    for name in texts:
        if (folder / name).is_file() and not is_ours(folder / name):
            said = f"{folder / name} is there already and is no page of this program"
            raise CourseFault(f"{said}. Next: name another folder for --solutions")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return folder / INDEX


def _data(name: str, content: bytes) -> str:
    """Return a picture as an address that holds it: a page loads nothing from elsewhere."""
    return f"data:{mimetypes.guess_type(name)[0]};base64,{b64encode(content).decode()}"


def _html(markdown: MarkdownIt, cell: str, within: Mapping[str, str]) -> Markup:
    """Return the cell as HTML. What is wide scrolls, so that a keyboard must reach it. within: what names in links stand for."""
    html = markdown.render(cell)
    for name, address in within.items():
        html = html.replace(f'="{name}"', f'="{address}"')
    html = html.replace("<pre>", '<pre tabindex="0" role="region" aria-label="example">')
    html = html.replace("<table>", '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>')
    return Markup(html.replace("</table>", "</table></div>"))
