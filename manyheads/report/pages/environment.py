"""The template environment. Everything that is put into a page is escaped."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import adjustments, aggregate, words
from ..labels import IDS, Labels

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from ...student.bands import Band

GENERATOR = "manyheads course report"
_HEAD = 1024  # the first bytes of a page, which name its generator
_HERE = Path(__file__).parent


def environment(labels: Labels = IDS) -> Environment:
    """Return a Jinja2 environment with autoescape, in which undefined names are errors. labels: what stands for ids."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    css, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "class.js"))
    pages = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals |= vars(words) | vars(aggregate) | vars(adjustments)  # all that is said of results
    pages.globals |= {
        "css": Markup(css),
        "script": Markup(script),
        "script_digest": f"sha256-{_digest(script)}",
        # Allow only this style and images in the page itself, and on the class page its one script. Nothing else is loaded
        # or run, whatever a page contains.
        "policy": f"default-src 'none'; style-src 'sha256-{_digest(css)}'; img-src data:",
        "generator": GENERATOR,
        "by_exercise": lambda result: {exercise.id: exercise for exercise in result.exercises},
        "labels": labels,
    }
    pages.filters |= {"points": words.points, "score": words.score_words}
    return pages


def is_ours(path: Path) -> bool:
    """Return whether this program wrote this page."""
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(_HEAD)


@dataclass(frozen=True)
class Picture:
    """A picture in a page, and its description in words."""

    svg: Markup
    words: str


def picture(band: Band) -> Picture:
    """Return the picture of a band."""
    from markupsafe import Markup

    from ...student.bands import summary
    from ..heatmap import svg

    return Picture(Markup(svg(band)), summary([band])[0])


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()
