"""Dates and durations as course.yaml, overrides.yaml and platforms write them.

A moment without a zone means nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_DURATION = re.compile(r"(\d{1,4}) ?(minutes?|min|m|hours?|h|days?|d)")
_MOMENT = re.compile(r"(\S{8,10}[ T][\d:.,]+) ?([+-]\d\d(?::?\d\d)?|[A-Za-z][\w+/-]*)?")  # a clock, then its zone
_FIRST, _END = datetime(1990, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)


def read_moment(text: str, zone: str = "") -> datetime | None:
    """Return the moment in UTC that an ISO 8601 date and time mean; None for all else, and never an exception.

    An offset or the name of a zone may follow the time. What is written here may come from a student, so it is
    bounded: nothing before 1990 or after 2100 is a moment.

    Args:
        text: such as 2026-12-01 18:00, 2026-12-01T18:00:30Z or 2026-12-01 18:00:30.5 Europe/Berlin.
        zone: of a text that names none. Of two moments that a clock shows alike, as one hour is repeated in autumn,
            the later is meant.
    """
    found = _MOMENT.fullmatch(text.strip()) if len(text) <= 100 else None
    if found is None:
        return None
    clock, named = found[1], found[2] or zone
    try:
        if named[:1] in ("+", "-") or named == "Z":
            when = datetime.fromisoformat(clock + named).astimezone(UTC)
        else:
            local, known = datetime.fromisoformat(clock), zone_named(named)
            when = max(local.replace(tzinfo=known, fold=fold).astimezone(UTC) for fold in (0, 1))
    except (ValueError, OverflowError):
        return None
    return when if _FIRST <= when < _END else None


def moment(text: str, zone: str = "") -> datetime:
    """Return what `read_moment` reads. Raises ValueError where that is nothing."""
    when = read_moment(text, zone)
    if when is not None:
        return when
    if zone or read_moment(text, "UTC") is None:
        raise ValueError(f"{text!a} is no date and time such as 2026-12-01 18:00, of the years 1990 to 2100")
    raise ValueError(f"{text} has no zone: write +01:00 after it, or give the course a time_zone")


def zone_named(name: str) -> ZoneInfo:
    """Return the zone, such as Europe/Berlin or UTC. Raises ValueError."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"{name} is no time zone that is known here; one is Europe/Berlin") from None


def shown_moment(when: datetime, zone: str = "") -> str:
    """2026-12-01 18:00 Europe/Berlin, as people read it; in UTC where no zone is named or known."""
    try:
        return f"{when.astimezone(zone_named(zone)):%Y-%m-%d %H:%M} {zone}" if zone else f"{when:%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return f"{when:%Y-%m-%d %H:%M} UTC"


def duration(text: str) -> timedelta:
    """30 min, 2 h, 7 days. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!a} is no duration such as 30 min, 2 h or 7 days")
    unit = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}[found[2][0]]
    return int(found[1]) * unit


def _text(value: object) -> object:
    """Return what YAML has read as a date, as text again."""
    return value.isoformat() if isinstance(value, date) else value


def _read_by(reader: Callable[[str], object]) -> AfterValidator:
    """Return what keeps a text that this reader can read. The reader raises ValueError."""

    def check(text: str) -> str:
        reader(text)
        return text

    return AfterValidator(check)


def _zone(name: str) -> None:
    """Raise ValueError for a zone that is not known.

    Where a system has no list of zones, as Windows, any name goes: students' commands need none.
    """
    try:
        zone_named("Europe/Berlin")
    except ValueError:
        return
    zone_named(name)


Moment = Annotated[
    str,
    BeforeValidator(_text),
    _read_by(lambda text: moment(text, "UTC")),
    Field(description="ISO 8601, such as 2026-12-01 18:00 in the course's time_zone, or 2026-12-01 18:00+01:00"),
]
Zone = Annotated[str, _read_by(_zone), Field(description="such as Europe/Berlin")]
Duration = Annotated[str, _read_by(duration), Field(description="such as 30 min, 2 h or 7 days")]
