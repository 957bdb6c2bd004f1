"""The page about a student's own attention: what it wrote, how it learned, and what its heads look at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from markupsafe import Markup

from ...course import Course, Exercise
from ...student.plot_content import Band
from ...student.recorded_training import SENTENCE, TrainingVerdict
from ...student.training_plan import Curve
from ..figures import smoothed
from ..ladder import how_far
from ..training_text import meaning
from .write import Picture, environment, picture

# Training curves as SVG within a page: without script, style or network, and with a description in words.

YOURS, REFERENCE = "#2a7fc1", "#a06a00"  # each at least 3 : 1 on white and on a dark page
_WIDE, _HIGH = 316.0, 200.0
_LEFT, _TOP, _BELOW = 26.0, 8.0, 54.0  # the margins around the curves
_EVERY = 100  # steps between two numbers on the axis


def svg(yours: Curve, reference: Curve) -> str:
    """Return the loss by step: a line each for learning, a ring each for writing. The reference's is the wider line."""
    losses = [loss for curve in (yours, reference) for loss in (*smoothed(curve)[1], *curve.held_out.values())]
    scale = _Scale(max(yours.steps, reference.steps), min(losses), max(losses))
    parts = [*_axes(scale), *_curve(reference, scale, REFERENCE, 5), *_curve(yours, scale, YOURS, 2), *_legend()]
    named = escape(f"Loss by step: yours ends at {yours.recent():.2f}, the reference at {reference.recent():.2f}")
    width, height = _LEFT + _WIDE + 8, _TOP + _HIGH + _BELOW
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{named}" font-size="10" '
        f'fill="currentColor" text-anchor="middle"><g transform="translate({_LEFT:g} {_TOP:g})">{"".join(parts)}</g></svg>'
    )


class _Scale:
    """From steps and losses to places in the picture."""

    def __init__(self, steps: int, low: float, high: float) -> None:
        self.steps, self.low, self.high = max(steps, 1), low, max(high, low + 1e-9)

    def x(self, step: float) -> float:
        return _WIDE * step / self.steps

    def y(self, loss: float) -> float:
        return _HIGH * (self.high - loss) / (self.high - self.low)

    def place(self, step: float, loss: float) -> str:
        return f"{self.x(step):.1f},{self.y(loss):.1f}"


def _axes(scale: _Scale) -> Iterator[str]:
    yield f'<path d="M0 0V{_HIGH:g}H{_WIDE:g}" fill="none" stroke="currentColor" stroke-width=".6"/>'
    for step in range(0, scale.steps + 1, _EVERY):
        yield f'<text x="{min(scale.x(step), _WIDE - 8):.1f}" y="{_HIGH + 13:g}">{step}</text>'
    for loss in range(int(scale.low) + 1, int(scale.high) + 1):
        yield f'<text x="-6" y="{scale.y(loss) + 3:.1f}" text-anchor="end">{loss}</text>'
        yield f'<path d="M0 {scale.y(loss):.1f}H{_WIDE:g}" stroke="currentColor" stroke-width=".2"/>'
    yield f'<text x="{_WIDE / 2:g}" y="{_HIGH + 27:g}">loss ↓ better  step →</text>'


def _curve(curve: Curve, scale: _Scale, colour: str, width: int) -> Iterator[str]:
    points = " ".join(scale.place(*each) for each in zip(*smoothed(curve), strict=True))
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    for step, loss in sorted(curve.held_out.items()):
        x, y = scale.place(step, loss).split(",")
        yield f'<circle cx="{x}" cy="{y}" r="{width + 1}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _legend() -> Iterator[str]:
    for x, name, colour, width in ((0, "yours", YOURS, 2), (80, "the reference", REFERENCE, 5)):
        yield f'<path d="M{x} {_HIGH + 42:g}h18" stroke="{colour}" stroke-width="{width}"/>'
        yield f'<text x="{x + 24}" y="{_HIGH + 45:g}" text-anchor="start">{name}</text>'
    yield f'<text x="{_WIDE:g}" y="{_HIGH + 45:g}" text-anchor="end">line: learning, ring: writing</text>'


@dataclass(frozen=True)
class Trained:
    """What a training has shown. written: the text, with its prompt. heads: a band for each block; empty if none were found."""

    curve: Curve
    reference: Curve
    verdict: TrainingVerdict
    written: str
    heads: Sequence[Band]


def trained_page(course: Course, exercise: Exercise, done: Collection[Exercise], trained: Trained) -> str:
    """Return the page, as text. done: the exercises whose checks all pass."""
    return (
        environment()
        .get_template("trained.html.j2")
        .render(
            course=course.title,
            id=exercise.id,
            title=exercise.title,
            how_far=how_far(course, done),
            built=[other for other in course.exercises if other in done],
            written=trained.written,
            well=trained.verdict.well,
            verdict=trained.verdict.sentence,
            meaning=meaning(trained.curve),
            curve=Markup(svg(trained.curve, trained.reference)),
            sentence=SENTENCE,
            blocks=[(_title(band), _one_by_one(band)) for band in trained.heads],
        )
    )


def _title(band: Band) -> str:
    """Return the band's title without the sentence, which the page names once."""
    title = band.title.removeprefix(f"“{SENTENCE}”, ")
    return title[:1].upper() + title[1:]


def _one_by_one(band: Band) -> tuple[Picture, ...]:
    """Return a picture of each head, so that they stand below one another where a page is narrow."""
    return tuple(picture(replace(band, title=f"{band.title}, {panel.title}", panels=(panel,))) for panel in band.panels)
