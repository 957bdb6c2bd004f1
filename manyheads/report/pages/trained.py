"""The page about a student's own attention: what it wrote, how it learned, and what its heads look at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from ...course import Course, Exercise
from ...tools.bands import Band
from ...training.curve import Curve
from ...training.recorded import SENTENCE
from ...training.verdict import TrainingVerdict
from ..curve_svg import svg
from ..next_steps import how_far
from ..training import meaning
from .environment import Picture, environment, picture


@dataclass(frozen=True)
class Trained:
    """What a training has shown. written: the text, with its prompt. heads: a band for each block; empty if none were found."""

    curve: Curve
    reference: Curve
    verdict: TrainingVerdict
    written: str
    heads: Sequence[Band]


@dataclass(frozen=True)
class _Block:
    title: str
    heads: tuple[Picture, ...]


def trained_page(course: Course, exercise: Exercise, done: Collection[Exercise], trained: Trained) -> str:
    """The page, as text. done: the exercises whose checks all pass."""
    return (
        environment()
        .get_template("trained.html.j2")
        .render(
            course=course.title,
            id=exercise.id,
            title=exercise.title,
            how_far=how_far(course, done),
            built=[each for each in course.exercises if each in done],
            written=trained.written,
            well=trained.verdict.well,
            verdict=trained.verdict.sentence,
            meaning=meaning(trained.curve),
            curve=Markup(svg(trained.curve, trained.reference)),
            sentence=SENTENCE,
            blocks=[_Block(_title(band), _one_by_one(band)) for band in trained.heads],
        )
    )


def _title(band: Band) -> str:
    """The band's title without the sentence, which the page names once."""
    title = band.title.removeprefix(f"“{SENTENCE}”, ")
    return title[:1].upper() + title[1:]


def _one_by_one(band: Band) -> tuple[Picture, ...]:
    """A picture of each head, so that they stand below one another where a page is narrow."""
    return tuple(picture(replace(band, title=f"{band.title}, {panel.title}", panels=(panel,))) for panel in band.panels)
